//! Splits an answer into messages that Discord accepts and a reader can follow.

mod cut;
mod fence;
mod spoiler;
mod tables;

use std::ops::{Range, RangeInclusive};

pub use tables::readable;

use self::fence::{Fence, after_text};
use self::spoiler::MARK;
use clew_context::engine::render::LINKS;

/// The longest a message may be. Discord's documentation says 2,000 characters
/// without defining them; UTF-16 code units are never fewer than code points, so
/// counting those is always safe.
pub const MAX_MESSAGE_UNITS: usize = 2_000;

/// The largest file that can be attached, in bytes: 10 MiB, Discord's limit
/// without paid boosts. The file holds the whole answer and the messages repeat
/// its beginning, so a longer one cannot be posted.
pub const MAX_ATTACHMENT_BYTES: usize = 10 * 1024 * 1024;

/// The name of the file that holds an answer too long for the messages.
pub const ATTACHMENT_NAME: &str = "answer.md";

/// The last line of the last message if there is such a file.
pub const CONTINUED: &str = "… (continued in the attached file)";

/// The last line if no file can be attached: small print, not part of the answer.
pub const CUT: &str = "-# There was more, but I can't attach files here.";

/// Reserved in each message for the line that closes a cut code block and the bars that close a
/// spoiler, in UTF-16 code units. Always reserved, so that where a message ends depends on its length
/// alone and not on what is open there, which the next streamed word may change.
const CLOSING_UNITS: usize = 20;

/// An answer, split for sending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivery {
    /// In order; none is blank or over [`MAX_MESSAGE_UNITS`].
    pub messages: Vec<String>,
    /// The whole answer, to be attached as [`ATTACHMENT_NAME`], if the
    /// messages do not hold all of it.
    pub overflow: Option<String>,
    /// Where the answer was cut off, in bytes, if the rest is neither posted
    /// nor attached.
    pub cut_at: Option<usize>,
}

/// What happens to an answer that the messages cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The whole answer is attached as a file.
    Attached,
    /// The rest is dropped, and the last message says so.
    Cut,
}

/// Splits `text` into at most `max_messages` messages: preferably between
/// paragraphs, then between list items, lines, sentences or words; never inside a
/// grapheme cluster, and inside a mention, link or inline markup only if there is
/// no other way. A code block that is cut is closed and reopened with its
/// language, and one left open at the end is closed. So is a spoiler that is cut.
/// Blank text gives no messages.
///
/// As a text grows, all messages but the last stay as they are: a cut depends only
/// on the text before it and on one more character. So a streamed answer can be
/// split again at each edit, without keeping state.
pub fn split(text: &str, max_messages: usize, overflow: Overflow) -> Delivery {
    let mut delivery = Delivery::default();
    let whole = without_blank_lines(text.trim_end());
    let spoilers = spoiler::spoilers(whole).0;
    // Places are told by how much follows them.
    let after = |inside: Range<usize>| whole.len() - inside.end..=whole.len() - inside.start;
    let spoilers: Vec<_> = spoilers.into_iter().map(after).collect();
    let mut left = Left::new(whole, None);
    while !left.text.is_empty() {
        let room = left.room();
        if max_messages == 0 {
            delivery.end(text, left.text, overflow);
            break;
        }
        if first_units(left.text, room) == left.text {
            delivery.messages.push(left.into_message());
            break;
        }
        if delivery.messages.len() + 1 == max_messages {
            let note = overflow.note().to_owned() + links(text);
            let (message, after) = left.take(room - units(&note) - 1, &spoilers);
            delivery.messages.push(match message {
                Some(text) => format!("{text}\n{note}"),
                None => note,
            });
            delivery.end(text, after.text, overflow);
            break;
        }
        let (message, after) = left.take(room, &spoilers);
        delivery.messages.extend(message);
        left = after;
    }
    delivery
}

/// A text whose last code block and spoiler, if they are open, are closed.
pub fn closed(text: String) -> String {
    with_spoiler_closed(match after_text(None, &text) {
        Some(fence) => fence.close(&text),
        None => text,
    })
}

/// A text that ends too early: what was held back in a spoiler stays hidden.
pub fn with_spoiler_closed(mut text: String) -> String {
    if spoiler::unended(&text).is_some_and(|at| !text[at..].trim_matches('|').trim().is_empty()) {
        text.push_str(MARK);
    }
    text
}

/// The links that a text ends with, which stand in the messages, too, if they do not hold the whole
/// answer; nothing if there are none, or too many for a message.
fn links(text: &str) -> &str {
    let text = text.trim_end();
    let links = text.rfind(&format!("\n{LINKS}")).map(|at| &text[at..]);
    let links = links.filter(|links| units(links) <= MAX_MESSAGE_UNITS / 2);
    links.unwrap_or_default()
}

