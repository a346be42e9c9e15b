//! What is asked at the start: where to connect.

use serde::Deserialize;
use tokio::time::Instant;

use super::{Lane, Rest, malformed};
use clew_context::discord::error::RestError;

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
}
