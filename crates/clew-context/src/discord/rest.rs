//! Discord's REST API, for reading. A bot can also post through [`RestReader::call`],
//! with the same limits and the same errors.
//!
//! Each read is one request under the caller's deadline, resent only after a 429; a search
//! never is.
//! Identical reads that are in flight at the same time share one request.

mod address;
mod files;
mod global;
mod limiter;
mod pool;
mod search;
mod shared;
mod wire;

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::time::Instant;
use twilight_http::Client;
use twilight_http::request::{Method, Request, RequestBuilder};

pub use pool::RateLimitPool;
pub use search::{
    MAX_SEARCH_CHANNELS, MAX_SEARCH_OFFSET, MAX_SEARCH_USERS, SEARCH_LIMIT, SearchHas, SearchQuery,
    Searched,
};
pub(super) use shared::Query;

use self::address::Address;
use self::files::Files;
use self::pool::{MAX_SENDINGS, RateLimitPools};
use self::shared::SharedRequests;
use super::convert::{self, GuildMember};
use super::error::{ConnectError, RestError};
use crate::collect::{MessagePage, PAGE_LIMIT, PageCursor};
use crate::model::{
    Channel, ChannelId, Fallback, Guild, GuildId, Message, MessageId, RoleId, UserId,
};
use crate::outside::{Sending, blocking};

/// Larger pages are parsed on another thread. A hundred ordinary messages are
/// about 100 KB; this many bytes take a few milliseconds.
const LARGE_PAGE_BYTES: usize = 500_000;

/// A client for Discord's REST API; clones share connections and limits.
#[derive(Clone, Debug)]
pub struct RestReader {
    pools: Arc<RateLimitPools>,
    shared: Arc<SharedRequests>,
    files: Files,
}

impl RestReader {
    /// Sets up the client; nothing is sent yet.
    ///
    /// `api_url` replaces Discord's own base address: `http://host:port` or
    /// `https://host` of a REST proxy or a simulator. Must be called within a tokio
    /// runtime, which runs the rate limiter.
    ///
    /// # Errors
    /// [`ConnectError`] if the token or the address cannot be used.
    pub fn new(token: &str, api_url: Option<&str>) -> Result<Self, ConnectError> {
        Self::through(token, api_url, Sending::default())
    }

    /// The same with another way for the requests.
    ///
    /// # Errors
    /// As [`RestReader::new`].
    pub fn through(
        token: &str,
        api_url: Option<&str>,
        sending: Sending,
    ) -> Result<Self, ConnectError> {
        let sendable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if token.trim().is_empty() || !token.bytes().all(sendable) {
            return Err(ConnectError::Token);
        }
        install_tls();
        let address = api_url.map(Address::parse).transpose()?;
        let files = Files::new(address.as_ref(), sending)?;
        let pools = RateLimitPools::new(token, address.as_ref(), files.http());
        Ok(Self {
            pools: Arc::new(pools),
            shared: Arc::default(),
            files,
        })
    }

    /// Reads through the bot's existing client, sharing its limits. One client
    /// sends one request at a time per channel, so a page and a single message wait
    /// for each other; [`RestReader::new`] has a limiter for each kind.
    ///
    /// # Errors
    /// [`ConnectError::Files`] if the client for attached files could not be set up.
    pub fn of(client: Arc<Client>) -> Result<Self, ConnectError> {
        install_tls();
        Ok(Self {
            pools: Arc::new(RateLimitPools::of(client)),
            shared: Arc::default(),
            files: Files::new(None, Sending::default())?,
        })
    }

    /// Waits until Discord rejects the token (401). After that nothing works any more.
    pub async fn token_refused(&self) {
        self.pools.refused().await;
    }

