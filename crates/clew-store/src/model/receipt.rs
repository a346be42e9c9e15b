//! What an answer was made from, as it is kept.

use std::collections::BTreeSet;

use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};
use serde::{Deserialize, Serialize};

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
    /// Whom it names, so that erasing them finds it. The asker is among them once it is stored.
    pub people: BTreeSet<ReceiptPerson>,
    /// The rest, as JSON without any message's text; never looked into here.
    pub body: String,
}

/// Somebody whom a receipt names, or a server of which it names something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReceiptPerson {
    /// The server; `None` in direct messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild: Option<GuildId>,
    /// Who wrote there; `None` if only the server or a channel is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<UserId>,
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

    /// Whom it names, the asker included.
    pub fn everybody(&self) -> BTreeSet<ReceiptPerson> {
        let asker = ReceiptPerson {
            guild: self.guild,
            author: Some(self.owner),
        };
        self.people.iter().copied().chain([asker]).collect()
    }
}
