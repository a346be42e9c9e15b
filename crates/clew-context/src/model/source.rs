//! What content from elsewhere was made from, and who may read it.

use serde::{Deserialize, Serialize};

use super::{ChannelId, GuildId, MessageId, UserId};

/// A message or a channel that content was made from: a message behind a link, what a
/// tool read. Whoever is shown the content must be able to read the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContentSource {
    /// Its server; `None` in direct messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild: Option<GuildId>,
    /// The channel or thread.
    pub channel: ChannelId,
    /// The message; `None` for the channel itself, such as its name, or for any message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// Who wrote the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<UserId>,
}

impl ContentSource {
    /// Its channel and author, whichever message it was.
    #[must_use]
    pub const fn without_message(self) -> Self {
        Self {
            message: None,
            ..self
        }
    }
}

/// Who of those who will read an answer may read a source of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Readers {
    /// Not even the asker, or it is unknown.
    Nobody,
    /// The asker; some others who can read the answer's place may not, or it is
    /// unknown.
    AskerOnly,
    /// Everybody who can read the answer's place, the asker included.
    Everybody,
}
