//! Messages whose event names neither a server nor a channel type. Discord
//! sends the type, though its reference does not promise to; a look at the
//! channel tells whether it is a direct conversation.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::loop_event::LoopEvent;
use super::{CHANNELS_REMEMBERED, Dispatcher};
use clew_context::model::{ChannelId, ChannelKind, MessageId, TurnRequest};
use clew_discord::session::Mark;

/// How long the look may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// Looks up the channel of a message that is for us if it is a direct one.
    pub(super) fn look_up(&mut self, request: TurnRequest, mark: Mark) {
        let (id, channel) = (request.trigger.id, request.trigger.channel);
        self.arrived(request.turn());
        self.unplaced.insert(id, request);
        let (services, loop_events) = (Arc::clone(&self.services), self.loop_events.clone());
        self.tracker.spawn(async move {
            let deadline = Instant::now() + LOOK_TIMEOUT;
            let found = services.rest.reader().channel(channel, deadline).await;
            let kind = match found {
                Ok(found) => Some(found.kind),
                Err(error) => {
                    tracing::warn!(%error, %channel, "a message's channel is unknown");
                    None
                }
            };
            let looked = LoopEvent::LookedUp((channel, id), kind, mark);
            // The loop is gone only when the process ends.
            let _ = loop_events.send(looked);
        });
    }

    /// Handles the result of the look. The message is asked as it reads by now.
    pub(in crate::app) fn looked_up(
        &mut self,
        (channel, trigger): (ChannelId, MessageId),
        kind: Option<ChannelKind>,
        mark: Mark,
    ) {
        let is_direct = kind.is_some_and(ChannelKind::is_direct);
        if is_direct {
            if self.direct.len() >= CHANNELS_REMEMBERED {
                self.direct.clear();
            }
            self.direct.insert(channel);
        }
        let wanted = self.unplaced.remove(&trigger).filter(|_| is_direct);
        let is_submitted = wanted.is_some_and(|mut request| {
            request.channel_kind = kind;
            self.submit(request, Some(mark))
        });
        if !is_submitted {
            self.arrivals.remove(&trigger);
            self.finished(mark);
        }
    }
}
