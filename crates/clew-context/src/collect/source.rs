//! Where messages come from: Discord itself, or a recording of it.

use std::future::{Future, ready};

use tokio::time::Instant;

use crate::model::{
    Attachment, Channel, ChannelId, Fallback, Guild, GuildId, Message, MessageId, RoleId, UserId,
};

/// Most messages that Discord hands out at once (Get Channel Messages, `limit`).
pub const PAGE_LIMIT: usize = 100;

/// A source of messages. Each call is one request: no retries, no budget,
/// both are the caller's. A call that is not answered at `deadline` ends with
/// [`Fallback::Timeout`], or [`Fallback::RateLimited`] if a limiter held it.
pub trait Source: Send + Sync {
    /// One page of a channel's messages.
    ///
    /// # Errors
    /// The reason, of Discord's answer or of its absence.
    fn page(
        &self,
        channel: ChannelId,
        anchor: Anchor,
        limit: usize,
        deadline: Instant,
    ) -> impl Future<Output = Result<Page, FetchError>> + Send;

    /// One message.
    ///
    /// # Errors
    /// [`Fallback::Deleted`] for Discord's 10008, otherwise as `page`.
    fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> impl Future<Output = Result<Message, FetchError>> + Send;

    /// A channel or thread with its overwrites, its parent's kind and its tag
    /// names as far as known.
    ///
    /// # Errors
    /// As `page`.
    fn channel(
        &self,
        id: ChannelId,
        deadline: Instant,
    ) -> impl Future<Output = Result<Channel, FetchError>> + Send;

    /// A server's owner and all of its roles: asked for, like the next two, where
    /// it is not known what the asker may do. A source that has none says nothing,
    /// and who is not known is denied.
    ///
    /// # Errors
    /// As `page`.
    fn guild(
        &self,
        _: GuildId,
        _: Instant,
    ) -> impl Future<Output = Result<Guild, FetchError>> + Send {
        ready(Err(FetchError::lasting(Fallback::Unavailable)))
    }

    /// All roles of a member, everyone's left out.
    ///
    /// # Errors
    /// [`Fallback::NotFound`] of who is no member, otherwise as `page`.
    fn member_roles(
        &self,
        _: GuildId,
        _: UserId,
        _: Instant,
    ) -> impl Future<Output = Result<Vec<RoleId>, FetchError>> + Send {
        ready(Err(FetchError::lasting(Fallback::Unavailable)))
    }

    /// Whether a user is a member of a thread.
    ///
    /// # Errors
    /// As `page`.
    fn is_thread_member(
        &self,
        _: ChannelId,
        _: UserId,
        _: Instant,
    ) -> impl Future<Output = Result<bool, FetchError>> + Send {
        ready(Err(FetchError::lasting(Fallback::Unavailable)))
    }

    /// The text of an attached file, cut at `max_bytes`.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`] when the host is not Discord's CDN,
    /// [`Fallback::Malformed`] when it is not UTF-8, otherwise as `page`.
    fn file(
        &self,
        file: &Attachment,
        max_bytes: u64,
        deadline: Instant,
    ) -> impl Future<Output = Result<String, FetchError>> + Send;
}

/// Which page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// The newest messages older than this id.
    Before(MessageId),
    /// The oldest messages newer than this id.
    After(MessageId),
}

/// A page of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Oldest first; each may carry its referenced message.
    pub messages: Vec<Message>,
    /// Ids of messages that could not be read at all.
    pub unreadable: Vec<MessageId>,
    /// Fewer than asked for: there is nothing beyond it.
    pub complete: bool,
}

/// A request that gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("fetch failed: {reason}")]
pub struct FetchError {
    /// Why, in the closed set.
    pub reason: Fallback,
    /// Worth one more try at once: a server error or a broken connection.
    pub transient: bool,
}

impl FetchError {
    /// An error that a second try will not cure.
    pub const fn lasting(reason: Fallback) -> Self {
        Self {
            reason,
            transient: false,
        }
    }
}
