//! What the report says. `--format json` prints it; its keys are described in
//! docs/report.md and change only with `version`.

use serde::Serialize;

/// The version of the keys.
const VERSION: u32 = 1;

/// The whole report. Times are in milliseconds, shares from 0 to 1, ids strings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub(super) version: u32,
    pub(super) input: Input,
    pub(super) filter: Filter,
    pub(super) turns: Turns,
    pub(super) fallbacks: Vec<Fallback>,
    pub(super) truncation: Truncation,
    pub(super) stages: Vec<Stage>,
    pub(super) usage: UsageLists,
    pub(super) limits: Limits,
    pub(super) slowest: Vec<SlowTurn>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Input {
    pub(super) files: usize,
    /// Decompressed.
    pub(super) bytes: u64,
    pub(super) lines: u64,
    /// The times of the first and last event that counts; none without any.
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
    /// Lines that end too early: of a process that was killed, or still writes.
    pub(super) cut_off: u64,
    pub(super) unreadable: u64,
    /// The first unreadable lines.
    pub(super) unreadable_at: Vec<UnreadableLine>,
    /// Files that could not be read to their end.
    pub(super) broken_files: Vec<BrokenFile>,
    /// How often the bot started.
    pub(super) starts: u64,
    /// Lines that the bot could not write, as it says itself.
    pub(super) lost_lines: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct UnreadableLine {
    pub(super) file: String,
    /// From 1.
    pub(super) line: u64,
    pub(super) why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct BrokenFile {
    pub(super) file: String,
    pub(super) error: String,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Filter {
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
    /// A server's id, or `direct`.
    pub(super) guild: Option<String>,
    /// The most names of a list.
    pub(super) top: usize,
}

/// How turns went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Turns {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// Beginnings again, after an edit of the question.
    pub(super) restarted: u64,
    pub(super) outcomes: Vec<TimedRow>,
    pub(super) scenes: Vec<TimedRow>,
    pub(super) causes: Vec<CountRow>,
    /// Triggers that got no turn, by reason.
    pub(super) refused: Vec<CountRow>,
    /// How agent runs ended.
    pub(super) runs: Vec<CountRow>,
}

/// Turns of one outcome or scene, and how long they took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TimedRow {
    pub(super) name: String,
    pub(super) turns: u64,
    /// Of the turns that ended.
    pub(super) share: Option<f64>,
    #[serde(flatten)]
    pub(super) ms: Percentiles,
}

/// Percentiles; none without times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50: Option<f64>,
    pub(super) p95: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) max: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CountRow {
    pub(super) name: String,
    pub(super) count: u64,
}

/// What turns had to do without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Fallback {
    /// `collect_fallback`, `tail_fallback` or `send_fallback`.
    pub(super) event: &'static str,
    pub(super) reason: String,
    pub(super) events: u64,
    pub(super) turns: u64,
    /// Of the turns that began.
    pub(super) rate: Option<f64>,
}

/// What caps left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Truncation {
    /// Blocks that were collected.
    pub(super) blocks: u64,
    pub(super) caps: Vec<Cap>,
    pub(super) channels: Vec<CappedChannel>,
    pub(super) other_channels: Option<OtherChannels>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Cap {
    #[serde(rename = "cap")]
    pub(super) name: String,
    /// The setting; none for a cap of another version, and for an age in an unknown scene.
    pub(super) setting: Option<&'static str>,
    pub(super) blocks: u64,
    /// Of all blocks.
    pub(super) rate: Option<f64>,
    /// Means of a block.
    pub(super) kept: f64,
    pub(super) dropped: f64,
    pub(super) shortened: f64,
}

/// Blocks of a channel that each cap left something out of, or shortened messages in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CappedChannel {
    pub(super) guild: Option<String>,
    pub(super) channel: Option<String>,
    #[serde(flatten)]
    pub(super) caps: Capped,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OtherChannels {
    pub(super) names: u64,
    #[serde(flatten)]
    pub(super) caps: Capped,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Capped {
    pub(super) msgs: u64,
    pub(super) chars: u64,
    pub(super) msg_chars: u64,
    pub(super) age: u64,
    /// Messages left out, by all caps.
    pub(super) dropped: u64,
}

/// How long a stage took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Stage {
    #[serde(rename = "stage")]
    pub(super) name: &'static str,
    pub(super) count: u64,
    #[serde(flatten)]
    pub(super) ms: Percentiles,
}

