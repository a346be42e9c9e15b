//! The jq programs of `telemetry/queries`, run over lines that the code wrote.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::memory;
use super::samples::a_day;
use crate::report::world::a_week;

/// Runs one program as its usage line says, over two files. One of them ends in an incomplete line.
fn run(name: &str, lines: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1.jsonl"), folder.path().join("2.jsonl"));
    let half = lines.len() / 2;
    let (first, second) = lines.split_at(half + lines[half..].find('\n').unwrap() + 1);
    std::fs::write(&one, first).unwrap();
    let mut cut_off = second.to_owned();
    write!(cut_off, "{{\"ts\":\"2026-01-").unwrap();
    std::fs::write(&two, cut_off).unwrap();
    let output = Command::new("jq")
        .env("LLM_PRICES", "0.15/0.6, llama = 0.5 / 2")
        .arg("-nRc")
        .arg("-f")
        .arg(queries().join(format!("{name}.jq")))
        .args([&one, &two])
        .output()
        .unwrap_or_else(|error| match error.kind() {
            ErrorKind::NotFound => panic!("jq is not installed: apt-get install jq"),
            _ => panic!("jq: {error}"),
        });
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{name}: {complaint}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

fn queries() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("telemetry/queries")
}

#[track_caller]
fn check(name: &str, expected: &Value) {
    let (telemetry, lines) = memory("bot.context");
    a_day(&telemetry);
    assert_eq!(Value::from(run(name, &lines.text())), *expected);
}

#[test]
fn fallbacks() {
    check(
        "fallbacks",
        &json!([{
            "event": "collect_fallback", "reason": "timeout",
            "events": 10, "turns": 10, "rate": 0.1
        }]),
    );
}

#[test]
fn collect_ms() {
    check(
        "collect_ms",
        &json!([
            {"case": "reply_chain", "turns": 10, "p50": 95, "p95": 100, "p99": 100, "max": 100},
            {"case": "thread", "turns": 90, "p50": 45, "p95": 86, "p99": 90, "max": 90},
        ]),
    );
}

#[test]
fn truncation() {
    check(
        "truncation",
        &json!([
            {"reason": "age", "blocks": 10, "rate": 0.1, "kept": 40, "dropped": 3},
            {"reason": "msgs", "blocks": 10, "rate": 0.1, "kept": 40, "dropped": 60},
        ]),
    );
}

#[test]
fn fetches() {
    let rows = json!([
        {"case": "reply_chain", "turns": 10, "mean": 0.2, "p50": 0, "p95": 2, "max": 2, "warm": 0.9},
        {"case": "thread", "turns": 90, "mean": 0.2, "p50": 0, "p95": 2, "max": 2, "warm": 0.9},
    ]);
    check("fetches", &rows);
}

#[test]
fn answers() {
    check(
        "answers",
        &json!([
            {"outcome": "answered", "reason": null, "turns": 99, "share": 0.99,
                "p50": 500, "p95": 950},
            {"outcome": "failed", "reason": null, "turns": 1, "share": 0.01,
                "p50": 1000, "p95": 1000},
            {"outcome": "no_turn", "reason": "user_rate", "turns": 1, "share": null,
                "p50": null, "p95": null},
        ]),
    );
}

#[test]
fn slowest() {
    let (telemetry, lines) = memory("mem.ctx");
    a_day(&telemetry);
    let rows = run("slowest", &lines.text());
    assert_eq!(rows.len(), 20);
    let slowest = json!({
        "ms": 1000, "ms_to_model": null, "collect_ms": 100, "queued_ms": 0, "fetches": 2,
        "outcome": "failed", "scene": "reply_chain", "ts": "2026-01-02T03:04:05.678Z",
        "channel_id": "22", "turn_id": "t44c"
    });
    assert_eq!(rows[0], slowest);
    assert_eq!(rows[1]["ms"], 990);
    assert_eq!(rows[1]["ms_to_model"], 495);
}

/// Two turns on each of seven days, see `report::world`.
#[track_caller]
fn check_first(name: &str, rows: usize, expected: &Value) {
    let found = run(name, &a_week());
    assert_eq!((found.len(), &found[0]), (rows, expected));
}

#[test]
fn cost() {
    let first = json!({
        "day": "2026-01-02", "model": "gpt", "requests": 1, "uncounted": 0,
        "prompt_tokens": 1_000, "completion_tokens": 200, "cost": 0.000_27,
    });
    check_first("cost", 14, &first);
    assert_eq!(run("cost", &a_week())[1]["cost"], json!(0.000_9));
}

/// Both take their prices from where `clew report` does, and give the same columns in the same order.
#[test]
fn both_cost_queries_ask_for_the_same_prices() {
    let [jq, sql] = ["cost.jq", "cost.sql"].map(|name| {
        let text = std::fs::read_to_string(queries().join(name)).unwrap();
        let code = |line: &&str| !line.starts_with("--") && !line.starts_with('#');
        text.lines().filter(code).collect::<Vec<_>>().join("\n")
    });
    assert!(jq.contains("env.LLM_PRICES") && sql.contains("getenv('LLM_PRICES')"));
    assert!(
        !sql.contains("0.15") && !jq.contains("0.15"),
        "no price of its own"
    );
    let day = &run("cost", &a_week())[0];
    let columns: Vec<&String> = day.as_object().unwrap().keys().collect();
    let days = &sql[sql.find("days AS (").unwrap()..];
    for column in columns {
        assert!(days.contains(column.as_str()), "{column}");
    }
}

#[test]
fn servers() {
    let first = json!({
        "guild_id": null, "turns": 7, "failed": 1, "p50": 2_830, "p95": 4_930,
        "prompt_tokens": 7_000, "completion_tokens": 1_400, "no_turn": 0,
    });
    check_first("servers", 2, &first);
    assert_eq!(run("servers", &a_week())[1]["no_turn"], json!(8));
}

#[test]
fn users() {
    let first = json!({
        "user_id": "31", "turns": 4, "prompt_tokens": 4_000, "completion_tokens": 800,
        "limits": 2, "other_refusals": 1,
    });
    check_first("users", 4, &first);
}

#[test]
fn no_lines_give_no_rows() {
    for name in [
        "fallbacks",
        "collect_ms",
        "truncation",
        "fetches",
        "answers",
        "slowest",
        "cost",
        "servers",
        "users",
    ] {
        assert_eq!(run(name, "\n"), Vec::<Value>::new(), "{name}");
    }
}

#[test]
fn every_query_exists_for_both_tools() {
    let mut stems = [Vec::new(), Vec::new()];
    for entry in std::fs::read_dir(queries()).unwrap() {
        let path = entry.unwrap().path();
        let is_jq = path.extension().unwrap() == "jq";
        stems[usize::from(is_jq)].push(path.file_stem().unwrap().to_owned());
    }
    let [mut sql, mut jq] = stems;
    sql.sort();
    jq.sort();
    assert_eq!(sql, jq);
    assert_eq!(jq.len(), 9);
}
