//! Telemetry as the bot's own writer writes it, and reports of it.

use std::path::Path;
use std::time::Duration;

use clew::report::{self, Options};
use clew::telemetry::event::{
    Capped, CauseWord, CollectFallback, CollectOk, CollectTruncated, Finish, OmitCounts, Outcome,
    Refusal, RequestOk, SourceWord, StageCounts, ToolCalled, ToolOutcome, Trigger, TriggerRefused,
    TurnDone,
};
use clew::telemetry::{Event, Ids, Ms, Telemetry};
use clew_context::model::{
    ChannelId, Fallback, GuildId, Limits, MessageId, OmitReason, Scene, Stage, TurnId, UnixMillis,
    UserId, fixed_clock,
};
use serde_json::Value;
use tempfile::TempDir;

/// A turn; times are in milliseconds.
pub(super) struct Turn {
    pub(super) id: u64,
    pub(super) at: &'static str,
    pub(super) guild: Option<u64>,
    pub(super) queued: u64,
    pub(super) collect: u64,
    pub(super) model: u64,
    pub(super) tools: u64,
    pub(super) other: u64,
    pub(super) model_name: &'static str,
    pub(super) agent: &'static str,
    pub(super) tokens: Option<(u64, u64)>,
    pub(super) outcome: Option<Outcome>,
    /// Whether it began again after an edit.
    pub(super) again: bool,
    /// Fallbacks each time its context is collected.
    pub(super) timeouts: usize,
    pub(super) caps: &'static [OmitReason],
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            id: 1,
            at: "2026-01-02T03:04:05.678Z",
            guild: Some(11),
            queued: 0,
            collect: 20,
            model: 500,
            tools: 0,
            other: 10,
            model_name: "gpt",
            agent: "default",
            tokens: Some((1_000, 200)),
            outcome: Some(Outcome::Answered),
            again: false,
            timeouts: 0,
            caps: &[],
        }
    }
}

/// A report with these settings: lists of ten names.
pub(super) fn options() -> Options {
    Options {
        since: None,
        until: None,
        guild: None,
        prices: clew::model::Prices::default(),
        rows: 10,
    }
}

pub(super) fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// The report of one file with these lines, as JSON.
pub(super) fn report_of(lines: &str, options: &Options) -> Value {
    let folder = folder(&[("clew.2026-01-02.jsonl", lines.as_bytes())]);
    report_in(folder.path(), options)
}

/// The report of a folder, as JSON, with paths relative to it.
pub(super) fn report_in(folder: &Path, options: &Options) -> Value {
    let report = report::read(&[folder.to_owned()], options).unwrap();
    let text = serde_json::to_string(&report).unwrap();
    let text = text.replace(&format!("{}/", folder.display()), "");
    serde_json::from_str(&text).unwrap()
}

/// A line of a turn in server 11.
pub(super) fn line(at: &str, turn: u64, event: impl Into<Event>) -> String {
    emitted(at, &ids(turn, Some(11)), event)
}

fn emitted(at: &str, ids: &Ids, event: impl Into<Event>) -> String {
    let now = UnixMillis::parse(at).unwrap();
    let (telemetry, lines) = Telemetry::to_memory("mem.ctx", fixed_clock(now));
    telemetry.emit(ids, event);
    lines.text()
}

fn ids(turn: u64, guild: Option<u64>) -> Ids {
    Ids {
        guild: guild.map(GuildId::new),
        channel: Some(ChannelId::new(
            guild.map_or(900, |guild| 10 * guild + turn % 3),
        )),
        user: Some(UserId::new(30 + turn % 4)),
        message: Some(MessageId::new(1_000 + turn)),
        turn: Some(TurnId(1_000 + turn)),
    }
}

