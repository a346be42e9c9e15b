//! Traces of turns, as a collector gets them over a real socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use clew_simulator::{ChannelKind, Id, World};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::bot::{Stage, details};
use crate::support::model::Behaviour;

/// How long to wait for spans before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A fake collector.
#[derive(Clone, Default)]
struct Collector(Arc<Collected>);

#[derive(Default)]
struct Collected {
    /// The status of the next answers; 200 without any.
    statuses: Mutex<Vec<StatusCode>>,
    requests: Mutex<Vec<(HeaderMap, Value)>>,
    changed: Notify,
}

impl Collector {
    async fn start() -> (Self, String) {
        let collector = Self::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(collector.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (collector, url)
    }

    /// All requests, once there are this many.
    async fn requests(&self, count: usize) -> Vec<(HeaderMap, Value)> {
        let wait = async {
            loop {
                let changed = self.0.changed.notified();
                let requests = self.0.requests.lock().unwrap().clone();
                if requests.len() >= count {
                    return requests;
                }
                changed.await;
            }
        };
        timeout(PATIENCE, wait).await.expect("spans in time")
    }
}

async fn take(State(collector): State<Collector>, headers: HeaderMap, body: String) -> StatusCode {
    let body = serde_json::from_str(&body).unwrap();
    collector.0.requests.lock().unwrap().push((headers, body));
    collector.0.changed.notify_waiters();
    let mut statuses = collector.0.statuses.lock().unwrap();
    statuses.pop().unwrap_or(StatusCode::OK)
}

/// A span, read strictly as OTLP's JSON encoding has it.
#[derive(Debug)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    begins: u64,
    ends: u64,
    attributes: BTreeMap<String, String>,
    /// 2 is an error.
    status: Option<u64>,
}

fn spans(body: &Value) -> Vec<Span> {
    let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
    spans.as_array().unwrap().iter().map(span).collect()
}

#[track_caller]
fn span(span: &Value) -> Span {
    let hex = |key: &str, length: usize| {
        let text = span[key].as_str()?;
        assert!(
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{text}"
        );
        assert!(text.bytes().any(|byte| byte != b'0'));
        Some(text.to_owned())
    };
    let nanos = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let attributes = span["attributes"].as_array().unwrap().iter().map(|one| {
        let value = one["value"].as_object().unwrap().values().next().unwrap();
        let value = value
            .get("values")
            .map_or(value, |list| &list[0]["stringValue"]);
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (one["key"].as_str().unwrap().to_owned(), value)
    });
    assert!([1, 3].contains(&span["kind"].as_u64().unwrap()));
    Span {
        trace: hex("traceId", 32).unwrap(),
        id: hex("spanId", 16).unwrap(),
        parent: hex("parentSpanId", 16),
        name: span["name"].as_str().unwrap().to_owned(),
        begins: nanos(&span["startTimeUnixNano"]),
        ends: nanos(&span["endTimeUnixNano"]),
        attributes: attributes.collect(),
        status: span["status"]["code"].as_u64(),
    }
}

/// Milliseconds as telemetry writes them: with one decimal.
fn ms(span: &Span) -> f64 {
    let took = Duration::from_nanos(span.ends - span.begins);
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}

struct Place {
    stage: Stage,
    guild: Id,
    help: Id,
    ada: Id,
}

impl Place {
    async fn new(settings: &[(&str, &str)]) -> Self {
        let mut world = World::new();
        world.settings.max_concurrency = 0;
        let guild = world.guild("Works");
        let help = world.channel(guild, ChannelKind::Text, "help");
        let ada = world.member(guild, "Ada");
        Self {
            stage: Stage::new(world, settings).await,
            guild,
            help,
            ada,
        }
    }

