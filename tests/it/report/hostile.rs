//! Lines that no bot of ours wrote, or not to their end.

use clew::report::{self, Options};
use serde_json::{Value, json};

use super::fields;
use super::world::{Turn, a_week, folder, options, report_in, report_of, turn};

const BEGIN: &str = "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"event\":";

fn read(lines: &str) -> (Value, Value) {
    let report = report_of(lines, &options());
    (
        fields(&report["input"], &["lines", "unreadable", "cut_off"]),
        report,
    )
}

#[test]
fn a_last_line_without_its_end_is_counted_and_named_cut_off() {
    let whole = turn(&Turn::default());
    let lines = whole.lines().count();
    for cut in [1, 2, 40, 200] {
        let torn = format!("{whole}{}", &whole[..cut]);
        let expected = json!({"lines": lines + 1, "unreadable": 0, "cut_off": 1});
        assert_eq!(read(&torn).0, expected, "{cut}");
    }
    let unended = whole.trim_end();
    let expected = json!({"lines": lines, "unreadable": 0, "cut_off": 0});
    let (input, report) = read(unended);
    assert_eq!((input, &report["turns"]["ended"]), (expected, &json!(1)));
}

#[test]
fn a_line_that_follows_a_cut_off_one_on_the_same_line_counts() {
    let whole = turn(&Turn::default());
    let (input, report) = read(&format!("{}{whole}", &whole[..100]));
    let expected = json!({"lines": whole.lines().count(), "unreadable": 0, "cut_off": 1});
    assert_eq!((input, &report["turns"]["began"]), (expected, &json!(1)));
}

#[test]
fn unreadable_lines_are_counted_and_the_first_are_named_with_their_place() {
    let mut lines = a_week();
    let before = lines.lines().count();
    lines += "no json\n[]\n{}\n{\"ts\":\"yesterday\",\"event\":\"x\"}\n";
    lines += &format!("{BEGIN}\"turn_done\",\"turn_id\":7}}\n");
    lines += &format!("{BEGIN}\"turn_done\",\"guild_id\":\"\u{1b}[31mred\"}}\n");
    let (input, report) = read(&lines);
    assert_eq!(input["unreadable"], 6);
    let named = report["input"]["unreadable_at"].as_array().unwrap();
    let places: Vec<(&str, usize)> = named
        .iter()
        .map(|place| {
            let line = usize::try_from(place["line"].as_u64().unwrap()).unwrap();
            (place["file"].as_str().unwrap(), line - before)
        })
        .collect();
    let file = "clew.2026-01-02.jsonl";
    assert_eq!(
        places,
        [(file, 1), (file, 2), (file, 3), (file, 4), (file, 5)]
    );
    assert_eq!(named[2]["why"], "missing field `ts` (column 2)");
    assert_eq!(named[3]["why"], "its `ts` is no time");
}

