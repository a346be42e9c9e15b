//! Discord's REST API: reads here, what posts in [`super::send`].
//!
//! Each read is one request under the caller's deadline, without a retry;
//! equal reads in flight are one request.

mod address;
mod files;
mod flight;
mod lane;
mod start;

use std::sync::Arc;

use tokio::time::Instant;
use twilight_http::client::InteractionClient;
use twilight_http::request::{Method, Request, RequestBuilder};
use twilight_model::id::Id;

pub use start::{GatewayInfo, SessionStartLimit};

use self::address::Address;
use self::files::Files;
use self::flight::{Flights, Query};
pub(super) use self::lane::Lane;
use self::lane::Lanes;
use super::convert::{self, ReadPage};
use super::error::{ConnectError, RestError};
use crate::model::{
    ApplicationId, Channel, ChannelId, Fallback, GuildId, Message, MessageId, UserId,
};

/// Most messages that Discord hands out at once (Get Channel Messages).
const PAGE_LIMIT: usize = 100;

/// A client for Discord's REST API; clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Rest {
    lanes: Arc<Lanes>,
    flights: Arc<Flights>,
    files: Files,
}

/// Where a page lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The newest messages older than this id.
    Before(MessageId),
    /// The oldest messages newer than this id.
    After(MessageId),
}

/// A page of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePage {
    /// Oldest first; each may carry its referenced message.
    pub messages: Vec<Message>,
    /// Ids of messages that could not be read at all.
    pub unreadable: Vec<MessageId>,
    /// Fewer than asked for: there is nothing beyond it.
    pub complete: bool,
}

impl Rest {
    /// Sets up the client; nothing is sent yet.
    ///
    /// `api_url` is another base than Discord's own: `http://host:port` or
    /// `https://host`, a REST proxy or a simulator. Call it within a tokio
    /// runtime, on which the rate limiter lives.
    ///
    /// # Errors
    /// A token or an address that cannot be used.
    pub fn new(token: &str, api_url: Option<&str>) -> Result<Self, ConnectError> {
        let sendable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if token.trim().is_empty() || !token.bytes().all(sendable) {
            return Err(ConnectError::Token);
        }
        // Only the first one takes; whoever was first is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let address = api_url.map(Address::parse).transpose()?;
        let files = Files::new(address.as_ref())?;
        Ok(Self {
            lanes: Arc::new(Lanes::new(token, address.as_ref())),
            flights: Arc::default(),
            files,
        })
    }

    /// Waits until Discord refuses the token (a 401): then nothing works any
    /// more.
    pub async fn token_refused(&self) {
        self.lanes.refused().await;
    }

    /// One page of a channel's messages, at most `limit` (1 to 100).
    ///
    /// # Errors
    /// The reason, of Discord's answer or of its absence.
    pub async fn page(
        &self,
        channel: ChannelId,
        side: Side,
        limit: usize,
        deadline: Instant,
    ) -> Result<MessagePage, RestError> {
        let limit = limit.clamp(1, PAGE_LIMIT);
        let query = Query::Page(channel, side, limit);
        let body = self.read(query, Lane::Main, deadline).await?;
        let page: ReadPage = convert::page(&body).map_err(|_| malformed())?;
        Ok(MessagePage {
            complete: page.elements < limit,
            messages: page.messages,
            unreadable: page.unreadable,
        })
    }

    /// One message.
    ///
    /// # Errors
    /// [`Fallback::Deleted`] for Discord's 10008, otherwise as `page`.
    pub async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, RestError> {
        let query = Query::Message(channel, id);
        let body = self.read(query, Lane::Singles, deadline).await?;
        convert::message(text(&body)?).map_err(|_| malformed())
    }

    /// A channel or thread. Tags, the parent's kind and its name stay empty:
    /// they need the parent.
    ///
    /// # Errors
    /// As `page`.
    pub async fn channel(&self, id: ChannelId, deadline: Instant) -> Result<Channel, RestError> {
        let body = self
            .read(Query::Channel(id), Lane::Singles, deadline)
            .await?;
        convert::channel(text(&body)?, None).map_err(|_| malformed())
    }

    /// Whether a user is in a thread (Get Thread Member, which needs no
    /// privileged intent).
    ///
    /// # Errors
    /// As `page`; that the user is no member is no error.
    pub async fn thread_member(
        &self,
        thread: ChannelId,
        user: UserId,
        deadline: Instant,
    ) -> Result<bool, RestError> {
        let path = format!("channels/{thread}/thread-members/{user}");
        match self.get(path, Lane::Singles, deadline).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Some(UNKNOWN_MEMBER) => Ok(false),
            Err(error) if error.reason == Fallback::NotFound && error.code.is_none() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a user is in a server (Get Guild Member, which needs no
    /// privileged intent for one).
    ///
    /// # Errors
    /// As `page`; that the user is no member is no error.
    pub async fn is_member(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<bool, RestError> {
        let path = format!("guilds/{guild}/members/{user}");
        match self.get(path, Lane::Aside, deadline).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code, Some(UNKNOWN_MEMBER | UNKNOWN_USER)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The text of an attached file, cut at `max_bytes`.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`] when the address is not on Discord's CDN,
    /// [`Fallback::Malformed`] when it is not UTF-8, otherwise as `page`.
    pub async fn file(
        &self,
        url: &str,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<String, RestError> {
        self.files.text(url, max_bytes, deadline).await
    }

    /// Get without sharing.
    pub(super) async fn get(
        &self,
        path: String,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let request = RequestBuilder::raw(Method::Get, path);
        self.call(build(request)?, lane, deadline).await
    }

    /// One request, answered, refused or given up at `deadline`.
    pub(super) async fn call(
        &self,
        request: Request,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        self.lanes.call(request, lane, deadline).await
    }

    /// twilight's client for commands.
    pub(super) fn interaction(&self, application: ApplicationId) -> Option<InteractionClient<'_>> {
        let id = Id::new_checked(application.get())?;
        Some(self.lanes.client(Lane::Main).interaction(id))
    }

    async fn read(
        &self,
        query: Query,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Arc<[u8]>, RestError> {
        let flight = self.flights.board(query, lane, &self.lanes)?;
        flight.land(&self.lanes, lane, deadline).await
    }
}

/// "Unknown Member": the user is not in the thread.
const UNKNOWN_MEMBER: u64 = 10_007;
/// Unknown User.
const UNKNOWN_USER: u64 = 10_013;

/// The answer is not what Discord documents.
pub(super) const fn malformed() -> RestError {
    RestError::lasting(Fallback::Malformed)
}

pub(super) fn text(body: &[u8]) -> Result<&str, RestError> {
    std::str::from_utf8(body).map_err(|_| malformed())
}

pub(super) fn build(request: RequestBuilder) -> Result<Request, RestError> {
    request
        .build()
        .map_err(|error| RestError::of_twilight(&error))
}
