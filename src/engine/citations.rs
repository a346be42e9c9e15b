//! Citations: each message that a tool gave has a mark, and the marks in an answer become
//! numbers with links under it. All others are cut.
//!
//! A mark follows from the message's id alone, so that it means the same in a later turn that
//! reads an old result, and nothing has to be remembered.
//!
//! Invariant: a link leads to a message that was given, whatever the text says.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::deliver;
use crate::model::channel_address;
use clew_context::model::{ContentSource, MessageId};

/// The most messages that an answer cites.
pub const MAX_CITED: usize = 8;
/// What a mark begins with; a closing bracket ends it.
const OPENS: &str = "[msg:";
/// Letters of a mark, of 32 each: of 300 messages one pair in 700 turns shares a mark.
const LETTERS: usize = 5;
/// Letters and digits that are not taken for one another.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// The longest that brackets with several marks are, in bytes.
const LONGEST: usize = 1_000;

/// The mark of a message, for a model to repeat.
pub fn mark(message: MessageId) -> String {
    // Neighbouring ids differ in their low bits: the product spreads them over the high ones.
    let mut bits = message.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let mut mark = OPENS.to_owned();
    for _ in 0..LETTERS {
        mark.push(char::from(ALPHABET[(bits % 32) as usize]));
        bits /= 32;
    }
    mark.push(']');
    mark
}

/// A text of people's, in which nothing is a mark.
pub fn without_marks(text: &str) -> String {
    text.replace(OPENS, "[msg ")
}

/// An answer without marks, and what it cites.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cited {
    /// With numbers, from 1, in place of the marks.
    pub text: String,
    /// The messages of these numbers.
    pub messages: Vec<ContentSource>,
}

/// Reads the marks of an answer. Unless it `is_whole` more may come: what was said stays the same
/// then, but for a mark that is not complete and is left out. `given` are the messages that it may
/// cite.
pub fn cited(text: &str, is_whole: bool, given: impl Iterator<Item = ContentSource>) -> Cited {
    let mut known: HashMap<String, Option<ContentSource>> = HashMap::new();
    for source in given {
        let Some(message) = source.message.filter(|_| source.author.is_some()) else {
            continue;
        };
        let same = |other: &ContentSource| other.message == Some(message);
        let one = known.entry(mark(message)).or_insert(Some(source));
        // A mark of two messages leads nowhere.
        *one = one.filter(same);
    }
    let mut cited = Cited::default();
    let mut rest = text;
    while let Some(at) = rest.find(OPENS) {
        let (before, marks) = rest.split_at(at);
        cited.text.push_str(before);
        let inside = &marks[..marks.floor_char_boundary(LONGEST)];
        let inside = inside.lines().next().unwrap_or_default();
        let end = match inside.find(']') {
            Some(end) => end + 1,
            None if inside.len() == marks.len() && !is_whole => {
                rest = "";
                break;
            }
            None => unclosed(inside),
        };
        cited.number(&inside[..end], &known);
        rest = &marks[end..];
        // A number is no title of a link that follows.
        if rest.starts_with('(') {
            cited.text.push(' ');
        }
    }
    // Nobody ends an answer with more of a mark than its bracket.
    let shortest = 1 + usize::from(is_whole);
    let begun = (shortest..OPENS.len()).find(|length| rest.ends_with(&OPENS[..*length]));
    cited
        .text
        .push_str(&rest[..rest.len() - begun.unwrap_or_default()]);
    cited
}

/// Where marks end that no bracket closes.
fn unclosed(marks: &str) -> usize {
    let mut rest = marks;
    while let Some(after) = rest
        .trim_start_matches([' ', ',', ';', '['])
        .strip_prefix("msg:")
    {
        rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    }
    marks.len() - rest.len()
}

impl Cited {
    /// Puts numbers in place of what stood in brackets: marks, with something between them.
    fn number(&mut self, marks: &str, known: &HashMap<String, Option<ContentSource>>) {
        let words = marks.split(|c: char| !c.is_ascii_alphanumeric());
        let found = words.filter_map(|word| known.get(&format!("{OPENS}{word}]")).copied()?);
        let mut is_cited = false;
        for source in found {
            let is_it = |one: &ContentSource| one.message == source.message;
            let at = self.messages.iter().position(is_it);
            let at = at.or_else(|| {
                let has_room = self.messages.len() < MAX_CITED;
                has_room.then(|| {
                    self.messages.push(source);
                    self.messages.len() - 1
                })
            });
            if let Some(at) = at {
                let _ = write!(self.text, "[{}]", at + 1);
                is_cited = true;
            }
        }
        if !is_cited {
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
    }

    /// The answer with a line of links under it.
    pub fn with_links(self) -> String {
        let mut text = self.text.trim_end().to_owned();
        if !self.messages.is_empty() {
            text = deliver::closed(text) + "\n\n-#";
        }
        for (number, source) in (1..).zip(&self.messages) {
            let channel = channel_address(source.guild, source.channel);
            let message = source.message.map(MessageId::get).unwrap_or_default();
            let _ = write!(text, " [\\[{number}\\]](<{channel}/{message}>)");
        }
        text
    }
}

#[cfg(test)]
mod tests;
