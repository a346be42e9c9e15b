//! The result for a terminal of 80 columns.

use super::choose::{Choice, Reason, shown};
use super::{Axis, Tuned, Varied};
use super::{env, totals};
use crate::replay::{LABELS_LEGEND, LEGEND, Triggers, head, row, scene_name, share};
use crate::report::wrapped;

/// The width of text.
const WIDTH: usize = 79;
/// Goes on below the values of a combination.
const BELOW: &str = "\n                      ";
/// The most settings of the frontier that are listed.
const MOST_LISTED: usize = 12;
/// How the knee is found.
const KNEE: &str = "The knee: draw a straight line from the cheapest of these to the dearest; the \
    knee lies furthest above it, by a tenth of its rise at least. Up to it tokens buy most, beyond it little.";
/// Where there is none.
const NO_KNEE: &str =
    "There is no knee: what is shown grows about as the tokens do, or not at all.";

/// All of it.
pub fn text(tuned: &Tuned) -> String {
    let mut text = paragraph(&asked(tuned));
    text.push('\n');
    text.push_str(&scenes(tuned));
    text.push_str(LEGEND);
    if tuned.now().labels.is_some() {
        text.push_str(LABELS_LEGEND);
    }
    text.push('\n');
    text.push_str(&frontier(tuned));
    text.push('\n');
    text.push_str(&suggestion(tuned));
    text
}

/// How many questions to whom, and how many settings were tried.
pub(super) fn asked(tuned: &Tuned) -> String {
    let swept = &tuned.swept;
    let bot = swept.bot.as_deref().unwrap_or("a bot to come");
    let taken = format!("by people, each taken for a question to {bot}");
    let who = match swept.triggers {
        None => "questions named by the labels".to_owned(),
        Some(Triggers::Mentions | Triggers::One(_)) => format!("questions to {bot}"),
        Some(Triggers::Replies) => format!("replies {taken}"),
        Some(Triggers::All) => format!("messages {taken}"),
    };
    let many = if swept.replayed < swept.found {
        format!("{} of {} {who}, evenly spread", swept.replayed, swept.found)
    } else {
        format!("{} {who}", swept.found)
    };
    let points = tuned.grid.points.len();
    let mut text = format!("{many}; {points} settings tried on each.");
    if swept.unknown_labels > 0 {
        let unknown = swept.unknown_labels;
        let is = if unknown == 1 { "is" } else { "are" };
        text.push_str(&format!(
            " {unknown} of the messages that the labels name {is} in none of the files, and not found."
        ));
    }
    text
}

/// For each scene a table for each setting that makes a difference there; the others
/// as suggested.
fn scenes(tuned: &Tuned) -> String {
    let suggested = tuned.choice.suggested;
    let mut text = String::new();
    for scene in tuned.scenes() {
        let Some(figures) = tuned.swept.figures[tuned.base()].scenes.get(&scene) else {
            continue;
        };
        text.push_str(&head(&capital(scene_name(scene)), figures));
        text.push_str(&match figures.triggers {
            1 => "1 question\n".to_owned(),
            many => format!("{many} questions\n"),
        });
        let varied = tuned.varied(scene);
        for Varied { axis, rows } in &varied {
            text.push_str(&format!("{}\n", axis.variable.name));
            for (point, value, figures) in rows {
                let mark = if suggested == Some(*point) { '>' } else { ' ' };
                let now = if axis.now == *value { " now" } else { "" };
                text.push_str(&row(&format!("{mark} {value:>8}{now}"), figures));
            }
        }
        let differs = |axis: &&Axis| varied.iter().any(|one| one.axis == *axis);
        let same = tuned.grid.axes.iter().filter(|axis| !differs(axis));
        let same: Vec<&str> = same.map(|axis| axis.variable.name).collect();
        if varied.is_empty() {
            text.push_str(&row("", figures));
            text.push_str("nothing that was tried makes a difference here\n");
        } else if !same.is_empty() {
            text.push_str(&paragraph(&format!("no difference: {}", same.join(", "))));
        }
        text.push('\n');
    }
    text
}

