//! Restarts of the whole bot: no message is lost, none answered twice.

use std::time::Duration;

use clew_simulator::{Fault, GatewayEvent, Use};
use serde_json::json;

use super::kill::until;
use super::process::written;
use super::{Place, has, has_no};
use crate::support::bot::{details, prompt};
use crate::support::model::Behaviour;

fn was_resumed(place: &Place) -> bool {
    let resumed = |event: &GatewayEvent| matches!(event, GatewayEvent::Resumed { .. });
    let log = place.stage.discord.gateway_log();
    log.iter().any(|record| resumed(&record.event))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_meanwhile_is_answered_by_the_next_process() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    place.ask(place.thread, "before");
    place.wait_for_answer(place.thread, "ok").await;
    bot.stop().await;
    place.ask(place.thread, "meanwhile");
    place.ask(place.help, "meanwhile");
    let bot = place.stage.launch();
    place.answers(place.thread, 2).await;
    place.answers(place.help, 1).await;
    let lines = place.still_works(bot).await;
    has(&lines, "connected", &json!({"resumed": true}));
    has_no(&lines, "session_lost");
    assert!(was_resumed(&place));
    assert_eq!(place.stage.discord.answers(place.thread).len(), 3);
    assert_eq!(place.stage.discord.answers(place.help).len(), 2);
    let prompts: Vec<_> = place.stage.model.requests().iter().map(prompt).collect();
    let in_thread = |text: &&String| text.contains("meanwhile") && text.contains("before");
    assert!(
        prompts[1..3].iter().any(|text| in_thread(&text)),
        "{prompts:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_file_nothing_is_answered_twice() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    place.ask(place.thread, "before");
    place.wait_for_answer(place.thread, "ok").await;
    bot.stop().await;
    std::fs::remove_file(place.stage.state().join("session.json")).unwrap();
    place.ask(place.thread, "meanwhile");
    let bot = place.stage.start().await;
    let lines = place.still_works(bot).await;
    assert!(!was_resumed(&place));
    has(&lines, "connected", &json!({"resumed": false}));
    assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
    // It serves as context nevertheless.
    let requests = place.stage.model.requests();
    assert!(prompt(requests.last().unwrap()).contains("meanwhile"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_discord_has_forgotten_is_replaced() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    place.ask(place.thread, "before");
    place.wait_for_answer(place.thread, "ok").await;
    bot.stop().await;
    place.stage.discord.forget_sessions();
    let bot = place.stage.start().await;
    let lines = place.still_works(bot).await;
    has(&lines, "session_lost", &json!({}));
    assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_turn_is_answered_by_the_next_process() {
    let place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let bot = place.stage.start().await;
    let _gate = place.half_answered().await;
    let lines = bot.stop().await;
    has(&lines, "stopping", &json!({"drained": 0, "abandoned": 1}));
    has(&lines, "turn_done", &json!({"outcome": "cancelled"}));
    assert!(place.stage.discord.answers(place.thread).is_empty());
    let bot = place.stage.launch();
    place.wait_for_answer(place.thread, "ok").await;
    place.still_works(bot).await;
    assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_questions_are_answered_by_the_next_process() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let (pieces, gate) = Behaviour::gated(&["first"]);
    place.stage.model.script(pieces);
    place.ask(place.thread, "one");
    place.ask(place.thread, "two");
    place.ask(place.thread, "three");
    place.stage.discord.settled().await.unwrap();
    place.stage.model.wait_requests(1).await;
    bot.ask_to_stop();
    gate.open();
    let lines = bot.ended().await.unwrap();
    has(&lines, "stopping", &json!({"drained": 1, "abandoned": 0}));
    let said = place.stage.discord.answers(place.thread);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].content, "first");
    let bot = place.stage.launch();
    place.answers(place.thread, 3).await;
    place.still_works(bot).await;
    assert_eq!(place.stage.discord.answers(place.thread).len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_refused_is_not_answered_after_a_restart() {
    let mut place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "0.2"), ("USER_TURNS_PER_MIN", "1")]).await;
    let bot = place.stage.start().await;
    place.stage.model.script(Behaviour::Hang);
    place.ask(place.thread, "one");
    place.stage.model.wait_requests(1).await;
    let refused = place.ask(place.thread, "two").to_string();
    let refusal = place.answers(place.thread, 1).await;
    assert!(refusal[0].content.starts_with("-# "), "{refusal:?}");
    bot.stop().await;
    place.stage.set("USER_TURNS_PER_MIN", "0");
    let bot = place.stage.launch();
    place.wait_for_answer(place.thread, "ok").await;
    let lines = place.still_works(bot).await;
    has(&lines, "refused", &json!({"reason": "user_rate"}));
    let again = |line: &serde_json::Value| line["event"] == "trigger" && line["msg_id"] == *refused;
    assert!(!lines.iter().any(again), "{lines:#?}");
    assert_eq!(place.stage.discord.answers(place.thread).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_never_connects_keeps_the_session() {
    let mut place = Place::new(&[]).await;
    place.stage.set("DISCORD_GATEWAY_URL", "");
    let bot = place.stage.start().await;
    until("it is connected", async || {
        let lines = written(&place);
        lines.iter().any(|line| line["event"] == "connected")
    })
    .await;
    bot.stop().await;
    place.ask(place.thread, "meanwhile");
    place
        .stage
        .discord
        .fault(Fault::status("GET", "/gateway/bot", 500, 0, "down"));
    place.stage.discord.clear_requests();
    let bot = place.stage.launch();
    let asked = place.stage.discord.wait_request("GET", "/gateway/bot", 2);
    asked.await.unwrap();
    bot.stop().await;
    place.stage.discord.end_faults();
    let bot = place.stage.launch();
    place.wait_for_answer(place.thread, "ok").await;
    let lines = place.still_works(bot).await;
    has(&lines, "connected", &json!({"resumed": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_command_is_reported() {
    let place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let bot = place.stage.start().await;
    let ask = |question: &str| {
        let call = Use::slash("ask", &[("question", question)]);
        place.stage.discord.interact(place.thread, place.ada, &call)
    };
    place.stage.model.script(Behaviour::Hang);
    let runs = ask("one");
    place.stage.model.wait_requests(1).await;
    let waits = ask("two");
    let thinking = place.stage.discord.wait_interaction(waits, |_| true);
    thinking.await.unwrap();
    bot.stop().await;
    for call in [runs, waits] {
        let told = |message: &clew_simulator::Message| message.content.starts_with("-# ");
        let told = place.stage.discord.wait_interaction(call, told).await;
        told.unwrap();
    }
    let bot = place.stage.start().await;
    let lines = place.still_works(bot).await;
    let failed = details(&lines, "request_failed");
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0]["reason"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_being_posted_at_the_end_is_not_posted_again() {
    let place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let bot = place.stage.start().await;
    let slow = clew_simulator::FaultKind::Latency(Duration::from_secs(2));
    let slow = Fault::new("POST", "/channels/*/messages", slow).once();
    place.stage.discord.fault(slow);
    place.ask(place.thread, "what is it about?");
    let posting = place
        .stage
        .discord
        .wait_request("POST", "/channels/*/messages", 1);
    posting.await.unwrap();
    bot.stop().await;
    assert_eq!(place.stage.discord.answers(place.thread).len(), 1);
    let bot = place.stage.start().await;
    place.still_works(bot).await;
    assert_eq!(place.stage.discord.answers(place.thread).len(), 2);
}
