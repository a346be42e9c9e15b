//! What the report shows: texts, tables and figures, for a page and for a terminal.

mod lists;
mod plots;

use super::summary::{Report, TimedRow};
use super::words::{bytes, grouped, many, percent, time};
use crate::plot::{Page, Part, Section, Table};

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
    let minute = |time: &Option<String>| {
        let time = time.as_deref().unwrap_or_default();
        time.get(..16).unwrap_or_default().replace('T', " ")
    };
    match (&report.input.first, &report.input.last) {
        (Some(_), Some(_)) => format!(
            "Clew, {} to {} UTC",
            minute(&report.input.first),
            minute(&report.input.last)
        ),
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
        ("since", &filter.since),
        ("until", &filter.until),
        ("guild", &filter.guild),
    ];
    for (name, value) in filters {
        read.extend(value.as_ref().map(|value| format!(" Only {name} {value}.")));
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
        let unreadable = many(input.unreadable, "line");
        lead.push(format!(
            "{unreadable} could not be read, the first of them:"
        ));
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
        if !rows.is_empty() {
            parts.push(Part::Table(timed(caption, head, rows)));
        }
    }
    for (caption, name, counted, rows) in [
        ("By cause", "cause", "turns", &turns.causes),
        (
            "Triggers that got no turn, by reason",
            "reason",
            "triggers",
            &turns.refused,
        ),
        ("Agent runs, by end", "end", "runs", &turns.runs),
    ] {
        if !rows.is_empty() {
            parts.push(Part::Table(Table {
                caption: caption.to_owned(),
                names: 1,
                head: heads(&[name, counted]),
                rows: rows
                    .iter()
                    .map(|row| vec![row.name.clone(), grouped(row.count)])
                    .collect(),
            }));
        }
    }
    section("Turns", parts)
}

fn timed(caption: &str, head: &str, rows: &[TimedRow]) -> Table {
    let row = |row: &TimedRow| {
        vec![
            row.name.clone(),
            grouped(row.turns),
            percent(row.share),
            time(row.ms.p50),
            time(row.ms.p95),
            time(row.ms.p99),
            time(row.ms.max),
        ]
    };
    Table {
        caption: caption.to_owned(),
        names: 1,
        head: heads(&[head, "turns", "share", "p50", "p95", "p99", "most"]),
        rows: rows.iter().map(row).collect(),
    }
}

fn heads(heads: &[&str]) -> Vec<String> {
    heads.iter().map(|head| (*head).to_owned()).collect()
}

/// None without parts.
fn section(title: &str, parts: Vec<Part>) -> Option<Section> {
    (!parts.is_empty()).then(|| Section {
        title: title.to_owned(),
        parts,
    })
}
