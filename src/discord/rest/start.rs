//! What is asked at the start: where to connect, and who we are.

use serde::Deserialize;
use tokio::time::Instant;

use super::{Lane, Rest, malformed};
use crate::discord::error::RestError;
use crate::model::{ApplicationId, UserId};

/// What `/gateway/bot` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GatewayInfo {
    /// Where to connect.
    pub url: String,
    /// How many shards Discord recommends.
    #[serde(default = "one")]
    pub shards: u32,
    /// How often a session may still be started.
    #[serde(default)]
    pub session_start_limit: SessionStartLimit,
}

/// How often a session may be started. Running out resets the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SessionStartLimit {
    /// Starts a day.
    pub total: u32,
    /// Starts left.
    pub remaining: u32,
    /// Milliseconds until the limit is full again.
    pub reset_after: u64,
    /// Identifies in five seconds.
    pub max_concurrency: u16,
}

impl Default for SessionStartLimit {
    /// What a server that says nothing leaves to us: Discord's usual limit.
    fn default() -> Self {
        Self {
            total: 1_000,
            remaining: 1_000,
            reset_after: 0,
            max_concurrency: 1,
        }
    }
}

const fn one() -> u32 {
    1
}

/// Who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Our user.
    pub user: UserId,
    /// Our username.
    pub name: String,
    /// Our application.
    pub application: ApplicationId,
    /// The application's flags, which say what intents it may ask for.
    pub flags: u64,
}

#[derive(Deserialize)]
struct WireUser {
    id: UserId,
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct WireApplication {
    id: ApplicationId,
    #[serde(default)]
    flags: u64,
}

impl Rest {
    /// Where to connect, and how often a session may still be started.
    ///
    /// # Errors
    /// The reason, of Discord's answer or of its absence.
    pub async fn gateway(&self, deadline: Instant) -> Result<GatewayInfo, RestError> {
        let path = "gateway/bot".to_owned();
        let body = self.get(path, Lane::Main, deadline).await?;
        serde_json::from_slice(&body).map_err(|_| malformed())
    }

    /// Our user and our application: two requests.
    ///
    /// # Errors
    /// As `gateway`.
    pub async fn identity(&self, deadline: Instant) -> Result<Identity, RestError> {
        let user = self.get("users/@me".to_owned(), Lane::Main, deadline);
        let application = self.get("applications/@me".to_owned(), Lane::Singles, deadline);
        let (user, application) = futures_util::future::try_join(user, application).await?;
        let user: WireUser = serde_json::from_slice(&user).map_err(|_| malformed())?;
        let application: WireApplication =
            serde_json::from_slice(&application).map_err(|_| malformed())?;
        Ok(Identity {
            user: user.id,
            name: user.username,
            application: application.id,
            flags: application.flags,
        })
    }
}
