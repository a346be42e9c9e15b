//! `clew report`: what it counts, over lines that the bot's own writer wrote.

mod files;
mod hostile;
mod program;
mod shown;
mod splits;
pub(crate) mod world;

use clew::report::{self, Guild, Options};
use clew::telemetry::event::{Outcome, Started};
use clew_context::model::{OmitReason, UnixMillis};
use serde_json::{Value, json};

use crate::telemetry::samples::one_of_each;
use world::{Turn, a_week, line, options, report_of, turn};

fn fields(value: &Value, names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| ((*name).to_owned(), value[*name].clone()))
        .collect()
}

#[test]
fn the_keys_of_the_report_are_these() {
    let report = report_of(&a_week(), &options());
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
}

#[test]
fn every_event_of_the_bot_is_read_or_passed_over() {
    let lines: String = one_of_each()
        .into_iter()
        .map(|event| line("2026-01-02T03:04:05.678Z", 1, event))
        .collect();
    let report = report_of(&lines, &options());
    let input = fields(
        &report["input"],
        &["lines", "unreadable", "cut_off", "starts", "lost_lines"],
    );
    let expected = json!({
        "lines": one_of_each().len(), "unreadable": 0, "cut_off": 0, "starts": 1, "lost_lines": 17,
    });
    assert_eq!(input, expected);
    let turns = fields(&report["turns"], &["began", "ended"]);
    assert_eq!(turns, json!({"began": 1, "ended": 1}));
    let stages = report["stages"].as_array().unwrap();
    let unseen: Vec<&Value> = stages.iter().filter(|stage| stage["count"] == 0).collect();
    assert_eq!(unseen, Vec::<&Value>::new());
    for list in ["outcomes", "scenes", "causes", "refused", "runs"] {
        assert_eq!(report["turns"][list].as_array().unwrap().len(), 1, "{list}");
    }
    assert_eq!(report["fallbacks"].as_array().unwrap().len(), 3);
}

#[test]
fn a_turn_that_begins_again_counts_once() {
    let again = turn(&Turn {
        id: 7,
        again: true,
        timeouts: 2,
        ..Turn::default()
    });
    let report = report_of(&again, &options());
    let turns = fields(&report["turns"], &["began", "restarted", "ended"]);
    assert_eq!(turns, json!({"began": 1, "restarted": 1, "ended": 1}));
    let fallback = fields(
        &report["fallbacks"][0],
        &["reason", "events", "turns", "rate"],
    );
    let expected = json!({"reason": "timeout", "events": 4, "turns": 1, "rate": 1.0});
    assert_eq!(fallback, expected);
    assert_eq!(report["truncation"]["blocks"], 2);
}

/// Of what began before, only the events count: a rate is never above one.
#[test]
fn fallbacks_of_a_turn_that_began_before_are_no_turns() {
    let late = Turn {
        id: 7,
        timeouts: 3,
        ..Turn::default()
    };
    let lines = turn(&late);
    let (_, without_its_beginning) = lines.split_once('\n').unwrap();
    let other = Turn {
        id: 8,
        timeouts: 1,
        ..Turn::default()
    };
    let lines = without_its_beginning.to_owned() + &turn(&other);
    let report = report_of(&lines, &options());
    assert_eq!(report["turns"]["began"], 1);
    let fallback = fields(&report["fallbacks"][0], &["events", "turns", "rate"]);
    assert_eq!(fallback, json!({"events": 4, "turns": 1, "rate": 1.0}));
}

/// Each cap has a word and a setting; older lines call both ages `age`.
#[test]
fn a_cap_is_named_by_its_setting() {
    let capped = |id, guild, caps| {
        turn(&Turn {
            id,
            guild,
            caps,
            ..Turn::default()
        })
    };
    let caps = |lines: &str| -> Vec<Value> {
        let report = report_of(lines, &options());
        let caps = report["truncation"]["caps"].as_array().unwrap().iter();
        caps.map(|cap| json!([cap["cap"], cap["setting"], cap["blocks"]]))
            .collect()
    };
    let in_thread = capped(1, Some(11), &[OmitReason::Age, OmitReason::Chars]);
    let older = capped(2, None, &[OmitReason::Age, OmitReason::Chars]);
    let newer = capped(
        3,
        None,
        &[
            OmitReason::ChainAge,
            OmitReason::Chars,
            OmitReason::LoneChars,
        ],
    );
    let expected = [
        json!(["chars", "MEM_MAX_CHARS", 3]),
        json!(["chain_age", "MEM_CHAIN_MAX_AGE_MIN", 2]),
        json!(["age", "MEM_MAX_AGE_MIN", 1]),
        json!(["lone_chars", "LONE_MAX_CHARS", 1]),
    ];
    let lines = in_thread + &older + &newer;
    assert_eq!(caps(&lines), expected);
    let unknown = lines.replace("lone_chars", "of_later");
    assert_eq!(caps(&unknown)[3], json!(["of_later", null, 1]));
    let direct = &report_of(&lines, &options())["truncation"]["channels"][0];
    let counts = fields(
        direct,
        &["chars", "lone_chars", "age", "chain_age", "dropped"],
    );
    let expected = json!({"chars": 2, "lone_chars": 1, "age": 0, "chain_age": 2, "dropped": 35});
    assert_eq!(counts, expected);
}

