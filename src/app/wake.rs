//! Everything that wakes the bot.

use crate::discord::event::{Delivery, FatalReason};
use crate::discord::session::Mark;
use crate::model::{MessageId, TurnRequest};
use crate::telemetry::event::Outcome;

/// One closed set; matched in `app::connected`.
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
