//! Traces of turns for OpenTelemetry (feature `otel`), made when a turn is over from its
//! events and the times of its stages: one span for the turn, below it one for each stage,
//! below these one for each request to the model and each call of a tool.
//!
//! Like telemetry's lines they have no text of a message, and ids as `TELEMETRY_IDS` says.

mod export;
mod otlp;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::duration::Ms;
use super::event::{Event, LlmFailure, Outcome, RequestFailed, RequestOk, ToolCalled, TurnDone};
use super::line::Ids;
use super::stages::{StageTime, StageTimes, TurnStage};
use clew_context::model::{Scene, TurnId, UnixMillis};
use clew_store::model::Scope;

pub use export::{Exporter, SetupError};

use otlp::{Kind, Span, SpanEvent, attribute};

/// The most turns of which something is held until they are over.
const MAX_OPEN: usize = 10_000;
/// The most events of one turn that its trace tells.
const MAX_EVENTS: usize = 500;
/// Names the conversation, of a turn and of its requests.
const CONVERSATION: &str = "gen_ai.conversation.id";
/// The most turns that wait to be exported.
const MAX_WAITING: usize = 1_000;

/// Collects traces and hands them to the exporter. Clones share one queue.
#[derive(Clone)]
pub struct Traces(Arc<Shared>);

struct Shared {
    /// What has happened in turns that are not over, or broke off by a fault of ours.
    open: Mutex<HashMap<TurnId, Vec<Noted>>>,
    queue: mpsc::Sender<Vec<Span>>,
    /// Of the model servers, in their order.
    servers: Vec<ServerAddress>,
    /// Turns whose traces found no room.
    dropped: AtomicU64,
}

/// Where a model server is.
#[derive(Debug)]
struct ServerAddress {
    host: String,
    port: u16,
}

/// What a trace names, in the style of `TELEMETRY_IDS`.
#[derive(Debug)]
pub(super) struct TurnIds {
    pub(super) ids: Ids,
    /// The conversation in which the turn is stored; none if it ended before that was known.
    pub(super) conversation: Option<Scope>,
}

/// An event and when it was told.
struct Noted {
    at: Instant,
    event: Event,
}

/// Translates instants into times since 1970, in nanoseconds.
#[derive(Clone, Copy)]
struct Wall {
    instant: Instant,
    nanos: u64,
}

impl Traces {
    fn new(servers: Vec<ServerAddress>) -> (Self, mpsc::Receiver<Vec<Span>>) {
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let shared = Shared {
            open: Mutex::default(),
            queue,
            servers,
            dropped: AtomicU64::new(0),
        };
        (Self(Arc::new(shared)), waiting)
    }

    /// Notes an event of a turn that is under way.
    pub(super) fn note(&self, ids: &Ids, event: &Event) {
        let is_told = matches!(
            event,
            Event::CollectOk(_)
                | Event::CollectFallback(_)
                | Event::RequestOk(_)
                | Event::RequestFailed(_)
                | Event::ToolCalled(_)
        );
        let Some(turn) = ids.turn.filter(|_| is_told) else {
            return;
        };
        let mut open = self.0.open.lock();
        if open.len() >= MAX_OPEN && !open.contains_key(&turn) {
            return;
        }
        let noted = open.entry(turn).or_default();
        if noted.len() < MAX_EVENTS {
            noted.push(Noted {
                at: Instant::now(),
                event: event.clone(),
            });
        }
    }

