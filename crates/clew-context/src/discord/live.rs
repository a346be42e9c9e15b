//! The source for live Discord: one REST call per read, resent only after a 429.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::error::RestError;
use super::rest::{Query, RestReader};
use crate::collect::{FetchError, MessagePage, OtherChannels, PageCursor, Source};
use crate::model::{
    Attachment, Channel, ChannelId, Guild, GuildId, Message, MessageId, Parent, RoleId, UserId,
};

/// Looks up a channel in what the gateway has told us.
type Lookup<'a> = &'a (dyn Fn(ChannelId) -> Option<Parent> + Send + Sync);
/// Takes each call once it is over.
type CallLog<'a> = &'a (dyn Fn(ReadCall) + Send + Sync);

/// A GET that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCall {
    /// The path after `/api/v10/` with its query, or a file's address.
    pub path: String,
    /// Why it failed, if it did.
    pub error: Option<RestError>,
    /// From the call to the answer.
    pub took: Duration,
}

/// Reads over REST. A thread object contains neither its parent's kind and name
/// nor the names of its tags. [`Live::with_parents`] looks those up, so that a
/// channel costs only one call.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    reader: &'a RestReader,
    parents: Option<Lookup<'a>>,
    other_channels: Option<&'a dyn OtherChannels>,
    calls: Option<CallLog<'a>>,
}

impl<'a> Live<'a> {
    /// Without parents, the kind of a thread's parent is unknown, so a post's first
    /// message is looked for in the forum before it is found in the post.
    pub const fn new(reader: &'a RestReader) -> Self {
        Self {
            reader,
            parents: None,
            other_channels: None,
            calls: None,
        }
    }

    /// Takes a thread's parent from a cache, such as one fed by the gateway's events.
    #[must_use]
    pub const fn with_parents(self, parents: Lookup<'a>) -> Self {
        Self {
            parents: Some(parents),
            ..self
        }
    }

    /// Follows links into other channels, as far as `channels` lets it.
    #[must_use]
    pub const fn with_other_channels(self, channels: &'a dyn OtherChannels) -> Self {
        Self {
            other_channels: Some(channels),
            ..self
        }
    }

    /// Tells `log` of each call once it is over.
    #[must_use]
    pub const fn with_call_log(self, log: CallLog<'a>) -> Self {
        Self {
            calls: Some(log),
            ..self
        }
    }

    /// Makes a call, and tells of it once it is over.
    async fn noted<T, F: Future<Output = Result<T, RestError>>>(
        &self,
        path: impl FnOnce() -> String,
        call: impl FnOnce() -> F,
    ) -> Result<T, FetchError> {
        let began = self.calls.map(|log| (log, Instant::now()));
        let answer = call().await;
        if let Some((log, began)) = began {
            log(ReadCall {
                path: path(),
                error: answer.as_ref().err().copied(),
                took: began.elapsed(),
            });
        }
        answer.map_err(FetchError::from)
    }
}

impl fmt::Debug for Live<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("reader", self.reader)
            .finish_non_exhaustive()
    }
}

impl Source for Live<'_> {
    async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        deadline: Instant,
    ) -> Result<MessagePage, FetchError> {
        let path = || Query::Page(channel, cursor, limit).path();
        let page = || self.reader.page(channel, cursor, limit, deadline);
        self.noted(path, page).await
    }

    async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, FetchError> {
        let path = || Query::Message(channel, id).path();
        let message = || self.reader.message(channel, id, deadline);
        self.noted(path, message).await
    }

    async fn pins(
        &self,
        channel: ChannelId,
        limit: usize,
        deadline: Instant,
    ) -> Result<Vec<Message>, FetchError> {
        let path = || Query::Pins(channel, limit).path();
        let pins = || self.reader.pins(channel, limit, deadline);
        self.noted(path, pins).await
    }

    async fn channel(&self, id: ChannelId, deadline: Instant) -> Result<Channel, FetchError> {
        let channel = || self.reader.channel(id, deadline);
        let channel = self.noted(|| Query::Channel(id).path(), channel).await?;
        let parent = self.parents.zip(channel.parent);
        Ok(match parent.and_then(|(parents, parent)| parents(parent)) {
            Some(parent) => channel.under(parent),
            None => channel,
        })
    }

    async fn guild(&self, id: GuildId, deadline: Instant) -> Result<Guild, FetchError> {
        let guild = || self.reader.guild(id, deadline);
        self.noted(|| format!("guilds/{id}"), guild).await
    }

    async fn member_roles(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<Vec<RoleId>, FetchError> {
        let path = || format!("guilds/{guild}/members/{user}");
        let roles = || self.reader.member_roles(guild, user, deadline);
        self.noted(path, roles).await
    }

    async fn is_thread_member(
        &self,
        thread: ChannelId,
        user: UserId,
        deadline: Instant,
    ) -> Result<bool, FetchError> {
        let path = || format!("channels/{thread}/thread-members/{user}");
        let member = || self.reader.thread_member(thread, user, deadline);
        self.noted(path, member).await
    }

    async fn file(
        &self,
        file: &Attachment,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<String, FetchError> {
        let text = || self.reader.file(&file.url, max_bytes, deadline);
        self.noted(|| file.url.to_string(), text).await
    }

    async fn whole_file(
        &self,
        file: &Attachment,
        deadline: Instant,
    ) -> Result<Vec<u8>, FetchError> {
        let bytes = || self.reader.whole_file(&file.url, file.size, deadline);
        self.noted(|| file.url.to_string(), bytes).await
    }

    fn other_channels(&self) -> Option<&dyn OtherChannels> {
        self.other_channels
    }
}
