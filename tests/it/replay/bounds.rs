//! Properties of every block of every recording.

use proptest::prelude::*;
use serde_json::Value;

use super::run::{CHANNEL, Row, export, ids, lines, thread};
use clew_context::model::MessageId;

/// Starter, pointed-at and target are always kept.
const ALWAYS_KEPT: usize = 3;

#[derive(Debug, Clone)]
struct Caps {
    tail: usize,
    msgs: usize,
    chars: usize,
    age: u64,
    target: &'static str,
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = prop_oneof![
        "[a-z .]{0,40}",
        "\\PC{0,400}",
        Just("<@900>".to_owned()),
        "<@900> [a-z ]{1,20}",
        Just("-# a note".to_owned()),
    ];
    let author = prop_oneof![4 => 501_u64..504, 1 => 900_u64..902];
    let one = (author, text, prop::option::weighted(0.3, 1_i64..12));
    prop::collection::vec(one, 1..50).prop_map(|rows| {
        let mut numbered = Vec::new();
        for ((author, text, back), minute) in rows.into_iter().zip(2_i64..) {
            numbered.push(Row {
                second: minute * 60,
                author,
                text,
                // Some of these times have no message.
                reply: back.map(|back| (minute - back) * 60),
            });
        }
        numbered
    })
}

fn caps() -> impl Strategy<Value = Caps> {
    let target = prop_oneof![Just("newest"), Just("trigger")];
    let numbers = (0_usize..10, 1_usize..12, 100_usize..3_000, 0_u64..40);
    (numbers, target).prop_map(|((tail, msgs, chars, age), target)| Caps {
        tail,
        msgs,
        chars,
        age,
        target,
    })
}

fn check(line: &Value, caps: &Caps) {
    let trigger: MessageId = serde_json::from_value(line["trigger"].clone()).unwrap();
    let included = ids(line, "included");
    assert!(included.is_sorted_by(|a, b| a < b), "{line}");
    assert!(included.iter().all(|id| *id < trigger), "{line}");
    assert!(included.len() <= caps.msgs.max(ALWAYS_KEPT), "{line}");
    assert!(
        line["chars"].as_u64().unwrap() <= caps.chars as u64,
        "{line}"
    );
    let block = line["block"].as_str().unwrap();
    let inside = block.lines().count().saturating_sub(2);
    let framed: usize = block
        .lines()
        .skip(1)
        .take(inside)
        .map(|one| one.chars().count() + 1)
        .sum();
    assert_eq!(line["chars"].as_u64().unwrap(), framed as u64, "{line}");
    let omitted = line["omitted"].as_array().unwrap();
    for one in omitted {
        let id: MessageId = serde_json::from_value(one["id"].clone()).unwrap();
        assert!(id < trigger && !included.contains(&id), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_block_keeps_within_its_bounds(rows in rows(), caps in caps(), in_thread: bool, warm: bool, all: bool) {
        let folder = tempfile::tempdir().unwrap();
        let place = if in_thread { thread() } else { CHANNEL };
        let file = export(folder.path(), place, &rows);
        let Caps { tail, msgs, chars, age, target } = &caps;
        let start = if warm { "--warm" } else { "--cold" };
        let which = if all { "all" } else { "replies" };
        let flags = format!(
            "--trigger {which} {start} --bot 900 --as-mention --text --tail {tail} --max-msgs {msgs} \
             --max-chars {chars} --max-age-min {age} --reply-target {target}"
        );
        for line in lines(&[file], &flags) {
            check(&line, &caps);
        }
    }
}
