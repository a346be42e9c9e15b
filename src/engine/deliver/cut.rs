//! Chooses where to cut a text that is too long for one message.

use super::fence::{Fence, after_line};
use clew_context::engine::cluster::clusters;

/// Kinds of places to cut at, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Boundary {
    /// Between two paragraphs.
    Paragraph,
    /// Before a list item, heading or code block, or after a code block.
    Item,
    /// Between two other lines of prose.
    Line,
    /// At a blank line within code.
    CodeBlank,
    /// Between two lines of code.
    CodeLine,
    /// Between two sentences of a line.
    Sentence,
    /// Between two words.
    Word,
    /// Between two words of code, bold text or link text; or after a heading.
    Torn,
    /// Between any two characters.
    Character,
    /// Within a link, a mention or a piece of markup.
    Forced,
}

/// The kinds from best to worst, each with how many eighths of the window must
/// come before the cut: on the first pass, a better place that would leave a tiny
/// message is skipped.
const BOUNDARIES: [(Boundary, usize); 10] = [
    (Boundary::Paragraph, 4),
    (Boundary::Item, 2),
    (Boundary::Line, 4),
    (Boundary::CodeBlank, 4),
    (Boundary::CodeLine, 2),
    (Boundary::Sentence, 3),
    (Boundary::Word, 2),
    (Boundary::Torn, 1),
    (Boundary::Character, 1),
    (Boundary::Forced, 8),
];

/// The longest mention, custom emoji or timestamp, in bytes.
const MAX_MENTION_BYTES: usize = 100;

/// Where to cut: a byte index in `window`, above 0, between two characters, with
/// something visible before it. `window` is all that fits and is not blank; `next`
/// is the character after it, and `open` the code block it starts in.
///
/// The result depends on these alone, not on any later text.
pub(super) fn best(window: &str, next: char, open: Option<&Fence>) -> usize {
    let seen = format!("{window}{next}");
    let mut scan = Scan {
        seen: &seen,
        end: window.len(),
        start: window.len() - window.trim_start().len(),
        last_of: [0; BOUNDARIES.len()],
    };
    scan.lines(open.cloned());
    scan.choose()
}

/// The last place found of each kind.
struct Scan<'a> {
    /// The window and the next character.
    seen: &'a str,
    /// The last index at which a cut is allowed.
    end: usize,
    /// The index of the first visible character.
    start: usize,
    /// The byte index for each kind; 0 if there is none.
    last_of: [usize; BOUNDARIES.len()],
}

/// What is known of the line before the current one.
#[derive(Default)]
struct Before {
    blank: bool,
    heading: bool,
    /// Whether the line opened a code block (true) or closed one (false).
    fence: Option<bool>,
}

impl Before {
    fn has_opened(&self) -> bool {
        self.fence == Some(true)
    }

    fn has_closed(&self) -> bool {
        self.fence == Some(false)
    }
}

