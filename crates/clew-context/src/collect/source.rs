//! Where messages come from: Discord itself or a recording.

use std::future::{Future, ready};

use tokio::time::Instant;

use crate::engine::window::View;
use crate::model::{
    Attachment, Channel, ChannelId, Fallback, Guild, GuildId, Message, MessageId, Readers, RoleId,
    UserId,
};

/// Most messages Discord returns at once (Get Channel Messages, `limit`).
pub const PAGE_LIMIT: usize = 100;

/// A source of messages. Each call is one request, without retries or budget:
/// both are up to the caller. A call not answered by `deadline` ends with
/// [`Fallback::Timeout`], or with [`Fallback::RateLimited`] if a limiter held it
/// back.
pub trait Source: Send + Sync {
    /// One page of a channel's messages.
    ///
    /// # Errors
    /// Why Discord refused, or why there was no answer.
    fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        deadline: Instant,
    ) -> impl Future<Output = Result<MessagePage, FetchError>> + Send;

    /// One message.
    ///
    /// # Errors
    /// [`Fallback::Deleted`] for Discord's error 10008, otherwise like `page`.
    fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> impl Future<Output = Result<Message, FetchError>> + Send;

    /// The pinned messages of a channel, the last pinned first, at most `limit`. A source that
    /// knows none keeps the default.
    ///
    /// # Errors
    /// Like `page`.
    fn pins(
        &self,
        _: ChannelId,
        _: usize,
        _: Instant,
    ) -> impl Future<Output = Result<Vec<Message>, FetchError>> + Send {
        ready(Err(FetchError::lasting(Fallback::Unavailable)))
    }

    /// A channel or thread with its overwrites and, if known, its parent's kind and tag names.
    ///
    /// # Errors
    /// Like `page`.
    fn channel(
        &self,
        id: ChannelId,
        deadline: Instant,
    ) -> impl Future<Output = Result<Channel, FetchError>> + Send;

    /// A server's owner and all of its roles. This and the next two are only called
    /// if the asker's rights are unknown. A source that cannot answer keeps the
    /// default; then an asker whose rights are unknown is denied.
    ///
    /// # Errors
    /// Like `page`.
    fn guild(
        &self,
        _: GuildId,
        _: Instant,
    ) -> impl Future<Output = Result<Guild, FetchError>> + Send {
        ready(Err(FetchError::lasting(Fallback::Unavailable)))
    }

    /// All roles of a member, without @everyone.
    ///
    /// # Errors
    /// [`Fallback::NotFound`] if the user is not a member, otherwise like `page`.
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
    /// Like `page`.
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
    /// [`Fallback::Forbidden`] if the host is not Discord's CDN,
    /// [`Fallback::Malformed`] if it is not UTF-8, otherwise like `page`.
    fn file(
        &self,
        file: &Attachment,
        max_bytes: u64,
        deadline: Instant,
    ) -> impl Future<Output = Result<String, FetchError>> + Send;

    /// All bytes of an attached file. A source that has none keeps the default.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`] if the host is not Discord's CDN,
    /// [`Fallback::Malformed`] if there are more bytes than [`Attachment::size`],
    /// otherwise like `page`.
    fn whole_file(
        &self,
        _: &Attachment,
        _: Instant,
    ) -> impl Future<Output = Result<Vec<u8>, FetchError>> + Send {
        ready(Err(FetchError::lasting(Fallback::Unavailable)))
    }

    /// What is known of channels other than the trigger's. Without it nothing of
    /// them enters a turn.
    fn other_channels(&self) -> Option<&dyn OtherChannels> {
        None
    }
}

/// What is known, without asking Discord, of channels other than the trigger's.
pub trait OtherChannels: Send + Sync {
    /// A channel or thread of any server.
    fn channel(&self, id: ChannelId) -> Option<Channel>;

    /// Who of those who will read the answer may read this channel. Unknown is
    /// [`Readers::Nobody`].
    fn readers(&self, channel: &Channel) -> Readers;

    /// Whether we computed that we may not read its messages.
    fn may_surely_not_read(&self, channel: ChannelId) -> bool;

    /// Its window.
    fn view(&self, channel: ChannelId) -> View;
}

/// Which page to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageCursor {
    /// The newest messages older than this id.
    Before(MessageId),
    /// The oldest messages newer than this id.
    After(MessageId),
    /// The message with this id, with about as many before it as after it.
    Around(MessageId),
}

/// A page of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessagePage {
    /// Oldest first; each may include its referenced message.
    pub messages: Vec<Message>,
    /// Ids of the messages that could not be read.
    pub unreadable: Vec<MessageId>,
    /// Fewer messages than asked for: nothing lies beyond this page. Around a message
    /// that is true of neither side.
    pub complete: bool,
}

/// A request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("fetch failed: {reason}")]
pub struct FetchError {
    /// The reason, from the closed set.
    pub reason: Fallback,
    /// Whether an immediate retry is worthwhile: a server error or a broken connection.
    pub transient: bool,
}

impl FetchError {
    /// An error that a retry will not fix.
    pub const fn lasting(reason: Fallback) -> Self {
        Self {
            reason,
            transient: false,
        }
    }
}
