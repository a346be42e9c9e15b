//! What each event says beside the ids. Every field is always on the line, in
//! the order given here; what is unknown is `null`. No field can hold a
//! message's text: there are numbers, ids, words of closed sets, and names of
//! the operator's (models, agents) and of Discord's (events and their parts).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::words::{
    Answers, Cap, CauseWord, CircuitState, CommandOutcome, CommandWord, DropReason, FatalReason,
    Finish, List, LlmFailure, LostBy, Outcome, PurgeCause, ReadFailure, Refusal, SendStage,
    SourceWord, StoreOperation,
};
use crate::telemetry::{Ms, Seconds};
use clew_context::model::{
    Block, ChannelId, Fallback, Limits, MessageId, OmitReason, Scene, Stage,
};

/// `mem.ctx`/`collect_ok`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CollectOk {
    /// The scene.
    pub case: Scene,
    /// Messages shown.
    pub msgs: usize,
    /// Unicode scalars of the rendered block.
    pub chars: usize,
    /// From the turn's start to the block.
    pub ms: Ms,
    /// REST calls made for it.
    pub fetches: usize,
    /// Where the messages came from.
    pub source: SourceWord,
    /// Messages seen and left out, by reason.
    pub omitted: OmitCounts,
}

/// Messages left out of a block, by reason; reasons without any are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct OmitCounts(pub BTreeMap<OmitReason, usize>);

/// `mem.ctx`/`collect_truncated`: one for each cap that was met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectTruncated {
    /// The cap.
    pub reason: Cap,
    /// Messages shown.
    pub kept: usize,
    /// Messages that this cap left out; none if it only shortened some.
    pub dropped: usize,
}

/// `mem.ctx`/`collect_fallback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectFallback {
    /// The scene.
    pub case: Scene,
    /// Why.
    pub reason: Fallback,
    /// What is missing for it.
    pub stage: Stage,
}

/// `mem.ctx`/`merge_ok`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeOk {
    /// Messages of the block.
    pub block_msgs: usize,
    /// Facts of the asker.
    pub user_facts: usize,
    /// Facts of the server.
    pub server_facts: usize,
    /// Stored messages of the conversation.
    pub history_msgs: usize,
    /// Stored messages left out because the block shows them.
    pub dedup: usize,
    /// Unicode scalars of the whole prompt.
    pub chars: usize,
}

/// `mem.thread`/`tail_ok`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TailOk {
    /// `THREAD_CONTEXT_TAIL_COUNT`.
    pub k: usize,
    /// The message that is answered; none: the answer replies to nothing.
    pub reply_target: Option<MessageId>,
    /// Messages before it that are shown.
    pub count: usize,
}

/// `mem.thread`/`tail_fallback`: no tail is shown, or the thread
/// takes no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TailFallback {
    /// Why.
    pub reason: Fallback,
}

/// `route`/`trigger`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trigger {
    /// What the trigger is.
    pub scene: Scene,
    /// What made it one.
    pub cause: CauseWord,
    /// The message that is answered.
    pub target: Option<MessageId>,
    /// The trigger has no text of its own; another message's was taken.
    pub adopted: bool,
    /// How long it waited behind other turns.
    pub queued_ms: Ms,
    /// The channel that a thread is in.
    pub parent_channel_id: Option<ChannelId>,
    /// Under whose name it is answered; none if no agent answers there.
    pub agent: Option<String>,
}

/// `route`/`refused`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Why.
    pub reason: Refusal,
    /// The list that says no, if one does.
    pub list: Option<List>,
    /// The channel that a thread is in, as far as that is known.
    pub parent_channel_id: Option<ChannelId>,
}

/// `route`/`turn_done`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnDone {
    /// How it ended.
    pub outcome: Outcome,
    /// From the event to the end.
    pub ms: Ms,
    /// From the event to the first request to the model, if there was one.
    pub ms_to_model: Option<Ms>,
    /// The scene; none if it ended before that was known.
    pub case: Option<Scene>,
    /// Under whose name it was answered.
    pub agent: Option<String>,
    /// The model that was asked.
    pub model: Option<String>,
}