/// The lines of a turn.
pub(super) fn turn(turn: &Turn) -> String {
    let scene = turn.guild.map_or(Scene::Direct, |_| Scene::Thread);
    let mut events: Vec<Event> = Vec::new();
    for _ in 0..=usize::from(turn.again) {
        events.extend(collecting(turn, scene));
    }
    if turn.tools > 0 {
        events.push(
            ToolCalled {
                tool: Some("get_message".to_owned()),
                outcome: ToolOutcome::Ok,
                ms: ms(turn.tools),
                bytes: 300,
                round: 1,
                agent: turn.agent.to_owned(),
                search: None,
                consent: None,
            }
            .into(),
        );
    }
    events.push(request(turn).into());
    let whole = turn.queued + turn.collect + turn.model + turn.tools + turn.other;
    events.extend(turn.outcome.map(|outcome| {
        Event::from(TurnDone {
            outcome,
            ms: ms(whole),
            ms_to_model: Some(ms(turn.queued + turn.collect)),
            case: Some(scene),
            agent: Some(turn.agent.to_owned()),
            model: Some(turn.model_name.to_owned()),
            left: None,
            order: None,
        })
    }));
    let ids = ids(turn.id, turn.guild);
    let lines = events
        .into_iter()
        .map(|event| emitted(turn.at, &ids, event));
    lines.collect()
}

fn collecting(turn: &Turn, scene: Scene) -> Vec<Event> {
    let mut events = vec![Event::from(Trigger {
        scene,
        cause: CauseWord::Mention,
        target: None,
        adopted: false,
        queued_ms: ms(turn.queued),
        parent_channel_id: None,
        agent: Some(turn.agent.to_owned()),
    })];
    for _ in 0..turn.timeouts {
        events.push(Event::from(CollectFallback {
            case: scene,
            reason: Fallback::Timeout,
            stage: Stage::History,
        }));
    }
    events.push(Event::from(CollectOk {
        case: scene,
        msgs: 40,
        chars: 3_200,
        ms: ms(turn.collect),
        fetches: 2,
        source: SourceWord::Mixed,
        omitted: OmitCounts(
            turn.caps
                .iter()
                .filter(|cap| **cap != OmitReason::MsgChars)
                .map(|cap| (*cap, 7))
                .collect(),
        ),
        links: None,
        age_s: None,
        stages: StageCounts::default(),
        caps: Capped::from(&Limits::default()),
    }));
    for cap in turn.caps {
        events.push(Event::from(CollectTruncated {
            reason: *cap,
            kept: 40,
            dropped: 7,
            shortened: 3,
        }));
    }
    events
}

fn request(turn: &Turn) -> RequestOk {
    RequestOk {
        ms_first: ms(turn.model / 5),
        ms: ms(turn.model),
        prompt_chars: 12_000,
        prompt_tokens: turn.tokens.map(|(prompt, _)| prompt),
        cached_tokens: None,
        completion_tokens: turn.tokens.map(|(_, completion)| completion),
        reasoning_tokens: None,
        finish: Finish::Stop,
        attempt: 1,
        server: 1,
        model: turn.model_name.to_owned(),
        response_model: None,
        agent: Some(turn.agent.to_owned()),
        images: 0,
        image_bytes: 0,
    }
}

/// Two turns on each of seven days, in a server and a direct conversation; some are cut,
/// late or refused.
pub(crate) fn a_week() -> String {
    const DAYS: [&str; 7] = [
        "2026-01-02T10:00:00.000Z",
        "2026-01-03T10:00:00.000Z",
        "2026-01-04T10:00:00.000Z",
        "2026-01-05T10:00:00.000Z",
        "2026-01-06T10:00:00.000Z",
        "2026-01-07T10:00:00.000Z",
        "2026-01-08T10:00:00.000Z",
    ];
    let mut lines = String::new();
    for (number, at) in (0_u64..).zip(DAYS) {
        lines += &turn(&Turn {
            id: 2 * number + 1,
            at,
            queued: 100 * number,
            caps: &[OmitReason::Msgs, OmitReason::Age],
            timeouts: usize::from(number == 3),
            ..Turn::default()
        });
        lines += &turn(&Turn {
            id: 2 * number + 2,
            at,
            guild: None,
            model: 700 * (number + 1),
            model_name: "llama",
            agent: "helper",
            outcome: Some(if number == 5 {
                Outcome::Failed
            } else {
                Outcome::Answered
            }),
            ..Turn::default()
        });
        lines += &line(at, 100 + number, refused(Refusal::UserRate));
    }
    lines + &line(DAYS[6], 101, refused(Refusal::NotAllowed))
}

fn refused(reason: Refusal) -> TriggerRefused {
    TriggerRefused {
        reason,
        list: None,
        parent_channel_id: None,
    }
}

fn ms(millis: u64) -> Ms {
    Ms::from(Duration::from_millis(millis))
}
