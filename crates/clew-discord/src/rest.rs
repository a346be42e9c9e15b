//! Discord's REST API as the bot uses it: `clew-context`'s reader, and posting
//! in [`super::send`].

mod start;

use tokio::time::Instant;
use twilight_http::client::InteractionClient;
use twilight_http::request::Request;
use twilight_model::id::Id;

use clew_context::discord::error::{ConnectError, RestError};
use clew_context::discord::rest::Reader;
use clew_context::model::ApplicationId;

pub(super) use clew_context::discord::rest::{Lane, build, malformed, text};
pub use start::{GatewayInfo, SessionStartLimit};

/// A client for Discord's REST API; clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Rest {
    reader: Reader,
}

impl Rest {
    /// Creates the client; see [`Reader::new`].
    ///
    /// # Errors
    /// The token or the address cannot be used.
    pub fn new(token: &str, api_url: Option<&str>) -> Result<Self, ConnectError> {
        let reader = Reader::new(token, api_url)?;
        Ok(Self { reader })
    }

    /// The client's reading half.
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// One GET, not shared with other callers.
    pub(super) async fn get(
        &self,
        path: String,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        self.reader.get(path, lane, deadline).await
    }

    /// One request: answered, refused, or given up at `deadline`.
    pub(super) async fn call(
        &self,
        request: Request,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        self.reader.call(request, lane, deadline).await
    }

    /// twilight's client for interactions.
    pub(super) fn interaction(&self, application: ApplicationId) -> Option<InteractionClient<'_>> {
        let id = Id::new_checked(application.get())?;
        Some(self.reader.client(Lane::Main).interaction(id))
    }
}
