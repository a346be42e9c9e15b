//! What the report shows: texts, tables and figures, for a page and for a terminal.

mod lists;
mod plots;

use super::summary::{CountRow, Report, TimedRow};
use super::words::{bytes, grouped, many, percent, time};
use crate::plot::{Page, Part, Section, Table};
use clew_context::model::UnixMillis;

/// Who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    /// 80 columns, which leave no room for figures; the last days only.
    Terminal,
    /// A page.
    Html,
}

/// The report as a page.
pub fn page(report: &Report) -> Page {
    shown(report, Medium::Html)
}

/// The report for a medium; sections that have nothing to say are left out.
pub(super) fn shown(report: &Report, medium: Medium) -> Page {
    let sections = [
        turns(report),
        lists::stages(report),
        lists::slowest(report, medium),
        lists::fallbacks(report),
        lists::truncation(report),
        lists::usage(report, medium),
        lists::limits(report),
    ];
    Page {
        title: title(report),
        lead: lead(report),
        sections: sections.into_iter().flatten().collect(),
    }
}

fn title(report: &Report) -> String {
    match (report.input.first, report.input.last) {
        (Some(first), Some(last)) => {
            format!("Clew, {} to {} UTC", first.minute(), last.minute())
        }
        _ => "Clew: nothing in this time".to_owned(),
    }
}

fn lead(report: &Report) -> Vec<String> {
    let input = &report.input;
    let mut read = format!(
        "{}, {}, {}.",
        many(input.files as u64, "file"),
        bytes(input.bytes),
        many(input.lines, "line")
    );
    if input.starts > 0 {
        read += &format!(" The bot started {}.", many(input.starts, "time"));
    }
    let filter = &report.filter;
    let filters = [
        ("since", filter.since.map(UnixMillis::rfc3339)),
        ("until", filter.until.map(UnixMillis::rfc3339)),
        ("guild", filter.guild.clone()),
    ];
    for (name, value) in filters {
        read.extend(value.map(|value| format!(" Only {name} {value}.")));
    }
    let mut lead = vec![read];
    if input.lost_lines > 0 {
        lead.push(format!(
            "The bot could not write {}: its disk was slow, full or broken.",
            many(input.lost_lines, "line")
        ));
    }
    if input.cut_off > 0 {
        lead.push(format!("{} cut off.", many(input.cut_off, "line")));
    }
    if input.unreadable > 0 {
        let lines = many(input.unreadable, "line");
        lead.push(format!("{lines} could not be read, the first of them:"));
        for line in &input.unreadable_at {
            lead.push(format!("{}:{}: {}", line.file, line.line, line.why));
        }
    }
    for broken in &input.broken_files {
        lead.push(format!("{} breaks off: {}", broken.file, broken.error));
    }
    lead
}

fn turns(report: &Report) -> Option<Section> {
    let turns = &report.turns;
    let mut parts = vec![Part::Chart(plots::turns(report))];
    let mut text = format!(
        "{} began, {} ended",
        many(turns.began, "turn"),
        grouped(turns.ended)
    );
    if turns.restarted > 0 {
        let again = many(turns.restarted, "time");
        text += &format!("; they began again {again} after an edit");
    }
    text.push('.');
    parts.push(Part::Text(text));
    for (caption, head, rows) in [
        ("By outcome", "outcome", &turns.outcomes),
        ("By scene", "scene", &turns.scenes),
    ] {
        let head = [head, "turns", "share", "p50", "p95", "p99", "most"];
        let rows = rows.iter().map(timed);
        parts.extend(filled(Table::new(caption, 1, &head, rows)));
    }
    let refused = "Triggers that got no turn, by reason";
    for (caption, head, rows) in [
        ("By cause", ["cause", "turns"], &turns.causes),
        (refused, ["reason", "triggers"], &turns.refused),
        ("Agent runs, by end", ["end", "runs"], &turns.runs),
    ] {
        parts.extend(filled(counts(caption, &head, rows)));
    }
    section("Turns", parts)
}

fn timed(row: &TimedRow) -> [String; 7] {
    [
        row.name.clone(),
        grouped(row.turns),
        percent(row.share),
        time(row.ms.p50),
        time(row.ms.p95),
        time(row.ms.p99),
        time(row.ms.max),
    ]
}

fn counts(caption: &str, head: &[&str], rows: &[CountRow]) -> Table {
    let row = |row: &CountRow| [row.name.clone(), grouped(row.count)];
    Table::new(caption, 1, head, rows.iter().map(row))
}

/// None without rows.
fn filled(table: Table) -> Option<Part> {
    (!table.rows.is_empty()).then_some(Part::Table(table))
}

/// None without parts.
fn section(title: &str, parts: Vec<Part>) -> Option<Section> {
    (!parts.is_empty()).then(|| Section {
        title: title.to_owned(),
        parts,
    })
}
