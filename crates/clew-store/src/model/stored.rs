//! Stored conversations: turns, snapshots of them, and where a conversation
//! starts.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use clew_context::model::{
    ChannelId, ContentSource, GuildId, MessageId, TurnId, UnixMillis, UserId,
};
use clew_context::words;

use super::Scope;

/// Longest agent name, in bytes.
const LONGEST_NAME: usize = 32;

/// An agent's name: 1 to 32 of `a-z`, `0-9`, `-` and `_`, so that it can name a
/// folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Arc<str>);

/// The text is not a valid agent name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be an agent's name: 1 to 32 of a-z, 0-9, - and _")]
pub struct AgentNameError(pub String);

impl AgentName {
    /// The built-in agent's name.
    pub fn default_agent() -> Self {
        Self("default".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = AgentNameError;

    fn from_str(text: &str) -> Result<Self, AgentNameError> {
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(AgentNameError(text.to_owned()))
        }
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One stored message of a turn (a row of the `messages` table).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The conversation it belongs to.
    pub scope: Scope,
    /// The agent that answered.
    pub agent: AgentName,
    /// Its turn. Rows of one turn are stored and deleted together.
    pub turn: TurnId,
    /// The turn's number within its scope and agent, from 1; 0 before it is
    /// appended. The store assigns it; how long the last one is remembered, see
    /// [`Backend`](crate::Backend). Prompts cut their window of history by it.
    pub ordinal: u64,
    /// Its role in the turn.
    pub role: StoredRole,
    /// The server; `None` for direct messages.
    pub guild: Option<GuildId>,
    /// The channel or thread (the column `thread_id`).
    pub channel: ChannelId,
    /// The asker of the turn, who owns the row even in a shared thread.
    pub owner: UserId,
    /// The asker's name at that time, for `User` rows.
    pub author_name: Option<String>,
    /// The text. For a trigger the asker's own words, or `(mention)` if none.
    pub content: String,
    /// The tool calls as JSON, for `ToolUse` rows.
    pub tool_calls: Option<String>,
    /// The call it answers, for `ToolResult` rows.
    pub tool_call_id: Option<String>,
    /// When it was asked or answered, by our clock.
    pub timestamp: UnixMillis,
    /// Discord's message id: the trigger's, or that of the answer's first
    /// message.
    pub message: Option<MessageId>,
    /// Ids of a long answer's further messages.
    pub parts: Vec<MessageId>,
    /// The message that the answer replied to, for `User` rows.
    pub target: Option<MessageId>,
    /// The snapshot it was restored from.
    pub restored_from: Option<SnapshotId>,
    /// What it was made from that stands elsewhere: messages behind links, what tools
    /// read. The rows of one turn, except the question, all have the same.
    pub sources: Vec<ContentSource>,
}

impl StoredMessage {
    /// Discord's messages that it is, and those that it was made from.
    pub fn made_of(&self) -> impl Iterator<Item = (ChannelId, MessageId)> + '_ {
        let own = self.message.iter().chain(&self.parts);
        let own = own.map(|id| (self.channel, *id));
        let sources = self.sources.iter();
        own.chain(sources.filter_map(|source| Some((source.channel, source.message?))))
    }

    /// When its words were made: what is restored from a snapshot is as old as its
    /// message. `None` if it was restored and is no message.
    pub fn began(&self) -> Option<UnixMillis> {
        match self.restored_from {
            None => Some(self.timestamp),
            Some(_) => self.message.map(MessageId::created),
        }
    }

    /// Whether its text is that message's text. A long answer spans several
    /// messages, so editing one of them changes nothing.
    pub fn is_text_of(&self, channel: ChannelId, message: MessageId) -> bool {
        let is_whole = self.parts.is_empty() || self.role == StoredRole::User;
        self.channel == channel && self.message == Some(message) && is_whole
    }
}

words! {
    /// A row's role in its turn (the column `role`).
    StoredRole {
        /// The trigger.
        User = "user",
        /// The answer.
        Assistant = "assistant",
        /// The model's tool calls.
        ToolUse = "tool_use",
        /// A tool's result.
        ToolResult = "tool_result",
    }
}

impl StoredRole {
    /// Whether it is a question or an answer, rather than what a tool was called with or gave.
    pub const fn is_spoken(self) -> bool {
        matches!(self, Self::User | Self::Assistant)
    }
}

/// A snapshot's id: a UUID in the usual form of 36 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(String);

/// The text is not a snapshot's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a snapshot")]
pub struct SnapshotIdError(pub String);

impl SnapshotId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SnapshotId {
    type Err = SnapshotIdError;

    fn from_str(text: &str) -> Result<Self, SnapshotIdError> {
        let is_uuid = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            });
        if is_uuid {
            Ok(Self(text.to_owned()))
        } else {
            Err(SnapshotIdError(text.to_owned()))
        }
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What `/context save` stores besides the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSnapshotInfo {
    /// Its id.
    pub id: SnapshotId,
    /// The agent whose conversation it is.
    pub agent: AgentName,
    /// Who saved it; only they can see it.
    pub owner: UserId,
    /// The server it was saved in; `None` for direct messages.
    pub guild: Option<GuildId>,
    /// When it was saved.
    pub timestamp: UnixMillis,
    /// The caller's description.
    pub description: Option<String>,
    /// Two to four sentences by the model, or `(summary generation failed)`.
    pub summary: String,
    /// Number of messages in it.
    pub message_count: usize,
    /// Start of the saved window.
    pub window_start: UnixMillis,
    /// End of the saved window.
    pub window_end: UnixMillis,
}

/// A saved conversation window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSnapshot {
    /// The data about it.
    pub info: ContextSnapshotInfo,
    /// The caller's rows, oldest first, each with its own scope.
    pub messages: Vec<StoredMessage>,
}

impl ContextSnapshot {
    /// The earliest time that a purge may judge one of its rows by.
    pub(crate) fn oldest(&self) -> Option<UnixMillis> {
        let times = self.messages.iter();
        let times = times.flat_map(|row| [Some(row.timestamp), row.began()]);
        times.flatten().min()
    }
}

/// Where a conversation starts: set by `/context clear`; rows stay.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClearKey {
    /// The agent.
    pub agent: AgentName,
    /// The server; `None` for direct messages.
    pub guild: Option<GuildId>,
    /// The user; `None` for everybody in the server.
    pub user: Option<UserId>,
}
