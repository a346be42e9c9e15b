//! What telemetry tells of a block, and of a question without one.

use serde_json::{Value, json};

use super::collected::asked;
use super::{only, place, place_with};
use crate::support::bot::details;

/// One message is over its own cap, all together are over the block's: each cap says what it shortened.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_tells_its_ages_calls_and_caps() {
    let caps = [("MEM_MAX_MSGS", "10"), ("MEM_MAX_MSG_CHARS", "500")];
    let (p, thread) = place_with(&caps, |world, seeds| {
        let thread = seeds.thread(world, "long");
        for _ in 0..120 {
            world.seed(thread, seeds.boris, "short");
        }
        world.seed(thread, seeds.boris, "valve ".repeat(330));
        thread
    })
    .await;
    let bot = p.start().await;
    asked(&p, thread, p.to_us("well?")).await;
    let lines = bot.stop().await;
    let collected = only(&lines, "collect_ok");
    let age = &collected["age_s"];
    assert!(age["oldest"].as_u64() >= age["newest"].as_u64(), "{age}");
    let stages = collected["stages"].as_object().unwrap();
    let calls = stages
        .values()
        .map(|stage| stage["fetches"].as_u64().unwrap());
    assert_eq!(Some(calls.sum()), collected["fetches"].as_u64());
    assert_eq!(stages["history"]["fetches"], 1);
    assert!(stages["history"]["ms"].is_number(), "{stages:?}");
    assert_eq!(collected["caps"]["mem_max_msgs"], 10);
    assert_eq!(collected["caps"]["lone_context"], "off");
    // The page holds some of what is too much, and Discord counts the rest.
    let truncated = details(&lines, "collect_truncated");
    let [msgs, msg_chars] = truncated.as_slice() else {
        panic!("{truncated:?}")
    };
    assert_eq!(
        (&msgs["reason"], &msgs["shortened"]),
        (&json!("msgs"), &json!(0))
    );
    assert_eq!(msgs["dropped"], collected["omitted"]["msgs"]);
    assert!(msgs["dropped"].as_u64() > Some(100), "{msgs}");
    let expected = json!({"reason": "msg_chars", "kept": 10, "dropped": 0, "shortened": 1});
    assert_eq!(*msg_chars, expected);
    assert_eq!(only(&lines, "tail_ok")["count"], 5);
    assert_eq!(only(&lines, "merge_ok")["block_msgs"], 10);
}

/// Nothing stands around a plain mention, and nothing is stored yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_alone_tells_of_no_block() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (prompt, gets) = asked(&p, p.channel, p.to_us("what is a pump?")).await;
    assert!(prompt.contains("what is a pump?"));
    assert_eq!(gets, 0);
    asked(&p, p.channel, p.to_us("and a valve?")).await;
    let lines = bot.stop().await;
    for event in [
        "collect_ok",
        "collect_truncated",
        "collect_fallback",
        "tail_ok",
    ] {
        assert_eq!(details(&lines, event), Vec::<Value>::new(), "{event}");
    }
    // The second question is asked with the first and its answer.
    let merged = only(&lines, "merge_ok");
    assert_eq!(
        (&merged["block_msgs"], &merged["history_msgs"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(details(&lines, "request_ok").len(), 2);
}
