//! Lone mentions and the inspector.

use clew_simulator::ChannelKind;

use super::{assert_in_order, only, place, place_with};
use crate::support::bot::details;

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_mention_takes_the_last_messages_of_the_channel() {
    let p = place(&[]).await;
    for text in ["one", "two", "three", "four", "five", "is 3 bar normal?"] {
        p.stage.discord.seed(p.channel, p.boris, text);
    }
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us(""));
    p.answer(p.channel, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(
        &prompt,
        &["two", "three", "four", "five", "is 3 bar normal?"],
    );
    assert!(!prompt.contains("one\n"), "{prompt}");
    assert_eq!(p.gets(), 1);
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "collect_ok")["msgs"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_mention_in_an_empty_channel_is_invited_to_ask() {
    let p = place(&[]).await;
    let bot = p.start().await;
    p.post(p.channel, p.ada, p.to_us(""));
    let line = p.answer(p.channel, 1).await;
    assert!(line.starts_with("-# Ask me something"), "{line}");
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "turn_done")["outcome"], "refused");
    assert_eq!(p.stage.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_inspector_answers() {
    let (p, thread) = place_with(&[("LLM_BASE_URL", "")], |world, seeds| {
        let start = world.seed(seeds.channel, seeds.ada, "the *pump* is leaking <@5>");
        let thread = world.thread_from(seeds.channel, start, "pump failure", seeds.ada);
        for count in 0..60 {
            world.seed(thread, seeds.boris, format!("reading {count}"));
        }
        thread
    })
    .await;
    let bot = p.start().await;
    p.post(thread, p.ada, p.to_us("what is it about?"));
    let answer = p.answer(thread, 1).await;
    println!("{answer}");
    assert_in_order(
        &answer,
        &["40 messages of this thread", "pump failure", "reading 59"],
    );
    assert!(answer.lines().count() <= 14, "{answer}");
    let lines = bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 0);
    assert_eq!(only(&lines, "started")["answers"], "inspector");
}

/// Somebody says "lol" before the turn starts: it is part of what the turn
/// sees. What comes after the start is not.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_newer_than_the_turns_start_is_looked_at() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let thread = world.thread(seeds.channel, ChannelKind::PublicThread, "pump", seeds.ada);
        world.seed(thread, seeds.boris, "is 3 bar normal?");
        thread
    })
    .await;
    let bot = p.start().await;
    // The page of the first turn is slow; meanwhile somebody goes on.
    let slow = clew_simulator::FaultKind::Latency(std::time::Duration::from_millis(400));
    let page = clew_simulator::Fault::new("GET", "/channels/*/messages", slow);
    p.stage.discord.fault(page);
    p.post(thread, p.ada, p.to_us("is it?"));
    p.stage
        .discord
        .wait_request("GET", "/messages", 1)
        .await
        .unwrap();
    p.post(thread, p.boris, "lol");
    p.answer(thread, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &["is 3 bar normal?", "is it?"]);
    assert!(!prompt.contains("lol"), "{prompt}");
    p.post(thread, p.ada, p.to_us("well?"));
    p.answer(thread, 2).await;
    assert_in_order(
        &p.prompt(2).await,
        &["is 3 bar normal?", "is it?", "lol", "ok", "well?"],
    );
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "collect_fallback").len(), 0);
}