    /// One page of a channel's messages, at most `limit` (1 to 100).
    ///
    /// # Errors
    /// Why Discord refused, or why there was no answer.
    pub async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        deadline: Instant,
    ) -> Result<MessagePage, RestError> {
        let limit = limit.clamp(1, PAGE_LIMIT);
        let query = Query::Page(channel, cursor, limit);
        let body = self.read(query, RateLimitPool::Main, deadline).await?;
        read_page(body, limit).await
    }

    /// A whole page like `page`, but in the pool of single messages: it delays no post. Whether
    /// stored messages are still there, while somebody waits for it.
    ///
    /// # Errors
    /// Like `page`.
    pub async fn confirming_page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        deadline: Instant,
    ) -> Result<MessagePage, RestError> {
        let query = Query::Page(channel, cursor, PAGE_LIMIT);
        let body = self.read(query, RateLimitPool::Singles, deadline).await?;
        read_page(body, PAGE_LIMIT).await
    }

    /// A whole page like `page`, but with the lowest priority and never shared: what was said
    /// while nobody listened.
    ///
    /// # Errors
    /// Like `page`.
    pub async fn missed_page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        deadline: Instant,
    ) -> Result<MessagePage, RestError> {
        let path = Query::Page(channel, cursor, PAGE_LIMIT).path();
        let body = self.get(path, RateLimitPool::Checks, deadline).await?;
        read_page(body.into(), PAGE_LIMIT).await
    }

    /// One message.
    ///
    /// # Errors
    /// [`Fallback::Deleted`] for Discord's error 10008, otherwise like `page`.
    pub async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, RestError> {
        let query = Query::Message(channel, id);
        let body = self.read(query, RateLimitPool::Singles, deadline).await?;
        convert::message(text(&body)?).map_err(|_| malformed())
    }

    /// Like `message`, but with the lowest priority and never shared: whether a
    /// message still exists, and its current text.
    ///
    /// # Errors
    /// Like `message`.
    pub async fn check(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, RestError> {
        let path = format!("channels/{channel}/messages/{id}");
        let body = self.get(path, RateLimitPool::Checks, deadline).await?;
        convert::message(text(&body)?).map_err(|_| malformed())
    }

    /// A channel's pinned messages, the last pinned first, at most `limit` (1 to 50). None without
    /// Read Message History.
    ///
    /// # Errors
    /// Like `page`.
    pub async fn pins(
        &self,
        channel: ChannelId,
        limit: usize,
        deadline: Instant,
    ) -> Result<Vec<Message>, RestError> {
        let query = Query::Pins(channel, limit);
        let body = self.read(query, RateLimitPool::Singles, deadline).await?;
        convert::pins(&body).map_err(|_| malformed())
    }

    /// A channel or thread. Tags, the parent's kind and its name stay empty: they
    /// come from the parent.
    ///
    /// # Errors
    /// Like `page`.
    pub async fn channel(&self, id: ChannelId, deadline: Instant) -> Result<Channel, RestError> {
        let body = self
            .read(Query::Channel(id), RateLimitPool::Singles, deadline)
            .await?;
        convert::channel(text(&body)?, None).map_err(|_| malformed())
    }

    /// The parts of a server that permissions are computed from: its owner and its roles.
    ///
    /// # Errors
    /// Like `page`.
    pub async fn guild(&self, id: GuildId, deadline: Instant) -> Result<Guild, RestError> {
        let body = self
            .get(format!("guilds/{id}"), RateLimitPool::Singles, deadline)
            .await?;
        convert::guild(text(&body)?).map_err(|_| malformed())
    }

    /// The channels of a server without its threads, those that can be read (Get Guild
    /// Channels).
    ///
    /// # Errors
    /// Like `page`.
    pub async fn guild_channels(
        &self,
        id: GuildId,
        deadline: Instant,
    ) -> Result<Vec<Channel>, RestError> {
        let path = format!("guilds/{id}/channels");
        let body = self.get(path, RateLimitPool::Singles, deadline).await?;
        let channels: Vec<&RawValue> = serde_json::from_slice(&body).map_err(|_| malformed())?;
        let read = channels.into_iter();
        Ok(read
            .filter_map(|channel| convert::channel(channel.get(), None).ok())
            .collect())
    }

    /// The roles of a member (Get Guild Member, which needs no privileged intent
    /// for a single member).
    ///
    /// # Errors
    /// [`Fallback::NotFound`] if the user is not a member, otherwise like `page`.
    pub async fn member_roles(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<Vec<RoleId>, RestError> {
        let member = self.member(guild, user, deadline).await;
        member.map(|member| member.roles)
    }

    /// A member: their roles, and whether they are in a timeout (Get Guild Member).
    ///
    /// # Errors
    /// As for their roles.
    pub async fn member(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<GuildMember, RestError> {
        let path = format!("guilds/{guild}/members/{user}");
        let body = self.get(path, RateLimitPool::Singles, deadline).await?;
        convert::member(text(&body)?).map_err(|_| malformed())
    }

    /// Whether a user is in a thread (Get Thread Member, which needs no privileged intent).
    ///
    /// # Errors
    /// Like `page`; a user who is not in the thread is not an error.
    pub async fn thread_member(
        &self,
        thread: ChannelId,
        user: UserId,
        deadline: Instant,
    ) -> Result<bool, RestError> {
        let path = format!("channels/{thread}/thread-members/{user}");
        match self.get(path, RateLimitPool::Singles, deadline).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Some(UNKNOWN_MEMBER) => Ok(false),
            Err(error) if error.reason == Fallback::NotFound && error.code.is_none() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a user is in a server (Get Guild Member, which needs no privileged
    /// intent for a single member).
    ///
    /// # Errors
    /// Like `page`; a user who is not in the server is not an error.
    pub async fn is_member(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<bool, RestError> {
        let path = format!("guilds/{guild}/members/{user}");
        match self.get(path, RateLimitPool::Checks, deadline).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code, Some(UNKNOWN_MEMBER | UNKNOWN_USER)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A GET that is never shared; `path` comes without `/api/v10/`.
    ///
    /// # Errors
    /// Like `page`.
    pub async fn get(
        &self,
        path: String,
        pool: RateLimitPool,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let request = RequestBuilder::raw(Method::Get, path);
        self.call(build(request)?, pool, deadline).await
    }

    /// Sends a request of any method and returns the answer's body, giving up at
    /// `deadline`. It is resent after a 429 only.
    ///
    /// # Errors
    /// Like `page`.
    pub async fn call(
        &self,
        request: Request,
        pool: RateLimitPool,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let most = MAX_SENDINGS;
        self.pools.call(request, pool, deadline, most).await
    }

    /// The twilight client, for calls that [`RestReader`] has no method for. Unless it was
    /// handed to [`RestReader::of`], it sends one request a second.
    pub fn client(&self) -> &Arc<Client> {
        self.pools.client()
    }

    async fn read(
        &self,
        query: Query,
        pool: RateLimitPool,
        deadline: Instant,
    ) -> Result<Arc<[u8]>, RestError> {
        let request = self.shared.join(query, pool, &self.pools)?;
        request.wait(&self.pools, pool, deadline).await
    }
}

/// Reads a page. A very large one is read on another thread: a single-threaded
/// bot could not do anything else meanwhile.
async fn read_page(body: Arc<[u8]>, limit: usize) -> Result<MessagePage, RestError> {
    let read = if body.len() > LARGE_PAGE_BYTES {
        let read = blocking(move || convert::page(&body)).await;
        read.map_err(|_| malformed())?
    } else {
        convert::page(&body)
    };
    let page = read.map_err(|_| malformed())?;
    Ok(page.asked_for(limit))
}

/// A process accepts only its first provider; whichever that is will do.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// "Unknown Member": the user is not in the thread or server.
const UNKNOWN_MEMBER: u64 = 10_007;
const UNKNOWN_USER: u64 = 10_013;

/// The error for an answer that is not what Discord documents.
pub const fn malformed() -> RestError {
    RestError::lasting(Fallback::Malformed)
}

/// An answer's body as text.
///
/// # Errors
/// [`malformed`] if it is not UTF-8.
pub fn text(body: &[u8]) -> Result<&str, RestError> {
    std::str::from_utf8(body).map_err(|_| malformed())
}

/// A request for [`RestReader::call`].
///
/// # Errors
/// twilight's reason for rejecting it, as a [`RestError`].
pub fn build(request: RequestBuilder) -> Result<Request, RestError> {
    request
        .build()
        .map_err(|error| RestError::of_twilight(&error))
}
