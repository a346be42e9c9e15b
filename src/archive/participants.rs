//! Who wrote and who was mentioned: one small record per person, however many
//! messages there are.

use std::collections::BTreeMap;

use clew_context::model::{Author, Mention, UserId};

/// Somebody who wrote in the recording, or whom it mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// The user's, bot's or webhook's id.
    pub id: UserId,
    /// The name last shown.
    pub name: Box<str>,
    /// Whether it is a bot or a webhook. False for those only mentioned.
    pub bot: bool,
    /// Whether it is a webhook, as far as the recording shows.
    pub webhook: bool,
    /// The number of messages written; those in two files count twice.
    pub messages: u64,
    /// The number of exported messages that mention it, counted the same way.
    pub mentioned: u64,
}

/// All participants, by id.
#[derive(Debug, Default)]
pub(super) struct Participants(pub(super) BTreeMap<UserId, Participant>);

impl Participants {
    pub(super) fn wrote(&mut self, author: &Author) {
        let entry = self.named(author.id, &author.name);
        entry.bot = author.bot;
        entry.webhook = author.webhook;
        entry.messages += 1;
    }

    /// Adds a listed user, whether or not there are messages.
    pub(super) fn known(&mut self, id: UserId, name: &str, bot: bool) {
        self.named(id, name).bot = bot;
    }

    pub(super) fn mentioned(&mut self, mention: &Mention) {
        self.named(mention.id, &mention.name).mentioned += 1;
    }

    fn named(&mut self, id: UserId, name: &str) -> &mut Participant {
        let entry = self.0.entry(id).or_insert_with(|| Participant {
            id,
            name: name.into(),
            bot: false,
            webhook: false,
            messages: 0,
            mentioned: 0,
        });
        if *entry.name != *name {
            entry.name = name.into();
        }
        entry
    }
}
