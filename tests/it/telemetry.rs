//! Telemetry is output: its lines, its files, what it loses, and the queries over it.

mod queries;
pub(crate) mod samples;
mod writing;

use std::collections::BTreeSet;

use clew::telemetry::event::{
    Answers, CauseWord, CircuitState, CollectFallback, CommandOutcome, DropReason, FatalReason,
    Finish, List, LlmFailure, LostBy, Outcome, PurgeCause, ReadFailure, Refusal, SendStage,
    SourceWord, StoreOperation, TailFallback, TailOk, ToolOutcome,
};
use clew::telemetry::{Event, Ids, Lines, Telemetry, log_filter};
use clew_context::model::{Fallback, MessageId, OmitReason, Scene, Stage, UnixMillis, fixed_clock};
use serde_json::{Value, json};

use crate::support::schema::{check_line, schema, validate_lines};
use samples::{one_of_each, turn_ids};

fn memory(log_subsys: &str) -> (Telemetry, Lines) {
    let now = UnixMillis::parse("2026-01-02T03:04:05.678Z").unwrap();
    Telemetry::to_memory(log_subsys, fixed_clock(now))
}

fn line_of(event: impl Into<Event>) -> String {
    let (telemetry, lines) = memory("mem.ctx");
    telemetry.emit(&turn_ids(7), event);
    lines.text()
}

#[test]
fn every_event_matches_the_schema() {
    let names: Vec<_> = one_of_each().iter().map(Event::name).collect();
    let all: Vec<_> = Event::ALL.iter().map(|(_, name)| *name).collect();
    assert_eq!(names, all, "a sample for every event");
    assert_eq!(schema()["properties"]["event"]["enum"], json!(all));
    for event in one_of_each() {
        let subsys = event.subsys().as_str();
        let line = line_of(event);
        assert_eq!(validate_lines(&line)[0]["subsys"], subsys);
    }
}

/// What is counted, in what unit, after which cap.
#[test]
fn every_field_says_what_it_is() {
    #[track_caller]
    fn check(name: &str, of: &Value) {
        let fields = of["properties"].as_object().into_iter().flatten();
        for (field, schema) in fields {
            let text = schema["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{name}.{field} says {text:?}");
            check(&format!("{name}.{field}"), schema);
        }
        let patterns = of["patternProperties"].as_object().into_iter().flatten();
        for (_, schema) in patterns {
            check(name, schema);
        }
    }
    for (_, event) in Event::ALL {
        check(event, &schema()["$defs"][*event]);
    }
    check("caps", &schema()["$defs"]["caps"]);
}

#[test]
fn a_line_is_exactly_this() {
    let expected = concat!(
        r#"{"ts":"2026-01-02T03:04:05.678Z","level":"info","subsys":"mem.thread","#,
        r#""event":"tail_ok","guild_id":"11","channel_id":"22","user_id":"33","#,
        r#""msg_id":"1007","turn_id":"t3ef","#,
        r#""detail":{"k":5,"reply_target":"1005","count":4}}"#,
        "\n",
    );
    let event = TailOk {
        k: 5,
        reply_target: Some(MessageId::new(1005)),
        count: 4,
    };
    assert_eq!(line_of(event), expected);
}

#[test]
fn the_schema_knows_the_same_words_as_the_code() {
    fn check(name: &str, words: &[&str]) {
        assert_eq!(schema()["$defs"][name]["enum"], json!(words), "{name}");
    }
    macro_rules! check_all {
        ($($name:ident)+) => {
            $(
                check(stringify!($name), &$name::words().collect::<Vec<_>>());
            )+
        };
    }
    check_all!(SourceWord CauseWord Refusal List Outcome Finish LlmFailure ToolOutcome);
    check_all!(StoreOperation CircuitState DropReason PurgeCause CommandOutcome);
    check_all!(LostBy ReadFailure SendStage FatalReason Answers Scene Fallback);
    let stages: Vec<_> = Stage::words().collect();
    check("CollectStage", &stages);
    let by_stage = &schema()["$defs"]["collect_ok"]["properties"]["stages"];
    let pattern = format!("^({})$", stages.join("|"));
    assert!(
        by_stage["patternProperties"][&pattern].is_object(),
        "{pattern}"
    );
    let omitted = schema()["$defs"]["omit_counts"]["properties"]
        .as_object()
        .unwrap();
    let omitted: BTreeSet<_> = omitted.keys().map(String::as_str).collect();
    let caps: Vec<_> = OmitReason::caps().map(OmitReason::as_str).collect();
    check("Cap", &caps);
    // A message that is too long alone is shortened.
    let left_out = OmitReason::words().filter(|word| *word != "msg_chars");
    assert_eq!(omitted, left_out.collect());
}

