//! The suggested settings: lines of a `.env` file, and the reason of each.

use super::Tuned;
use super::choose::shown;
use crate::replay::{Figures, share};
use crate::report::wrapped;

/// The widest line.
const WIDTH: usize = 79;
/// Before a reason.
const INDENT: &str = "    ";

/// One setting of a suggestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub name: &'static str,
    pub value: String,
    /// Why: the values beside it, compared.
    pub reasons: Vec<String>,
}

/// The suggested value of everything that was varied; nothing if what is set now is
/// best and was none of the combinations, or if nothing is suggested.
pub fn suggestions(tuned: &Tuned) -> Vec<Suggestion> {
    let Some(point) = tuned.choice.suggested else {
        return Vec::new();
    };
    if tuned.grid.points[point].values.is_none() {
        return Vec::new();
    }
    let values = tuned.grid.values(point);
    let axes = tuned.grid.axes.iter().zip(values).enumerate();
    let suggestion = |(number, (axis, value)): (usize, (&super::grid::Axis, &str))| Suggestion {
        name: axis.variable.name,
        value: value.to_owned(),
        reasons: reasons(tuned, number, point),
    };
    axes.map(suggestion).collect()
}

/// The lines of the file.
pub fn lines(suggestions: &[Suggestion]) -> String {
    let line = |Suggestion { name, value, .. }: &Suggestion| format!("{name}={value}\n");
    suggestions.iter().map(line).collect()
}

/// Why each is suggested, for a terminal.
pub(super) fn why(suggestions: &[Suggestion]) -> String {
    let mut text = String::new();
    for one in suggestions {
        text.push_str(&format!("  {} {}\n", one.name, one.value));
        let reasons = one.reasons.iter();
        for line in reasons.flat_map(|reason| wrapped(reason, WIDTH - INDENT.len())) {
            text.push_str(&format!("{INDENT}{line}\n"));
        }
    }
    text
}

fn reasons(tuned: &Tuned, axis: usize, point: usize) -> Vec<String> {
    let Tuned { grid, budget, .. } = tuned;
    let along = grid.along(axis, point);
    let figures = |point: usize| &tuned.swept.figures[point].all;
    let chosen = figures(point);
    let mut reasons = Vec::new();
    if along.iter().all(|other| figures(*other) == chosen) {
        let values = &grid.axes[axis].values;
        reasons.push(match values.len() {
            1 => "the only value tried".to_owned(),
            _ => format!("none of {} makes a difference", values.join(", ")),
        });
    } else {
        let at = along.iter().position(|other| *other == point).unwrap_or(0);
        let beside = [at.checked_sub(1), Some(at + 1)];
        for other in beside.into_iter().flatten().filter_map(|at| along.get(at)) {
            let value = &grid.values(*other)[axis];
            let p95 = figures(*other).tokens.p95;
            let compared = match budget.filter(|budget| p95 > *budget) {
                Some(budget) => {
                    format!("over {budget} tokens: one question in twenty needs more than {p95}")
                }
                None => compared(figures(*other), chosen),
            };
            reasons.push(format!("{value}: {compared}"));
        }
    }
    if grid.values(point)[axis] == grid.axes[axis].now {
        reasons.push("(as it is now)".to_owned());
    }
    reasons
}

/// How other figures differ from those chosen.
fn compared(other: &Figures, chosen: &Figures) -> String {
    let questions = chosen.triggers;
    let what = match chosen.labels {
        Some(_) => "messages that belong",
        None => "messages",
    };
    let messages = difference(shown(other), shown(chosen), questions, 1);
    let tokens = difference(other.tokens.total, chosen.tokens.total, questions, 0);
    match (messages, tokens) {
        (None, None) => "the same".to_owned(),
        (Some(messages), None) => format!("{messages} {what} a question, for as many tokens"),
        (None, Some(tokens)) => format!("{tokens} tokens a question, as many {what}"),
        (Some(messages), Some(tokens)) => {
            format!("{messages} {what} a question, {tokens} tokens")
        }
    }
}

/// `2.5 more`; none if it cannot be seen in so many decimals.
fn difference(other: u64, chosen: u64, among: u64, decimals: usize) -> Option<String> {
    let word = if other > chosen { "more" } else { "fewer" };
    let amount = format!("{:.decimals$}", share(other.abs_diff(chosen), among));
    let is_nothing = amount.chars().all(|digit| matches!(digit, '0' | '.'));
    (!is_nothing).then(|| format!("{amount} {word}"))
}
