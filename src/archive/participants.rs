//! Who wrote, and who was mentioned: one small record a person, however many
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
    /// A bot or a webhook. False for who was only mentioned.
    pub bot: bool,
    /// A webhook, as far as the recording lets one tell.
    pub webhook: bool,
    /// Messages written, those that stand in two files counted twice.
    pub messages: u64,
    /// Messages of an export that mention it, counted likewise.
    pub mentioned: u64,
}

/// Everybody, by id.
#[derive(Debug, Default)]
pub(super) struct Participants(pub(super) BTreeMap<UserId, Participant>);

impl Participants {
    pub(super) fn wrote(&mut self, author: &Author) {
        let entry = self.named(author.id, &author.name);
        entry.bot = author.bot;
        entry.webhook = author.webhook;
        entry.messages += 1;
    }

    /// Listed as a user, whether or not there are messages.
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
