//! Converts Discord's JSON into our types, leniently. Gateway events, pages and
//! single messages all go through here.
//!
//! Only a message's id, channel and author are required; any other part that
//! cannot be read is left out and named in [`Extras::unread`].

mod channel;
mod components;
mod extras;
mod message;
mod part;
#[cfg(feature = "twilight")]
mod twilight;
mod wire;

pub use channel::{GuildMember, channel, guild, member};
pub use message::{attachment, incoming, message, page, pins};
#[cfg(feature = "twilight")]
pub use twilight::{from_twilight, us};

use crate::collect::MessagePage;
#[cfg(doc)]
use crate::model::Extras;
use crate::model::{ChannelId, ChannelKind, Message, MessageId, RoleId};

/// A message from a gateway event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The message. If `complete` is false, fields missing from the event are empty
    /// (a missing author has id 0).
    pub message: Message,
    /// `channel_type`, which newer events include.
    pub channel_kind: Option<ChannelKind>,
    /// The author's roles in the server as of this event; `None` if the event does
    /// not list them all. Empty for a webhook.
    pub roles: Option<Vec<RoleId>>,
    /// Whether both author and content are present. A partial `MESSAGE_UPDATE`
    /// lacks one or both.
    pub complete: bool,
    /// Whether `content` is present and readable: an update without it leaves the
    /// text unchanged.
    pub has_content: bool,
}

/// An object that lacks even the required fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unreadable: {reason}")]
pub struct Unreadable {
    /// The message's id, if it could be read.
    pub id: Option<MessageId>,
    /// Its channel, if it could be read.
    pub channel: Option<ChannelId>,
    /// What was missing.
    pub reason: WhyUnreadable,
}

impl Unreadable {
    /// Nothing of it could be read.
    const fn of(reason: WhyUnreadable) -> Self {
        Self {
            id: None,
            channel: None,
            reason,
        }
    }
}

/// Why a message or channel could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WhyUnreadable {
    /// Not a JSON object.
    #[error("not a JSON object")]
    Json,
    /// No usable `id`.
    #[error("no id")]
    Id,
    /// A message without a usable `channel_id`.
    #[error("no channel_id")]
    Channel,
    /// A message without a usable `author.id`.
    #[error("no author")]
    Author,
    /// A channel without a usable `type`.
    #[error("no type")]
    Type,
    /// A server or member whose roles could not all be read.
    #[error("roles are missing")]
    Roles,
}

/// A page that is not a JSON array of messages.
#[derive(Debug, thiserror::Error)]
#[error("the page is not a JSON array")]
pub struct NotAPage(#[source] serde_json::Error);

/// Everything that could be read of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadPage {
    /// Oldest first, without duplicates.
    pub messages: Vec<Message>,
    /// Ids of the messages that could not be read, as far as they have one.
    pub unreadable: Vec<MessageId>,
    /// How many elements the page had, readable or not.
    pub elements: usize,
}

impl ReadPage {
    /// The page as a [`Source`](crate::collect::Source) that asked for so many messages returns it.
    pub fn asked_for(self, limit: usize) -> MessagePage {
        MessagePage {
            complete: self.elements < limit,
            messages: self.messages,
            unreadable: self.unreadable,
        }
    }
}

#[cfg(test)]
mod tests;
