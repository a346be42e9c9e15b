//! The result for programs: one JSON object.

use std::collections::BTreeMap;

use serde::Serialize;

use super::choose::Reason;
use super::totals::Totals;
use super::{Tuned, env};
use crate::replay::Figures;

/// Keys in this order; combinations are named by their place in `points`.
#[derive(Serialize)]
struct TuneReport<'a> {
    bot: Option<&'a str>,
    questions: usize,
    questions_found: usize,
    budget_tokens: Option<u32>,
    points: Vec<PointLine<'a>>,
    frontier: &'a [usize],
    knee: Option<usize>,
    now: usize,
    suggested: Option<usize>,
    reason: &'static str,
    totals: TotalsLine,
    env: String,
}

/// Of all questions.
#[derive(Serialize)]
struct TotalsLine {
    now: Totals,
    suggested: Option<Totals>,
}

#[derive(Serialize)]
struct PointLine<'a> {
    settings: BTreeMap<&'a str, &'a str>,
    all: &'a Figures,
    scenes: BTreeMap<&'static str, &'a Figures>,
}

/// The result as one line.
///
/// # Errors
/// If it cannot be written as JSON, which does not happen.
pub fn json(tuned: &Tuned) -> serde_json::Result<String> {
    let axes = &tuned.grid.axes;
    let points = tuned.swept.figures.iter().enumerate();
    let points = points.map(|(at, figures)| {
        let names = axes.iter().map(|axis| axis.variable.name);
        let scenes = figures.scenes.iter();
        PointLine {
            settings: names.zip(tuned.grid.values(at)).collect(),
            all: &figures.all,
            scenes: scenes
                .map(|(scene, figures)| (scene.as_str(), figures))
                .collect(),
        }
    });
    serde_json::to_string(&TuneReport {
        bot: tuned.swept.bot.as_deref(),
        questions: tuned.swept.replayed,
        questions_found: tuned.swept.found,
        budget_tokens: tuned.budget,
        points: points.collect(),
        frontier: &tuned.choice.frontier,
        knee: tuned.choice.knee,
        now: tuned.grid.now,
        suggested: tuned.choice.suggested,
        reason: match tuned.choice.reason {
            Reason::Knee => "knee",
            Reason::WithinBudget => "within_budget",
            Reason::OverBudget { .. } => "over_budget",
            Reason::NoKnee => "no_knee",
        },
        totals: TotalsLine {
            now: Totals::of(tuned, tuned.grid.now),
            suggested: tuned.choice.suggested.map(|point| Totals::of(tuned, point)),
        },
        env: env::lines(&env::suggestions(tuned)),
    })
}
