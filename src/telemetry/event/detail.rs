//! What each event says in addition to the ids. Every field is always on the line,
//! in the order given here; unknown values are `null`. No field can hold a
//! message's text: there are only numbers, ids, words from closed sets, and names
//! chosen by the operator (models, agents) or by Discord (events and their parts).

mod collected;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::words::{
    AnswerLeft, Answers, CaughtBy, CauseWord, CircuitState, CommandOutcome, DropReason,
    FatalReason, OrderWord, Outcome, PurgeCause, ReadFailure, Refusal, RunEnd, SearchedBy,
    SendStage, ServedBy, StoreOperation, ToolOutcome,
};
use super::{Finish, List, LlmFailure, LostBy};
use crate::model::Consent;
use crate::telemetry::Ms;
use clew_context::model::{ChannelId, Fallback, MessageId, Scene};

#[cfg(feature = "test-util")]
pub use collected::StageCalls;
pub use collected::{
    BlockAges, Capped, CollectFallback, CollectOk, CollectTruncated, LinkCounts, MergeOk,
    OmitCounts, StageCounts, TailFallback, TailOk,
};

/// `route`/`trigger`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trigger {
    /// What the trigger is.
    pub scene: Scene,
    /// What made it a trigger.
    pub cause: CauseWord,
    /// The message that the answer replies to.
    pub target: Option<MessageId>,
    /// Whether the trigger has no text of its own and another message's was used.
    pub adopted: bool,
    /// How long it waited behind other turns.
    pub queued_ms: Ms,
    /// The channel that a thread is in.
    pub parent_channel_id: Option<ChannelId>,
    /// The agent that answers; none if no agent answers there.
    pub agent: Option<String>,
}

/// `route`/`refused`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriggerRefused {
    pub reason: Refusal,
    /// The list that forbids it, if one does.
    pub list: Option<List>,
    /// The channel that a thread is in, if known.
    pub parent_channel_id: Option<ChannelId>,
}

/// `route`/`turn_done`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnDone {
    pub outcome: Outcome,
    /// From the event to the end.
    pub ms: Ms,
    /// From the event to the first request to the model, if there was one.
    pub ms_to_model: Option<Ms>,
    /// The scene; none if it ended before that was known.
    pub case: Option<Scene>,
    pub agent: Option<String>,
    /// The model that was asked last.
    pub model: Option<String>,
    /// What an earlier process had left of the answer.
    pub left: Option<AnswerLeft>,
    /// What somebody told the turn by a button.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderWord>,
}

/// `route`/`run_done`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunDone {
    pub end: RunEnd,
    /// How often the model was asked; unknown if an earlier process ran it.
    pub rounds: Option<usize>,
    /// How often tools were called.
    pub calls: Option<usize>,
    /// The tokens of all requests that were answered, as counted by the server or estimated.
    pub tokens: Option<u64>,
    /// From its start to this report.
    pub ms: Ms,
}

/// `llm`/`request_ok`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestOk {
    /// From the request, this attempt alone, to the first text.
    pub ms_first: Ms,
    /// From the request, this attempt alone, to the end.
    pub ms: Ms,
    /// Unicode scalars of the prompt.
    pub prompt_chars: usize,
    /// As counted by the server, if it says; what came from its cache included.
    pub prompt_tokens: Option<u64>,
    /// Those of them that came from the server's cache, if it says.
    pub cached_tokens: Option<u64>,
    /// As counted by the server, if it says; hidden reasoning included.
    pub completion_tokens: Option<u64>,
    /// Those of them that were hidden reasoning, if it says.
    pub reasoning_tokens: Option<u64>,
    pub finish: Finish,
    /// 1 for the first request of a turn or command, or after an edit of its question.
    pub attempt: u32,
    /// Which server was asked: 1 for `LLM_BASE_URL`, from 2 those of `LLM_FALLBACKS`.
    pub server: usize,
    /// The model that was asked there.
    pub model: String,
    /// The model that answered, as the server names it.
    pub response_model: Option<String>,
    /// None of a command's request.
    pub agent: Option<String>,
    /// Images beside the question.
    pub images: usize,
    /// Bytes of those together.
    pub image_bytes: usize,
}

