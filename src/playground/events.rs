//! The stream of events that open pages listen to (`text/event-stream`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::ApiError;

/// How many pages may listen at once.
const MOST_LISTENERS: usize = 16;
/// How many events a page may be behind; then its stream ends, and it asks for all anew.
const MOST_WAITING: usize = 512;
/// How long a stream is silent before a comment keeps it open.
const SILENCE: Duration = Duration::from_secs(15);

/// Who listens, and what they are sent.
#[derive(Debug)]
pub(super) struct EventHub {
    frames: broadcast::Sender<Bytes>,
    listeners: Arc<Semaphore>,
}

impl Default for EventHub {
    fn default() -> Self {
        Self {
            frames: broadcast::Sender::new(MOST_WAITING),
            listeners: Arc::new(Semaphore::new(MOST_LISTENERS)),
        }
    }
}

/// One page's stream.
struct Listener {
    frames: broadcast::Receiver<Bytes>,
    shutdown: CancellationToken,
    is_new: bool,
    _permit: OwnedSemaphorePermit,
}

impl EventHub {
    /// Sends an event to all who listen.
    pub(super) fn send(&self, event: &str, data: &Value) {
        if self.frames.receiver_count() > 0 {
            // It fails if the last one has just left. JSON is one line.
            let frame = format!("event: {event}\ndata: {data}\n\n");
            let _ = self.frames.send(frame.into());
        }
    }

    /// Tells all who listen to load the state again.
    pub(super) fn state_changed(&self) {
        self.send("state", &Value::Null);
    }

    /// Tells all who listen that events were missed: to load messages again, too.
    pub(super) fn missed(&self) {
        self.send("missed", &Value::Null);
    }

    /// A stream for one page.
    pub(super) fn listen(&self, shutdown: CancellationToken) -> Result<Response, ApiError> {
        let permit = Arc::clone(&self.listeners).try_acquire_owned();
        let permit = permit.map_err(|_| {
            ApiError::busy("too many pages are open: close one, then load this again")
        })?;
        let listener = Listener {
            frames: self.frames.subscribe(),
            shutdown,
            is_new: true,
            _permit: permit,
        };
        let frames = stream::unfold(listener, |mut listener| async {
            let frame = listener.next().await?;
            Some((Ok::<_, Infallible>(frame), listener))
        });
        let mut response = Response::new(Body::from_stream(frames));
        let kind = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }
}

impl Listener {
    /// The next bytes; none when the stream is to end.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            // What comes after this was not missed.
            return Some(Bytes::from_static(b": here\n\n"));
        }
        let next = timeout(SILENCE, self.frames.recv());
        match self.shutdown.run_until_cancelled(next).await? {
            Err(_) => Some(Bytes::from_static(b": still here\n\n")),
            Ok(Ok(frame)) => Some(frame),
            Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => None,
        }
    }
}
