//! The closed list of events. A new one needs
//!
//! - a struct of its details in `event/detail.rs` (of collecting in `event/detail/collected.rs`),
//!   and its words in `event/words.rs`;
//! - a row in the table below, with its severity; [`Event::level`] has the exceptions;
//! - in `telemetry/schema.json` its name in the list (in the table's order), a branch of
//!   `allOf` and a definition that says of each field what it counts, in which unit and after
//!   which cap; a row of the table in `telemetry/README.md`;
//! - a line in `tests/it/telemetry/samples.rs`.
//!
//! Events of turns are emitted in `turn/record/`, those of the loop in `app`, those of
//! stores in `memory`; commands', the model's and the process's own where they happen.

mod detail;
mod words;

use serde::Serialize;

pub use crate::model::{FinishReason as Finish, LlmFailure};
pub use clew_context::engine::admission::Denied as List;
pub use clew_discord::event::DisconnectReason as LostBy;
#[cfg(feature = "test-util")]
pub use detail::StageCalls;
pub use detail::{
    AnswerSent, BlockAges, Capped, CaughtUp, ChangesDropped, CircuitChanged, CollectFallback,
    CollectOk, CollectTruncated, CommandAnswered, CommandWord, Confirmed, Dropped, EntriesPurged,
    Fatal, Flushed, Learnt, LinkCounts, MergeOk, OmitCounts, Recorded, RequestFailed, RequestOk,
    RunDone, SendFallback, ServedCall, SessionLost, ShardConnected, ShardDisconnected, StageCounts,
    Started, Stopping, StoreFailed, TailFallback, TailOk, ToolCalled, Trigger, TriggerRefused,
    TurnDone, TurnsDropped, UnreadableInput,
};
pub use words::{
    AnswerLeft, Answers, CaughtBy, CauseWord, CircuitState, CommandOutcome, DropReason,
    FatalReason, OrderWord, Outcome, PurgeCause, ReadFailure, Refusal, RunEnd, SearchedBy,
    SendStage, ServedBy, SourceWord, StoreOperation, Subsys, ToolOutcome,
};

macro_rules! events {
    ($($(#[$doc:meta])+ $subsys:ident $name:literal $level:literal $variant:ident;)+) => {
        /// One thing that happened, with the details worth knowing.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Event {
            $($(#[$doc])+ $variant($variant),)+
        }

        impl Event {
            /// Every event: the part of the bot it belongs to, and its name.
            /// Names are unique across all parts.
            #[cfg(feature = "test-util")]
            pub const ALL: &'static [(Subsys, &'static str)] =
                &[$((Subsys::$subsys, $name)),+];

            /// The part of the bot it belongs to.
            pub const fn subsys(&self) -> Subsys {
                match self {
                    $(Self::$variant(_) => Subsys::$subsys,)+
                }
            }

            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            /// Its level, if nothing in it changes that.
            const fn usual_level(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $level,)+
                }
            }
        }

        $(impl From<$variant> for Event {
            fn from(detail: $variant) -> Self {
                Self::$variant(detail)
            }
        })+
    };
}

events! {
    /// Messages were collected around a question, perhaps only in part.
    MemCtx "collect_ok" "info" CollectOk;
    /// A cap left messages out of the block, or shortened some.
    MemCtx "collect_truncated" "info" CollectTruncated;
    /// Part of the block could not be fetched.
    MemCtx "collect_fallback" "warn" CollectFallback;
    /// The block, facts and history were put before the question.
    MemCtx "merge_ok" "info" MergeOk;
    /// A thread's tail and reply target were found.
    MemThread "tail_ok" "info" TailOk;
    /// They were not found; the answer replies to the trigger.
    MemThread "tail_fallback" "warn" TailFallback;
    /// A turn begins.
    Route "trigger" "info" Trigger;
    /// A trigger got no turn.
    Route "refused" "info" TriggerRefused;
    /// A turn is over.
    Route "turn_done" "info" TurnDone;
    /// An agent run is over.
    Route "run_done" "info" RunDone;
    /// The model answered.
    Llm "request_ok" "info" RequestOk;
    /// The model did not answer.
    Llm "request_failed" "warn" RequestFailed;
    /// The model called a tool.
    Tools "tool_called" "info" ToolCalled;
    /// A member's own program read something.
    Tools "served" "info" ServedCall;
    /// A shard is connected.
    Discord "connected" "info" ShardConnected;
    /// A shard lost its connection.
    Discord "disconnected" "info" ShardDisconnected;
    /// A shard's session cannot be resumed; events may have been missed.
    Discord "session_lost" "warn" SessionLost;
    /// What was asked while nobody listened was looked for.
    Discord "caught_up" "info" CaughtUp;
    /// Something from Discord could not be parsed.
    Discord "unreadable" "warn" UnreadableInput;
    /// An answer has been posted completely.
    Discord "sent" "info" AnswerSent;
    /// An answer was delivered without some part of it.
    Discord "send_fallback" "warn" SendFallback;
    /// Discord refuses this bot as it is configured.
    Discord "fatal" "error" Fatal;
    /// A store did not do what it was asked to.
    Store "store_failed" "warn" StoreFailed;
    /// A store began to fail, or is back.
    Store "circuit" "info" CircuitChanged;
    /// A turn was stored.
    Memory "recorded" "info" Recorded;
    /// Answered turns that were never stored.
    Memory "turns_dropped" "warn" TurnsDropped;
    /// Facts were saved.
    Memory "flushed" "info" Flushed;
    /// Facts were learnt from a turn.
    Memory "learnt" "info" Learnt;
    /// Stored entries were removed.
    Memory "purged" "info" EntriesPurged;
    /// Discord was asked whether messages in a prompt still exist.
    Memory "confirmed" "info" Confirmed;
    /// Deletions and edits waiting for a store were dropped for lack of room.
    Memory "changes_dropped" "warn" ChangesDropped;
    /// A command was answered.
    Command "answered" "info" CommandAnswered;
    /// The process is up.
    Process "started" "info" Started;
    /// The process is going down.
    Process "stopping" "info" Stopping;
    /// Telemetry lines that never reached the file.
    Process "dropped" "warn" Dropped;
}

impl Event {
    /// How severe it is: `info`, `warn` or `error`. Refusals, truncation and
    /// requests that we cancelled follow the rules and are not problems.
    pub const fn level(&self) -> &'static str {
        match self {
            Self::TurnDone(TurnDone {
                outcome: Outcome::Failed,
                ..
            }) => "error",
            Self::RequestFailed(RequestFailed {
                reason: LlmFailure::Cancelled,
                ..
            }) => "info",
            Self::ToolCalled(called) if called.outcome.is_failure() => "warn",
            Self::CircuitChanged(changed) if !changed.is_back() => "warn",
            _ => self.usual_level(),
        }
    }
}
