//! What is counted while the files are read, in the order of their lines. All of it is
//! bounded, whatever the files hold.

use std::collections::BTreeMap;

use super::Options;
use super::line::{Detail, Line, Number, always, maybe};
use super::summary::{Capped, Input, LimitCounts, MsgsFirst, SlowTurn};
use super::times::Times;
use super::top::{Count, Row, Top, add_fields, counts};
use super::turns::OpenTurns;
use super::usage::Usage;
use crate::llm;
use crate::telemetry::TurnStage;
use clew_context::model::{OmitReason, Scene, UnixMillis};

/// The most days; of more, the oldest are added together.
const DAYS: usize = 1_000;
/// What turns had to do without.
pub(super) const FALLBACKS: [&str; 3] = ["collect_fallback", "tail_fallback", "send_fallback"];

/// Words from closed sets: reasons, outcomes, scenes.
pub(super) type Words<R> = Top<String, R, 32>;

/// Everything that is counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) input: Input,
    pub(super) began: u64,
    pub(super) restarted: u64,
    pub(super) outcomes: Words<Timed>,
    pub(super) scenes: Words<Timed>,
    pub(super) causes: Words<Count>,
    pub(super) runs: Words<Count>,
    pub(super) refusals: Words<Count>,
    pub(super) failures: Words<Count>,
    /// By their order in [`FALLBACKS`].
    pub(super) fallbacks: [Words<Fallbacks>; FALLBACKS.len()],
    pub(super) blocks: u64,
    pub(super) msgs_first: MsgsFirst,
    pub(super) caps: Words<Truncated>,
    /// By server and channel.
    pub(super) channels: Top<(Option<u64>, Option<u64>), Capped, 4_096>,
    pub(super) stages: BTreeMap<TurnStage, Times<3>>,
    pub(super) days: BTreeMap<i64, Day>,
    pub(super) earlier: Usage,
    pub(super) all: Usage,
    pub(super) guilds: Top<Option<u64>, Usage, 4_096>,
    pub(super) models: Top<String, Usage, 256>,
    pub(super) agents: Top<String, Usage, 256>,
    pub(super) servers: Top<u64, Usage, 16>,
    pub(super) people: Top<Option<u64>, LimitCounts, 8_192>,
    open: OpenTurns,
    /// Slowest first.
    pub(super) slowest: Vec<SlowTurn>,
}

#[derive(Debug, Default)]
pub(super) struct Day {
    pub(super) usage: Usage,
    /// How long its turns took.
    pub(super) turns: Times<2>,
}

/// How often something happened, and how long it took.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) count: u64,
    /// Of those whose time is known.
    pub(super) times: Times<3>,
}

counts! {
    /// How often something could not be had.
    Fallbacks by |row| [row.events, row.turns];
    events,
    /// Turns with at least one.
    turns,
}

counts! {
    /// What a cap left out, and how many messages it shortened.
    Truncated by |row| [row.blocks, row.dropped];
    blocks, kept, dropped, shortened,
}

impl Timed {
    fn record(&mut self, took: Option<u64>) {
        self.count += 1;
        self.times.record(took);
    }
}

impl Row for Timed {
    fn weight(&self) -> [u64; 2] {
        [self.count, 0]
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.times.merge(&other.times);
    }
}

