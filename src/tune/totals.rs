//! What the suggestion changes: all questions together, and one of them.

use serde::Serialize;

use super::Tuned;
use super::choose::shown;
use crate::replay::{Figures, share};
use crate::report::grouped;

/// What one combination shows and costs, of all questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Totals {
    pub(super) messages: u64,
    /// Of the messages those that belong; none without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) belonging: Option<u64>,
    /// An estimate.
    pub(super) tokens: u64,
    /// Of these tokens; none if the model's price is not known.
    pub(super) cost: Option<f64>,
}

impl Totals {
    pub(super) fn of(tuned: &Tuned, point: usize) -> Self {
        let all = &tuned.swept.figures[point].all;
        let tokens = all.tokens.total;
        Self {
            messages: all.messages,
            belonging: all.labels.map(|_| shown(all)),
            tokens,
            cost: tuned.price.map(|price| price.cost(tokens, 0).amount()),
        }
    }
}

/// The heads of [`rows`].
pub(super) const HEADS: [&str; 5] = [
    "now -> suggested",
    "all, now",
    "suggested",
    "each, now",
    "suggested",
];

/// What is set now beside what is suggested: of all questions, and of each; nothing if that is
/// the same, or nothing is suggested.
pub(super) fn rows(tuned: &Tuned) -> Vec<[String; 5]> {
    let now = tuned.grid.now;
    let Some(suggested) = tuned.choice.suggested.filter(|point| *point != now) else {
        return Vec::new();
    };
    let all = |point: usize| -> &Figures { &tuned.swept.figures[point].all };
    let questions = all(now).triggers;
    let totals = [now, suggested].map(|point| Totals::of(tuned, point));
    let cells = |name: &str, [now, suggested]: [String; 2], [each, each_suggested]: [String; 2]| {
        [name.to_owned(), now, suggested, each, each_suggested]
    };
    let row = |name: &str, decimals: usize, of: fn(&Totals) -> Option<u64>| {
        let totals = [of(&totals[0])?, of(&totals[1])?];
        let each = |total| format!("{:.decimals$}", share(total, questions));
        Some(cells(name, totals.map(grouped), totals.map(each)))
    };
    let cost = || {
        let costs = [totals[0].cost?, totals[1].cost?];
        #[expect(clippy::cast_precision_loss, reason = "questions are far below 2^52")]
        let each = |cost: f64| format!("{:.6}", cost / questions.max(1) as f64);
        let all = costs.map(|cost| format!("{cost:.4}"));
        Some(cells("cost", all, costs.map(each)))
    };
    [
        row("messages", 1, |totals| Some(totals.messages)),
        row("that belong", 1, |totals| totals.belonging),
        row("tokens", 0, |totals| Some(totals.tokens)),
        cost(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// In how many blocks the count was full before the characters, as set now, and what the highest
/// value tried would show and cost; none if it was in none.
pub(super) fn msgs_first(tuned: &Tuned) -> Option<String> {
    let (grid, now) = (&tuned.grid, tuned.now());
    let mut text = format!(
        "As set now, in {} of {} blocks MEM_MAX_MSGS left out messages while the characters had room",
        now.msgs_first, now.triggers
    );
    let mut axes = grid.axes.iter();
    let axis = axes.position(|axis| axis.variable.name == "MEM_MAX_MSGS");
    let most = axis.and_then(|axis| {
        let value = |point: usize| grid.values(point)[axis];
        let along = grid.along(axis, grid.now).into_iter();
        let most = along.max_by_key(|point| value(*point).parse::<u64>().ok())?;
        (most != grid.now).then(|| (value(most), &tuned.swept.figures[most].all))
    });
    if let Some((value, most)) = most {
        let more = |most: u64, now_all: u64| share(most.saturating_sub(now_all), now.triggers);
        text.push_str(&format!(
            "; {value} would show {:.1} more messages a question, for {:.0} more tokens",
            more(most.messages, now.messages),
            more(most.tokens.total, now.tokens.total),
        ));
    }
    (now.msgs_first > 0).then(|| text + ".")
}

/// What the costs are, or how to see them.
pub(super) const fn about_cost(tuned: &Tuned) -> &'static str {
    if tuned.price.is_some() {
        "Costs are those of the context alone, at LLM_PRICES."
    } else {
        "For costs set LLM_PRICES to the prices of a million tokens."
    }
}
