//! The report as text of 80 columns.

use std::fmt::Write;

use super::page::{Medium, shown};
use super::summary::Report;
use crate::model::shortened;
use crate::plot::{Part, Table, visible};

const WIDTH: usize = 80;
/// Between columns.
const GAP: usize = 2;
/// Before texts and tables.
const INDENT: &str = "  ";
/// The narrowest that a column of names becomes.
const LEAST: usize = 6;

/// The report as text: no line has more than 80 characters.
pub fn text(report: &Report) -> String {
    let page = shown(report, Medium::Terminal);
    let mut text = String::new();
    add(&mut text, "", &page.title);
    for line in &page.lead {
        add(&mut text, "", line);
    }
    for section in &page.sections {
        let _ = write!(text, "\n{}\n", section.title.to_uppercase());
        for part in &section.parts {
            match part {
                Part::Text(paragraph) => add(&mut text, INDENT, paragraph),
                Part::Table(table) => of_table(&mut text, table),
                // Figures show what a table holds as well.
                Part::Chart(_) | Part::Bars(_) => {}
                Part::Lines(lines) => text.push_str(lines),
            }
        }
    }
    text
}

fn add(text: &mut String, indent: &str, paragraph: &str) {
    for line in wrapped(paragraph, WIDTH - indent.len()) {
        let _ = writeln!(text, "{indent}{line}");
    }
}

/// Lines of at most `width` characters, at least one. They are broken at spaces, words
/// that are longer anywhere; what a terminal would obey becomes U+FFFD.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word: String = word.chars().map(visible).collect();
        if !line.is_empty() && length(&line) + 1 + length(&word) > width {
            lines.push(std::mem::take(&mut line));
        }
        while length(&word) > width {
            let rest = word.split_off(word.char_indices().nth(width).map_or(0, |(at, _)| at));
            lines.push(std::mem::replace(&mut word, rest));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

fn of_table(text: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        text.push('\n');
        add(text, INDENT, &table.caption);
    }
    let widths = widths(table);
    for row in std::iter::once(&table.head).chain(&table.rows) {
        let mut line = INDENT.to_owned();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let cell: String = shortened(cell, *width).chars().map(visible).collect();
            let padding = " ".repeat(width.saturating_sub(length(&cell)));
            if column < table.names {
                line.extend([cell, padding]);
            } else {
                line.extend([padding, cell]);
            }
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// The widths of the columns; the widest names are narrowed until all fit.
fn widths(table: &Table) -> Vec<usize> {
    let mut widths = vec![0; table.head.len()];
    for row in std::iter::once(&table.head).chain(&table.rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = length(cell).max(*width);
        }
    }
    let room = WIDTH - INDENT.len() - GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() > room {
        let names = widths.iter_mut().take(table.names);
        match names.max().filter(|width| **width > LEAST) {
            Some(width) => *width -= 1,
            None => break,
        }
    }
    widths
}

fn length(text: &str) -> usize {
    text.chars().count()
}
