//! Which of the settings tried to suggest. Exact arithmetic, so that equal figures
//! give equal suggestions.

use std::cmp::Reverse;

use super::grid::Grid;
use crate::replay::{Figures, FiguresByScene};

/// What was found among the settings tried, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Those that no other beats: for fewer tokens none shows as much. From the cheapest
    /// to the dearest.
    pub frontier: Vec<usize>,
    /// The knee of the frontier, if it has one.
    pub knee: Option<usize>,
    /// What to use; none if nothing keeps within the budget.
    pub suggested: Option<usize>,
    pub reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// They are the knee.
    Knee,
    /// They show most within the budget.
    WithinBudget,
    /// Nothing keeps within the budget; this is the least that nineteen of twenty
    /// questions need.
    OverBudget {
        /// In tokens.
        least: u32,
    },
    /// There is no knee: they show at least as much as what is set now, for the fewest
    /// tokens.
    NoKnee,
}

/// Chooses: with a budget of tokens what shows most within it, else the knee.
pub(super) fn choose(grid: &Grid, figures: &[FiguresByScene], budget: Option<u32>) -> Choice {
    let all: Vec<&Figures> = figures.iter().map(|figures| &figures.all).collect();
    let frontier = frontier(grid, &all);
    let knee = knee(&frontier, &all);
    let (suggested, reason) = match (budget, knee) {
        (Some(budget), _) => within(grid, &all, budget),
        (None, Some(knee)) => (Some(knee), Reason::Knee),
        (None, None) => {
            let needed = shown(all[grid.now]);
            let mut points = frontier.iter().copied();
            let enough = points.find(|point| shown(all[*point]) >= needed);
            (enough, Reason::NoKnee)
        }
    };
    Choice {
        frontier,
        knee,
        suggested,
        reason,
    }
}

/// What one wants much of: with labels messages that belong, else messages.
pub(super) fn shown(figures: &Figures) -> u64 {
    figures
        .labels
        .map_or(figures.messages, |labels| labels.found)
}

fn lost(figures: &Figures) -> u64 {
    figures.dropped.each().map(|(_, count)| count).sum()
}

fn frontier(grid: &Grid, all: &[&Figures]) -> Vec<usize> {
    let mut points: Vec<usize> = (0..all.len()).collect();
    points.sort_by_key(|point| {
        let figures = all[*point];
        let tokens = figures.tokens.total;
        (
            tokens,
            Reverse(shown(figures)),
            lost(figures),
            grid.changes(*point),
            *point,
        )
    });
    let mut most = None;
    points.retain(|point| {
        let shown = shown(all[*point]);
        let is_more = most.is_none_or(|most| shown > most);
        most = most.max(Some(shown));
        is_more
    });
    points
}

/// The least that a knee lies above the chord: this part of what the dearest shows more than
/// the cheapest. Less is a line, on which any point would do.
const LEAST_BEND: i128 = 10;

/// The point of greatest distance above the chord from the cheapest to the dearest,
/// which is the same whatever the units of the two axes; the cheapest of several. None if
/// none lies [`LEAST_BEND`] above it.
fn knee(frontier: &[usize], all: &[&Figures]) -> Option<usize> {
    let place = |point: usize| {
        let figures = all[point];
        (i128::from(figures.tokens.total), i128::from(shown(figures)))
    };
    let (first_x, first_y) = place(*frontier.first()?);
    let (last_x, last_y) = place(*frontier.last()?);
    let above = |point: usize| {
        let (x, y) = place(point);
        (y - first_y) * (last_x - first_x) - (x - first_x) * (last_y - first_y)
    };
    let least = (last_x - first_x) * (last_y - first_y);
    let bends = |point: &usize| above(*point) > 0 && above(*point) * LEAST_BEND >= least;
    let bends = frontier
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, point)| bends(point));
    let (_, knee) = bends.max_by_key(|(at, point)| (above(*point), Reverse(*at)))?;
    Some(knee)
}

/// What shows most while nineteen of twenty questions keep within the budget; of
/// several what loses least and shortens least (with labels that is no loss), costs
/// least and changes least.
fn within(grid: &Grid, all: &[&Figures], budget: u32) -> (Option<usize>, Reason) {
    let fitting = (0..all.len()).filter(|point| all[*point].tokens.p95 <= budget);
    let best = fitting.min_by_key(|point| {
        let figures = all[*point];
        let lost = match figures.labels {
            Some(_) => (0, 0),
            None => (lost(figures), figures.shortened),
        };
        let cost = (figures.tokens.total, figures.fetches);
        let changes = grid.changes(*point);
        (Reverse(shown(figures)), lost, cost, changes, *point)
    });
    if best.is_some() {
        return (best, Reason::WithinBudget);
    }
    let least = all.iter().map(|figures| figures.tokens.p95).min();
    let least = least.unwrap_or_default();
    (None, Reason::OverBudget { least })
}