/// `llm`/`request_ok`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestOk {
    /// From the request to the first text.
    pub ms_first: Ms,
    /// From the request to the end.
    pub ms: Ms,
    /// Unicode scalars of the prompt.
    pub prompt_chars: usize,
    /// As the server counted, if it says.
    pub prompt_tokens: Option<u64>,
    /// As the server counted, if it says.
    pub completion_tokens: Option<u64>,
    /// Why the model stopped.
    pub finish: Finish,
    /// 1 for the first request of a turn, or after an edit of its question.
    pub attempt: u32,
    /// The model.
    pub model: String,
    /// Under whose name it was asked.
    pub agent: String,
}

/// `llm`/`request_failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestFailed {
    /// Why.
    pub reason: LlmFailure,
    /// 1 for the first request of a turn, or after an edit of its question.
    pub attempt: u32,
    /// Another attempt follows.
    pub will_retry: bool,
    /// The model.
    pub model: String,
    /// Under whose name it was asked.
    pub agent: String,
}

/// `discord`/`connected`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// Which shard, from 0.
    pub shard: u32,
    /// The old session goes on; nothing was missed.
    pub resumed: bool,
}

/// `discord`/`disconnected`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disconnected {
    /// Which shard, from 0.
    pub shard: u32,
    /// How.
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

/// `discord`/`unreadable`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// The event's type in lower case, such as `message_create`; `frame` if
    /// even that is unknown.
    pub what: String,
    /// How far it could be read all the same.
    pub reason: ReadFailure,
    /// The parts that could not be read, as Discord names them; none if all of
    /// it could not.
    pub parts: Vec<&'static str>,
}

/// `discord`/`sent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Messages that make up the answer.
    pub messages: usize,
    /// Unicode scalars of the answer, an attached rest included.
    pub chars: usize,
    /// The rest is an attached file.
    pub attached: bool,
    /// Edits made while it was streamed.
    pub edits: usize,
    /// It replies to a message.
    pub reply: bool,
    /// The reply pings its author.
    pub pinged: bool,
}

/// `discord`/`send_fallback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SendFallback {
    /// Why.
    pub reason: Fallback,
    /// What the delivery did without.
    pub stage: SendStage,
}

/// `discord`/`fatal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fatal {
    /// Why.
    pub reason: FatalReason,
}

/// `process`/`started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Started {
    /// Clew's version.
    pub version: String,
    /// Who answers.
    pub answers: Answers,
    /// `LLM_MODEL`.
    pub model: Option<String>,
    /// The caps in force.
    pub caps: Capped,
}

/// The caps in force, named as their settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capped {
    /// `THREAD_CONTEXT_TAIL_COUNT`.
    pub thread_context_tail_count: usize,
    /// `MEM_MAX_MSGS`.
    pub mem_max_msgs: usize,
    /// `MEM_MAX_CHARS`.
    pub mem_max_chars: usize,
    /// `MEM_MAX_MSG_CHARS`.
    pub mem_max_msg_chars: usize,
    /// `MEM_MAX_AGE_MIN`; 0: none.
    pub mem_max_age_min: u64,
    /// `MEM_CHAIN_MAX_AGE_MIN`; 0: none.
    pub mem_chain_max_age_min: u64,
    /// `MEM_FETCH_TIMEOUT_S`, with its fraction.
    pub mem_fetch_timeout_s: Seconds,
    /// `MEM_MAX_FETCHES`.
    pub mem_max_fetches: usize,
}

/// `process`/`stopping`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stopping {
    /// Turns that came to their end.
    pub drained: usize,
    /// Turns that did not, before the deadline.
    pub abandoned: usize,
}

