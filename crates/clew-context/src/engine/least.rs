//! The least room a message takes in a block, known before it is rendered: what
//! is certain not to fit is not fetched.

use crate::model::{Limits, Message};

use super::block::SHORTEST_CHARS;
use super::cluster::is_mark;
use super::sanitise::is_invisible;

/// Scalars of the shortest line around a text: `03:04 A: ` and the line break.
const LINE_CHARS: usize = 10;

/// The least number of Unicode scalars a block needs for `message`; 0 if it might show nothing.
pub(super) fn chars(message: &Message, limits: &Limits) -> usize {
    // Half of the cap: a message cut to its cap ends up slightly below it.
    let most = SHORTEST_CHARS.min(limits.max_msg_chars / 2);
    match shown(&message.content, most) {
        0 => 0,
        shown => LINE_CHARS + shown,
    }
}

fn shown(text: &str, most: usize) -> usize {
    // Nearly all messages.
    if text.is_ascii() && is_kept(text) {
        let shown = text.bytes().filter(u8::is_ascii_alphanumeric);
        return shown.take(most).count();
    }
    let words = text.split_whitespace().filter(|word| is_kept(word));
    let shown = words.flat_map(str::chars).filter(|c| is_shown(*c));
    shown.take(most).count()
}

/// Mentions, emoji and links to messages can become shorter; other words cannot.
fn is_kept(word: &str) -> bool {
    // One character is found faster.
    let is_link = word.contains(':') && word.contains("://");
    !is_link && !word.contains('<')
}

fn is_shown(character: char) -> bool {
    character.is_alphanumeric() && !is_mark(character) && !is_invisible(character)
}
