//! Faults while posting: there is one answer, never two.

use std::time::Duration;

use clew_simulator::{Fault, FaultKind, Id, Permissions};
use serde_json::{Value, json};

use super::{Place, has, has_no};
use crate::support::model::Behaviour;

const POST: &str = "/channels/*/messages";
const EDIT: &str = "/channels/*/messages/*";

/// Asserts that there is one answer although the first POST meets a fault.
async fn check(name: &str, fault: Fault) {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let number = place.stage.discord.fault(fault);
    place.ask(place.thread, "what is it about?");
    place.wait_for_answer(place.thread, "ok").await;
    assert!(
        place.stage.discord.hits(number) > 0,
        "{name}: the fault did not occur"
    );
    let lines = place.still_works(bot).await;
    let answers = place.stage.discord.answers(place.thread);
    assert_eq!(answers.len(), 2, "{name}: {answers:?}");
    has_no(&lines, "send_fallback");
    has(&lines, "turn_done", &json!({"outcome": "answered"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_fails_once_gives_one_answer() {
    let fault = |kind| Fault::new("POST", POST, kind).once();
    check("dropped before", fault(FaultKind::DroppedBefore)).await;
    check("dropped after", fault(FaultKind::DroppedAfter)).await;
    check("truncated", fault(FaultKind::Truncated)).await;
    check("500", Fault::status("POST", POST, 500, 0, "no").once()).await;
    check("429", Fault::rate_limited("POST", POST, 0.5).once()).await;
    // Of a busy channel, it has a code.
    let writes = Fault::status("POST", POST, 429, 20_028, "the channel's write rate limit");
    check("429 of the channel", writes.once()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_posted_is_reported() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let broken = place
        .stage
        .discord
        .fault(Fault::status("POST", POST, 400, 0, "no"));
    let asked = place.ask(place.thread, "what is it about?");
    reacted(&place, asked, "⚠️").await;
    place.stage.discord.wait_idle().await.unwrap();
    assert_eq!(place.stage.discord.hits(broken), 1);
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "send_fallback",
        &json!({"stage": "create", "reason": "malformed"}),
    );
    has(&lines, "turn_done", &json!({"outcome": "failed"}));
}

/// It takes some two minutes.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_that_lasts_is_reported() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let outage = Fault::status("POST", POST, 500, 0, "no");
    let outage = place.stage.discord.fault(outage);
    let asked = place.ask(place.thread, "what is it about?");
    // Rounds of three quick tries, of which one ends two minutes after the first began.
    let tries = place.stage.discord.wait_request("POST", POST, 15).await;
    tries.unwrap();
    reacted(&place, asked, "⚠️").await;
    place.stage.discord.wait_idle().await.unwrap();
    let tries = place.stage.discord.hits(outage);
    assert!(
        tries.is_multiple_of(3) && (18..=36).contains(&tries),
        "{tries}"
    );
    let lines = place.still_works(bot).await;
    let told = json!({"stage": "create", "reason": "unavailable"});
    has(&lines, "send_fallback", &told);
    has(&lines, "turn_done", &json!({"outcome": "failed"}));
}

/// It takes some twenty seconds.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_out_an_outage() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    // Three rounds of three quick tries, and one more.
    let outage = Fault::status("POST", POST, 503, 0, "no").times(10);
    let outage = place.stage.discord.fault(outage);
    let answer = "The pump leaks.";
    place.stage.model.script(Behaviour::text(&[answer]));
    place.ask(place.thread, "what is it about?");
    place.wait_for_answer(place.thread, answer).await;
    assert_eq!(place.stage.discord.hits(outage), 10);
    let lines = place.still_works(bot).await;
    has(&lines, "turn_done", &json!({"outcome": "answered"}));
}

/// Waits until the question has this reaction of the bot.
async fn reacted(place: &Place, asked: Id, sign: &str) {
    let bears = |message: &clew_simulator::Message| {
        message.id == asked && message.reactions.iter().any(|(emoji, _)| emoji == sign)
    };
    let found = place.stage.discord.wait_for_message(place.thread, bears);
    found.await.unwrap();
}

/// A 429 without Discord's body and scope, as proxies send it.
fn limited_by_proxy(retry_after: f64) -> Fault {
    let kind = FaultKind::Status {
        status: 429,
        body: Value::Null,
        retry_after: Some(retry_after),
    };
    Fault::new("POST", POST, kind)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_without_scope_is_waited_out() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    place.stage.discord.clear_requests();
    place.stage.discord.fault(limited_by_proxy(3.0).once());
    place.ask(place.thread, "what is it about?");
    place.wait_for_answer(place.thread, "ok").await;
    let posts = place.stage.discord.requests_to("POST", POST);
    assert_eq!(posts.len(), 2);
    assert!(posts[1].at >= posts[0].at + Duration::from_secs(3));
    let lines = place.still_works(bot).await;
    has_no(&lines, "send_fallback");
}

/// The wait is longer than the bot is ready to take: it does not try again, and it tells the asker.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_too_long_to_wait_for_is_reported() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let limit = place.stage.discord.fault(limited_by_proxy(600.0));
    let asked = place.ask(place.thread, "what is it about?");
    reacted(&place, asked, "⚠️").await;
    assert_eq!(place.stage.discord.hits(limit), 1);
    let lines = place.still_works(bot).await;
    let told = json!({"stage": "create", "reason": "rate_limited"});
    has(&lines, "send_fallback", &told);
    has(&lines, "turn_done", &json!({"outcome": "failed"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_that_fail_do_not_end_a_stream() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let (pieces, gate) = Behaviour::gated(&["The pump\n", "is fine."]);
    place.stage.model.script(pieces);
    place.ask(place.thread, "what is it about?");
    gate.step(1);
    place.wait_for_answer(place.thread, "The pump").await;
    let broken = Fault::status("PATCH", EDIT, 500, 0, "no").times(3);
    let broken = place.stage.discord.fault(broken);
    gate.open();
    place
        .wait_for_answer(place.thread, "The pump\nis fine.")
        .await;
    let lines = place.still_works(bot).await;
    assert_eq!(place.stage.discord.hits(broken), 3);
    has(&lines, "sent", &json!({"messages": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_bot_may_not_write_it_reacts() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let refused = Fault::status("POST", POST, 403, 50_013, "Missing Permissions");
    place.stage.discord.fault(refused);
    let asked = place.ask(place.thread, "what is it about?");
    let reactions =
        |message: &clew_simulator::Message| message.id == asked && !message.reactions.is_empty();
    let found = place
        .stage
        .discord
        .wait_for_message(place.thread, reactions)
        .await;
    found.unwrap();
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "send_fallback",
        &json!({"stage": "create", "reason": "forbidden"}),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_is_gone_is_answered_without_reference() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let (pieces, gate) = Behaviour::gated(&["fine"]);
    place.stage.model.script(pieces);
    place.ask(place.thread, "");
    place.stage.model.wait_requests(1).await;
    // A bare mention is answered under the newest message of a person.
    let newest = place.stage.discord.messages(place.thread);
    let newest = newest.iter().rev().find(|m| m.author == place.boris);
    let gone = newest.unwrap().id;
    place.stage.discord.delete(place.thread, gone);
    gate.open();
    place.wait_for_answer(place.thread, "fine").await;
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "send_fallback",
        &json!({"stage": "reference", "reason": "deleted"}),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_send_messages_no_context_is_fetched() {
    let place = Place::new(&[]).await;
    let everyone = clew_simulator::OverwriteOf::Role(place.guild);
    let denied = Permissions::SEND_MESSAGES_IN_THREADS;
    place
        .stage
        .discord
        .overwrite(place.help, everyone, Permissions::NONE, denied);
    let bot = place.stage.start().await;
    place.stage.discord.clear_requests();
    place.ask(place.thread, "what is it about?");
    let reactions = place.stage.discord.wait_request("PUT", "/reactions/", 1);
    reactions.await.unwrap();
    place.stage.discord.settled().await.unwrap();
    let lines = bot.stop().await;
    has(&lines, "send_fallback", &json!({"reason": "forbidden"}));
    assert!(place.stage.model.requests().is_empty());
}