/// `process`/`dropped`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Lines lost since the last such event.
    pub count: usize,
}

impl From<&Block> for OmitCounts {
    fn from(block: &Block) -> Self {
        let mut counts = BTreeMap::new();
        for omitted in &block.omitted {
            *counts.entry(omitted.reason).or_default() += 1;
        }
        Self(counts)
    }
}

impl CollectTruncated {
    /// One for each cap that left something out of the block, or shortened
    /// messages in it.
    pub fn of(block: &Block) -> Vec<Self> {
        let kept = block.items().count();
        let shortened = block.items().any(|item| item.cut);
        [
            (Cap::Msgs, OmitReason::Msgs),
            (Cap::Chars, OmitReason::Chars),
            (Cap::Age, OmitReason::Age),
        ]
        .into_iter()
        .filter_map(|(reason, omitted)| {
            let dropped = block.dropped_for(omitted);
            let hit = dropped > 0 || shortened && reason == Cap::Chars;
            hit.then_some(Self {
                reason,
                kept,
                dropped,
            })
        })
        .collect()
    }
}

fn minutes(age: Option<Duration>) -> u64 {
    age.map_or(0, |age| age.as_secs() / 60)
}

impl From<&Limits> for Capped {
    fn from(limits: &Limits) -> Self {
        Self {
            thread_context_tail_count: limits.tail,
            mem_max_msgs: limits.max_msgs,
            mem_max_chars: limits.max_chars,
            mem_max_msg_chars: limits.max_msg_chars,
            mem_max_age_min: minutes(limits.max_age),
            mem_chain_max_age_min: minutes(limits.max_chain_age),
            mem_fetch_timeout_s: Seconds(limits.fetch_timeout),
            mem_max_fetches: limits.max_fetches,
        }
    }
}

/// `store`/`store_failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreFailed {
    /// What it was asked to do.
    pub operation: StoreOperation,
    /// Asking again may help: it is locked, full or gone for now.
    pub transient: bool,
}

/// `store`/`circuit`: one line a change, none a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CircuitChanged {
    /// Reading what prompts carry.
    pub read: CircuitState,
    /// Storing turns.
    pub write: CircuitState,
    /// Answered turns that wait in memory.
    pub unsaved: usize,
}

impl CircuitChanged {
    /// The store does all that it is asked again.
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
    /// How many.
    pub turns: usize,
    /// Why.
    pub reason: DropReason,
}

/// `memory`/`recorded`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// Rows of the turn.
    pub rows: usize,
    /// Until they were on disk.
    pub ms: Ms,
}

/// `memory`/`flushed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flushed {
    /// Facts that were written.
    pub facts: usize,
    /// Until they were on disk.
    pub ms: Ms,
}

/// `memory`/`learnt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Learnt {
    /// Facts that are new.
    pub facts: usize,
    /// What the model named and the rules refused.
    pub refused: usize,
}

/// `memory`/`purged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PurgedEvent {
    /// Why.
    pub cause: PurgeCause,
    /// Entries of all kinds that went.
    pub entries: u64,
}

/// `memory`/`confirmed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confirmed {
    /// Messages that Discord was asked for.
    pub asked: usize,
    /// Of them, gone.
    pub gone: usize,
    /// Without an answer in time; they are asked for behind the turn.
    pub unanswered: usize,
    /// What it added to the turn.
    pub ms: Ms,
}

/// `memory`/`mends_dropped`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MendsDropped {
    /// Deletions and edits.
    pub mends: usize,
    /// Channels of which nothing stored is shown until Discord has been asked
    /// for it.
    pub channels: usize,
}

/// `command`/`answered`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandAnswered {
    /// What was called.
    pub command: CommandWord,
    /// What became of it.
    pub outcome: CommandOutcome,
    /// From the call to the answer.
    pub ms: Ms,
    /// "... is thinking" was shown meanwhile.
    pub deferred: bool,
}
