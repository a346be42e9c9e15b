//! Reads the simulated Discord as the bot would, but without its connection: what is
//! previewed is neither logged nor counted there. Faults apply as they do to the bot.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::{Request, Response};
use tokio::time::sleep;

use super::faults::FaultState;
use clew_context::discord::error::ConnectError;
use clew_context::discord::rest::RestReader;
use clew_context::outside::{SendError, Transport};
use clew_simulator::Simulator;

/// Where the simulated Discord has its API.
const API: &str = "/api/v10";

/// A reader of one preview.
pub(super) fn reader(
    discord: &Arc<Simulator>,
    faults: FaultState,
) -> Result<RestReader, ConnectError> {
    let transport = Arc::new(Peeking {
        discord: Arc::clone(discord),
        faults,
    });
    RestReader::through(&discord.token(), Some(&discord.url()), transport.into())
}

#[derive(Debug)]
struct Peeking {
    discord: Arc<Simulator>,
    faults: FaultState,
}

impl Transport for Peeking {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, SendError>> {
        let (discord, faults) = (Arc::clone(&self.discord), self.faults);
        async move {
            let url = request.url().as_str();
            let path = url.strip_prefix(&discord.url()).unwrap_or_default();
            let path = path.trim_start_matches(API);
            let is_read = path.starts_with("/channels/");
            if is_read && faults.slow_ms > 0 {
                sleep(Duration::from_millis(faults.slow_ms)).await;
            }
            let (status, body) = match faults.answer().filter(|_| is_read) {
                Some(forced) => forced,
                None => discord.peek(path),
            };
            let mut answer = axum::http::Response::new(body);
            *answer.status_mut() = status.try_into().map_err(|_| SendError::BrokenOff)?;
            Ok(answer.into())
        }
        .boxed()
    }
}