/// What each step along the frontier gives, and its settings.
fn frontier(tuned: &Tuned) -> String {
    let Choice { frontier, knee, .. } = &tuned.choice;
    let names = tuned.grid.axes.iter().map(|axis| axis.variable.name);
    let what = match tuned.now().labels {
        Some(_) => "messages that belong",
        None => "messages",
    };
    let mut text = paragraph(&format!(
        "What more tokens buy: per question the {what} shown, the tokens, the tokens that nineteen \
         of twenty keep within, and the settings for them: {}",
        names.collect::<Vec<_>>().join(" / "),
    ));
    for point in listed(tuned) {
        let figures = &tuned.swept.figures[point].all;
        let is_suggested = tuned.choice.suggested == Some(point);
        let mark = if is_suggested { '>' } else { ' ' };
        let mut told = match (*knee == Some(point), tuned.grid.now == point) {
            (true, true) => "  <- the knee, now".to_owned(),
            (true, false) => "  <- the knee".to_owned(),
            (false, true) => "  <- now".to_owned(),
            (false, false) => String::new(),
        };
        if !frontier.contains(&point) {
            told.push_str(" (another shows as much for less)");
        }
        let line = format!(
            "{mark} {:>6.1} {:>6.0} {:>6}  {}",
            share(shown(figures), figures.triggers),
            share(figures.tokens.total, figures.triggers),
            figures.tokens.p95,
            tuned.grid.values(point).join(" / "),
        );
        let fits = line.chars().count() + told.chars().count() <= WIDTH;
        let space = if fits { "" } else { BELOW };
        text.push_str(&format!("{line}{space}{told}\n"));
    }
    text.push_str(&paragraph(about_knee(*knee)));
    text
}

/// What the knee is, or that there is none.
pub(super) const fn about_knee(knee: Option<usize>) -> &'static str {
    if knee.is_some() { KNEE } else { NO_KNEE }
}

/// The frontier, thinned evenly if it is long; with it what is suggested and what is
/// set now.
pub(super) fn listed(tuned: &Tuned) -> Vec<usize> {
    let Choice {
        frontier,
        knee,
        suggested,
        ..
    } = &tuned.choice;
    let many = frontier.len();
    let kept = |at: usize| {
        let last = many - 1;
        many <= MOST_LISTED
            || at == last
            || at * (MOST_LISTED - 1) / last != (at + 1) * (MOST_LISTED - 1) / last
    };
    let thinned = frontier.iter().enumerate().filter(|(at, _)| kept(*at));
    let mut points: Vec<usize> = thinned.map(|(_, point)| *point).collect();
    points.extend(knee.iter().chain(suggested));
    points.push(tuned.grid.now);
    points.sort_by_key(|point| (tuned.swept.figures[*point].all.tokens.total, *point));
    points.dedup();
    points
}

fn suggestion(tuned: &Tuned) -> String {
    let mut text = paragraph(&reason(tuned));
    text.extend(totals::msgs_first(tuned).map(|told| paragraph(&told)));
    text.push_str(&compared(tuned));
    let suggestions = env::suggestions(tuned);
    if !suggestions.is_empty() {
        text.push_str("\nWhy each, by what the values beside it would change:\n");
        text.push_str(&env::why(&suggestions));
        text.push_str("\nFor .env:\n\n");
        text.push_str(&env::lines(&suggestions));
    }
    text
}

/// What is set now beside what is suggested.
fn compared(tuned: &Tuned) -> String {
    let rows = totals::rows(tuned);
    if rows.is_empty() {
        return String::new();
    }
    let line = |[name, now, suggested, each_now, each_suggested]: &[String; 5]| {
        format!("{name:<16} {now:>14} {suggested:>14} {each_now:>12} {each_suggested:>12}\n")
    };
    let head = totals::HEADS.map(str::to_owned);
    let mut text = String::from("\n");
    text.extend(std::iter::once(&head).chain(&rows).map(line));
    text.push_str(&paragraph(totals::about_cost(tuned)));
    text
}

/// What is suggested, and why.
pub(super) fn reason(tuned: &Tuned) -> String {
    let budget = tuned.budget.unwrap_or_default();
    let why = match tuned.choice.reason {
        Reason::Knee => "the knee".to_owned(),
        Reason::WithinBudget => format!(
            "of all that keeps within {budget} tokens for nineteen of twenty questions, what shows most and leaves out \
             least"
        ),
        Reason::NoKnee => {
            "what shows at least as much as the settings of now, for the fewest tokens".to_owned()
        }
        Reason::OverBudget { least } => {
            return format!(
                "Nothing that was tried keeps within {budget} tokens for nineteen of twenty questions: the least is \
                 {least}. Sweep smaller values, of MEM_MAX_CHARS first of all."
            );
        }
    };
    if env::suggestions(tuned).is_empty() {
        format!("Suggested: the settings as they are now ({why}).")
    } else {
        format!("Suggested: {why}.")
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn paragraph(text: &str) -> String {
    let mut lines = wrapped(text, WIDTH).join("\n");
    lines.push('\n');
    lines
}