#[test]
fn wrong_lines_are_found() {
    #[track_caller]
    fn check(from: &str, to: &str, violation: &str) {
        let right = line_of(TailOk {
            k: 5,
            reply_target: None,
            count: 4,
        });
        assert_eq!(right.matches(from).count(), 1, "{from} in {right}");
        let found = check_line(&right.replace(from, to)).unwrap_err();
        assert!(found.contains(violation), "{found}");
    }
    check(r#""k":5,"#, "", "k");
    check(r#""k":5"#, r#""k":"5""#, "/detail/k");
    check(r#""count":4"#, r#""count":-1"#, "/detail/count");
    check(r#""count":4"#, r#""count":4,"content":"hi""#, "content");
    check(r#""level""#, r#""text":"hi","level""#, "text");
    check(r#""msg_id":"1007""#, r#""msg_id":1007"#, "/msg_id");
    check(r#""turn_id":"t3ef""#, r#""turn_id":null"#, "/turn_id");
    check("678Z", "678+00:00", "/ts");
    check("mem.thread", "mem.ctx", "/subsys");
    check("tail_ok", "tail_fine", "/event");
    check("}}", "}", "EOF");
    check(
        r#""k":5,"reply_target":null"#,
        r#""reply_target":null,"k":5"#,
        "order",
    );
    check(r#""level":"info","#, "", "level");
    check(r#"{"ts""#, r#"{"turn_id":"t1","ts""#, "order");
}

#[test]
fn the_collectors_subsystem_has_the_name_that_the_operator_gave_it() {
    let (telemetry, lines) = memory("bot.context");
    for event in one_of_each() {
        telemetry.emit(&turn_ids(1), event);
    }
    let renamed: Vec<Value> = validate_lines(&lines.text())
        .into_iter()
        .filter(|line| line["subsys"] == "bot.context")
        .map(|line| line["event"].clone())
        .collect();
    let expected = [
        "collect_ok",
        "collect_truncated",
        "collect_fallback",
        "merge_ok",
    ];
    assert_eq!(renamed, expected);
}

/// The twelfth defect: events of the thread were logged under the collectors' subsystem.
#[test]
fn defect_12_thread_events_carry_the_threads_subsystem() {
    let (telemetry, lines) = memory("mem.ctx");
    let reason = Fallback::Timeout;
    telemetry.emit(&turn_ids(1), TailFallback { reason });
    let (case, stage) = (Scene::Thread, Stage::History);
    telemetry.emit(
        &turn_ids(1),
        CollectFallback {
            case,
            reason,
            stage,
        },
    );
    let subsystems: Vec<Value> = validate_lines(&lines.text())
        .into_iter()
        .map(|line| line["subsys"].clone())
        .collect();
    assert_eq!(subsystems, ["mem.thread", "mem.ctx"]);
}

#[test]
fn memory_keeps_events_as_values_until_they_are_taken() {
    let (telemetry, lines) = memory("mem.ctx");
    let reason = Fallback::Archived;
    telemetry
        .clone()
        .emit(&Ids::default(), TailFallback { reason });
    telemetry.emit(&turn_ids(2), TailFallback { reason });
    assert_eq!(lines.count("tail_fallback"), 2);
    assert_eq!(lines.count("tail_ok"), 0);
    let all = lines.all();
    assert_eq!(all[0].event, Event::from(TailFallback { reason }));
    assert_eq!(all[1].ids, turn_ids(2));
    assert_eq!(lines.take(), all);
    assert!(lines.text().is_empty());
}

#[test]
fn telemetry_that_is_off_writes_nothing() {
    for event in one_of_each() {
        Telemetry::off().emit(&Ids::default(), event);
    }
}

#[test]
fn the_log_for_people_keeps_libraries_from_printing_payloads() {
    use tracing::Level;
    #[track_caller]
    fn check(level: Level, target: &str, said: Level, expected: bool) {
        let filter = log_filter(tracing::level_filters::LevelFilter::from_level(level));
        assert_eq!(filter.would_enable(target, &said), expected);
    }
    check(Level::INFO, "clew::turn", Level::INFO, true);
    check(Level::INFO, "clew::turn", Level::DEBUG, false);
    check(Level::DEBUG, "clew::turn", Level::DEBUG, true);
    check(Level::TRACE, "twilight_gateway::shard", Level::DEBUG, false);
    check(Level::TRACE, "twilight_gateway::shard", Level::WARN, true);
    check(Level::ERROR, "twilight_gateway::shard", Level::WARN, false);
    // It names addresses, in which a key may stand.
    check(Level::TRACE, "rmcp::transport::worker", Level::ERROR, false);
}
