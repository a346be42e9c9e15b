//! What an answer was made from, as it is kept.

use std::collections::BTreeSet;

use clew_context::model::{
    ChannelId, ContentSource, GuildId, MessageId, TurnId, UnixMillis, UserId,
};

use super::Scope;

/// The receipt of an answer; one per turn. Holds no message's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReceipt {
    /// The turn.
    pub turn: TurnId,
    /// The conversation.
    pub scope: Scope,
    /// The server; `None` for direct messages.
    pub guild: Option<GuildId>,
    /// The channel or thread of the answer.
    pub channel: ChannelId,
    /// The asker.
    pub owner: UserId,
    /// Whether nobody but the asker saw the answer.
    pub is_private: bool,
    /// The trigger; `None` for a command.
    pub trigger: Option<MessageId>,
    /// The answer's messages.
    pub messages: Vec<MessageId>,
    /// When it was answered, by our clock.
    pub at: UnixMillis,
    /// What it names in servers or of people: each of them at least once, so that
    /// erasing them finds it.
    pub sources: Vec<ContentSource>,
    /// The rest, as JSON without any message's text; never looked into here.
    pub body: String,
}

/// Which receipts are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptLimits {
    /// Those of answers since this time.
    pub since: UnixMillis,
    /// Of one person in a server (or in direct messages) at most this many, the newest.
    pub of_person: u32,
    /// Of a server at most this many, the newest.
    pub of_guild: u32,
}

impl StoredReceipt {
    /// Discord's messages that it is of: the trigger and the answer's.
    pub fn message_ids(&self) -> impl Iterator<Item = MessageId> + '_ {
        self.trigger.iter().chain(&self.messages).copied()
    }

    /// The servers and people that it names, the asker's included.
    pub fn people(&self) -> BTreeSet<(Option<GuildId>, Option<UserId>)> {
        let sources = self.sources.iter().map(|one| (one.guild, one.author));
        sources.chain([(self.guild, Some(self.owner))]).collect()
    }
}
