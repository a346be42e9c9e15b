//! Discord's JSON read into our words, leniently: the one path for gateway
//! events, pages and single messages.
//!
//! Needed are a message's id, channel and author; every other part that
//! cannot be read is left out and named in [`Extras::unread`].

mod channel;
mod components;
mod extras;
mod message;
mod part;
mod wire;

pub use channel::{channel, guild, member_roles};
pub use message::{from_twilight, incoming, message, page, us};

#[cfg(doc)]
use crate::model::Extras;
use crate::model::{ChannelId, ChannelKind, Message, MessageId, RoleId};

/// A message as a gateway event brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The message. Where `complete` is false, what the event did not carry
    /// is empty in it (the author's id is then 0).
    pub message: Message,
    /// `channel_type`, which newer events carry.
    pub channel_kind: Option<ChannelKind>,
    /// The author's roles in the server, fresh with this event; absent where it
    /// does not tell all of them. A webhook has none.
    pub roles: Option<Vec<RoleId>>,
    /// Author and content are there. A partial `MESSAGE_UPDATE` has neither
    /// or only one.
    pub complete: bool,
    /// `content` is there, readable: an update without it leaves the text as
    /// it was.
    pub has_content: bool,
}

/// An object of which not even the least could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unreadable: {reason}")]
pub struct Unreadable {
    /// The message's id, as far as that could be read.
    pub id: Option<MessageId>,
    /// Its channel, as far as that could be read.
    pub channel: Option<ChannelId>,
    /// What was missing.
    pub reason: WhyUnreadable,
}

/// What kept a message or channel from being read.
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
    /// A server or member of which not all roles could be read.
    #[error("roles are missing")]
    Roles,
}

/// A page that was no array of objects.
#[derive(Debug, thiserror::Error)]
#[error("the page is not a JSON array")]
pub struct NotAPage(#[source] serde_json::Error);

/// What could be read of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadPage {
    /// Oldest first, each once.
    pub messages: Vec<Message>,
    /// Ids of what could not be read, as far as they have one.
    pub unreadable: Vec<MessageId>,
    /// How many elements the page had, readable or not.
    pub elements: usize,
}

#[cfg(test)]
mod tests;