impl Scan<'_> {
    fn choose(&self) -> usize {
        let is_full = |(place, eighths): &&(Boundary, usize)| {
            let index = self.last_of[*place as usize];
            index > 0 && index * 8 >= self.end * eighths
        };
        let any = || {
            BOUNDARIES
                .iter()
                .find(|(place, _)| self.last_of[*place as usize] > 0)
        };
        BOUNDARIES
            .iter()
            .find(is_full)
            .or_else(any)
            .map_or(self.end, |(place, _)| self.last_of[*place as usize])
    }

    fn note(&mut self, place: Boundary, index: usize) {
        if index > self.start && index <= self.end {
            self.last_of[place as usize] = index;
        }
    }

    fn lines(&mut self, open: Option<Fence>) {
        let mut open = open;
        let mut before = Before::default();
        let mut start = 0;
        for line in self.seen.split('\n') {
            if start > self.end {
                self.window_end(open.is_some(), &before);
                break;
            }
            if start > 0
                && let Some(place) = line_start(line, open.as_ref(), &before)
            {
                self.note(place, start - 1);
            }
            let was_open = open.is_some();
            self.within(start, line, was_open);
            open = after_line(open, line);
            let blank = line.trim().is_empty();
            before = Before {
                blank,
                heading: !was_open && (is_heading(line) || (blank && before.heading)),
                fence: (was_open != open.is_some()).then_some(!was_open),
            };
            start += line.len() + 1;
        }
    }

    /// Notes the end of the window if a line ends there.
    fn window_end(&mut self, in_code: bool, before: &Before) {
        match in_code {
            true if before.has_opened() => {}
            true => self.note(Boundary::CodeLine, self.end),
            false if before.heading => self.note(Boundary::Torn, self.end),
            false => self.note(Boundary::Line, self.end),
        }
    }

    /// Notes the places within `line`, which begins at `start`.
    fn within(&mut self, start: usize, line: &str, in_code: bool) {
        let is_fence = line.trim_start().starts_with("```");
        let marker = marker_len(line);
        let mut markup = Markup::default();
        let mut index = 0;
        for cluster in clusters(line) {
            markup.advance(line, index);
            index += cluster.len();
            let place = match line[index..].chars().next() {
                None => continue,
                Some(next) if is_fence || markup.holds(cluster, next, index) => Boundary::Forced,
                Some(_) if index <= marker => Boundary::Character,
                Some(next) => match between(&line[..index], next) {
                    Boundary::Sentence | Boundary::Word if in_code || markup.is_open() => {
                        Boundary::Torn
                    }
                    place => place,
                },
            };
            self.note(place, start + index);
        }
    }
}

/// The kind of break before `line`, if a cut is allowed there.
fn line_start(line: &str, open: Option<&Fence>, before: &Before) -> Option<Boundary> {
    let blank = line.trim().is_empty();
    if let Some(fence) = open {
        let closes = fence.is_closed_by(line) || line.trim_start().starts_with('`');
        let place = if before.blank {
            Boundary::CodeBlank
        } else {
            Boundary::CodeLine
        };
        return (!before.has_opened() && !closes && !blank).then_some(place);
    }
    if blank {
        return None;
    }
    if before.heading {
        return Some(Boundary::Torn);
    }
    let starts_something = marker_len(line) > 0
        || is_heading(line)
        || before.has_closed()
        || after_line(None, line).is_some();
    match line.starts_with([' ', '\t']) {
        false if before.blank => Some(Boundary::Paragraph),
        _ if starts_something => Some(Boundary::Item),
        _ => Some(Boundary::Line),
    }
}

/// The kind of break between the end of `before` and `next`, which are on one
/// line and outside of markup.
fn between(before: &str, next: char) -> Boundary {
    let mut backwards = before.chars().rev();
    let last = backwards.next().unwrap_or(' ');
    if next.is_whitespace() && !last.is_whitespace() {
        let closed = backwards.find(|c| !matches!(c, '"' | '\'' | ')' | '”' | '’' | '*' | '_'));
        let end = if matches!(last, '"' | ')' | '”' | '*') {
            closed.unwrap_or(last)
        } else {
            last
        };
        return if matches!(end, '.' | '!' | '?' | '…') {
            Boundary::Sentence
        } else {
            Boundary::Word
        };
    }
    if matches!(last, '。' | '！' | '？' | '।') && !closes_wide(next) {
        return Boundary::Sentence;
    }
    if needs_no_spaces(last) && needs_no_spaces(next) && !closes_wide(next) {
        return Boundary::Word;
    }
    Boundary::Character
}

/// Characters of scripts written without spaces between words: Han, kana, Thai,
/// Lao, Burmese and Khmer, with their punctuation.
fn needs_no_spaces(character: char) -> bool {
    matches!(
        character,
        '\u{E00}'..='\u{EFF}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1780}'..='\u{17FF}'
            | '\u{3001}'..='\u{30FF}'
            | '\u{3400}'..='\u{9FFF}'
            | '\u{FF01}'..='\u{FF0F}'
            | '\u{20000}'..='\u{3FFFF}'
    )
}

