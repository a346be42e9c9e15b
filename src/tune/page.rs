//! The result as a page with plots.

use std::iter;

use super::Tuned;
use super::choose::{Choice, shown};
use super::env::{self, Suggestion};
use super::text::{about_knee, asked, capital, listed, reason};
use super::totals;
use crate::plot::{Axis, Chart, Page, Part, Scale, Section, Series, Table};
use crate::replay::{Figures, LABELS_LEGEND, LEGEND, cells, heads, scene_name, share};
use clew_context::model::Scene;

pub fn page(tuned: &Tuned) -> Page {
    let mut sections = vec![suggestion(tuned), frontier(tuned)];
    let scenes = tuned.scenes().into_iter();
    sections.extend(scenes.map(|scene| of_scene(tuned, scene)));
    Page {
        title: "Clew: caps for these channels".to_owned(),
        lead: vec![asked(tuned)],
        sections,
    }
}

fn suggestion(tuned: &Tuned) -> Section {
    let mut parts = vec![Part::Text(reason(tuned))];
    parts.extend(totals::msgs_first(tuned).map(Part::Text));
    let rows = totals::rows(tuned);
    if !rows.is_empty() {
        let caption = "All questions together, and one of them";
        let table = Table::new(caption, 1, &totals::HEADS, rows);
        parts.push(Part::Table(table));
        parts.push(Part::Text(totals::about_cost(tuned).to_owned()));
    }
    let suggestions = env::suggestions(tuned);
    if !suggestions.is_empty() {
        parts.push(Part::Lines(env::lines(&suggestions)));
        let row = |one: Suggestion| {
            let line = format!("{}={}", one.name, one.value);
            [line, one.reasons.join("; ")]
        };
        let caption = "Lines of .env, and what the values beside would change";
        let rows = suggestions.into_iter().map(row);
        let table = Table::new(caption, 2, &["line", "why"], rows);
        parts.push(Part::Table(table));
    }
    section("Suggested", parts)
}

fn frontier(tuned: &Tuned) -> Section {
    let Choice {
        frontier,
        knee,
        suggested,
        ..
    } = &tuned.choice;
    let all = |point: usize| &tuned.swept.figures[point].all;
    let mut series = vec![series(
        "no other beats",
        frontier.iter().map(|point| all(*point)),
    )];
    let now = Some(tuned.grid.now);
    for (name, point) in [("the knee", *knee), ("suggested", *suggested), ("now", now)] {
        series.extend(point.map(|point| self::series(name, [all(point)])));
    }
    let names = tuned.grid.axes.iter().map(|axis| axis.variable.name);
    let head: Vec<&str> = names.chain(heads(tuned.now())).collect();
    let row = |point: usize| {
        let values = tuned.grid.values(point).into_iter().map(str::to_owned);
        values.chain(cells(all(point))).collect::<Vec<_>>()
    };
    let table = Table::new(
        "From the cheapest to the dearest",
        tuned.grid.axes.len(),
        &head,
        listed(tuned).into_iter().map(row),
    );
    let mut parts = vec![Part::Chart(chart(
        "What more tokens buy",
        "Messages shown by tokens, per question, for the settings that no other beats",
        tuned,
        series,
    ))];
    parts.push(Part::Text(about_knee(*knee).to_owned()));
    parts.push(Part::Table(table));
    parts.push(Part::Text(one_line(LEGEND)));
    if tuned.now().labels.is_some() {
        parts.push(Part::Text(one_line(LABELS_LEGEND)));
    }
    section("What more tokens buy", parts)
}

/// A line and a table for each setting that makes a difference.
fn of_scene(tuned: &Tuned, scene: Scene) -> Section {
    let mut lines = Vec::new();
    let mut tables = Vec::new();
    for varied in tuned.varied(scene) {
        let name = varied.axis.variable.name;
        let rows = varied.rows.iter();
        lines.push(series(name, rows.clone().map(|(_, _, figures)| *figures)));
        let Some((_, _, first)) = varied.rows.first() else {
            continue;
        };
        let row = |(_, value, figures): &(usize, &str, &Figures)| {
            let value = iter::once((*value).to_owned());
            value.chain(cells(figures)).collect::<Vec<_>>()
        };
        let head: Vec<&str> = iter::once(name).chain(heads(first)).collect();
        let caption = format!("By {name}, the others as suggested");
        tables.push(Part::Table(Table::new(caption, 1, &head, rows.map(row))));
    }
    let title = scene_name(scene);
    let mut parts = Vec::new();
    if lines.is_empty() {
        let text = "Nothing that was tried makes a difference here.";
        parts.push(Part::Text(text.to_owned()));
    } else {
        parts.push(Part::Chart(chart(
            &format!("What each setting changes: {title}"),
            "Messages shown by tokens, per question: a line for each setting, a mark for each of its values",
            tuned,
            lines,
        )));
    }
    parts.extend(tables);
    section(&capital(title), parts)
}

fn series<'a>(name: &str, figures: impl IntoIterator<Item = &'a Figures>) -> Series {
    let point = |figures: &Figures| {
        let tokens = share(figures.tokens.total, figures.triggers);
        (tokens, share(shown(figures), figures.triggers))
    };
    Series {
        name: name.to_owned(),
        points: figures.into_iter().map(point).collect(),
    }
}

fn chart(title: &str, description: &str, tuned: &Tuned, series: Vec<Series>) -> Chart {
    let y = match tuned.now().labels {
        Some(_) => "messages that belong, per question",
        None => "messages per question",
    };
    Chart {
        title: title.to_owned(),
        description: description.to_owned(),
        x: Axis::new("tokens per question", Scale::Linear),
        y: Axis::new(y, Scale::Linear),
        series,
    }
}

fn section(title: &str, parts: Vec<Part>) -> Section {
    Section {
        title: title.to_owned(),
        parts,
    }
}

/// Text that was broken for a terminal.
fn one_line(text: &str) -> String {
    text.trim_end().replace('\n', " ")
}
