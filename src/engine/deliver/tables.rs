//! Tables of Markdown as Discord can show them: it has none, so an aligned code block stands
//! in their place, or a list if that would be too wide or hide what only works outside code.
//! No word of a cell is lost.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use super::fence::{Fence, after_line};
use super::spoiler::{MARK, marks, unended};

/// The most columns of characters that a line of a code block has room for on a screen.
const WIDEST: usize = 80;

/// A text with its tables made readable.
#[derive(Debug, PartialEq, Eq)]
pub struct Readable {
    pub text: String,
    /// Where lines of the text begin, here and in the original, in bytes.
    lines: Vec<(usize, usize)>,
}

impl Readable {
    /// How much of the original is shown by that much of the text, in bytes: whole tables,
    /// and lines up to the byte.
    pub fn original(&self, end: usize) -> usize {
        let after = self.lines.partition_point(|(here, _)| *here <= end);
        let Some((here, there)) = after.checked_sub(1).map(|at| self.lines[at]) else {
            return 0;
        };
        let next = self.lines.get(after).map(|(_, there)| *there);
        next.map_or(there + end - here, |next| (there + end - here).min(next))
    }
}

/// Makes the tables of a text readable, outside code blocks. Of a text that still grows
/// (`done` is false), a last table and what may become the head of one are left out until
/// something follows: its columns may yet grow. So is what a spoiler may yet hide.
pub fn readable(text: &str, done: bool) -> Readable {
    let mut shown = Readable {
        text: String::with_capacity(text.len()),
        lines: Vec::new(),
    };
    let mut open: Option<Fence> = None;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if open.is_none()
            && let Some(table) = Table::at(rest)
        {
            // The line after it may yet become a row.
            if !done && !rest[table.bytes..].contains('\n') {
                break;
            }
            shown.lines.push((shown.text.len(), at));
            table.write(&mut shown.text);
            at += table.bytes;
            continue;
        }
        if open.is_none() && !done && may_become_table(rest) {
            break;
        }
        let line = line_of(rest);
        shown.lines.push((shown.text.len(), at));
        shown.text.push_str(line);
        open = after_line(open, line.trim_end_matches('\n'));
        at += line.len();
    }
    shown.lines.push((shown.text.len(), at));
    if !done && let Some(begun) = unended(&shown.text) {
        shown.text.truncate(begun);
    }
    shown
}

/// What Discord shows as something else, and in code as it is typed: mentions, emoji, times,
/// commands.
const MARKUP: [&str; 6] = ["<@", "<#", "<:", "<a:", "<t:", "</"];

/// A table: its rows, the head first, each with a cell for each column.
struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
    /// How much of the text it is.
    bytes: usize,
}

impl Table {
    /// The table that a text begins with: a line of cells, a line of dashes with as many,
    /// and the lines with cells that follow (GitHub Flavored Markdown, "Tables").
    fn at(text: &str) -> Option<Self> {
        let head = line_of(text);
        let dashes = line_of(&text[head.len()..]);
        let titles = cells(head)?;
        let right = alignments(dashes)?;
        if titles.len() != right.len() {
            return None;
        }
        let mut bytes = head.len() + dashes.len();
        let mut rows = vec![titles];
        loop {
            let line = line_of(&text[bytes..]);
            let Some(mut row) = cells(line) else { break };
            // GitHub drops what is too much; here it stays with the last cell.
            let most = right.len();
            if row.len() > most {
                let rest = row.split_off(most - 1);
                row.push(rest.join(" | "));
            }
            row.resize(most, String::new());
            rows.push(row);
            bytes += line.len();
        }
        Some(Self { rows, right, bytes })
    }

