//! Requests that never reach a socket: Discord and the model answer within this process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clew_context::outside::{SendError, Transport};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::{Body, Request, Response};
use tokio::time::{sleep, timeout};

use super::model;
use crate::history::What;
use crate::process::{Lack, Process};
use crate::world::World;

/// Where the model seems to be.
pub(crate) const MODEL_URL: &str = "http://127.0.0.1:10/v1";
const MODEL_PORT: u16 = 10;
/// The longest time between sending a request and its arrival, and back, in milliseconds.
const LATENCY: u64 = 60;

/// The network of one process.
#[derive(Clone)]
pub(crate) struct Net {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").finish_non_exhaustive()
    }
}

impl Transport for Net {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, SendError>> {
        let net = self.clone();
        async move {
            net.process.cross().await;
            let sent_by = net.process.number();
            let patience = request.timeout().copied().unwrap_or(Duration::MAX);
            let answered = timeout(patience, net.answer(request, sent_by)).await;
            net.process.cross().await;
            answered.unwrap_or(Err(SendError::Timeout))
        }
        .boxed()
    }
}

impl Net {
    async fn answer(&self, request: Request, sent_by: u32) -> Result<Response, SendError> {
        self.arrives(&request, sent_by);
        if request.url().port() == Some(MODEL_PORT) {
            return model::answer(self, request).await;
        }
        self.travel().await;
        self.process.cross().await;
        self.arrives(&request, sent_by);
        if self.process.lacks(Lack::Discord) {
            return Err(SendError::BrokenOff);
        }
        let answer = self.world.local.call(of_wire(&request)).await;
        self.travel().await;
        let is_heard = !self.process.lacks(Lack::Discord);
        let answer = answer.filter(|_| is_heard).ok_or(SendError::BrokenOff)?;
        let (parts, body) = answer.into_parts();
        let body = Body::wrap_stream(body.into_data_stream());
        Ok(http::Response::from_parts(parts, body).into())
    }

    /// Of several processes only the bot sends, and nothing of it arrives when there is another.
    fn arrives(&self, request: &Request, sent_by: u32) {
        if sent_by == 0 || !self.world.database.is_last(sent_by) {
            self.world.note(What::Late {
                process: sent_by,
                what: format!("{} {}", request.method(), request.url().path()),
            });
        }
    }

    /// Time on the way.
    pub(super) async fn travel(&self) {
        sleep(Duration::from_millis(self.world.between(1, LATENCY))).await;
    }
}

/// The request as a server gets it.
fn of_wire(request: &Request) -> http::Request<Vec<u8>> {
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    let mut wire = http::Request::new(body.to_vec());
    *wire.method_mut() = request.method().clone();
    if let Ok(uri) = request.url().as_str().parse() {
        *wire.uri_mut() = uri;
    }
    *wire.headers_mut() = request.headers().clone();
    wire
}
