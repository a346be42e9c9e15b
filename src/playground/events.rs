//! The stream of events that open pages listen to (`text/event-stream`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use super::error::{Answer, ApiError};

/// How many pages may listen at once.
const MOST_LISTENERS: usize = 16;
/// How many events a page may be behind; then its stream ends, and it asks for all anew.
const MOST_WAITING: usize = 512;
/// How long a stream is silent before a comment keeps it open.
const SILENCE: Duration = Duration::from_secs(15);

/// Who listens, and what they are sent.
#[derive(Debug)]
pub(super) struct EventHub {
    events: broadcast::Sender<Event>,
    listeners: Arc<Semaphore>,
}

impl Default for EventHub {
    fn default() -> Self {
        Self {
            events: broadcast::Sender::new(MOST_WAITING),
            listeners: Arc::new(Semaphore::new(MOST_LISTENERS)),
        }
    }
}

impl EventHub {
    /// Sends an event to all who listen.
    pub(super) fn send(&self, event: &str, data: &Value) {
        if self.events.receiver_count() > 0 {
            let event = Event::default().event(event).data(data.to_string());
            // It fails if the last one has just left.
            let _ = self.events.send(event);
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
    pub(super) fn listen(&self, shutdown: CancellationToken) -> Answer<Response> {
        let permit = Arc::clone(&self.listeners).try_acquire_owned();
        let permit = permit.map_err(|_| {
            ApiError::busy("too many pages are open: close one, then load this again")
        })?;
        // What comes after this was not missed.
        let here = stream::iter([Event::default().comment("here")]);
        let listening = (self.events.subscribe(), permit);
        let events = stream::unfold(listening, |(mut events, permit)| async {
            // A page that is too far behind gets no more: it asks for all anew.
            let event = events.recv().await.ok()?;
            Some((event, (events, permit)))
        });
        let events = here.chain(events).take_until(shutdown.cancelled_owned());
        let alive = KeepAlive::new().interval(SILENCE).text("still here");
        let answer = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(alive);
        Ok(answer.into_response())
    }
}