    /// Hands the trace of a turn that is over to the exporter. Never waits.
    pub(super) fn turn_over(
        &self,
        turn: Option<TurnId>,
        ids: &TurnIds,
        done: &TurnDone,
        stages: &StageTimes,
        clock: UnixMillis,
    ) {
        let mut open = self.0.open.lock();
        let noted = turn.and_then(|turn| open.remove(&turn)).unwrap_or_default();
        drop(open);
        let wall = Wall {
            instant: stages.ended,
            nanos: clock.0.unsigned_abs().saturating_mul(1_000_000),
        };
        let spans = self.spans(ids, done, &stages.all, &noted, wall);
        if self.0.queue.try_send(spans).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many traces were dropped since the last time that this was asked.
    fn take_dropped(&self) -> u64 {
        self.0.dropped.swap(0, Ordering::Relaxed)
    }
}

impl Wall {
    fn nanos(self, at: Instant) -> u64 {
        let before = self.instant.saturating_duration_since(at);
        self.nanos.saturating_sub(nanos(before))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Traces {
    /// The spans of a turn that ends now.
    fn spans(
        &self,
        ids: &TurnIds,
        done: &TurnDone,
        stages: &[StageTime],
        noted: &[Noted],
        wall: Wall,
    ) -> Vec<Span> {
        let ends = wall.nanos;
        let took: Duration = stages.iter().map(|stage| stage.took).sum();
        let begins = ends.saturating_sub(nanos(took));
        let (trace, name) = (Uuid::new_v4().into_bytes(), TurnStage::Turn.as_str());
        let mut turn = Span::new(trace, name, begins, ends);
        turn.attributes = of_turn(ids, done);
        turn.is_error = done.outcome == Outcome::Failed;
        let conversation = ids.conversation.map(|scope| scope.to_string());
        let (mut below, mut begins) = (Vec::new(), begins);
        for stage in stages {
            let until = begins.saturating_add(nanos(stage.took));
            let mut span = turn.child(stage.stage.as_str(), begins, until);
            let within = |noted: &&Noted| {
                let at = wall.nanos(noted.at);
                (begins..until).contains(&at) && stage_of(&noted.event) == stage.stage
            };
            let mut children = Vec::new();
            for one in noted.iter().filter(within) {
                let at = wall.nanos(one.at);
                match &one.event {
                    Event::RequestOk(request) => children.push(answered(&span, request, at)),
                    Event::RequestFailed(request) => children.push(failed(&span, request, at)),
                    Event::ToolCalled(called) => children.push(tool(&span, called, at)),
                    event => tell(&mut span, event, at),
                }
                if let (Some(child), Some(server)) = (children.last_mut(), server_of(&one.event)) {
                    self.asked(child, server, conversation.as_deref());
                }
            }
            below.push(span);
            below.extend(children);
            begins = until;
        }
        below.insert(0, turn);
        below
    }

    /// Adds to the span of a request where it went, and for which conversation.
    fn asked(&self, span: &mut Span, server: usize, conversation: Option<&str>) {
        let address = server.checked_sub(1).and_then(|at| self.0.servers.get(at));
        if let Some(ServerAddress { host, port }) = address {
            span.attributes.extend([
                attribute("server.address", host.as_str()),
                attribute("server.port", u64::from(*port)),
            ]);
        }
        let conversation = conversation.map(|id| attribute(CONVERSATION, id));
        span.attributes.extend(conversation);
    }
}

/// The number of the model server that was asked.
const fn server_of(event: &Event) -> Option<usize> {
    match event {
        Event::RequestOk(request) => Some(request.server),
        Event::RequestFailed(request) => Some(request.server),
        _ => None,
    }
}

/// The stage in which an event happens.
fn stage_of(event: &Event) -> TurnStage {
    match event {
        Event::CollectOk(_) | Event::CollectFallback(_) => TurnStage::Gather,
        _ => TurnStage::Ask,
    }
}

fn of_turn(turn: &TurnIds, done: &TurnDone) -> Vec<serde_json::Value> {
    let ids = &turn.ids;
    let mut attributes = vec![
        attribute("clew.outcome", done.outcome.as_str()),
        attribute("clew.scene", done.case.map_or("none", Scene::as_str)),
    ];
    let texts = [
        ("clew.agent", done.agent.clone()),
        ("clew.turn.id", ids.turn.map(|id| id.to_string())),
        ("clew.guild.id", ids.guild.map(|id| id.to_string())),
        ("clew.channel.id", ids.channel.map(|id| id.to_string())),
        ("user.id", ids.user.map(|id| id.to_string())),
        (CONVERSATION, turn.conversation.map(|id| id.to_string())),
    ];
    let known = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)));
    attributes.extend(known.map(|(name, text)| attribute(name, text)));
    attributes
}