impl Overflow {
    const fn note(self) -> &'static str {
        match self {
            Self::Attached => CONTINUED,
            Self::Cut => CUT,
        }
    }
}

impl Delivery {
    /// Records that `left`, the end of `text`, is in no message.
    fn end(&mut self, text: &str, left: &str, overflow: Overflow) {
        match overflow {
            Overflow::Attached => self.overflow = Some(text.to_owned()),
            Overflow::Cut => self.cut_at = Some(text.trim_end().len() - left.len()),
        }
    }
}

/// The text still to be sent, and the code block and the spoiler it starts in.
struct Left<'a> {
    text: &'a str,
    open: Option<Fence>,
    is_hidden: bool,
}

impl<'a> Left<'a> {
    const fn new(text: &'a str, open: Option<Fence>) -> Self {
        Self {
            text,
            open,
            is_hidden: false,
        }
    }

    /// How much text fits into the next message, in UTF-16 code units.
    fn room(&self) -> usize {
        MAX_MESSAGE_UNITS - CLOSING_UNITS - units(&self.opening())
    }

    fn opening(&self) -> String {
        let bars = if self.is_hidden { MARK } else { "" };
        let fence = self.open.as_ref().map(Fence::reopen);
        bars.to_owned() + &fence.unwrap_or_default()
    }

    fn into_message(self) -> String {
        let text = format!("{}{}", self.opening(), self.text);
        match after_text(self.open, self.text) {
            Some(fence) => fence.close(&text),
            None => text,
        }
    }

    /// Makes a message of at most the first `room` units of a longer text, and
    /// returns it with what is left. No message if those units are blank.
    fn take(self, room: usize, spoilers: &[RangeInclusive<usize>]) -> (Option<String>, Left<'a>) {
        let window = first_units(self.text, room);
        let next = self.text[window.len()..].chars().next().unwrap_or(' ');
        if window.trim().is_empty() {
            let text = self.text.trim_start();
            return (None, Left { text, ..self });
        }
        let end = cut::best(window, next, self.open.as_ref());
        let mut kept = window[..end].trim_end();
        let open = after_text(self.open.clone(), kept);
        let after = &self.text[end..];
        let mut left = match &open {
            Some(fence) => left_in_code(fence, after),
            None => Left::new(after_cut(after), None),
        };
        let follows = self.text.len() - kept.len();
        let mut closing = "";
        if let Some(inside) = spoilers.iter().find(|one| one.contains(&follows)) {
            // A mark at the cut would hide nothing.
            if follows == *inside.end() {
                kept = kept.trim_end_matches('|').trim_end();
            } else {
                closing = MARK;
            }
            left.is_hidden = left.text.len() > *inside.start();
            if !left.is_hidden {
                left.text = after_cut(left.text.trim_start_matches('|'));
            }
        }
        let kept = Left { text: kept, ..self };
        let message = (!kept.text.is_empty()).then(|| kept.into_message() + closing);
        (message, left)
    }
}

/// What follows a cut inside the code block `fence`. If only the closing line
/// is left of the block, it is dropped: the cut has already closed the block.
fn left_in_code<'a>(fence: &Fence, after: &'a str) -> Left<'a> {
    let text = match after.trim_start_matches([' ', '\t']).strip_prefix('\n') {
        Some(lines) => lines,
        None => after.trim_start(),
    };
    let line = text.lines().next().unwrap_or_default();
    let beyond = &text[line.len()..];
    if fence.is_closed_by(line) || (beyond.is_empty() && is_ticks(line)) {
        return Left::new(without_blank_lines(beyond), None);
    }
    Left::new(text, Some(fence.clone()))
}

/// What follows a cut in prose: a new line keeps its indentation, a continued
/// line starts with its next word.
fn after_cut(after: &str) -> &str {
    if after
        .trim_start_matches([' ', '\t'])
        .starts_with(['\n', '\r'])
    {
        without_blank_lines(after)
    } else {
        after.trim_start()
    }
}

/// `text` without its leading blank lines.
fn without_blank_lines(text: &str) -> &str {
    let blank = text.len() - text.trim_start().len();
    let start = text[..blank].rfind('\n').map_or(0, |newline| newline + 1);
    &text[start..]
}

fn is_ticks(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.bytes().all(|byte| byte == b'`')
}

/// The longest prefix of at most `max` UTF-16 code units.
fn first_units(text: &str, max: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, character)| {
        used += character.len_utf16();
        used > max
    });
    end.map_or(text, |(index, _)| &text[..index])
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
