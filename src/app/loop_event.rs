//! What the main loop waits for.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::catch_up::Look;
use crate::commands::{Steer, Steered};
use crate::runs::RunSlot;
use crate::telemetry::LoopGauges;
use crate::telemetry::event::Outcome;
use crate::turn::Services;
use crate::turn::patience;
use clew_context::collect::MessagePage;
use clew_context::model::{
    ChannelId, ChannelKind, GuildId, InteractionId, MessageId, RoleId, TurnRequest,
};
use clew_context::outside::Lease;
use clew_discord::event::{FatalReason, ShardEvent};
use clew_discord::session::Mark;

/// One thing that happened; `app::serve` matches them all.
#[derive(Debug)]
pub(super) enum LoopEvent {
    /// The process is to end.
    Stop,
    /// The gateway's tasks have ended.
    Disconnected(Result<(), FatalReason>),
    /// Questions have waited long enough for their copies.
    Due,
    /// Something happened on Discord.
    Discord(ShardEvent),
    /// A command asks for a turn.
    Ask(Box<TurnRequest>),
    /// An agent run has its place and may begin.
    Run(Box<TurnRequest>, RunSlot),
    /// An agent run is to stop.
    StopRun(InteractionId),
    /// Somebody steers a turn by a button.
    Steer(Steer, oneshot::Sender<Steered>),
    /// A message's channel has been looked at, and its type is this, if the look showed it; the
    /// message's event is not finished yet.
    LookedUp((ChannelId, MessageId), Option<ChannelKind>, Mark),
    /// Something of a round of catching up.
    CatchUp(CatchUpNews),
    /// A turn waits for people, and gives its place back.
    TurnWaits(MessageId),
    /// A turn is over.
    TurnEnded(TurnEnd),
    /// Another process has taken the store.
    StoreLost(clew_store::Error),
    /// Another process may be the bot by now.
    LeaseOver,
    /// Discord is not reached, and another process may be the bot instead.
    GiveWay {
        /// Whether it was reached in this tenure.
        was_reached: bool,
    },
    /// Another process is to be the bot.
    HandOver,
    /// Somebody asks how the loop is.
    Look(oneshot::Sender<LoopGauges>),
}

/// How the loop is; none once it has ended.
pub(super) async fn look(loop_events: &mpsc::UnboundedSender<LoopEvent>) -> Option<LoopGauges> {
    let (reply, answer) = oneshot::channel();
    // It fails once the loop has ended, and then nobody answers.
    let _ = loop_events.send(LoopEvent::Look(reply));
    answer.await.ok()
}

/// How a round of catching up goes on.
#[derive(Debug)]
pub(super) enum CatchUpNews {
    /// Where direct messages were written; none if the store does not say.
    Direct(Option<Vec<ChannelId>>),
    /// A server whose event lacked parts is fetched, with the newest message of each
    /// channel.
    Filled(Mark, GuildId, Vec<(ChannelId, MessageId)>),
    /// A page was read; none if it could not be.
    Page(Look, Option<MessagePage>),
    /// The roles of a question's asker are known; none outside of servers.
    Ask(MessageId, Option<Vec<RoleId>>),
    /// That was the last question.
    Asked,
    /// Some time has gone by.
    Tick,
}

/// The end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnEnd {
    pub(super) trigger: MessageId,
    /// How it ended; `None` if its task panicked.
    pub(super) outcome: Option<Outcome>,
}

/// Where the events come from.
pub(super) struct EventSources {
    /// The process is to end.
    pub(super) shutdown: CancellationToken,
    /// What tracked tasks report.
    pub(super) reports: mpsc::UnboundedReceiver<LoopEvent>,
    /// Events in the order of the gateway.
    pub(super) deliveries: mpsc::Receiver<ShardEvent>,
    /// The REST client learns if Discord refuses the token, memory if the store is lost.
    pub(super) services: Arc<Services>,
    pub(super) connection: JoinHandle<Result<(), FatalReason>>,
    /// None without a cluster.
    pub(super) lease: Option<Lease>,
}

impl EventSources {
    /// The next one: shutdown first, then reports, which make room for new
    /// events, then what is due at a time.
    pub(super) async fn next(&mut self, due: Option<Instant>) -> LoopEvent {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => LoopEvent::Stop,
            () = over(self.lease.as_ref()) => LoopEvent::LeaseOver,
            held = self.services.memory.lost() => LoopEvent::StoreLost(held),
            Some(loop_event) = self.reports.recv() => loop_event,
            () = patience::at(due) => LoopEvent::Due,
            Some(delivery) = self.deliveries.recv() => LoopEvent::Discord(delivery),
            () = self.services.rest.reader().token_refused() => {
                LoopEvent::Disconnected(Err(FatalReason::TokenRefused))
            }
            ended = &mut self.connection => {
                LoopEvent::Disconnected(ended.unwrap_or(Err(FatalReason::Broken)))
            },
        }
    }
}

/// Waits until a lease is over; for ever without one.
async fn over(lease: Option<&Lease>) {
    match lease {
        Some(lease) => lease.over().await,
        None => std::future::pending().await,
    }
}
