//! What is counted while the files are read, in the order of their lines. All of it is
//! bounded, whatever the files hold.

use std::collections::BTreeMap;

use super::Options;
use super::parse::{Asked, Event, FallbackKind, NAMED, Name, Names, Parsed, What};
use super::times::Times;
use super::top::{Count, Row, Top};
use super::turns::{EndedTurn, OpenTurns, Slowest};
use super::usage::Usage;
use clew_context::model::{OmitReason, Scene, UnixMillis};

/// How many names lists keep at least; see [`Top`].
const GUILDS: usize = 4_096;
const CHANNELS: usize = 4_096;
const PEOPLE: usize = 8_192;
const MODELS: usize = 256;
const AGENTS: usize = 256;
const SERVERS: usize = 16;
/// Of words from closed sets: reasons, outcomes, scenes.
const WORDS: usize = 32;
/// The most days; of more, the oldest are added together.
const DAYS: usize = 1_000;
/// Why somebody got no turn, where it was a limit.
pub(super) const LIMITS: [&str; 5] = [
    "user_rate",
    "user_tokens",
    "guild_tokens",
    "queue_full",
    "busy",
];

/// Everything that is counted.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) options: &'a Options,
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) cut_off: u64,
    pub(super) unreadable: u64,
    /// The first unreadable lines: the file's number, the line from 1, why.
    pub(super) named: Vec<(usize, u64, String)>,
    /// Lines of the present file so far.
    place: (usize, u64),
    /// The earliest and the latest event.
    pub(super) times: Option<(UnixMillis, UnixMillis)>,
    pub(super) starts: u64,
    pub(super) lost: u64,
    pub(super) began: u64,
    pub(super) restarted: u64,
    pub(super) outcomes: Top<String, Timed>,
    pub(super) scenes: Top<String, Timed>,
    pub(super) causes: Top<String, Count>,
    pub(super) runs: Top<String, Count>,
    pub(super) fallbacks: [Top<String, Fallbacks>; 3],
    pub(super) blocks: u64,
    pub(super) caps: Top<CapName, Truncated>,
    pub(super) channels: Top<(Option<u64>, Option<u64>), CappedChannel>,
    pub(super) stages: Stages,
    pub(super) days: BTreeMap<i64, Day>,
    pub(super) earlier: Usage,
    pub(super) guilds: Top<Option<u64>, Usage>,
    pub(super) models: Top<String, Usage>,
    pub(super) agents: Top<String, Usage>,
    pub(super) servers: Top<u64, Usage>,
    pub(super) all: Usage,
    pub(super) failures: Top<String, Count>,
    pub(super) refusals: Top<String, Count>,
    pub(super) people: Top<Option<u64>, Limited>,
    open: OpenTurns,
    pub(super) slowest: Slowest,
}

/// One day.
#[derive(Debug, Default)]
pub(super) struct Day {
    pub(super) usage: Usage,
    /// How long its turns took.
    pub(super) turns: Times<2>,
}

/// How long each stage took.
#[derive(Debug, Default)]
pub(super) struct Stages {
    pub(super) queued: Times<3>,
    pub(super) collect: Times<3>,
    pub(super) to_model: Times<3>,
    pub(super) first_words: Times<3>,
    pub(super) request: Times<3>,
    pub(super) tool: Times<3>,
    pub(super) store: Times<3>,
    pub(super) turn: Times<3>,
}

/// How often something happened, and how long it took.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) count: u64,
    /// Of those whose time is known.
    pub(super) times: Times<3>,
}

/// How often something could not be had.
#[derive(Debug, Default)]
pub(super) struct Fallbacks {
    pub(super) events: u64,
    /// Turns with at least one.
    pub(super) turns: u64,
}

/// The cap that shortens messages and leaves none out.
const MSG_CHARS: &str = "msg_chars";

/// A cap, and the setting behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CapName {
    pub(super) cap: String,
    /// None for a cap of another version, and if it goes by a scene that is not known.
    pub(super) setting: Option<&'static str>,
}

/// What a cap left out, and how many messages it shortened.
#[derive(Debug, Default)]
pub(super) struct Truncated {
    pub(super) blocks: u64,
    pub(super) kept: u64,
    pub(super) dropped: u64,
    pub(super) shortened: u64,
}

/// How often caps left something out in a channel, or shortened it.
#[derive(Debug, Default)]
pub(super) struct CappedChannel {
    /// By `MEM_MAX_MSGS`, `MEM_MAX_CHARS`, `MEM_MAX_MSG_CHARS`, and either setting of an age.
    pub(super) msgs: u64,
    pub(super) chars: u64,
    pub(super) msg_chars: u64,
    pub(super) age: u64,
    /// Messages left out, by all caps.
    pub(super) dropped: u64,
}

/// Whom limits turned away, and how often: in the order of [`LIMITS`].
#[derive(Debug, Default)]
pub(super) struct Limited(pub(super) [u64; LIMITS.len()]);