/// Each row: scene, messages and characters shown, left out by count and by characters; what more
/// would have been shown, for how many tokens.
#[test]
fn a_count_that_was_full_before_the_characters_is_told_with_what_more_would_cost() {
    let block = |case: &str, msgs: u64, chars: u64, left_out: [u64; 2]| {
        let [over_count, over_chars] = left_out;
        let detail = json!({
            "case": case, "msgs": msgs, "chars": chars,
            "omitted": {"msgs": over_count, "chars": over_chars},
            "caps": {"mem_max_chars": 8_000, "lone_max_chars": 3_300},
        });
        format!(
            "{{\"ts\":\"2026-01-02T03:04:05.678Z\",\"event\":\"collect_ok\",\"detail\":{detail}}}\n"
        )
    };
    let first = |lines: &str| {
        let report = report_of(lines, &options());
        let first = fields(
            &report["truncation"]["msgs_first"],
            &["blocks", "messages", "tokens"],
        );
        serde_json::from_value::<[u64; 3]>(json!([
            first["blocks"],
            first["messages"],
            first["tokens"]
        ]))
        .unwrap()
    };
    // 80 characters a message: there is room for 60 more.
    let all_of_it = block("thread", 40, 3_200, [12, 0]);
    let some_of_it = block("reply_chain", 40, 3_200, [500, 0]);
    assert_eq!(first(&all_of_it), [1, 12, 320]);
    assert_eq!(first(&some_of_it), [1, 60, 1_600]);
    assert_eq!(first(&block("lone", 40, 3_200, [500, 0])), [1, 1, 27]);
    for without in [
        block("thread", 40, 3_200, [0, 0]),
        block("thread", 40, 3_200, [12, 3]),
        block("thread", 40, 7_990, [12, 0]),
        block("thread", 0, 0, [12, 0]),
        block("lone", 40, 3_300, [12, 0]),
    ] {
        assert_eq!(first(&without), [0, 0, 0], "{without}");
    }
    let lines = all_of_it + &some_of_it + &block("thread", 5, 300, [0, 0]);
    assert_eq!(first(&lines), [2, 72, 1_920]);
}

#[test]
fn the_slowest_turns_say_where_their_time_went() {
    let slow = [
        Turn {
            id: 1,
            queued: 5_000,
            ..Turn::default()
        },
        Turn {
            id: 2,
            collect: 4_000,
            ..Turn::default()
        },
        Turn {
            id: 3,
            model: 9_000,
            ..Turn::default()
        },
        Turn {
            id: 4,
            tools: 3_000,
            ..Turn::default()
        },
        Turn {
            id: 5,
            other: 2_000,
            ..Turn::default()
        },
        Turn {
            id: 6,
            ..Turn::default()
        },
    ];
    let lines: String = slow.iter().map(turn).collect();
    let few = Options {
        rows: 5,
        ..options()
    };
    let report = report_of(&lines, &few);
    let ids: Vec<&Value> = report["slowest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| &turn["turn"])
        .collect();
    assert_eq!(ids, ["t3eb", "t3e9", "t3ea", "t3ec", "t3ed"]);
    let parts = [
        "ms",
        "queued_ms",
        "collect_ms",
        "model_ms",
        "tools_ms",
        "other_ms",
    ];
    let expected = json!({
        "ms": 9_030.0, "queued_ms": 0.0, "collect_ms": 20.0, "model_ms": 9_000.0,
        "tools_ms": 0.0, "other_ms": 10.0,
    });
    assert_eq!(fields(&report["slowest"][0], &parts), expected);
}

#[test]
fn costs_go_by_the_models_price_and_are_exact() {
    let turns = [
        Turn {
            id: 1,
            model_name: "small",
            ..Turn::default()
        },
        Turn {
            id: 2,
            model_name: "big",
            ..Turn::default()
        },
        Turn {
            id: 3,
            model_name: "big",
            tokens: None,
            ..Turn::default()
        },
    ];
    let lines: String = turns.iter().map(turn).collect();
    let costs = |prices: &[(&str, &str)]| {
        let config = clew::config::Config::load(
            prices
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
            None,
        );
        let prices = config.unwrap().prices;
        let report = report_of(
            &lines,
            &Options {
                prices,
                ..options()
            },
        );
        let usage = &report["usage"];
        let names = ["cost", "unpriced_tokens", "uncounted_requests"];
        (
            fields(&usage["total"], &names),
            usage["models"]["rows"][0]["cost"].clone(),
        )
    };
    let all = [("LLM_PRICES", "0.15/0.6, big=2.5/10")];
    let total = json!({"cost": 0.004_77, "unpriced_tokens": 0, "uncounted_requests": 1});
    assert_eq!(costs(&all), (total, json!(0.0045)));
    let one = [("LLM_PRICES", "big=2.5/10")];
    let total = json!({"cost": 0.0045, "unpriced_tokens": 1_200, "uncounted_requests": 1});
    assert_eq!(costs(&one), (total, json!(0.0045)));
    let total = json!({"cost": null, "unpriced_tokens": 2_400, "uncounted_requests": 1});
    assert_eq!(costs(&[]), (total, json!(null)));
}

#[test]
fn a_price_needs_its_other_half() {
    for wrong in [
        "1",
        "1/",
        "/1",
        "1/2/3",
        "1/1, 2/2",
        "big=1",
        "1/1, a=2/2, a=3/3",
        "=1/2",
    ] {
        let pairs = [("LLM_PRICES".to_owned(), wrong.to_owned())];
        let refused = clew::config::Config::load(pairs, None).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains(&format!("LLM_PRICES is \"{wrong}\"")),
            "{refused}"
        );
    }
}

