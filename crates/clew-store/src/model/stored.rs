//! What is kept of conversations: turns, snapshots of them, and where a
//! conversation begins.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};

use super::Scope;

/// Longest name of an agent, bytes.
const LONGEST_NAME: usize = 32;

/// An agent's name: 1 to 32 of `a-z`, `0-9`, `-` and `_`, so that it can be a
/// folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Arc<str>);

/// The text cannot be an agent's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be an agent's name: 1 to 32 of a-z, 0-9, - and _")]
pub struct AgentNameError(pub String);

impl AgentName {
    /// The built-in agent's name.
    pub fn default_agent() -> Self {
        Self("default".into())
    }

    /// The name.
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
    /// The turn it is part of. Rows of one turn are stored and go together.
    pub turn: TurnId,
    /// The turn's number within its scope and agent, from 1, given by the
    /// store when the turn is appended and never given again: what a prompt's
    /// window is cut by. 0 before.
    pub ordinal: u64,
    /// Which part of the turn.
    pub role: StoredRole,
    /// The server, none in direct messages.
    pub guild: Option<GuildId>,
    /// The channel or thread (the column `thread_id`).
    pub channel: ChannelId,
    /// The asker of the turn: whose row it is, also in a shared thread.
    pub owner: UserId,
    /// The asker's name at that time, for `User` rows.
    pub author_name: Option<String>,
    /// The text. For a trigger the asker's own words, or `(mention)`.
    pub content: String,
    /// JSON of the tool calls, for `ToolUse` rows.
    pub tool_calls: Option<String>,
    /// Which call it answers, for `ToolResult` rows.
    pub tool_call_id: Option<String>,
    /// When, by our clock.
    pub timestamp: UnixMillis,
    /// Discord's message: the trigger, or the first of the answer.
    pub message: Option<MessageId>,
    /// Discord's further messages of a long answer.
    pub parts: Vec<MessageId>,
    /// The message that the answer replied to, for `User` rows.
    pub target: Option<MessageId>,
    /// The snapshot it was restored from.
    pub restored_from: Option<SnapshotId>,
}

impl StoredMessage {
    /// Its text is what the message says. Of a long answer no single message
    /// says it, so an edit of one changes nothing.
    pub fn is_text_of(&self, channel: ChannelId, message: MessageId) -> bool {
        let is_whole = self.parts.is_empty() || self.role == StoredRole::User;
        self.channel == channel && self.message == Some(message) && is_whole
    }
}

/// Which part of a turn a row is (the column `role`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredRole {
    /// The trigger.
    User,
    /// The answer.
    Assistant,
    /// The model calls tools. No turn does yet; the stores hold such rows, so
    /// that none has to migrate when one does.
    ToolUse,
    /// What a tool gave.
    ToolResult,
}

impl StoredRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::User, Self::Assistant, Self::ToolUse, Self::ToolResult];

    /// The column's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolUse => "tool_use",
            Self::ToolResult => "tool_result",
        }
    }

    /// From the column's word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// A snapshot's id, a UUID in its usual form of 36 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(String);

/// The text is no snapshot's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a snapshot")]
pub struct SnapshotIdError(pub String);

impl SnapshotId {
    /// The id.
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

/// What `/context save` keeps beside the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSnapshotInfo {
    /// Its id.
    pub id: SnapshotId,
    /// Whose agent.
    pub agent: AgentName,
    /// Who saved it; nobody else sees it.
    pub owner: UserId,
    /// The server it was saved in, none in direct messages.
    pub guild: Option<GuildId>,
    /// When it was saved.
    pub timestamp: UnixMillis,
    /// What the caller called it.
    pub description: Option<String>,
    /// Two to four sentences by the model, or `(summary generation failed)`.
    pub summary: String,
    /// Messages in it.
    pub message_count: usize,
    /// Where the saved window begins.
    pub window_start: UnixMillis,
    /// Where it ends.
    pub window_end: UnixMillis,
}

/// A saved window of conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSnapshot {
    /// What is known about it.
    pub info: ContextSnapshotInfo,
    /// The caller's rows, oldest first, each of its own scope.
    pub messages: Vec<StoredMessage>,
}

/// Where a conversation begins: set by `/context clear`, rows stay.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClearKey {
    /// For this agent.
    pub agent: AgentName,
    /// In this server; none for direct messages.
    pub guild: Option<GuildId>,
    /// For this user; none: for everybody in the server.
    pub user: Option<UserId>,
}