impl CapName {
    fn of(cap: &str, scene: Option<&str>) -> Self {
        let mut caps = [OmitReason::Msgs, OmitReason::Chars, OmitReason::Age].into_iter();
        let of_messages = (cap == MSG_CHARS).then_some("MEM_MAX_MSG_CHARS");
        let of_block = caps.find(|known| known.as_str() == cap).and_then(|known| {
            let [thread, chain] = [false, true].map(|in_chain| known.setting(in_chain));
            match scene {
                Some(scene) if scene == Scene::Thread.as_str() => thread,
                Some(_) => chain,
                None => thread.filter(|_| thread == chain),
            }
        });
        Self {
            cap: cap.to_owned(),
            setting: of_messages.or(of_block),
        }
    }
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

impl Row for Fallbacks {
    fn weight(&self) -> [u64; 2] {
        [self.events, self.turns]
    }

    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.turns += other.turns;
    }
}

impl Row for Truncated {
    fn weight(&self) -> [u64; 2] {
        [self.blocks, self.dropped]
    }

    fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.kept = self.kept.saturating_add(other.kept);
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.shortened = self.shortened.saturating_add(other.shortened);
    }
}

impl Row for CappedChannel {
    fn weight(&self) -> [u64; 2] {
        let blocks = self.msgs + self.chars + self.msg_chars + self.age;
        [blocks, self.dropped]
    }

    fn add(&mut self, other: &Self) {
        self.msgs += other.msgs;
        self.chars += other.chars;
        self.msg_chars += other.msg_chars;
        self.age += other.age;
        self.dropped = self.dropped.saturating_add(other.dropped);
    }
}

impl Row for Limited {
    fn weight(&self) -> [u64; 2] {
        [self.0.iter().sum(), 0]
    }

    fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

impl<'a> Tally<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        Self {
            options,
            bytes: 0,
            lines: 0,
            cut_off: 0,
            unreadable: 0,
            named: Vec::new(),
            place: (0, 0),
            times: None,
            starts: 0,
            lost: 0,
            began: 0,
            restarted: 0,
            outcomes: Top::new(WORDS),
            scenes: Top::new(WORDS),
            causes: Top::new(WORDS),
            runs: Top::new(WORDS),
            fallbacks: [Top::new(WORDS), Top::new(WORDS), Top::new(WORDS)],
            blocks: 0,
            caps: Top::new(WORDS),
            channels: Top::new(CHANNELS),
            stages: Stages::default(),
            days: BTreeMap::new(),
            earlier: Usage::default(),
            guilds: Top::new(GUILDS),
            models: Top::new(MODELS),
            agents: Top::new(AGENTS),
            servers: Top::new(SERVERS),
            all: Usage::default(),
            failures: Top::new(WORDS),
            refusals: Top::new(WORDS),
            people: Top::new(PEOPLE),
            open: OpenTurns::default(),
            slowest: Slowest::default(),
        }
    }

    /// Counts what the next chunk says.
    pub(super) fn add(&mut self, parsed: &Parsed) {
        if self.place.0 != parsed.file {
            self.place = (parsed.file, 0);
        }
        for (line, why) in &parsed.named {
            if self.named.len() < NAMED {
                let place = self.place.1 + line + 1;
                self.named.push((parsed.file, place, why.clone()));
            }
        }
        self.place.1 += parsed.lines;
        self.bytes += parsed.bytes as u64;
        self.lines += parsed.lines;
        self.cut_off += parsed.cut_off;
        self.unreadable += parsed.unreadable;
        for event in &parsed.events {
            let (first, last) = self.times.unwrap_or((event.time, event.time));
            self.times = Some((first.min(event.time), last.max(event.time)));
            self.count(event, &parsed.names);
        }
    }

    fn count(&mut self, event: &Event, names: &Names) {
        let text = |name: Name| names.text(name);
        match event.what {
            What::Trigger {
                scene,
                cause,
                queued,
            } => self.began(event, scene.map(text), cause.map(text), queued),
            What::Collected { took, fetches } => self.collected(event.turn, took, fetches),
            What::Truncated {
                cap,
                kept,
                dropped,
                shortened,
            } => {
                let one = Truncated {
                    blocks: 1,
                    kept,
                    dropped,
                    shortened,
                };
                self.truncated(event, names.text(cap), &one);
            }
            What::Fallback { kind, reason } => self.fell_back(event.turn, kind, text(reason)),
            What::TurnDone { .. } => self.turn_done(event, names),
            What::RequestOk {
                to_first,
                took,
                tokens,
                asked,
            } => {
                self.stages.first_words.record(to_first);
                self.stages.request.record(took);
                if let Some(turn) = self.open.get(event.turn) {
                    turn.requests += 1;
                    turn.model = turn.model.saturating_add(took.unwrap_or(0));
                }
                let model = asked.model.map(text);
                let usage = Usage::of_request(tokens, model, &self.options.prices);
                self.used(event, asked, names, &usage);
            }
            What::RequestFailed { reason, asked } => {
                self.failures.at(names.text(reason)).0 += 1;
                if let Some(turn) = self.open.get(event.turn) {
                    turn.failed_requests += 1;
                }
                self.used(event, asked, names, &Usage::of_failure());
            }
            What::ToolCalled { took } => {
                self.stages.tool.record(took);
                if let Some(turn) = self.open.get(event.turn) {
                    turn.tools = turn.tools.saturating_add(took.unwrap_or(0));
                }
            }
            What::Recorded { took } => self.stages.store.record(took),
            What::Refused { reason } => self.refused(event.user, text(reason)),
            What::RunDone { end } => self.runs.at(text(end)).0 += 1,
            What::Started => self.starts += 1,
            What::Dropped { lines } => self.lost = self.lost.saturating_add(lines),
        }
    }

    fn began(
        &mut self,
        event: &Event,
        scene: Option<&str>,
        cause: Option<&str>,
        queued: Option<u64>,
    ) {
        let Some(id) = event.turn else { return };
        self.stages.queued.record(queued);
        if self.open.begin(id) {
            self.began += 1;
            self.causes.at(cause.unwrap_or("unknown")).0 += 1;
        } else {
            self.restarted += 1;
        }
        if let Some(turn) = self.open.get(event.turn) {
            turn.scene = scene.map(str::to_owned);
            turn.cause = cause.map(str::to_owned);
            turn.queued = queued;
        }
    }

    fn collected(&mut self, turn: Option<u64>, took: Option<u64>, fetches: u64) {
        self.blocks += 1;
        self.stages.collect.record(took);
        if let Some(turn) = self.open.get(turn) {
            turn.collect = took;
            turn.fetches = turn.fetches.saturating_add(fetches);
        }
    }

    fn truncated(&mut self, event: &Event, cap: &str, one: &Truncated) {
        let turn = self.open.get(event.turn);
        let name = CapName::of(cap, turn.and_then(|turn| turn.scene.as_deref()));
        self.caps.at(&name).add(one);
        let by = |name: &str| u64::from(cap == name);
        self.channels
            .at(&(event.guild, event.channel))
            .add(&CappedChannel {
                msgs: by("msgs"),
                chars: by("chars"),
                msg_chars: by(MSG_CHARS),
                age: by("age"),
                dropped: one.dropped,
            });
    }

    fn fell_back(&mut self, turn: Option<u64>, kind: FallbackKind, reason: &str) {
        // A turn whose beginning is not in the files is none of those that began.
        let open = self.open.get(turn);
        let is_first = open.is_some_and(|open| open.is_first(kind, reason));
        let [collect, tail, send] = &mut self.fallbacks;
        let list = match kind {
            FallbackKind::Collect => collect,
            FallbackKind::Tail => tail,
            FallbackKind::Send => send,
        };
        list.at(reason).add(&Fallbacks {
            events: 1,
            turns: u64::from(is_first),
        });
    }

    fn turn_done(&mut self, event: &Event, names: &Names) {
        let What::TurnDone {
            outcome,
            took,
            to_model,
            scene,
            agent,
            model,
        } = event.what
        else {
            return;
        };
        let outcome = names.text(outcome);
        let owned = |name: Option<Name>| name.map(|name| names.text(name).to_owned());
        let mut turn = self.open.end(event.turn);
        let scene = owned(scene).or_else(|| turn.scene.take());
        self.stages.turn.record(took);
        self.stages.to_model.record(to_model);
        self.outcomes.at(outcome).record(took);
        self.scenes
            .at(scene.as_deref().unwrap_or("unknown"))
            .record(took);
        let usage = Usage::of_turn(outcome == "answered");
        let server = None;
        let asked = Asked {
            model,
            agent,
            server,
        };
        self.used(event, asked, names, &usage);
        if let Some(day) = self.days.get_mut(&event.time.day()) {
            day.turns.record(took);
        }
        let (Some(took), most) = (took, self.options.rows) else {
            return;
        };
        if self.slowest.takes(took, most) {
            turn.scene = scene;
            let ended = EndedTurn {
                took,
                time: event.time,
                id: event.turn.unwrap_or_default(),
                guild: event.guild,
                channel: event.channel,
                outcome: outcome.to_owned(),
                agent: owned(agent),
                model: owned(model),
                turn,
            };
            self.slowest.push(ended, most);
        }
    }

    /// Adds to every list that counts it.
    fn used(&mut self, event: &Event, asked: Asked, names: &Names, usage: &Usage) {
        self.all.add(usage);
        self.guilds.at(&event.guild).add(usage);
        if let Some(model) = asked.model {
            self.models.at(names.text(model)).add(usage);
        }
        if let Some(agent) = asked.agent {
            self.agents.at(names.text(agent)).add(usage);
        }
        if let Some(server) = asked.server {
            self.servers.at(&server).add(usage);
        }
        self.days
            .entry(event.time.day())
            .or_default()
            .usage
            .add(usage);
        if self.days.len() > DAYS
            && let Some((_, oldest)) = self.days.pop_first()
        {
            self.earlier.add(&oldest.usage);
        }
    }

    fn refused(&mut self, user: Option<u64>, reason: &str) {
        self.refusals.at(reason).0 += 1;
        let mut limits = LIMITS.iter();
        if let Some(limit) = limits.position(|limit| *limit == reason) {
            let mut limited = Limited::default();
            limited.0[limit] = 1;
            self.people.at(&user).add(&limited);
        }
    }
}