/// Full-width punctuation and small kana, which must not start a line.
fn closes_wide(character: char) -> bool {
    "、。，．！？：；」』）】〉》ー～…ぁぃぅぇぉっゃゅょァィゥェォッャュョ".contains(character)
}

fn is_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    (1..=3).contains(&(line.len() - title.len())) && title.starts_with(' ')
}

/// The length in bytes of the list marker at the start of `line`, with its
/// indentation and space; 0 if the line is not a list item.
fn marker_len(line: &str) -> usize {
    let item = line.trim_start();
    let indent = line.len() - item.len();
    let digits = item.bytes().take_while(u8::is_ascii_digit).count();
    let bullet = match item[digits..].chars().next() {
        Some('-' | '*' | '+') if digits == 0 => 1,
        Some('.' | ')') if digits > 0 => digits + 1,
        Some('•') if digits == 0 => '•'.len_utf8(),
        _ => return 0,
    };
    if item[bullet..].starts_with(' ') {
        indent + bullet + 1
    } else {
        0
    }
}

/// The inline markup that is open at a position in a line.
#[derive(Default)]
struct Markup {
    /// The number of backticks that opened the inline code; 0 outside of code.
    code: usize,
    /// Whether bold, underline, strikethrough and spoiler are open.
    pairs: [bool; 4],
    /// Whether we are inside a link's text or address.
    link: bool,
    /// Where the current mention or address ends.
    atom_end: usize,
}

const PAIRS: [&str; 4] = ["**", "__", "~~", "||"];

impl Markup {
    /// Updates the state with what starts at `index` of `line`.
    fn advance(&mut self, line: &str, index: usize) {
        let rest = &line[index..];
        let previous = line[..index].bytes().next_back();
        if rest.starts_with('`') && previous != Some(b'`') {
            let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
            self.code = match self.code {
                0 => ticks,
                open if open == ticks => 0,
                open => open,
            };
        }
        if index >= self.atom_end
            && let Some(len) = atom_len(rest)
        {
            self.atom_end = index + len;
        }
        if self.code > 0 {
            return;
        }
        for (pair, is_open) in PAIRS.iter().zip(&mut self.pairs) {
            if rest.starts_with(pair) && previous != pair.bytes().next() {
                *is_open = !*is_open;
            }
        }
        match rest.bytes().next() {
            Some(b'[') => self.link = true,
            Some(b']') => self.link = rest[1..].starts_with('('),
            Some(b')') => self.link = false,
            _ => {}
        }
    }

    fn is_open(&self) -> bool {
        self.code > 0 || self.link || self.pairs.contains(&true)
    }

    /// Whether a cut at `index`, after `cluster` and before `next`, would split
    /// a mention, an address or a markup sign.
    fn holds(&self, cluster: &str, next: char, index: usize) -> bool {
        let within_mark = "`*_~|".contains(next) && cluster.starts_with(next);
        within_mark || index < self.atom_end
    }
}

/// The length in bytes of the mention, custom emoji, timestamp or address at the
/// start of `text`, as far as `text` goes.
fn atom_len(text: &str) -> Option<usize> {
    if let Some(inner) = text.strip_prefix('<')
        && inner.starts_with(['@', '#', ':', '/', 'a', 't', 'i'])
    {
        let may_have_spaces = inner.starts_with('/');
        let is_end = |c: char| c == '>' || (c.is_whitespace() && !may_have_spaces);
        let end = inner.find(is_end).map(|end| end + 2);
        let len = end.unwrap_or(text.len());
        let is_whole = end.is_some_and(|end| text.as_bytes().get(end - 1) == Some(&b'>'));
        return (len <= MAX_MENTION_BYTES && (is_whole || end.is_none())).then_some(len);
    }
    let is_address = ["https://", "http://"]
        .iter()
        .any(|scheme| text.starts_with(scheme) || (!text.is_empty() && scheme.starts_with(text)));
    if is_address {
        let is_end = |c: char| c.is_whitespace() || !c.is_ascii() || "<>\"'`)]".contains(c);
        return Some(text.find(is_end).unwrap_or(text.len()));
    }
    None
}
