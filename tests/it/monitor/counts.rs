//! Metrics agree with telemetry to the number, and name nobody.

use std::collections::BTreeMap;

use clew_simulator::{Fault, FaultKind};
use serde_json::{Value, json};

use super::Place;
use super::scrape::{Labels, Scrape, whole};
use crate::support::model::Behaviour;

/// How many lines there are by the values of these fields; `{"a": "b"}` of `detail` is `b`, no value `none`.
fn by(lines: &[Value], event: &str, fields: &[(&str, &str)]) -> BTreeMap<Labels, u64> {
    let mut counts = BTreeMap::new();
    for line in lines.iter().filter(|line| line["event"] == event) {
        let labels = fields.iter().map(|(label, field)| {
            let value = match &line["detail"][*field] {
                Value::Null => "none".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            ((*label).to_owned(), value)
        });
        *counts.entry(labels.collect()).or_insert(0) += 1;
    }
    counts
}

/// The sum of a field over all lines of an event.
fn total(lines: &[Value], event: &str, field: &str) -> u64 {
    let of = lines.iter().filter(|line| line["event"] == event);
    of.filter_map(|line| line["detail"][field].as_u64()).sum()
}

/// The series of a counter that are not zero.
fn counted(scrape: &Scrape, name: &str) -> BTreeMap<Labels, u64> {
    let series = scrape.series.get(name).into_iter().flatten();
    let counted = series.map(|(labels, value)| (labels.clone(), whole(*value)));
    counted.filter(|(_, count)| *count > 0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_agree_with_telemetry_to_the_number() {
    let p = Place::new(&[("MEM_MAX_MSGS", "10"), ("USER_TURNS_PER_MIN", "7")]).await;
    let bot = p.stage.start().await;
    p.ask(p.thread, "what is it about?").await;
    p.ask(p.help, "hello").await;
    // A server that fails for a moment, one that refuses, and one that calls a tool.
    p.stage.model.script(Behaviour::status(503, "busy"));
    p.ask(p.help, "and now?").await;
    p.stage.model.script(Behaviour::status(400, "no"));
    p.ask(p.help, "refused").await;
    let calls = [("search_messages", "{\"words\":\"pump\"}"), ("fly", "{}")];
    p.stage.model.script(Behaviour::calls("", &calls));
    p.ask(p.help, "look it up").await;
    let page = ("GET", "/channels/*/messages");
    let fault = Fault::new(page.0, page.1, FaultKind::Body("<html>".to_owned()));
    p.stage.discord.fault(fault);
    p.ask(p.other_thread, "and this one?").await;
    p.stage.discord.end_faults();
    p.ask(p.help, "the last one").await;
    // One more than may be asked in a minute.
    p.ask_only(p.help, "too many");
    let help = p.stage.discord.call(p.ada, p.help, "help", json!({}));
    help.await.unwrap().answer().await.unwrap();
    let scrape = p
        .scraped(|scrape| {
            scrape.count("clew_turns_total", &[]) == 7
                && scrape.count("clew_turns_refused_total", &[("reason", "user_rate")]) == 1
                && scrape.count("clew_turns_recorded_total", &[]) == 6
                && scrape.count("clew_commands_total", &[]) == 1
                && scrape.count("clew_turns_running", &[]) == 0
        })
        .await;
    let lines = bot.stop().await;
    let check = |name: &str, event: &str, labels: &[(&str, &str)]| {
        let told = by(&lines, event, labels);
        assert!(!told.is_empty(), "no {event}");
        assert_eq!(counted(&scrape, name), told, "{name}");
    };
    check(
        "clew_turns_total",
        "turn_done",
        &[("outcome", "outcome"), ("scene", "case")],
    );
    check(
        "clew_turn_duration_seconds_count",
        "turn_done",
        &[("outcome", "outcome")],
    );
    check(
        "clew_turns_refused_total",
        "refused",
        &[("reason", "reason")],
    );
    let block = [("scene", "case"), ("source", "source")];
    check("clew_context_blocks_total", "collect_ok", &block);
    check("clew_context_messages_count", "collect_ok", &[]);
    check("clew_prompt_characters_count", "request_ok", &[]);
    let cap = [("cap", "reason")];
    check("clew_context_truncations_total", "collect_truncated", &cap);
    let fallback = [("stage", "stage"), ("reason", "reason")];
    check(
        "clew_context_fallbacks_total",
        "collect_fallback",
        &fallback,
    );
    check(
        "clew_thread_tail_fallbacks_total",
        "tail_fallback",
        &[("reason", "reason")],
    );
    check(
        "clew_model_request_duration_seconds_count",
        "request_ok",
        &[("model", "model")],
    );
    let tool = [("tool", "tool"), ("outcome", "outcome")];
    check("clew_tool_calls_total", "tool_called", &tool);
    check("clew_answers_sent_total", "sent", &[]);
    check("clew_turns_recorded_total", "recorded", &[]);
    let command = [("command", "command"), ("outcome", "outcome")];
    check("clew_commands_total", "answered", &command);
    check(
        "clew_discord_connections_total",
        "connected",
        &[("resumed", "resumed")],
    );
    for (name, event, field) in [
        ("clew_context_fetches_total", "collect_ok", "fetches"),
        ("clew_context_messages_sum", "collect_ok", "msgs"),
        ("clew_prompt_characters_sum", "request_ok", "prompt_chars"),
        (
            "clew_context_messages_dropped_total",
            "collect_truncated",
            "dropped",
        ),
        ("clew_answer_messages_sent_total", "sent", "messages"),
    ] {
        assert_eq!(
            scrape.count(name, &[]),
            total(&lines, event, field),
            "{name}"
        );
        assert!(scrape.count(name, &[]) > 0, "{name}");
    }
    requests_agree(&scrape, &lines);
    // Each turn has each stage once.
    for stage in ["queue", "gather", "ask", "deliver", "record"] {
        let name = "clew_turn_stage_duration_seconds_count";
        assert_eq!(scrape.count(name, &[("stage", stage)]), 7, "{stage}");
    }
    let stages = scrape.sum("clew_turn_stage_duration_seconds_sum", &[]);
    let turns = scrape.sum("clew_turn_duration_seconds_sum", &[]);
    assert!((stages - turns).abs() < 0.01 * turns, "{stages} of {turns}");
}

/// Requests to the model, of which there are lines of two kinds.
#[track_caller]
fn requests_agree(scrape: &Scrape, lines: &[Value]) {
    let labels = |of: &'static str| [("server", "server"), ("model", "model"), ("reason", of)];
    let with_outcome = |outcome: &str, told: BTreeMap<Labels, u64>| {
        told.into_iter()
            .map(move |(mut labels, count)| {
                labels.insert("outcome".to_owned(), outcome.to_owned());
                (labels, count)
            })
            .collect::<BTreeMap<_, _>>()
    };
    let mut told = with_outcome("ok", by(lines, "request_ok", &labels("finish")));
    let failed = by(lines, "request_failed", &labels("reason"));
    assert_eq!(failed.len(), 2, "{failed:?}");
    told.extend(with_outcome("failed", failed));
    assert_eq!(counted(scrape, "clew_model_requests_total"), told);
    for (kind, field) in [
        ("prompt", "prompt_tokens"),
        ("completion", "completion_tokens"),
    ] {
        let counted = scrape.count("clew_model_tokens_total", &[("kind", kind)]);
        assert_eq!(counted, total(lines, "request_ok", field), "{kind}");
    }
}

/// Who does not ask for `OpenMetrics`, such as curl and promtool's users, gets Prometheus's own text: the same
/// series under metrics that have their whole names.
#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_is_in_the_format_that_is_asked_for() {
    let p = Place::new(&[]).await;
    let bot = p.stage.start().await;
    p.ask(p.help, "hello").await;
    // Nothing more is counted between the two scrapes.
    let is_over = |scrape: &Scrape| {
        scrape.count("clew_turns_recorded_total", &[]) == 1
            && scrape.count("clew_turns_total", &[]) == 1
            && scrape.count("clew_turns_running", &[]) == 0
    };
    let scrape = p.scraped(is_over).await;
    let answer = p.get("/metrics").await;
    bot.stop().await;
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(answer.head.contains(kind), "{}", answer.head);
    let text = answer.body;
    assert!(
        !text.contains("# EOF") && !text.contains("# UNIT"),
        "{text}"
    );
    let mut types = BTreeMap::new();
    let mut series = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(types.insert(name, kind), None, "{line}");
            assert!(text.contains(&format!("# HELP {name} ")), "{line}");
        } else if !line.starts_with("# HELP ") {
            let name = line.split(['{', ' ']).next().unwrap();
            let of_histogram = ["_bucket", "_count", "_sum"];
            let histogram = of_histogram.iter().find_map(|end| name.strip_suffix(end));
            let kind = types.get(name).or_else(|| types.get(histogram?));
            assert_eq!(kind == Some(&"counter"), name.ends_with("_total"), "{line}");
            assert!(kind.is_some() && scrape.text.contains(name), "{line}");
            series += 1;
        }
    }
    let all: usize = scrape.series.values().map(BTreeMap::len).sum();
    assert_eq!(series, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_names_nobody() {
    let p = Place::new(&[]).await;
    let bot = p.stage.start().await;
    p.ask(p.thread, "what about saffron?").await;
    p.ask(p.help, "and ginger?").await;
    let scrape = p
        .scraped(|scrape| scrape.count("clew_turns_total", &[]) == 2)
        .await;
    let us = p.stage.discord.bot();
    let ids = [p.ada, p.guild, p.help, p.thread, us].map(|id| id.to_string());
    let words = [
        "Adelheid",
        "Waterworks",
        "lounge",
        "pump",
        "saffron",
        "ginger",
    ];
    for told in ids.iter().map(String::as_str).chain(words) {
        assert!(!scrape.text.contains(told), "{told} in\n{}", scrape.text);
    }
    let token = p.stage.discord.token();
    assert!(!scrape.text.contains(&token));
    bot.stop().await;
}
