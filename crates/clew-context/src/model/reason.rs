//! Why a collector or a delivery fell back: a closed set, with the same words in
//! telemetry and replay.

use serde::{Deserialize, Serialize};

/// Why part of a context or of a delivery is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// The block's deadline passed.
    Timeout,
    /// A permission is missing, ours or the asker's.
    Forbidden,
    /// The channel, thread or message does not exist.
    NotFound,
    /// The message existed and was deleted.
    Deleted,
    /// Discord, or our own limiter, made us wait past the deadline.
    RateLimited,
    /// A server error, or no connection.
    Unavailable,
    /// All `MEM_MAX_FETCHES` calls were used up.
    FetchBudget,
    /// The answer could not be read.
    Malformed,
    /// Messages arrive without text: the message content intent is off.
    NoContent,
    /// On delivery: the thread is archived.
    Archived,
    /// On delivery: the thread is locked.
    Locked,
}

impl Fallback {
    /// Whether Discord gave no answer now, and may give one to the same request later.
    pub const fn is_unanswered(self) -> bool {
        matches!(self, Self::Timeout | Self::RateLimited | Self::Unavailable)
    }

    /// The word used in logs, telemetry and replay.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Deleted => "deleted",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::FetchBudget => "fetch_budget",
            Self::Malformed => "malformed",
            Self::NoContent => "no_content",
            Self::Archived => "archived",
            Self::Locked => "locked",
        }
    }
}

impl std::fmt::Display for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which part of a block a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The channel's kind, parent and title.
    Channel,
    /// Pages of the thread, or of the channel for a bare mention.
    History,
    /// The message a thread was started from, or its first message.
    Starter,
    /// The message the trigger replies to.
    PointedAt,
    /// Links of the reply chain.
    Chain,
    /// Text files.
    File,
    /// The asker's permission to read the channel.
    Asker,
    /// What links lead to.
    Link,
    /// Images.
    Image,
}

impl Stage {
    /// All stages.
    pub const ALL: &'static [Self] = &[
        Self::Channel,
        Self::History,
        Self::Starter,
        Self::PointedAt,
        Self::Chain,
        Self::File,
        Self::Asker,
        Self::Link,
        Self::Image,
    ];

    /// The word used in telemetry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::History => "history",
            Self::Starter => "starter",
            Self::PointedAt => "pointed_at",
            Self::Chain => "chain",
            Self::File => "file",
            Self::Asker => "asker",
            Self::Link => "link",
            Self::Image => "image",
        }
    }
}
