//! What is counted from the start on, for Prometheus. Counters and histograms are taken
//! from the events that telemetry gets, so that both always say the same.
//!
//! Labels have few values each: words from closed sets, tools, commands, and models, which
//! the operator names. None names a person, a server or a channel.

mod count;
mod format;
mod gauges;
mod process;
mod series;

use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::stages::{StageTime, TurnStage};
use clew_context::model::UnixMillis;

pub use format::MetricsFormat;
pub use gauges::{Gauges, LoopGauges};

use gauges::Latest;
use series::{Counter, Seconds, Sizes};

/// What all names begin with, except for those about any process.
const PREFIX: &str = "clew";

/// Makes the struct of all metrics, and registers each under the name of its field. The
/// suffixes (`_total`, `_seconds`) come with its kind, its documentation is its help.
macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $name:ident: $kind:ident [$($label:literal),*];)+) => {
        #[derive(Debug)]
        struct Counts {
            $($(#[doc = $help])+ $name: $kind<{ number_of([$($label),*]) }>,)+
        }

        impl Counts {
            fn new(registry: &mut Registry) -> Self {
                Self {
                    $($name: $kind::new(
                        registry,
                        stringify!($name),
                        concat!($($help),+),
                        [$($label),*],
                    ),)+
                }
            }
        }
    };
}

metrics! {
    /// Turns that ended.
    turns: Counter["outcome", "scene"];
    /// From the trigger to the end of its turn.
    turn_duration: Seconds["outcome"];
    /// How long each stage of a turn took; together they are the turn.
    turn_stage_duration: Seconds["stage"];
    /// Triggers that got no turn.
    turns_refused: Counter["reason"];
    /// Agent runs that ended.
    agent_runs: Counter["end"];

    /// Blocks that were collected, by where their messages came from.
    context_blocks: Counter["scene", "source"];
    /// From the beginning of a turn to its block.
    collect_duration: Seconds["scene"];
    /// REST calls made for blocks.
    context_fetches: Counter[];
    /// Messages in a block.
    context_messages: Sizes[];
    /// Blocks that a cap left messages out of, or shortened messages in.
    context_truncations: Counter["cap"];
    /// Messages that a cap left out of blocks.
    context_messages_dropped: Counter["cap"];
    /// Parts of blocks that could not be fetched.
    context_fallbacks: Counter["stage", "reason"];
    /// Threads of which no tail could be shown, or that could not be answered in.
    thread_tail_fallbacks: Counter["reason"];
    /// Unicode characters of the prompt of a request that was answered.
    prompt_characters: Sizes[];

    /// Requests to model servers; the reason is why they ended.
    model_requests: Counter["server", "model", "outcome", "reason"];
    /// From a request that was answered to its end.
    model_request_duration: Seconds["model"];
    /// From a request that was answered to its first words.
    model_first_words: Seconds["model"];
    /// Tokens, as far as the servers counted them.
    model_tokens: Counter["model", "kind"];
    /// Calls of tools.
    tool_calls: Counter["tool", "outcome"];
    /// From the call of a tool to its result.
    tool_call_duration: Seconds["tool"];
    /// Calls of members' own programs.
    served_calls: Counter["by", "tool", "outcome"];

    /// Answers that were posted completely.
    answers_sent: Counter[];
    /// Messages of these answers.
    answer_messages_sent: Counter[];
    /// Parts of deliveries that Discord did not take.
    send_fallbacks: Counter["stage", "reason"];
    /// Commands, buttons and completions that were answered.
    commands: Counter["command", "outcome"];
    /// From the call of a command to its answer.
    command_duration: Seconds[];

    /// Connections of shards; those that did not resume a session missed events.
    discord_connections: Counter["resumed"];
    /// Connections of shards that were lost.
    discord_disconnections: Counter["reason"];
    /// Sessions that could not be resumed.
    discord_sessions_lost: Counter[];
    /// Events of Discord that could not be read, or not wholly.
    discord_unreadable: Counter["reason"];

    /// Operations that a store did not do; while it keeps failing only the first counts.
    store_failures: Counter["operation"];
    /// Turns that were stored.
    turns_recorded: Counter[];
    /// Turns that were stored only after their answer was posted: a kill would have lost them.
    turns_recorded_late: Counter[];
    /// From an answer to its turn being stored.
    turn_recording_duration: Seconds[];
    /// Answered turns that were never stored.
    turns_not_stored: Counter["reason"];
    /// Facts that were saved.
    facts_saved: Counter[];
    /// New facts that a model named.
    facts_learnt: Counter[];
    /// Facts that a model named and the rules refused.
    facts_rejected: Counter[];
    /// Stored entries that were removed.
    entries_purged: Counter["cause"];
    /// Stored messages that Discord was asked for, by what it said.
    messages_confirmed: Counter["result"];
    /// Deletions and edits that found no room while they waited for a store.
    changes_dropped: Counter[];
}

/// All metrics of one bot. It has no process-wide state.
pub struct Metrics {
    registry: Registry,
    counts: Counts,
    latest: Arc<Latest>,
}

impl Metrics {
    /// With everything at zero.
    pub fn new(started: UnixMillis) -> Self {
        let mut registry = Registry::default();
        let counts = Counts::new(registry.sub_registry_with_prefix(PREFIX));
        counts.begin_at_zero();
        let latest = Arc::new(Latest::new(started));
        registry.register_collector(Box::new(Arc::clone(&latest)));
        Self {
            registry,
            counts,
            latest,
        }
    }

    /// Counts how long the stages of a turn took.
    pub(super) fn timed(&self, stages: &[StageTime]) {
        for stage in TurnStage::ALL {
            let of = stages.iter().filter(|one| one.stage == *stage);
            let took = of.map(|one| one.took).reduce(|all, one| all + one);
            if let Some(took) = took {
                let stage = stage.as_str();
                self.counts.turn_stage_duration.observe([stage], took);
            }
        }
    }

    /// Everything as text in a format, with what was looked up for it.
    pub fn render(&self, now: Gauges, format: MetricsFormat) -> String {
        self.latest.set(now);
        let mut rendered = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut rendered, &self.registry);
        format.of(rendered)
    }
}

const fn number_of<const N: usize>(_: [&str; N]) -> usize {
    N
}
