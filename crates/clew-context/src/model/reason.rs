//! Why a collector or a delivery fell back: a closed set, with the same words in
//! telemetry and replay.

use crate::words;

words! {
    /// Why part of a context or of a delivery is missing.
    Fallback {
        /// The block's deadline passed.
        Timeout = "timeout",
        /// A permission is missing, ours or the asker's.
        Forbidden = "forbidden",
        /// The channel, thread or message does not exist.
        NotFound = "not_found",
        /// The message existed and was deleted.
        Deleted = "deleted",
        /// Discord, or our own limiter, made us wait past the deadline.
        RateLimited = "rate_limited",
        /// A server error, or no connection.
        Unavailable = "unavailable",
        /// All `MEM_MAX_FETCHES` calls were used up.
        FetchBudget = "fetch_budget",
        /// The answer could not be read.
        Malformed = "malformed",
        /// Messages arrive without text: the message content intent is off.
        NoContent = "no_content",
        /// On delivery: the thread is archived.
        Archived = "archived",
        /// On delivery: the thread is locked.
        Locked = "locked",
    }
}

impl Fallback {
    /// Whether Discord gave no answer now, and may give one to the same request later.
    pub const fn is_unanswered(self) -> bool {
        matches!(self, Self::Timeout | Self::RateLimited | Self::Unavailable)
    }
}

words! {
    /// Which part of a block a request was for.
    Stage {
        /// The channel's kind, parent and title.
        Channel = "channel",
        /// Pages of the thread, or of the channel for a bare mention.
        History = "history",
        /// The message a thread was started from, or its first message.
        Starter = "starter",
        /// The message the trigger replies to.
        PointedAt = "pointed_at",
        /// Links of the reply chain.
        Chain = "chain",
        /// Text files.
        File = "file",
        /// The asker's permission to read the channel.
        Asker = "asker",
        /// What links lead to.
        Link = "link",
        /// Images.
        Image = "image",
        /// Pinned messages.
        Pins = "pins",
    }
}