/// `llm`/`request_failed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestFailed {
    pub reason: LlmFailure,
    /// From the request, this attempt alone, to its failure.
    pub ms: Ms,
    /// 1 for the first request of a turn or command, or after an edit of its question.
    pub attempt: u32,
    /// Whether another attempt follows, perhaps at the next server.
    pub will_retry: bool,
    /// Which server was asked: 1 for `LLM_BASE_URL`, from 2 those of `LLM_FALLBACKS`.
    pub server: usize,
    /// The model that was asked there.
    pub model: String,
    /// None of a command's request.
    pub agent: Option<String>,
}

/// `tools`/`tool_called`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCalled {
    /// The tool; none if there is no such tool.
    pub tool: Option<String>,
    /// What came of it.
    pub outcome: ToolOutcome,
    /// From the call to the result.
    pub ms: Ms,
    /// The size of the result.
    pub bytes: usize,
    /// In which round of the turn the model called it, from 1.
    pub round: usize,
    pub agent: String,
    /// Where messages were searched, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchedBy>,
    /// Of a tool of another's server: how it came to be called, or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
}

/// `tools`/`served`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServedCall {
    /// What was called.
    pub tool: String,
    /// How the program came.
    pub by: ServedBy,
    /// What came of it.
    pub outcome: ToolOutcome,
    /// From the call to the result.
    pub ms: Ms,
    /// The size of the result.
    pub bytes: usize,
    /// The messages whose words it has, by their channels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub read: BTreeMap<ChannelId, BTreeSet<MessageId>>,
}

/// `discord`/`connected`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardConnected {
    /// Which shard, from 0.
    pub shard: u32,
    /// Whether the old session goes on; then nothing was missed.
    pub resumed: bool,
}

/// `discord`/`disconnected`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardDisconnected {
    /// Which shard, from 0.
    pub shard: u32,
    /// How the connection was lost.
    pub reason: LostBy,
    /// Discord's close code, if it closed the connection.
    pub code: Option<u16>,
}

/// `discord`/`session_lost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionLost {
    /// Which shard, from 0.
    pub shard: u32,
}

/// `discord`/`caught_up`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaughtUp {
    /// How questions were found.
    pub how: CaughtBy,
    /// Channels that were to be looked at.
    pub channels: usize,
    /// Pages that were read.
    pub fetches: usize,
    /// Pages that could not be read, or the list of direct conversations.
    pub failed: usize,
    /// Channels that were not looked at to the end, for `CATCH_UP_MAX_FETCHES`.
    pub unread: usize,
    /// Questions that were asked again.
    pub questions: usize,
    /// Those of them that were answered so far.
    pub answered: usize,
    /// Questions that are older than `CATCH_UP_MIN`.
    pub too_old: usize,
    /// Questions that are too many of one person, server or all.
    pub too_many: usize,
}

impl CaughtUp {
    /// Nothing so far.
    pub const fn nothing(how: CaughtBy) -> Self {
        Self {
            how,
            channels: 0,
            fetches: 0,
            failed: 0,
            unread: 0,
            questions: 0,
            answered: 0,
            too_old: 0,
            too_many: 0,
        }
    }
}

/// `discord`/`unreadable`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableInput {
    /// The event's type in lower case, such as `message_create`; `frame` if
    /// even that is unknown.
    pub what: String,
    /// How much of it could be read.
    pub reason: ReadFailure,
    /// The parts that could not be read, as Discord names them; none if
    /// nothing could be read.
    pub parts: Vec<&'static str>,
}

/// `discord`/`sent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerSent {
    /// The number of messages in the answer.
    pub messages: usize,
    /// The length of the answer in Unicode scalars, including an attached rest.
    pub chars: usize,
    /// Whether the rest is an attached file.
    pub attached: bool,
    /// The number of edits made while it was streamed.
    pub edits: usize,
    /// Whether it replies to a message.
    pub reply: bool,
    /// Whether the reply pings its author.
    pub pinged: bool,
}

