//! Discord's REST API as the bot uses it: `clew-context`'s reader, and posting
//! in [`super::send`].

mod guild_now;
mod start;
mod survey;

use serde::de::DeserializeOwned;
use tokio::time::Instant;

use clew_context::discord::error::{ConnectError, RestError};
use clew_context::discord::rest::RestReader;
use clew_context::outside::Sending;

pub(super) use clew_context::discord::rest::{RateLimitPool, build, malformed};
pub use start::{GatewayInfo, SessionStartLimit};
pub use survey::{Application, ChannelSurvey, OwnGuild};

/// A client for Discord's REST API; clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Rest {
    reader: RestReader,
}

impl Rest {
    /// Creates the client; see [`RestReader::new`].
    ///
    /// # Errors
    /// The token or the address cannot be used.
    pub fn new(token: &str, api_url: Option<&str>) -> Result<Self, ConnectError> {
        Self::through(token, api_url, Sending::default())
    }

    /// The same with another way for the requests.
    ///
    /// # Errors
    /// As [`Rest::new`].
    pub fn through(
        token: &str,
        api_url: Option<&str>,
        sending: Sending,
    ) -> Result<Self, ConnectError> {
        let reader = RestReader::through(token, api_url, sending)?;
        Ok(Self { reader })
    }

    /// The object behind a path.
    async fn fetch<T: DeserializeOwned>(
        &self,
        path: &str,
        deadline: Instant,
    ) -> Result<T, RestError> {
        let pool = RateLimitPool::Singles;
        let body = self.reader.get(path.to_owned(), pool, deadline).await?;
        serde_json::from_slice(&body).map_err(|_| malformed())
    }

    /// The client's reading half.
    pub const fn reader(&self) -> &RestReader {
        &self.reader
    }
}
