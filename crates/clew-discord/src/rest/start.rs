//! The request made at startup: where to connect.

use serde::Deserialize;
use tokio::time::Instant;

use super::Rest;
use clew_context::discord::error::RestError;

/// The reply of `/gateway/bot`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GatewayInfo {
    /// Where to connect.
    pub url: String,
    /// How many shards Discord recommends.
    #[serde(default = "one")]
    pub shards: u32,
    /// How many sessions may still be started.
    #[serde(default)]
    pub session_start_limit: SessionStartLimit,
}

/// Limits on session starts. Using them all up makes Discord reset the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SessionStartLimit {
    /// Starts per day.
    pub total: u32,
    /// Starts left.
    pub remaining: u32,
    /// Milliseconds until the limit is full again.
    pub reset_after: u64,
    /// IDENTIFYs allowed per five seconds.
    pub max_concurrency: u16,
}

impl Default for SessionStartLimit {
    /// Discord's usual limits, for servers that do not send any.
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
    /// Where to connect, and how many sessions may still be started.
    ///
    /// # Errors
    /// Why there is no readable answer.
    pub async fn gateway(&self, deadline: Instant) -> Result<GatewayInfo, RestError> {
        self.fetch("gateway/bot", deadline).await
    }
}
