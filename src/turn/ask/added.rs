//! What the asker of an agent run adds in its thread while it is under way: shown from the next
//! request on, where it came between the rounds, and as it reads by then.

use crate::model::cut;
use crate::turn::Turn;
use clew_context::model::{ChatMessage, MessageId, Role};

/// The most that is shown of one message, in Unicode scalars.
const MOST_CHARS: usize = 2_000;

/// The asker's further messages.
pub(super) struct Added<'a> {
    turn: &'a Turn<'a>,
    messages: Vec<AddedMessage>,
}

struct AddedMessage {
    id: MessageId,
    /// How many rounds there were before it.
    after: usize,
    /// Empty if it is deleted, or may not be shown.
    words: String,
}

impl<'a> Added<'a> {
    pub(super) const fn new(turn: &'a Turn<'a>) -> Self {
        Self {
            turn,
            messages: Vec::new(),
        }
    }

    /// Takes what has come by now, and reads all of it again.
    pub(super) fn recheck(&mut self, rounds: usize) {
        let Some(slot) = &self.turn.job.run else {
            return;
        };
        let heard = slot.run().heard();
        let new = heard.into_iter().skip(self.messages.len());
        self.messages.extend(new.map(|id| AddedMessage {
            id,
            after: rounds,
            words: String::new(),
        }));
        for one in &mut self.messages {
            one.words = words(self.turn, one.id);
        }
    }

    /// Whether all reads as it was shown last.
    pub(super) fn stands(&self) -> bool {
        let mut messages = self.messages.iter();
        messages.all(|one| words(self.turn, one.id) == one.words)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// What came after that many rounds.
    pub(super) fn after(&self, rounds: usize) -> impl Iterator<Item = ChatMessage> {
        let messages = self.messages.iter();
        let there = messages.filter(move |one| one.after == rounds && !one.words.is_empty());
        there.map(|one| ChatMessage::Text {
            role: Role::User,
            content: one.words.clone(),
        })
    }
}

/// Its own words; none of who opted out.
fn words(turn: &Turn<'_>, id: MessageId) -> String {
    let message = turn.services.window().message(turn.trigger().channel, id);
    let message = message.filter(|message| !message.withheld);
    let words = message.map(|message| turn.services.own_words(turn.ids.guild, &message));
    words.map_or_else(String::new, |words| cut(&words, MOST_CHARS, "…"))
}