    fn write(&self, text: &mut String) {
        let plain = |row: &Vec<String>| row.iter().map(|cell| plain(cell)).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(plain).collect();
        let columns = 0..self.right.len();
        let widest = |column: usize| rows.iter().map(|row| row[column].width()).max();
        let widths: Vec<usize> = columns.map(|column| widest(column).unwrap_or(0)).collect();
        let is_wide = widths.iter().map(|width| width + 2).sum::<usize>() > WIDEST + 2;
        if is_wide
            || self
                .rows
                .iter()
                .flatten()
                .any(|cell| works_outside_code(cell))
        {
            return self.write_list(text);
        }
        text.push_str("```\n");
        for (number, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).zip(&self.right);
            let cells = cells.map(|((cell, width), right)| {
                let blanks = " ".repeat(width - cell.width());
                if *right {
                    blanks + cell
                } else {
                    cell.clone() + &blanks
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
            if number == 0 {
                let dashes = widths.iter().map(|width| "-".repeat(*width));
                text.push_str(&dashes.collect::<Vec<_>>().join("  "));
                text.push('\n');
            }
        }
        text.push_str("```\n");
    }

    /// A line for each row: its first cell, then the others with their titles. The markup of
    /// cells stays.
    fn write_list(&self, text: &mut String) {
        let Some((titles, rows)) = self.rows.split_first() else {
            return;
        };
        let rows = rows.iter().map(|row| row.iter().map(|cell| marked(cell)));
        for row in rows {
            let mut parts = Vec::new();
            for (number, (title, cell)) in titles.iter().map(|one| plain(one)).zip(row).enumerate()
            {
                match (number, cell.is_empty(), title.is_empty()) {
                    (_, true, _) => {}
                    (0, ..) if cell.contains("**") => parts.push(cell),
                    (0, ..) => parts.push(format!("**{cell}**")),
                    (_, _, true) => parts.push(cell),
                    _ => parts.push(format!("{title}: {cell}")),
                }
            }
            if !parts.is_empty() {
                text.push_str(&format!("- {}\n", parts.join(" · ")));
            }
        }
    }
}

/// The first line, with its break.
fn line_of(text: &str) -> &str {
    text.find('\n').map_or(text, |end| &text[..=end])
}

/// The cells of a line; none if it has no bar, or is indented as code is. A bar that is escaped,
/// or stands between backticks or around a spoiler, is part of its cell.
fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim_end();
    if !line.contains('|') || line.starts_with("    ") || line.starts_with('\t') {
        return None;
    }
    let line = line.trim_start();
    let hidden = hidden(line);
    let is_hidden = |at| hidden.iter().any(|one| one.contains(&at));
    let first = usize::from(line.starts_with('|') && !is_hidden(0));
    let mut cells = vec![String::new()];
    let (mut is_escaped, mut ends_with_bar) = (false, false);
    let mut in_code = false;
    for (at, character) in line.char_indices().skip(first) {
        if character == '`' {
            // Ticks that nothing closes open nothing.
            in_code = !in_code && line[at + 1..].contains('`');
        }
        ends_with_bar = character == '|' && !is_escaped && !in_code && !is_hidden(at);
        if ends_with_bar {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            if character == '|' && is_escaped {
                cell.pop();
            }
            cell.push(character);
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    if ends_with_bar {
        cells.pop();
    }
    let cells = cells.into_iter().map(|cell| cell.trim().to_owned());
    Some(cells.collect())
}

/// The spoilers of a line, in bytes: their bars touch words on the inside only, since two bars
/// may also be around an empty cell.
fn hidden(line: &str) -> Vec<Range<usize>> {
    let is_word = |next: Option<char>| next.is_some_and(|c| c != '|' && !c.is_whitespace());
    let before = |at: usize| is_word(line[..at].chars().next_back());
    let after = |at: usize| is_word(line[at..].chars().next());
    let (mut hidden, mut begun) = (Vec::new(), None);
    for bars in marks(line) {
        let (start, end) = (bars.end - MARK.len(), bars.start + MARK.len());
        match begun {
            None if !before(start) && after(bars.end) => begun = Some(start),
            Some(start) if before(bars.start) && !after(end) => {
                hidden.push(start..end);
                begun = None;
            }
            _ => {}
        }
    }
    hidden
}

/// A cell without the markup that a code block would show. What is code stays to the letter.
fn plain(cell: &str) -> String {
    let plain = outside_code(cell, |text| unbroken(&without_bold(text)));
    plain.replace('`', "").trim().to_owned()
}

/// A cell on one line, with its markup.
fn marked(cell: &str) -> String {
    outside_code(cell, unbroken).trim().to_owned()
}

/// Whether something in a cell is shown as something else only outside of code: what Discord
/// renders or hides, and addresses, which can be clicked.
fn works_outside_code(cell: &str) -> bool {
    let (mut found, mut bars) = (false, 0);
    outside_code(cell, |text| {
        bars += text.matches(MARK).count();
        found |= text.contains("://") || MARKUP.iter().any(|one| text.contains(one));
        String::new()
    });
    found || bars > 1
}

/// Changes what stands outside of backticks.
fn outside_code(cell: &str, mut change: impl FnMut(&str) -> String) -> String {
    let mut parts = cell.split('`').peekable();
    let mut changed = String::with_capacity(cell.len());
    let mut in_code = false;
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if in_code && !is_last {
            changed.push_str(part);
        } else {
            changed.push_str(&change(part));
        }
        if !is_last {
            changed.push('`');
        }
        in_code = !in_code;
    }
    changed
}

fn unbroken(text: &str) -> String {
    text.replace("<br>", " ")
        .replace("<br/>", " ")
        .replace("<br />", " ")
}

/// Without the asterisks around bold words; others mean themselves.
fn without_bold(text: &str) -> String {
    const BOLD: &str = "**";
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BOLD) {
        plain.push_str(before);
        match after.split_once(BOLD) {
            Some((words, beyond)) if !words.is_empty() && words.trim() == words => {
                plain.push_str(words);
                rest = beyond;
            }
            _ => {
                plain.push_str(BOLD);
                rest = after;
            }
        }
    }
    plain + rest
}

/// Whether each column is aligned to the right; none if it is no line of dashes.
fn alignments(line: &str) -> Option<Vec<bool>> {
    let is_column = |cell: &String| {
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
    };
    let cells = cells(line).filter(|cells| cells.iter().all(is_column))?;
    let is_right = |cell: &String| cell.ends_with(':') && !cell.starts_with(':');
    Some(cells.iter().map(is_right).collect())
}

/// Whether a text that still grows may begin with a table: its last line has cells, or its
/// last two a head and the beginning of a line of dashes.
fn may_become_table(text: &str) -> bool {
    let head = line_of(text);
    let dashes = &text[head.len()..];
    let may_be_dashes = |byte: u8| matches!(byte, b'|' | b'-' | b':' | b' ');
    cells(head).is_some() && !dashes.contains('\n') && dashes.bytes().all(may_be_dashes)
}

#[cfg(test)]
mod tests;