#[test]
fn only_what_is_asked_for_counts() {
    let lines = a_week();
    let began = |wanted: Options| report_of(&lines, &wanted)["turns"]["began"].clone();
    assert_eq!(began(options()), 14);
    let time = |text| UnixMillis::parse(text);
    let since = time("2026-01-04T00:00:00Z");
    assert_eq!(began(Options { since, ..options() }), 10);
    let until = time("2026-01-06T00:00:00Z");
    assert_eq!(
        began(Options {
            since,
            until,
            ..options()
        }),
        4
    );
    let guild = Some(Guild::Server(11));
    assert_eq!(began(Options { guild, ..options() }), 7);
    let guild = Some(Guild::DirectMessages);
    assert_eq!(began(Options { guild, ..options() }), 7);
    let guild = Some(Guild::Server(1));
    assert_eq!(began(Options { guild, ..options() }), 0);
}

#[test]
fn events_of_the_process_count_for_every_server() {
    let started = line("2026-01-02T00:00:00.000Z", 0, started());
    let guild = Some(Guild::Server(1));
    let report = report_of(&started, &Options { guild, ..options() });
    assert_eq!(report["input"]["starts"], 1);
}

fn started() -> Started {
    Started {
        version: "1.0.0".to_owned(),
        node: None,
        answers: clew::telemetry::event::Answers::Model,
        model: None,
        caps: (&clew_context::model::Limits::default()).into(),
    }
}

#[test]
fn many_names_end_in_a_row_for_the_others_and_no_turn_is_lost() {
    let mut lines = String::new();
    for id in 1..=9_000 {
        lines += &turn(&Turn {
            id,
            guild: Some(id),
            ..Turn::default()
        });
    }
    let report = report_of(&lines, &options());
    let guilds = &report["usage"]["guilds"];
    let rows = guilds["rows"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &guilds["others"]["names"]),
        (10, &json!(8_990))
    );
    let listed: u64 = rows.iter().map(|row| row["turns"].as_u64().unwrap()).sum();
    assert_eq!(listed + guilds["others"]["turns"].as_u64().unwrap(), 9_000);
    assert_eq!(report["turns"]["outcomes"][0]["turns"], 9_000);
    let failed = Turn {
        id: 1,
        outcome: Some(Outcome::Failed),
        ..Turn::default()
    };
    assert_eq!(
        report_of(&turn(&failed), &options())["usage"]["total"]["answered"],
        0
    );
}

#[test]
fn nothing_at_all_is_a_report_too() {
    let report = report_of("", &options());
    assert_eq!(report["input"]["lines"], 0);
    let folder = world::folder(&[("clew.2026-01-02.jsonl", b"")]);
    let report = report::read(&[folder.path().to_owned()], &options()).unwrap();
    let text = report::text(&report);
    assert!(text.contains("nothing in this time"), "{text}");
    assert!(report::page(&report).html().ends_with("</html>\n"));
}