/// `discord`/`send_fallback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SendFallback {
    pub reason: Fallback,
    /// The part that is missing.
    pub stage: SendStage,
}

/// `discord`/`fatal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fatal {
    pub reason: FatalReason,
}

/// `process`/`started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Started {
    pub version: String,
    /// Who answers.
    pub answers: Answers,
    /// `LLM_MODEL`.
    pub model: Option<String>,
    /// The caps in effect.
    pub caps: Capped,
    /// The process's name in its cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// `process`/`stopping`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stopping {
    /// Turns that finished.
    pub drained: usize,
    /// Turns that did not finish before the deadline.
    pub abandoned: usize,
}

/// `process`/`dropped`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Lines lost since the last such event.
    pub count: usize,
}

/// `store`/`store_failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreFailed {
    /// What it was asked to do.
    pub operation: StoreOperation,
    /// Whether trying again may help: it is locked, full or gone for now.
    pub transient: bool,
}

/// `store`/`circuit`: one line per change, not per turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CircuitChanged {
    /// The state of reading what prompts need.
    pub read: CircuitState,
    /// The state of storing turns.
    pub write: CircuitState,
    /// How many answered turns wait in memory.
    pub unsaved: usize,
}

impl CircuitChanged {
    /// Whether the store does everything it is asked to again.
    pub const fn is_back(&self) -> bool {
        matches!(
            (self.read, self.write),
            (CircuitState::Closed, CircuitState::Closed)
        )
    }
}

/// `memory`/`turns_dropped`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnsDropped {
    pub turns: usize,
    pub reason: DropReason,
}

/// `memory`/`recorded`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// The number of rows of the turn.
    pub rows: usize,
    /// Whether the store had them before the answer's last post: a kill right after it would have
    /// lost nothing.
    pub early: bool,
    /// The time until they were on disk.
    pub ms: Ms,
}

/// `memory`/`flushed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flushed {
    /// The number of facts written.
    pub facts: usize,
    /// The time until they were on disk.
    pub ms: Ms,
}

/// `memory`/`learnt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Learnt {
    /// The number of new facts.
    pub facts: usize,
    /// How many facts from the model the rules refused.
    pub refused: usize,
}

/// `memory`/`purged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntriesPurged {
    pub cause: PurgeCause,
    /// The number of entries removed, of all kinds.
    pub entries: u64,
}

/// `memory`/`confirmed`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Confirmed {
    /// How many messages were to be confirmed.
    pub asked: usize,
    /// The requests for them.
    pub calls: usize,
    /// How many of those are gone.
    pub gone: usize,
    /// How many are left; they are asked for after the turn.
    pub unanswered: usize,
    /// The time that the requests took.
    pub ms: Ms,
}

/// `memory`/`changes_dropped`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangesDropped {
    /// How many deletions and edits were dropped.
    pub changes: usize,
    /// How many channels of which nothing stored is shown until Discord has been
    /// asked about it.
    pub channels: usize,
}

/// `command`/`answered`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandAnswered {
    /// The command.
    pub command: CommandWord,
    pub outcome: CommandOutcome,
    /// From the call to the answer.
    pub ms: Ms,
    /// Whether "... is thinking" was shown meanwhile.
    pub deferred: bool,
}

/// The name of a command and of its sub-command, such as `context_show`; `button`;
/// `complete`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct CommandWord(Cow<'static, str>);

impl CommandWord {
    /// A button under one of our answers was pressed.
    pub const BUTTON: Self = Self(Cow::Borrowed("button"));
    pub const COMPLETE: Self = Self(Cow::Borrowed("complete"));

    /// The word of a command, by its names on Discord. They are ours: no word of a
    /// member gets here.
    pub fn new(command: &'static str, sub: Option<&'static str>) -> Self {
        let names = [command].into_iter().chain(sub);
        let names: Vec<&str> = names.flat_map(|name| name.split(['-', ' '])).collect();
        Self(names.join("_").to_lowercase().into())
    }
}

impl fmt::Display for CommandWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
