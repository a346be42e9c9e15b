//! The words by which earlier exchanges, facts and passages of docs are found.

use crate::turn::Turn;
use clew_context::engine::turn::Collected;

/// How much of the newest messages around a question is looked at, in bytes: matching takes a
/// few hundred words at most.
const AROUND_BYTES: usize = 8_000;

/// The asker's own words, or without any those of the message that is replied to.
pub(super) fn question(turn: &Turn<'_>) -> String {
    let (services, trigger) = (turn.services, turn.trigger());
    let words = services.own_words(turn.ids.guild, trigger);
    if !words.trim().is_empty() {
        return words;
    }
    let referenced = trigger.referenced_message();
    let referenced = referenced.filter(|one| !services.memory.opted_out(one.author.id));
    referenced.map_or(words, |message| message.content.to_string())
}

/// The words of the messages around a question, the newest first, each after a line break.
pub(super) fn around(collected: &Collected) -> String {
    let mut words = String::new();
    for message in collected.gathered.messages().into_iter().rev() {
        if words.len() >= AROUND_BYTES {
            break;
        }
        words.push('\n');
        words.push_str(&message.content);
    }
    words
}
