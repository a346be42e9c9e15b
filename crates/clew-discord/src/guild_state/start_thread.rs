//! Starts threads.

use serde_json::json;
use tokio::time::Instant;
use twilight_http::request::{Method, RequestBuilder};

use super::GuildState;
use super::partial::PartialChannel;
use crate::rest::{RateLimitPool, Rest, build, malformed};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, ChannelKind, GuildId};

/// The most characters in a thread's name (Start Thread without Message, `name`).
pub const MAX_THREAD_NAME: usize = 100;
/// After how long without a message the thread leaves the list of active ones, in
/// minutes; a server has room for a thousand.
const AUTO_ARCHIVE: u32 = 1_440;

impl GuildState {
    /// Starts a public thread without a message (Start Thread without Message). It is
    /// known here at once, not only when the gateway tells of it. The request is sent
    /// once: repeated, it could start two threads.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`](clew_context::model::Fallback::Forbidden) without
    /// permission, otherwise as for reads.
    pub async fn start_thread(
        &self,
        rest: &Rest,
        guild: GuildId,
        parent: ChannelId,
        name: &str,
        deadline: Instant,
    ) -> Result<ChannelId, RestError> {
        // Discord's reference, "Channel Types".
        let kind = match self.kind_and_parent(parent) {
            Some((ChannelKind::Announcement, _)) => 10,
            _ => 11,
        };
        let payload = json!({"name": name, "type": kind, "auto_archive_duration": AUTO_ARCHIVE});
        let path = format!("channels/{parent}/threads");
        let request =
            RequestBuilder::raw(Method::Post, path).body(payload.to_string().into_bytes());
        let body = rest
            .reader()
            .call(build(request)?, RateLimitPool::Main, deadline)
            .await?;
        let thread: PartialChannel = serde_json::from_slice(&body).map_err(|_| malformed())?;
        let id = thread.id;
        self.write().put_channel(guild, thread);
        Ok(id)
    }
}
