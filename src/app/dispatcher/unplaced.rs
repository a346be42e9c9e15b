//! Messages whose event names neither a server nor a channel type. Discord
//! sends the type, though its reference does not promise to; a look at the
//! channel tells whether it is a direct conversation.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::loop_event::LoopEvent;
use super::{CHANNELS_REMEMBERED, Dispatcher};
use clew_context::model::{ChannelKind, TurnRequest};
use clew_discord::session::Mark;

/// How long the look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// Looks up the channel of a message that is for us if it is a direct one.
    pub(super) fn look_up(&mut self, mut request: TurnRequest, mark: Mark) {
        self.unplaced.insert(request.trigger.id);
        let (services, loop_events) = (Arc::clone(&self.services), self.loop_events.clone());
        self.tracker.spawn(async move {
            let deadline = Instant::now() + LOOK_TIMEOUT;
            let place = request.trigger.channel;
            match services.rest.reader().channel(place, deadline).await {
                Ok(channel) => request.channel_kind = Some(channel.kind),
                Err(error) => tracing::warn!(%error, %place, "a message's channel is unknown"),
            }
            // The loop is gone only when the process ends.
            let _ = loop_events.send(LoopEvent::Placed(Box::new(request), mark));
        });
    }

    /// Handles the result of the look.
    pub(in crate::app) fn placed(&mut self, request: TurnRequest, mark: Mark) {
        let direct = request.channel_kind.is_some_and(ChannelKind::is_direct);
        if direct {
            if self.direct.len() >= CHANNELS_REMEMBERED {
                self.direct.clear();
            }
            self.direct.insert(request.trigger.channel);
        }
        let wanted = self.unplaced.remove(&request.trigger.id);
        if !(direct && wanted && self.submit(request, Some(mark))) {
            self.finished(mark);
        }
    }
}
