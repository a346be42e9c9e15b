//! How little room a message can take in a block, known before it is rendered:
//! what is sure not to fit is not fetched.

use crate::model::{Limits, Message};

use super::block::SHORTEST_CHARS;
use super::cluster::is_mark;
use super::sanitise::is_invisible;

/// Scalars of the shortest line around a text: `03:04 A: ` and the line's end.
const LINE_CHARS: usize = 10;

/// Unicode scalars that a block needs for `message` at the least; 0 if it may
/// show nothing.
pub(super) fn chars(message: &Message, limits: &Limits) -> usize {
    // Cut to its own cap a message has a little less than that.
    let most = SHORTEST_CHARS.min(limits.max_msg_chars / 2);
    let words = message
        .content
        .split_whitespace()
        .filter(|word| is_kept(word));
    let shown = words.flat_map(str::chars).filter(|c| is_shown(*c));
    match shown.take(most).count() {
        0 => 0,
        shown => LINE_CHARS + shown,
    }
}

/// Mentions, emoji and links to messages may become shorter; words never do.
fn is_kept(word: &str) -> bool {
    !word.contains('<') && !word.contains("://")
}

fn is_shown(character: char) -> bool {
    character.is_alphanumeric() && !is_mark(character) && !is_invisible(character)
}