    async fn ask(&self, text: &str) {
        let before = self.stage.discord.answers(self.help).len();
        let us = self.stage.discord.bot();
        let text = format!("<@{us}> {text}");
        self.stage.discord.post(self.help, self.ada, text);
        let answered = self.stage.discord.wait_answers(self.help, before + 1).await;
        answered.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_becomes_spans_that_say_what_telemetry_says() {
    let (collector, url) = Collector::start().await;
    let headers = "x-key=s3cret, x-team=pumps";
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", headers),
    ];
    let p = Place::new(&settings).await;
    let bot = p.stage.start().await;
    p.stage.model.script(Behaviour::status(503, "busy"));
    let calls = [("search_messages", "{\"words\":\"saffron\"}")];
    p.stage.model.script(Behaviour::calls("", &calls));
    p.ask("what about saffron?").await;
    let requests = collector.requests(1).await;
    let lines = bot.stop().await;
    let (headers, body) = &requests[0];
    assert_eq!(headers["x-key"], "s3cret");
    assert_eq!(headers["x-team"], "pumps");
    assert_eq!(headers["content-type"], "application/json");
    assert!(!body.to_string().contains("saffron"), "{body}");
    let spans = spans(body);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let expected = [
        "turn",
        "queue",
        "gather",
        "ask",
        "chat fake",
        "chat fake",
        "execute_tool search_messages",
        "chat fake",
        "deliver",
        "record",
    ];
    assert_eq!(names, expected);
    let [turn, _, _, ask, failed, first, tool, second, ..] = spans.as_slice() else {
        panic!("{names:?}");
    };
    assert_eq!(turn.parent, None);
    for span in &spans[1..] {
        let requests = [&failed.id, &first.id, &tool.id, &second.id];
        let parent = if requests.contains(&&span.id) {
            ask
        } else {
            turn
        };
        assert_eq!(span.parent.as_ref(), Some(&parent.id), "{}", span.name);
        assert_eq!(span.trace, turn.trace);
        assert!(
            span.begins >= parent.begins && span.ends <= parent.ends,
            "{span:?} of {parent:?}"
        );
    }
    let stages = spans
        .iter()
        .filter(|span| span.parent.as_ref() == Some(&turn.id));
    let stages: Vec<&Span> = stages.collect();
    assert!(stages.windows(2).all(|pair| pair[0].ends == pair[1].begins));
    assert_eq!((stages[0].begins, stages[4].ends), (turn.begins, turn.ends));
    // The times are those of the lines.
    let times = |event: &str| -> Vec<f64> {
        let details = details(&lines, event).into_iter();
        details
            .map(|detail| detail["ms"].as_f64().unwrap())
            .collect()
    };
    assert_eq!(times("turn_done"), [ms(turn)]);
    assert_eq!(times("request_failed"), [ms(failed)]);
    assert_eq!(times("request_ok"), [ms(first), ms(second)]);
    assert_eq!(times("tool_called"), [ms(tool)]);
    assert_eq!(turn.attributes["clew.outcome"], "answered");
    assert_eq!(turn.attributes["user.id"], p.ada.to_string());
    assert_says_its_cost(second);
    assert_eq!(tool.attributes["clew.tool.outcome"], "ok");
    // The client repeats a request that failed for a moment by itself, after a pause.
    assert!(failed.ends <= first.begins);
    assert_eq!(failed.attributes["error.type"], "unavailable");
    assert_eq!(failed.attributes["clew.model.attempt"], "1");
    assert_eq!((failed.status, first.status), (Some(2), None));
    assert_say_what_they_ask(&p, turn, &[failed, first, second]);
}

/// How many tokens, of which model, when.
#[track_caller]
fn assert_says_its_cost(chat: &Span) {
    assert_eq!(chat.attributes["gen_ai.usage.input_tokens"], "7");
    assert_eq!(chat.attributes["gen_ai.usage.cache_read.input_tokens"], "5");
    assert_eq!(chat.attributes["gen_ai.usage.reasoning.output_tokens"], "2");
    assert_eq!(chat.attributes["gen_ai.response.model"], "fake-1");
    assert_eq!(chat.attributes["gen_ai.response.finish_reasons"], "stop");
    let chunk = &chat.attributes["gen_ai.response.time_to_first_chunk"];
    assert!(
        chunk.parse::<f64>().unwrap() * 1_000.0 <= ms(chat) + 0.1,
        "{chunk}"
    );
}

/// Which server, of which model, in which conversation.
#[track_caller]
fn assert_say_what_they_ask(p: &Place, turn: &Span, chats: &[&Span]) {
    let url = reqwest::Url::parse(&p.stage.model.url()).unwrap();
    let conversation = format!("member/{}/{}/{}", p.guild, p.help, p.ada);
    assert_eq!(turn.attributes["gen_ai.conversation.id"], conversation);
    for chat in chats {
        for (name, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", "fake"),
            ("gen_ai.request.stream", "true"),
            ("gen_ai.conversation.id", conversation.as_str()),
            ("server.address", url.host_str().unwrap()),
            ("server.port", &url.port().unwrap().to_string()),
        ] {
            assert_eq!(chat.attributes[name], value, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_those_of_the_telemetry() {
    let (collector, url) = Collector::start().await;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("TELEMETRY_IDS", "keyed"),
    ];
    let p = Place::new(&settings).await;
    let bot = p.stage.start().await;
    p.ask("hello").await;
    let requests = collector.requests(1).await;
    let lines = bot.stop().await;
    let body = &requests[0].1;
    assert!(!body.to_string().contains(&p.ada.to_string()), "{body}");
    let done = lines
        .iter()
        .find(|line| line["event"] == "turn_done")
        .unwrap();
    let turn = &spans(body)[0];
    assert_eq!(
        turn.attributes["user.id"],
        done["user_id"].as_str().unwrap()
    );
    assert_eq!(
        turn.attributes["clew.turn.id"],
        done["turn_id"].as_str().unwrap()
    );
    let user = done["user_id"].as_str().unwrap();
    let conversation = &turn.attributes["gen_ai.conversation.id"];
    assert!(
        conversation.ends_with(&format!("/{user}")),
        "{conversation}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_out_is_counted_as_in_telemetry() {
    let (collector, url) = Collector::start().await;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("LONE_CONTEXT", "conversation"),
        ("MEM_MAX_MSGS", "1"),
    ];
    let p = Place::new(&settings).await;
    let bot = p.stage.start().await;
    p.ask("what about the pump?").await;
    collector.requests(1).await;
    p.ask("and what else about the pump?").await;
    let requests = collector.requests(2).await;
    let lines = bot.stop().await;
    let gather = &spans(&requests[1].1)[2];
    assert_eq!(gather.attributes["clew.context.omitted.msgs"], "1");
    let collected = details(&lines, "collect_ok");
    assert_eq!(collected[1]["omitted"], serde_json::json!({"msgs": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_fails_for_a_moment_is_asked_again() {
    let (collector, url) = Collector::start().await;
    collector
        .0
        .statuses
        .lock()
        .unwrap()
        .push(StatusCode::SERVICE_UNAVAILABLE);
    let p = Place::new(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]).await;
    let bot = p.stage.start().await;
    p.ask("hello").await;
    let requests = collector.requests(2).await;
    assert_eq!(requests[0].1, requests[1].1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_silent_keeps_nobody_waiting() {
    // Connections are made and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let p = Place::new(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]).await;
    let bot = p.stage.start().await;
    p.ask("hello").await;
    p.ask("again").await;
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "turn_done").len(), 2);
    drop(silent);
}
