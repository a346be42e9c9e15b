//! What the events of collecting say: the block, what was left out of it, and the prompt.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::super::words::SourceWord;
use crate::model::PromptReceipt;
use crate::telemetry::{Ms, Seconds};
use clew_context::engine::turn::{Collected, StageFetches};
use clew_context::model::{
    Block, BlockItem, BlockPlace, Fallback, Limits, MessageId, OmitReason, PlaceContext, Scene,
    Stage, UnixMillis,
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
    /// REST calls made for it and for images.
    pub fetches: usize,
    /// Where the messages came from.
    pub source: SourceWord,
    /// Messages left out, by reason; of a cap what [`CollectTruncated::dropped`] says.
    pub omitted: OmitCounts,
    /// What the collector of links did; none without links.
    pub links: Option<LinkCounts>,
    /// How old the messages are; none without any.
    pub age_s: Option<BlockAges>,
    /// The calls by what they were for.
    pub stages: StageCounts,
    /// The caps of this block: with the server's settings, and halved if the model takes no more.
    pub caps: Capped,
}

/// What the collector of links did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LinkCounts {
    /// Messages and threads that may be shown.
    pub targets: usize,
    /// Whether something may not be shown.
    pub closed: bool,
    /// REST calls made for them.
    pub fetches: usize,
}

impl LinkCounts {
    /// None without links.
    pub fn of(collected: &Collected) -> Option<Self> {
        let (links, mut stages) = (&collected.links, collected.stages.iter());
        let calls = stages.find(|one| one.stage == Stage::Link);
        (!links.is_empty()).then_some(Self {
            targets: links.targets.len(),
            closed: links.closed,
            fetches: calls.map_or(0, |calls| calls.fetches),
        })
    }
}

impl fmt::Display for LinkCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            targets,
            closed,
            fetches,
        } = self;
        let closed = if *closed { ", more closed" } else { "" };
        write!(f, "{targets} followed{closed}, fetches {fetches}")
    }
}

/// Messages left out of a block, by reason; reasons that do not occur are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct OmitCounts(pub BTreeMap<OmitReason, usize>);

impl From<&PromptReceipt> for OmitCounts {
    fn from(prompt: &PromptReceipt) -> Self {
        let left_out = prompt.left_out.iter().filter(|one| one.all > 0);
        Self(left_out.map(|one| (one.reason, one.all)).collect())
    }
}

/// How long before the question the messages of a block were posted, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BlockAges {
    /// The oldest.
    pub oldest: u64,
    /// The newest; 0 of one that came after the question.
    pub newest: u64,
}

impl BlockAges {
    /// Without the starter, pins and what links lead to, which may be of any age. None if there is
    /// nothing else.
    pub fn of(block: &Block, asked: UnixMillis) -> Option<Self> {
        let may_be_old = |item: &&BlockItem| {
            let place = item.place;
            let of_any_age = [
                BlockPlace::Starter,
                BlockPlace::Pinned,
                BlockPlace::Linked,
                BlockPlace::LinkContext,
            ];
            of_any_age.contains(&place)
        };
        let rest = block.items().filter(|item| !may_be_old(item));
        let ages = rest.map(|item| asked.since(item.message.timestamp).max(0).unsigned_abs());
        let (oldest, newest) = ages.fold(None, |span: Option<(u64, u64)>, age| {
            let (oldest, newest) = span.unwrap_or((age, age));
            Some((oldest.max(age), newest.min(age)))
        })?;
        Some(Self {
            oldest: oldest / 1_000,
            newest: newest / 1_000,
        })
    }
}

/// REST calls by what they were for; stages without any are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct StageCounts(pub BTreeMap<Stage, StageCalls>);

/// The REST calls of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StageCalls {
    /// How many, second tries included.
    pub fetches: usize,
    /// From the first call to the last answer; stages may run side by side.
    pub ms: Ms,
}

impl StageCounts {
    /// Of these calls.
    pub fn of(stages: &[StageFetches]) -> Self {
        let calls = stages.iter().map(|one| {
            let calls = StageCalls {
                fetches: one.fetches,
                ms: Ms(one.took),
            };
            (one.stage, calls)
        });
        Self(calls.collect())
    }
}

