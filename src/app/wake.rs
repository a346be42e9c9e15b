//! Everything that wakes the bot.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::telemetry::event::Outcome;
use clew_context::model::{MessageId, TurnRequest};
use clew_discord::event::{Delivery, FatalReason};
use clew_discord::rest::Rest;
use clew_discord::session::Mark;

/// One closed set; matched in `app::serve`.
#[derive(Debug)]
pub(super) enum Wake {
    /// The process is to end.
    Stop,
    /// The gateway's tasks ended.
    Disconnected(Result<(), FatalReason>),
    /// Something happened on Discord.
    Discord(Delivery),
    /// A command asks for a turn.
    Ask(Box<TurnRequest>),
    /// A message's channel was looked at; its event is not finished yet.
    Placed(Box<TurnRequest>, Mark),
    /// A turn is over.
    Done(Done),
}

/// The end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    /// Its trigger.
    pub(super) trigger: MessageId,
    /// How it ended; `None` if its task broke.
    pub(super) outcome: Option<Outcome>,
}

/// Where each of them comes from.
#[derive(Debug)]
pub(super) struct Ears {
    /// The process is to end.
    pub(super) shutdown: CancellationToken,
    /// What tracked tasks report.
    pub(super) reports: mpsc::UnboundedReceiver<Wake>,
    /// Events in the order of the gateway.
    pub(super) deliveries: mpsc::Receiver<Delivery>,
    /// Whose token Discord may refuse.
    pub(super) rest: Rest,
    /// The gateway's tasks.
    pub(super) connection: JoinHandle<Result<(), FatalReason>>,
}

impl Ears {
    /// The next one: an end first, then what is done, which makes room for
    /// what is new.
    pub(super) async fn next(&mut self) -> Wake {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => Wake::Stop,
            Some(wake) = self.reports.recv() => wake,
            Some(delivery) = self.deliveries.recv() => Wake::Discord(delivery),
            () = self.rest.reader().token_refused() => {
                Wake::Disconnected(Err(FatalReason::TokenRefused))
            }
            ended = &mut self.connection => {
                Wake::Disconnected(ended.unwrap_or(Err(FatalReason::Broken)))
            },
        }
    }
}