/// Adds what an event says to the span of its stage.
fn tell(stage: &mut Span, event: &Event, at: u64) {
    match event {
        Event::CollectOk(collected) => {
            stage.attributes.extend([
                attribute("clew.context.messages", collected.msgs as u64),
                attribute("clew.context.characters", collected.chars as u64),
                attribute("clew.context.fetches", collected.fetches as u64),
                attribute("clew.context.source", collected.source.as_str()),
            ]);
            let omitted = collected.omitted.0.iter();
            let omitted = omitted.map(|(reason, count)| {
                attribute(&format!("clew.context.omitted.{reason}"), *count as u64)
            });
            stage.attributes.extend(omitted);
        }
        Event::CollectFallback(fallback) => stage.events.push(SpanEvent {
            name: "context_fallback",
            at,
            attributes: vec![
                attribute("clew.context.stage", fallback.stage.as_str()),
                attribute("error.type", fallback.reason.as_str()),
            ],
        }),
        _ => {}
    }
}

/// The span of a request that was answered.
fn answered(ask: &Span, request: &RequestOk, ends: u64) -> Span {
    let agent = request.agent.as_deref().unwrap_or_default();
    let asked = (request.model.as_str(), agent);
    let (nth, times) = ((request.server, request.attempt), (request.ms, ends));
    let mut span = chat(ask, asked, nth, times);
    let reasons = vec![request.finish.as_str()];
    span.attributes.extend([
        attribute("gen_ai.response.finish_reasons", reasons),
        attribute(
            "gen_ai.response.time_to_first_chunk",
            request.ms_first.0.as_secs_f64(),
        ),
    ]);
    let model = request.response_model.as_deref();
    let model = model.map(|model| attribute("gen_ai.response.model", model));
    span.attributes.extend(model);
    let tokens = [
        ("gen_ai.usage.input_tokens", request.prompt_tokens),
        (
            "gen_ai.usage.cache_read.input_tokens",
            request.cached_tokens,
        ),
        ("gen_ai.usage.output_tokens", request.completion_tokens),
        (
            "gen_ai.usage.reasoning.output_tokens",
            request.reasoning_tokens,
        ),
    ];
    for (name, tokens) in tokens {
        span.attributes
            .extend(tokens.map(|tokens| attribute(name, tokens)));
    }
    span
}

/// The span of a request that brought no answer.
fn failed(ask: &Span, request: &RequestFailed, ends: u64) -> Span {
    let agent = request.agent.as_deref().unwrap_or_default();
    let asked = (request.model.as_str(), agent);
    let (nth, times) = ((request.server, request.attempt), (request.ms, ends));
    let mut span = chat(ask, asked, nth, times);
    // Who hangs up has not failed.
    span.is_error = request.reason != LlmFailure::Cancelled;
    span.attributes
        .push(attribute("error.type", request.reason.as_str()));
    span
}

/// The span of a request, by OpenTelemetry's conventions for generative models: names as of
/// version 1.41 of the semantic conventions, where they are in development.
fn chat(
    ask: &Span,
    (model, agent): (&str, &str),
    (server, attempt): (usize, u32),
    (took, ends): (Ms, u64),
) -> Span {
    let begins = ends.saturating_sub(nanos(took.0));
    let mut span = ask.child(&format!("chat {model}"), begins, ends);
    span.kind = Kind::Client;
    span.attributes = vec![
        attribute("gen_ai.operation.name", "chat"),
        // The protocol; who is behind it only the operator knows.
        attribute("gen_ai.provider.name", "openai"),
        attribute("gen_ai.request.model", model),
        attribute("gen_ai.request.stream", true),
        attribute("gen_ai.agent.name", agent),
        attribute("clew.model.server", server as u64),
        attribute("clew.model.attempt", u64::from(attempt)),
    ];
    span
}

fn tool(ask: &Span, called: &ToolCalled, ends: u64) -> Span {
    let name = called.tool.as_deref().unwrap_or("unknown");
    let begins = ends.saturating_sub(nanos(called.ms.0));
    let mut span = ask.child(&format!("execute_tool {name}"), begins, ends);
    span.is_error = called.outcome.is_failure();
    span.attributes = vec![
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", name),
        attribute("gen_ai.tool.type", "function"),
        attribute("clew.tool.outcome", called.outcome.as_str()),
        attribute("clew.tool.bytes", called.bytes as u64),
    ];
    if span.is_error {
        span.attributes
            .push(attribute("error.type", called.outcome.as_str()));
    }
    span
}