#[test]
fn numbers_that_no_bot_writes_do_no_harm() {
    for (number, unreadable) in [
        ("-1", 1),
        ("-0.5", 1),
        ("1e400", 1),
        ("\"5\"", 1),
        ("true", 1),
        ("1e300", 0),
        ("18446744073709551616", 0),
        ("0", 0),
        ("null", 0),
    ] {
        let mut lines = turn(&Turn::default());
        for field in [
            "ms",
            "queued_ms",
            "prompt_tokens",
            "completion_tokens",
            "count",
        ] {
            for event in [
                "trigger",
                "turn_done",
                "request_ok",
                "collect_ok",
                "dropped",
            ] {
                lines += &format!(
                    "{BEGIN}\"{event}\",\"turn_id\":\"t1\",\"detail\":{{\"{field}\":{number}}}}}\n"
                );
            }
        }
        let prices = clew::config::Config::load(
            [("LLM_PRICES", "1000000/1000000")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
            None,
        );
        let prices = prices.unwrap().prices;
        let report = report_of(
            &lines,
            &Options {
                prices,
                ..options()
            },
        );
        assert_eq!(report["input"]["unreadable"], 25 * unreadable, "{number}");
    }
}

#[test]
fn a_line_of_any_length_takes_no_more_memory_than_its_bound() {
    let whole = turn(&Turn::default());
    for length in [65_536, 65_537, 300_000, 3 << 20] {
        let long = format!("{whole}{}\n{whole}", "x".repeat(length));
        let (input, report) = read(&long);
        let lines = 2 * whole.lines().count() + 1;
        let expected = json!({"lines": lines, "unreadable": 1, "cut_off": 0});
        assert_eq!(
            (input, &report["turns"]["ended"]),
            (expected, &json!(2)),
            "{length}"
        );
        let why = report["input"]["unreadable_at"][0]["why"].as_str().unwrap();
        let is_too_long = length > 65_536;
        assert_eq!(why == "it is longer than 65536 bytes", is_too_long, "{why}");
        let unended = "x".repeat(length);
        let expected = json!({
            "lines": lines / 2 + 1,
            "unreadable": u64::from(is_too_long), "cut_off": u64::from(!is_too_long),
        });
        assert_eq!(read(&format!("{whole}{unended}")).0, expected, "{length}");
    }
}

#[test]
fn times_that_go_backwards_change_nothing_but_the_days() {
    let turns: Vec<String> = [
        "2026-01-04T00:00:00Z",
        "2026-01-02T00:00:00Z",
        "2026-01-03T23:59:59.999Z",
    ]
    .into_iter()
    .zip(1..)
    .map(|(at, id)| {
        turn(&Turn {
            id,
            at,
            ..Turn::default()
        })
    })
    .collect();
    let (_, report) = read(&turns.concat());
    let days = report["usage"]["days"].as_array().unwrap();
    let days: Vec<&Value> = days.iter().map(|day| &day["day"]).collect();
    assert_eq!(days, ["2026-01-02", "2026-01-03", "2026-01-04"]);
    assert_eq!(report["input"]["first"], "2026-01-02T00:00:00.000Z");
    assert_eq!(report["input"]["last"], "2026-01-04T00:00:00.000Z");
}

#[test]
fn days_without_end_are_bounded() {
    let mut lines = String::new();
    for year in 1_000..3_000 {
        lines += &format!(
            "{{\"ts\":\"{year}-06-01T00:00:00Z\",\"event\":\"turn_done\",\"detail\":{{}}}}\n"
        );
    }
    let (_, report) = read(&lines);
    let days = report["usage"]["days"].as_array().unwrap();
    assert_eq!(days.len(), 1_000);
    assert_eq!(days[0]["day"], "2000-06-01");
    assert_eq!(report["usage"]["earlier"]["turns"], 1_000);
    let tallied = report["usage"]["total"]["turns"].as_u64().unwrap();
    assert_eq!(tallied, 2_000);
}

#[test]
fn lines_of_an_older_version_count_as_far_as_they_go() {
    let mut lines = String::new();
    for event in [
        "trigger",
        "collect_ok",
        "collect_truncated",
        "collect_fallback",
        "request_ok",
        "request_failed",
        "tool_called",
        "recorded",
        "refused",
        "run_done",
        "turn_done",
        "dropped",
    ] {
        lines += &format!("{BEGIN}\"{event}\",\"turn_id\":\"t1\",\"detail\":{{}}}}\n");
        lines += &format!("{BEGIN}\"{event}\",\"turn_id\":\"t2\"}}\n");
    }
    let (input, report) = read(&lines);
    assert_eq!(input, json!({"lines": 24, "unreadable": 0, "cut_off": 0}));
    let turns = fields(&report["turns"], &["began", "ended"]);
    assert_eq!(turns, json!({"began": 2, "ended": 2}));
    let scene = fields(&report["turns"]["scenes"][0], &["name", "turns", "p50"]);
    assert_eq!(scene, json!({"name": "unknown", "turns": 2, "p50": null}));
    assert_eq!(report["usage"]["total"]["uncounted_requests"], 2);
}

#[test]
fn bytes_that_are_no_text_are_unreadable() {
    let mut bytes = turn(&Turn::default()).into_bytes();
    bytes.extend(b"{\"ts\":\"2026-01-02T03:04:05.678Z\",\"event\":\"\xff\xfe\"}\n\0\n");
    let folder = folder(&[("a.jsonl", &bytes)]);
    let report = report_in(folder.path(), &options());
    assert_eq!(report["input"]["unreadable"], 2);
    assert_eq!(report["turns"]["ended"], 1);
}

/// A name that would be markup on a page, an order to a terminal, or too long for both.
const NAMES: [&str; 7] = [
    "\\u202etpircs\\u2066\\u200f",
    "<script>alert(1)</script>",
    "\\\"><img src=x onerror=alert(1)>",
    "\\u001b[2J\\u0007\\u0000\\u009b31m",
    "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "</style></title><svg onload=alert(1)>",
];

/// Characters that turn a line around.
const TURNS: [char; 3] = ['\u{202E}', '\u{2066}', '\u{200F}'];

#[test]
fn no_name_is_markup_or_an_order_to_a_terminal() {
    let mut lines = String::new();
    for name in NAMES {
        for event in [
            "trigger",
            "turn_done",
            "request_ok",
            "request_failed",
            "collect_truncated",
            "collect_fallback",
            "refused",
            "run_done",
        ] {
            let fields = [
                "case", "cause", "reason", "outcome", "end", "agent", "model",
            ];
            let fields = fields
                .map(|field| format!("\"{field}\":\"{name}\""))
                .join(",");
            lines += &format!(
                "{BEGIN}\"{event}\",\"turn_id\":\"t1\",\"guild_id\":\"18446744073709551615\",\
                 \"channel_id\":\"18446744073709551615\",\"detail\":{{\"ms\":1e9,{fields}}}}}\n"
            );
        }
    }
    let folder = folder(&[("a<b>.jsonl", format!("{lines}<i>\n").as_bytes())]);
    let report = report::read(&[folder.path().to_owned()], &options()).unwrap();
    let text = report::text(&report);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(!line.contains(TURNS), "{line:?}");
    }
    let html = report::page(&report).html();
    for part in [
        "<script", "<img", "<svg o", "<i>", "<b>", "\u{1b}", "\u{0}", "\u{9b}",
    ] {
        assert!(!html.contains(part), "{part:?}");
    }
    assert!(!html.contains(TURNS));
    assert_eq!(html.matches("</style>").count(), 1);
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}
