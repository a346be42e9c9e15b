//! What the report says. `--format json` prints it; its keys are described in
//! docs/report.md and change only with `version`.

use serde::{Serialize, Serializer};

use super::line::{Line, always, maybe};
use super::times::{Percentiles, millis};
use super::top::{Others, Row, add_fields, counts};
use super::turns::OpenTurn;
use super::usage::Usage;
use crate::telemetry::TurnStage;
use clew_context::model::{OmitReason, UnixMillis};

/// The version of the keys.
pub(super) const VERSION: u32 = 1;

/// The whole report. Times are in milliseconds, shares from 0 to 1, ids strings.
#[derive(Debug, Serialize)]
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

#[derive(Debug, Default, Serialize)]
pub(super) struct Input {
    pub(super) files: usize,
    /// Decompressed.
    pub(super) bytes: u64,
    pub(super) lines: u64,
    /// The times of the first and last event that counts; none without any.
    #[serde(serialize_with = "written")]
    pub(super) first: Option<UnixMillis>,
    #[serde(serialize_with = "written")]
    pub(super) last: Option<UnixMillis>,
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

#[derive(Debug, Serialize)]
pub(super) struct UnreadableLine {
    pub(super) file: String,
    /// From 1.
    pub(super) line: u64,
    pub(super) why: String,
}

#[derive(Debug, Serialize)]
pub(super) struct BrokenFile {
    pub(super) file: String,
    pub(super) error: String,
}

/// What was asked for.
#[derive(Debug, Serialize)]
pub(super) struct Filter {
    #[serde(serialize_with = "written")]
    pub(super) since: Option<UnixMillis>,
    #[serde(serialize_with = "written")]
    pub(super) until: Option<UnixMillis>,
    /// A server's id, or `direct`.
    pub(super) guild: Option<String>,
    /// The most names of a list.
    pub(super) top: usize,
}

/// How turns went.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
pub(super) struct TimedRow {
    pub(super) name: String,
    pub(super) turns: u64,
    /// Of the turns that ended.
    pub(super) share: Option<f64>,
    #[serde(flatten)]
    pub(super) ms: Percentiles,
}

#[derive(Debug, Serialize)]
pub(super) struct CountRow {
    pub(super) name: String,
    pub(super) count: u64,
}

/// What turns had to do without.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
pub(super) struct Truncation {
    /// Blocks that were collected.
    pub(super) blocks: u64,
    pub(super) msgs_first: MsgsFirst,
    pub(super) caps: Vec<Cap>,
    pub(super) channels: Vec<CappedChannel>,
    pub(super) other_channels: Option<Others<Capped>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Cap {
    #[serde(rename = "cap")]
    pub(super) name: String,
    /// The setting; none for a cap of another version.
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
#[derive(Debug, Serialize)]
pub(super) struct CappedChannel {
    pub(super) guild: Option<String>,
    pub(super) channel: Option<String>,
    #[serde(flatten)]
    pub(super) caps: Capped,
}

counts! {
    /// How often each cap left something out in a channel, or shortened it.
    #[derive(Serialize)]
    Capped by |row| [row.columns()[..6].iter().map(|(_, count)| count).sum(), row.dropped];
    msgs, chars, lone_chars, msg_chars, age, chain_age,
    /// Messages left out, by all caps.
    dropped,
}

counts! {
    /// Blocks from which `MEM_MAX_MSGS` left out messages for which their characters had room.
    #[derive(Serialize)]
    MsgsFirst by |row| [row.blocks, row.messages];
    blocks,
    /// About how many more would have been shown, and for how many tokens.
    messages, tokens,
}

counts! {
    /// How often limits turned somebody away.
    #[derive(Serialize)]
    LimitCounts by |row| [row.refused, 0];
    /// By any of them.
    refused,
    user_rate, user_tokens, guild_tokens, total_tokens, queue_full, busy, blocked,
}

/// How long a stage took.
#[derive(Debug, Serialize)]
pub(super) struct Stage {
    #[serde(rename = "stage")]
    pub(super) name: TurnStage,
    pub(super) count: u64,
    #[serde(flatten)]
    pub(super) ms: Percentiles,
}

/// Turns, requests, tokens and cost.
#[derive(Debug, Serialize)]
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

#[derive(Debug, Serialize)]
pub(super) struct UsageList {
    pub(super) rows: Vec<UsageRow>,
    pub(super) others: Option<Others<Usage>>,
}

#[derive(Debug, Serialize)]
pub(super) struct UsageRow {
    /// None for direct messages.
    pub(super) name: Option<String>,
    #[serde(flatten)]
    pub(super) usage: Usage,
}

#[derive(Debug, Serialize)]
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

/// Whom limits turned away.
#[derive(Debug, Serialize)]
pub(super) struct Limits {
    pub(super) people: Vec<LimitedPerson>,
    pub(super) others: Option<Others<LimitCounts>>,
}

#[derive(Debug, Serialize)]
pub(super) struct LimitedPerson {
    /// As in the telemetry: an id or a pseudonym.
    pub(super) user: Option<String>,
    #[serde(flatten)]
    pub(super) counts: LimitCounts,
}

/// One of the slowest turns, with where its time went.
#[derive(Debug, Serialize)]
pub(super) struct SlowTurn {
    /// In tenths of a millisecond.
    #[serde(skip)]
    pub(super) took: u64,
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
    /// Whether every file could be read to its end.
    pub fn is_complete(&self) -> bool {
        self.input.broken_files.is_empty()
    }
}

impl SlowTurn {
    /// A turn that this line ended.
    pub(super) fn new(time: UnixMillis, line: &Line<'_>, took: u64, turn: OpenTurn) -> Self {
        let waited = turn.queued.unwrap_or(0);
        let collected = turn.collect.unwrap_or(0);
        let known = [waited, collected, turn.model, turn.tools];
        let known = known.into_iter().fold(0, u64::saturating_add);
        Self {
            took,
            turn: format!("t{:x}", line.turn_id.unwrap_or_default()),
            ended: time.rfc3339(),
            guild: id(line.guild_id),
            channel: id(line.channel_id),
            scene: turn.scene,
            cause: turn.cause,
            outcome: always(line.detail.outcome.as_ref()).to_owned(),
            agent: maybe(line.detail.agent.as_ref()).map(str::to_owned),
            model: maybe(line.detail.model.as_ref()).map(str::to_owned),
            ms: millis(took),
            queued_ms: turn.queued.map(millis),
            collect_ms: turn.collect.map(millis),
            model_ms: millis(turn.model),
            tools_ms: millis(turn.tools),
            other_ms: millis(took.saturating_sub(known)),
            fetches: turn.fetches,
            requests: turn.requests,
            failed_requests: turn.failed_requests,
        }
    }

    /// Where its time went, the most first.
    pub(super) fn parts(&self) -> Vec<(&'static str, f64)> {
        let mut parts = vec![
            (TurnStage::Queue.as_str(), self.queued_ms.unwrap_or(0.0)),
            (TurnStage::Collect.as_str(), self.collect_ms.unwrap_or(0.0)),
            (TurnStage::Request.as_str(), self.model_ms),
            (TurnStage::Tool.as_str(), self.tools_ms),
            ("other", self.other_ms),
        ];
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        parts
    }
}

impl Capped {
    /// Each count under its name.
    pub(super) const fn columns(&self) -> [(&'static str, u64); 7] {
        [
            (OmitReason::Msgs.as_str(), self.msgs),
            (OmitReason::Chars.as_str(), self.chars),
            (OmitReason::LoneChars.as_str(), self.lone_chars),
            (OmitReason::MsgChars.as_str(), self.msg_chars),
            (OmitReason::Age.as_str(), self.age),
            (OmitReason::ChainAge.as_str(), self.chain_age),
            ("dropped", self.dropped),
        ]
    }
}

impl LimitCounts {
    /// The count of a limit; none if the reason is another.
    pub(super) fn of(&mut self, reason: &str) -> Option<&mut u64> {
        match reason {
            "user_rate" => Some(&mut self.user_rate),
            "user_tokens" => Some(&mut self.user_tokens),
            "guild_tokens" => Some(&mut self.guild_tokens),
            "total_tokens" => Some(&mut self.total_tokens),
            "queue_full" => Some(&mut self.queue_full),
            "busy" => Some(&mut self.busy),
            "blocked" => Some(&mut self.blocked),
            _ => None,
        }
    }
}

/// An id as the report shows it.
pub(super) fn id(id: Option<u64>) -> Option<String> {
    id.map(|id| id.to_string())
}

#[expect(clippy::ref_option, reason = "serde hands on a reference to the field")]
fn written<S: Serializer>(time: &Option<UnixMillis>, to: S) -> Result<S::Ok, S::Error> {
    time.map(UnixMillis::rfc3339).serialize(to)
}