/// Turns, requests, tokens and cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct UsageLists {
    /// Whether prices are set: without, every cost is null.
    pub(super) priced: bool,
    pub(super) total: Usage,
    pub(super) days: Vec<DayRow>,
    /// Days before those, if there are too many.
    pub(super) earlier: Option<Usage>,
    pub(super) guilds: UsageList,
    pub(super) models: UsageList,
    pub(super) agents: UsageList,
    /// By the number of the model server.
    pub(super) llm_servers: UsageList,
    /// Requests without an answer, by reason.
    pub(super) failures: Vec<CountRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct UsageList {
    pub(super) rows: Vec<UsageRow>,
    pub(super) others: Option<OtherUsage>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct UsageRow {
    /// None for direct messages.
    pub(super) name: Option<String>,
    #[serde(flatten)]
    pub(super) usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OtherUsage {
    pub(super) names: u64,
    #[serde(flatten)]
    pub(super) usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DayRow {
    pub(super) day: String,
    /// Days since 1970-01-01, for plots.
    #[serde(skip)]
    pub(super) number: i64,
    #[serde(flatten)]
    pub(super) usage: Usage,
    /// Of its turns.
    pub(super) p50: Option<f64>,
    pub(super) p95: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Usage {
    pub(super) turns: u64,
    pub(super) answered: u64,
    pub(super) requests: u64,
    pub(super) failed_requests: u64,
    /// Requests whose tokens the server did not count.
    pub(super) uncounted_requests: u64,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    /// Tokens of models without a price.
    pub(super) unpriced_tokens: u64,
    /// To the millionth; none if no price is set.
    pub(super) cost: Option<f64>,
}

/// Whom limits turned away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Limits {
    pub(super) people: Vec<LimitedPerson>,
    pub(super) others: Option<OtherLimited>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LimitedPerson {
    /// As in the telemetry: an id or a pseudonym.
    pub(super) user: Option<String>,
    #[serde(flatten)]
    pub(super) counts: LimitCounts,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OtherLimited {
    pub(super) names: u64,
    #[serde(flatten)]
    pub(super) counts: LimitCounts,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LimitCounts {
    pub(super) refused: u64,
    pub(super) user_rate: u64,
    pub(super) user_tokens: u64,
    pub(super) guild_tokens: u64,
    pub(super) queue_full: u64,
    pub(super) busy: u64,
}

/// One of the slowest turns, with where its time went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SlowTurn {
    pub(super) turn: String,
    /// When it ended.
    pub(super) ended: String,
    pub(super) guild: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) scene: Option<String>,
    pub(super) cause: Option<String>,
    pub(super) outcome: String,
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) ms: f64,
    pub(super) queued_ms: Option<f64>,
    pub(super) collect_ms: Option<f64>,
    /// In all answered requests.
    pub(super) model_ms: f64,
    /// In all calls of tools.
    pub(super) tools_ms: f64,
    /// What is left: failed requests, posting.
    pub(super) other_ms: f64,
    pub(super) fetches: u64,
    pub(super) requests: u64,
    pub(super) failed_requests: u64,
}

impl Report {
    /// The version of its keys.
    pub(super) const fn version() -> u32 {
        VERSION
    }

    /// Whether every file could be read to its end.
    pub fn is_complete(&self) -> bool {
        self.input.broken_files.is_empty()
    }
}

impl SlowTurn {
    /// Where its time went, the most first.
    pub(super) fn parts(&self) -> Vec<(&'static str, f64)> {
        let mut parts = vec![
            ("queued", self.queued_ms.unwrap_or(0.0)),
            ("collect", self.collect_ms.unwrap_or(0.0)),
            ("model", self.model_ms),
            ("tools", self.tools_ms),
            ("other", self.other_ms),
        ];
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        parts
    }
}