impl Tally {
    /// Counts what a line says, if the report counts such events.
    pub(super) fn count(&mut self, time: UnixMillis, line: &Line<'_>, options: &Options) {
        let detail = &line.detail;
        let took = detail.ms.map(Number::tenths);
        let reason = always(detail.reason.as_ref());
        match &*line.event.0 {
            "trigger" => self.began(line),
            "collect_ok" => self.collected(line, took),
            "collect_truncated" => self.truncated(line, reason),
            "turn_done" => self.turn_done(time, line, options),
            "request_ok" => self.request_ok(time, line, options),
            "request_failed" => {
                self.failures.at(reason).0 += 1;
                if let Some(turn) = self.open.get(line.turn_id) {
                    turn.failed_requests += 1;
                }
                let server = detail.server.map(Number::whole);
                self.used(time, line, server, &Usage::of_failure(&options.prices));
            }
            "tool_called" => {
                self.took(TurnStage::Tool, took);
                if let Some(turn) = self.open.get(line.turn_id) {
                    turn.tools = turn.tools.saturating_add(took.unwrap_or(0));
                }
            }
            "recorded" => self.took(TurnStage::Record, took),
            "refused" => self.refused(line.user_id, reason),
            "run_done" => self.runs.at(always(detail.end.as_ref())).0 += 1,
            "started" => self.input.starts += 1,
            "dropped" => {
                let lost = &mut self.input.lost_lines;
                *lost = lost.saturating_add(whole(detail.count));
            }
            event => match FALLBACKS.iter().position(|known| *known == event) {
                Some(kind) => self.fell_back(line.turn_id, kind, reason),
                None => return,
            },
        }
        let input = &mut self.input;
        input.first = Some(input.first.map_or(time, |first| first.min(time)));
        input.last = input.last.max(Some(time));
    }

    fn took(&mut self, stage: TurnStage, tenths: Option<u64>) {
        self.stages.entry(stage).or_default().record(tenths);
    }

    fn began(&mut self, line: &Line<'_>) {
        let Some(id) = line.turn_id else { return };
        let detail = &line.detail;
        let cause = maybe(detail.cause.as_ref());
        let queued = detail.queued_ms.map(Number::tenths);
        self.took(TurnStage::Queue, queued);
        if self.open.begin(id) {
            self.began += 1;
            self.causes.at(cause.unwrap_or("unknown")).0 += 1;
        } else {
            self.restarted += 1;
        }
        if let Some(turn) = self.open.get(line.turn_id) {
            turn.scene = scene(line).map(str::to_owned);
            turn.cause = cause.map(str::to_owned);
            turn.queued = queued;
        }
    }

    fn collected(&mut self, line: &Line<'_>, took: Option<u64>) {
        self.blocks += 1;
        self.msgs_first
            .add(&msgs_first(&line.detail).unwrap_or_default());
        self.took(TurnStage::Collect, took);
        if let Some(turn) = self.open.get(line.turn_id) {
            turn.collect = took;
            turn.fetches = turn.fetches.saturating_add(whole(line.detail.fetches));
        }
    }

    fn truncated(&mut self, line: &Line<'_>, cap: &str) {
        let turn = self.open.get(line.turn_id);
        let scene = turn.and_then(|turn| Scene::from_word(turn.scene.as_deref()?));
        let known = OmitReason::from_word(cap).map(|known| known.in_scene(scene));
        let cap = known.map_or(cap, |known| known.as_str());
        let dropped = whole(line.detail.dropped);
        self.caps.at(cap).add(&Truncated {
            blocks: 1,
            kept: whole(line.detail.kept),
            dropped,
            shortened: whole(line.detail.shortened),
        });
        let by = |cap| u64::from(known == Some(cap));
        let channel = self.channels.at(&(line.guild_id, line.channel_id));
        channel.add(&Capped {
            msgs: by(OmitReason::Msgs),
            chars: by(OmitReason::Chars),
            lone_chars: by(OmitReason::LoneChars),
            msg_chars: by(OmitReason::MsgChars),
            age: by(OmitReason::Age),
            chain_age: by(OmitReason::ChainAge),
            dropped,
        });
    }

    fn fell_back(&mut self, turn: Option<u64>, kind: usize, reason: &str) {
        // A turn whose beginning is not in the files is none of those that began.
        let open = self.open.get(turn);
        let is_first = open.is_some_and(|open| open.is_first(kind, reason));
        self.fallbacks[kind].at(reason).add(&Fallbacks {
            events: 1,
            turns: u64::from(is_first),
        });
    }

    fn request_ok(&mut self, time: UnixMillis, line: &Line<'_>, options: &Options) {
        let detail = &line.detail;
        let took = detail.ms.map(Number::tenths);
        let to_first = detail.ms_first.map(Number::tenths);
        self.took(TurnStage::FirstWords, to_first);
        self.took(TurnStage::Request, took);
        if let Some(turn) = self.open.get(line.turn_id) {
            turn.requests += 1;
            turn.model = turn.model.saturating_add(took.unwrap_or(0));
        }
        let tokens = match (detail.prompt_tokens, detail.completion_tokens) {
            (None, None) => None,
            (prompt, completion) => Some((whole(prompt), whole(completion))),
        };
        let model = maybe(detail.model.as_ref());
        let usage = Usage::of_request(tokens, model, &options.prices);
        self.used(time, line, detail.server.map(Number::whole), &usage);
    }

