//! Reads the simulated Discord as the bot would, but without its connection: what is
//! previewed is neither logged nor counted there. Faults apply as they do to the bot.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::api::FaultState;
use clew_context::collect::{FetchError, MessagePage, OtherChannels, PageCursor, Source};
use clew_context::discord::ReadCall;
use clew_context::discord::convert;
use clew_context::discord::error::RestError;
use clew_context::model::{
    Attachment, Channel, ChannelId, Fallback, Guild, GuildId, Message, MessageId, Parent, RoleId,
    UserId,
};
use clew_simulator::Simulator;

/// A source of one preview.
pub(super) struct PreviewSource<'a> {
    discord: &'a Simulator,
    others: &'a dyn OtherChannels,
    parents: &'a (dyn Fn(ChannelId) -> Option<Parent> + Send + Sync),
    faults: FaultState,
    calls: Mutex<Vec<ReadCall>>,
}

impl<'a> PreviewSource<'a> {
    pub(super) fn new(
        discord: &'a Simulator,
        others: &'a dyn OtherChannels,
        parents: &'a (dyn Fn(ChannelId) -> Option<Parent> + Send + Sync),
        faults: FaultState,
    ) -> Self {
        Self {
            discord,
            others,
            parents,
            faults,
            calls: Mutex::default(),
        }
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> Vec<ReadCall> {
        let calls = self.calls.lock();
        calls.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer to a GET.
    async fn get(&self, path: String, deadline: Instant) -> Result<Vec<u8>, FetchError> {
        let began = Instant::now();
        let answer = timeout_at(deadline, self.answer(&path)).await;
        let answer = answer.unwrap_or_else(|_| Err(RestError::lasting(Fallback::Timeout)));
        let call = ReadCall {
            path,
            error: answer.as_ref().err().copied(),
            took: began.elapsed(),
        };
        let calls = self.calls.lock();
        calls.unwrap_or_else(PoisonError::into_inner).push(call);
        answer.map_err(|error| FetchError {
            reason: error.reason,
            transient: error.transient,
        })
    }

    async fn answer(&self, path: &str) -> Result<Vec<u8>, RestError> {
        let is_read = path.starts_with("channels/");
        if is_read && self.faults.slow_ms > 0 {
            sleep(Duration::from_millis(self.faults.slow_ms)).await;
        }
        let (status, body) = match self.faults.answer().filter(|_| is_read) {
            Some(forced) => forced,
            None => self.discord.peek(&format!("/{path}")),
        };
        if status < 300 {
            Ok(body)
        } else {
            Err(RestError::refused(status, &body, None))
        }
    }
}

impl Source for PreviewSource<'_> {
    async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        deadline: Instant,
    ) -> Result<MessagePage, FetchError> {
        let edge = match cursor {
            PageCursor::Before(id) => format!("before={id}"),
            PageCursor::After(id) => format!("after={id}"),
            PageCursor::Around(id) => format!("around={id}"),
        };
        let path = format!("channels/{channel}/messages?limit={limit}&{edge}");
        let page = convert::page(&self.get(path, deadline).await?).map_err(malformed)?;
        Ok(MessagePage {
            complete: page.elements < limit,
            messages: page.messages,
            unreadable: page.unreadable,
        })
    }

    async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, FetchError> {
        let path = format!("channels/{channel}/messages/{id}");
        let body = self.get(path, deadline).await?;
        convert::message(text(&body)?).map_err(malformed)
    }

    async fn channel(&self, id: ChannelId, deadline: Instant) -> Result<Channel, FetchError> {
        let body = self.get(format!("channels/{id}"), deadline).await?;
        let channel = convert::channel(text(&body)?, None).map_err(malformed)?;
        Ok(match channel.parent.and_then(self.parents) {
            Some(parent) => channel.under(parent),
            None => channel,
        })
    }

    async fn guild(&self, id: GuildId, deadline: Instant) -> Result<Guild, FetchError> {
        let body = self.get(format!("guilds/{id}"), deadline).await?;
        convert::guild(text(&body)?).map_err(malformed)
    }

    async fn member_roles(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<Vec<RoleId>, FetchError> {
        let path = format!("guilds/{guild}/members/{user}");
        let body = self.get(path, deadline).await?;
        convert::member_roles(text(&body)?).map_err(malformed)
    }

    async fn is_thread_member(
        &self,
        thread: ChannelId,
        user: UserId,
        deadline: Instant,
    ) -> Result<bool, FetchError> {
        let path = format!("channels/{thread}/thread-members/{user}");
        match self.get(path, deadline).await {
            Ok(_) => Ok(true),
            Err(error) if error.reason == Fallback::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn file(
        &self,
        file: &Attachment,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<String, FetchError> {
        let path = file.url.strip_prefix(&self.discord.url());
        let path = path.ok_or(FetchError::lasting(Fallback::Forbidden))?;
        let path = path.trim_start_matches('/').to_owned();
        let mut text = text(&self.get(path, deadline).await?)?.to_owned();
        let most = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        text.truncate(text.floor_char_boundary(most));
        Ok(text)
    }

    fn other_channels(&self) -> Option<&dyn OtherChannels> {
        Some(self.others)
    }
}

fn text(body: &[u8]) -> Result<&str, FetchError> {
    std::str::from_utf8(body).map_err(malformed)
}

fn malformed<E>(_: E) -> FetchError {
    FetchError::lasting(Fallback::Malformed)
}