/// `mem.ctx`/`collect_truncated`: one for each cap that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectTruncated {
    pub reason: OmitReason,
    /// Messages shown in the whole block.
    pub kept: usize,
    /// At least how many messages this cap left out, those included that were not looked at
    /// because of it.
    pub dropped: usize,
    /// Messages shown whose text this cap shortened.
    pub shortened: usize,
}

impl CollectTruncated {
    /// One for each cap that left something out of the block or shortened messages in it.
    pub fn of(prompt: &PromptReceipt) -> Vec<Self> {
        let each = OmitReason::caps().map(|reason| Self {
            reason,
            kept: prompt.shown.len(),
            dropped: prompt.dropped_for(reason),
            shortened: prompt.shortened.get(&reason).copied().unwrap_or(0),
        });
        each.filter(|cap| cap.dropped + cap.shortened > 0).collect()
    }
}

/// `mem.ctx`/`collect_fallback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectFallback {
    /// The scene.
    pub case: Scene,
    pub reason: Fallback,
    /// What could not be fetched.
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
    /// Stored messages from before that, which resemble the question.
    pub recalled_msgs: usize,
    /// Stored messages left out because the block shows them.
    pub dedup: usize,
    /// Unicode scalars of the whole prompt.
    pub chars: usize,
}

impl MergeOk {
    /// None if there is nothing beside the question.
    pub fn of(prompt: &PromptReceipt) -> Option<Self> {
        let merged = Self {
            block_msgs: prompt.shown.len(),
            user_facts: prompt.user_facts,
            server_facts: prompt.server_facts,
            history_msgs: prompt.history,
            recalled_msgs: prompt.recalled,
            dedup: prompt.dedup,
            chars: prompt.chars,
        };
        let facts = merged.user_facts + merged.server_facts;
        let stored = merged.history_msgs + merged.recalled_msgs;
        (merged.block_msgs + facts + stored > 0).then_some(merged)
    }
}

/// `mem.thread`/`tail_ok`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TailOk {
    /// `THREAD_CONTEXT_TAIL_COUNT`.
    pub k: usize,
    /// The message that the answer replies to, if any.
    pub reply_target: Option<MessageId>,
    /// Messages before it that are shown, after all caps.
    pub count: usize,
}

/// `mem.thread`/`tail_fallback`: no tail is shown, or the thread cannot be
/// answered in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TailFallback {
    pub reason: Fallback,
}

/// The caps in effect, named like their settings.
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
    /// `MEM_MAX_AGE_MIN`; 0 if there is no limit.
    pub mem_max_age_min: u64,
    /// `MEM_CHAIN_MAX_AGE_MIN`; 0 if there is no limit.
    pub mem_chain_max_age_min: u64,
    /// `MEM_FETCH_TIMEOUT_S`, with its fraction.
    pub mem_fetch_timeout_s: Seconds,
    /// `MEM_MAX_FETCHES`.
    pub mem_max_fetches: usize,
    /// `MEM_MAX_FILE_BYTES`.
    pub mem_max_file_bytes: u64,
    /// `MEM_INCLUDE_POINTED_APPS`.
    pub mem_include_pointed_apps: bool,
    /// `LINK_CONTEXT`, as it is typed.
    pub link_context: String,
    /// `LONE_CONTEXT`.
    pub lone_context: &'static str,
    /// `LONE_MAX_CHARS`.
    pub lone_max_chars: usize,
    /// `PLACE_CONTEXT`; absent if it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place_context: Option<&'static str>,
    /// `THREAD_SELECT`.
    pub thread_select: &'static str,
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
            mem_max_file_bytes: limits.max_file_bytes,
            mem_include_pointed_apps: limits.include_pointed_apps,
            link_context: limits.link_context.to_string(),
            lone_context: limits.lone_context.as_str(),
            lone_max_chars: limits.lone_max_chars,
            place_context: Some(limits.place_context)
                .filter(|one| *one != PlaceContext::Off)
                .map(PlaceContext::as_str),
            thread_select: limits.thread_select.as_str(),
        }
    }
}

fn minutes(age: Option<Duration>) -> u64 {
    age.map_or(0, |age| age.as_secs() / 60)
}
