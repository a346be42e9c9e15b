//! Figures as rows of a table, at most 79 columns wide.

use super::{Figures, FiguresByScene};
use clew_context::model::{OmitReason, Scene};

/// What the columns mean, for who reads them for the first time.
pub const LEGEND: &str = "\
msgs, chars, tokens: messages, characters and estimated tokens that a model
gets to read with a question, on average; p95: nineteen of twenty questions
need no more tokens; GETs: calls to Discord, on average (a bot that has just
started, or with --warm one that has seen the channel); >msgs, >chars, >age:
for how many questions something was left out over MEM_MAX_MSGS, over
MEM_MAX_CHARS or LONE_MAX_CHARS, over MEM_MAX_AGE_MIN or MEM_CHAIN_MAX_AGE_MIN
";
/// What the columns mean that only labels fill.
pub const LABELS_LEGEND: &str = "\
found: of the messages that belong, how many were shown; right: of the messages
shown, how many belong
";

/// The columns and their widths; the last two only with labels.
const COLUMNS: [(&str, usize); 10] = [
    ("msgs", 6),
    ("chars", 6),
    ("tokens", 6),
    ("p95", 6),
    ("GETs", 4),
    (">msgs", 5),
    (">chars", 6),
    (">age", 5),
    ("found", 5),
    ("right", 5),
];
/// The width of a row's label.
const LABEL: usize = 15;

/// The heads of the columns for these figures.
pub fn heads(figures: &Figures) -> impl Iterator<Item = &'static str> {
    let without = if figures.labels.is_some() { 0 } else { 2 };
    let columns = COLUMNS.iter().take(COLUMNS.len() - without);
    columns.map(|(head, _)| *head)
}

/// Under each head what these figures say.
pub fn cells(figures: &Figures) -> Vec<String> {
    let mean = |total: u64| share(total, figures.triggers);
    let over = |caps: &[OmitReason]| percent(figures.truncated.of(caps), figures.triggers);
    let mut cells = vec![
        format!("{:.1}", mean(figures.messages)),
        format!("{:.0}", mean(figures.chars.total)),
        format!("{:.0}", mean(figures.tokens.total)),
        figures.tokens.p95.to_string(),
        format!("{:.1}", mean(figures.fetches)),
        over(&[OmitReason::Msgs]),
        over(&[OmitReason::Chars, OmitReason::LoneChars]),
        over(&[OmitReason::Age, OmitReason::ChainAge]),
    ];
    if let Some(labels) = figures.labels {
        cells.push(percent(labels.found, labels.belonging));
        cells.push(percent(labels.found, figures.messages));
    }
    cells
}

/// The heads as a line over rows of these figures.
pub fn head(label: &str, figures: &Figures) -> String {
    line(label, heads(figures))
}

/// One row; `label` has at most 15 columns.
pub fn row(label: &str, figures: &Figures) -> String {
    let cells = cells(figures);
    line(label, cells.iter().map(String::as_str))
}

fn line<'a>(label: &str, cells: impl Iterator<Item = &'a str>) -> String {
    let mut line = format!("{label:<LABEL$}");
    for (cell, (_, width)) in cells.zip(COLUMNS) {
        line.push_str(&format!(" {cell:>width$}"));
    }
    line.push('\n');
    line
}

/// All scenes that occurred, and all of them together.
pub(super) fn by_scene(figures: &FiguresByScene) -> String {
    let mut text = head("", &figures.all);
    for (scene, figures) in &figures.scenes {
        text.push_str(&row(scene_name(*scene), figures));
    }
    text.push_str(&row("all together", &figures.all));
    text.push('\n');
    text.push_str(LEGEND);
    text
}

/// A scene in words for people.
pub const fn scene_name(scene: Scene) -> &'static str {
    match scene {
        Scene::Thread => "threads",
        Scene::ReplyChain => "reply chains",
        Scene::Direct => "direct messages",
        Scene::Lone => "other messages",
    }
}

/// How much of a total falls to each of `among`; 0 among none.
#[expect(
    clippy::cast_precision_loss,
    reason = "it is shown with one decimal at most"
)]
pub fn share(total: u64, among: u64) -> f64 {
    if among == 0 {
        0.0
    } else {
        total as f64 / among as f64
    }
}

/// A share as a percentage that says 0 and 100 only if nothing and everything is meant.
fn percent(count: u64, among: u64) -> String {
    if among == 0 {
        return "-".to_owned();
    }
    let percent = (200 * count + among) / (2 * among);
    let percent = match percent {
        0 if count > 0 => 1,
        100 if count < among => 99,
        rounded => rounded,
    };
    format!("{percent}%")
}