    fn turn_done(&mut self, time: UnixMillis, line: &Line<'_>, options: &Options) {
        let detail = &line.detail;
        let took = detail.ms.map(Number::tenths);
        let outcome = always(detail.outcome.as_ref());
        let mut turn = self.open.end(line.turn_id);
        if let Some(scene) = scene(line) {
            turn.scene = Some(scene.to_owned());
        }
        self.took(TurnStage::Turn, took);
        let to_model = detail.ms_to_model.map(Number::tenths);
        self.took(TurnStage::ToModel, to_model);
        self.outcomes.at(outcome).record(took);
        let scene = turn.scene.as_deref().unwrap_or("unknown");
        self.scenes.at(scene).record(took);
        let usage = Usage::of_turn(outcome == "answered", &options.prices);
        self.used(time, line, None, &usage);
        if let Some(day) = self.days.get_mut(&time.day()) {
            day.turns.record(took);
        }
        let Some(took) = took else { return };
        let place = self.slowest.partition_point(|other| other.took >= took);
        if place < options.rows {
            let slow = SlowTurn::new(time, line, took, turn);
            self.slowest.insert(place, slow);
            self.slowest.truncate(options.rows);
        }
    }

    /// Adds to every list that counts it.
    fn used(&mut self, time: UnixMillis, line: &Line<'_>, server: Option<u64>, usage: &Usage) {
        self.all.add(usage);
        self.guilds.at(&line.guild_id).add(usage);
        if let Some(model) = maybe(line.detail.model.as_ref()) {
            self.models.at(model).add(usage);
        }
        if let Some(agent) = maybe(line.detail.agent.as_ref()) {
            self.agents.at(agent).add(usage);
        }
        if let Some(server) = server {
            self.servers.at(&server).add(usage);
        }
        self.days.entry(time.day()).or_default().usage.add(usage);
        if self.days.len() > DAYS
            && let Some((_, oldest)) = self.days.pop_first()
        {
            self.earlier.add(&oldest.usage);
        }
    }

    fn refused(&mut self, user: Option<u64>, reason: &str) {
        self.refusals.at(reason).0 += 1;
        let mut limits = LimitCounts {
            refused: 1,
            ..LimitCounts::default()
        };
        if let Some(limit) = limits.of(reason) {
            *limit = 1;
            self.people.at(&user).add(&limits);
        }
    }
}

/// What characters alone would have shown of what the count left out, if each message is as long as
/// the mean of those shown; none if there was no room for one more.
fn msgs_first(detail: &Detail<'_>) -> Option<MsgsFirst> {
    let (omitted, caps) = (detail.omitted.as_ref()?, detail.caps.as_ref()?);
    let most = match maybe(detail.case.as_ref()) {
        Some(case) if case == Scene::Lone.as_str() => caps.lone_max_chars,
        _ => caps.mem_max_chars,
    };
    let (shown, chars) = (whole(detail.msgs), whole(detail.chars));
    let room = whole(most).saturating_sub(chars);
    let fitting = room.saturating_mul(shown).checked_div(chars)?;
    let messages = whole(omitted.msgs).min(fitting);
    let is_full = whole(omitted.chars) > 0 || whole(omitted.lone_chars) > 0;
    if messages == 0 || is_full {
        return None;
    }
    let more = chars.saturating_mul(messages) / shown;
    Some(MsgsFirst {
        blocks: 1,
        messages,
        tokens: llm::estimated(usize::try_from(more).ok()?) as u64,
    })
}

fn scene<'a>(line: &'a Line<'_>) -> Option<&'a str> {
    maybe(line.detail.case.as_ref().or(line.detail.scene.as_ref()))
}

fn whole(number: Option<Number>) -> u64 {
    number.map_or(0, Number::whole)
}
