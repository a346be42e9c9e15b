//! Faults while reading what a turn needs.

use std::time::Duration;

use clew_simulator::{Draft, Fault, FaultKind, OverwriteOf, Permissions};
use serde_json::{Value, json};

use super::{Place, has, has_no};
use crate::support::bot::prompt;

/// In seconds: more than any call takes, even on a busy machine, except one that hangs.
const LONG: &str = "15";
/// Longer than any deadline here.
const HANG: Duration = Duration::from_mins(1);

const PAGE: &str = "/channels/*/messages";
const SINGLE: &str = "/channels/*/messages/*";

fn page(kind: FaultKind) -> Fault {
    Fault::new("GET", PAGE, kind)
}

/// A mention in a thread is answered although the page cannot be read. Telemetry gives this reason, or none
/// if a retry helped.
async fn check(name: &str, fault: Fault, timeout: &str, reason: Option<&str>) {
    let place = Place::new(&[("MEM_FETCH_TIMEOUT_S", timeout)]).await;
    let bot = place.stage.start().await;
    let number = place.stage.discord.fault(fault);
    place.ask(place.thread, "what is it about?");
    let answers = place.answers(place.thread, 1).await;
    assert_eq!(answers[0].content, "ok", "{name}");
    assert!(
        place.stage.discord.hits(number) > 0,
        "{name}: the fault did not occur"
    );
    let text = prompt(&place.stage.model.requests()[0]);
    assert!(text.contains("the pump is leaking"), "{name}: {text}");
    assert_eq!(text.contains("reading 119"), reason.is_none(), "{name}");
    if reason == Some("forbidden") {
        // The channel is not asked again for a minute, so the next mention has no history either.
        bot.stop().await;
        return;
    }
    let lines = place.still_works(bot).await;
    match reason {
        Some(reason) => {
            has(
                &lines,
                "collect_fallback",
                &json!({"case": "thread", "stage": "history", "reason": reason}),
            );
            has(&lines, "tail_fallback", &json!({"reason": reason}));
        }
        None => has_no(&lines, "collect_fallback"),
    }
}

fn status(status: u16, code: u64) -> Fault {
    Fault::status("GET", PAGE, status, code, "broken on purpose")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_fault_costs_nothing() {
    check("500", status(500, 0).once(), LONG, None).await;
    let empty = FaultKind::Status {
        status: 502,
        body: Value::Null,
        retry_after: None,
    };
    check("502 of a proxy", page(empty).once(), LONG, None).await;
    let limited = Fault::rate_limited("GET", PAGE, 0.5).once();
    check("429", limited, LONG, None).await;
    check("truncated", page(FaultKind::Truncated).once(), LONG, None).await;
    let dropped = page(FaultKind::DroppedBefore).once();
    check("dropped", dropped, LONG, None).await;
    let dropped = page(FaultKind::DroppedAfter).once();
    check("dropped after", dropped, LONG, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lasting_fault_costs_only_its_part_of_the_context() {
    check("500", status(500, 0), LONG, Some("unavailable")).await;
    check("404", status(404, 10_003), LONG, Some("not_found")).await;
    check("403", status(403, 50_001), LONG, Some("forbidden")).await;
    let limited = Fault::rate_limited("GET", PAGE, 600.0);
    check("429", limited, LONG, Some("rate_limited")).await;
    check("hang", page(FaultKind::Hang(HANG)), "3", Some("timeout")).await;
    let truncated = page(FaultKind::Truncated);
    check("truncated", truncated, LONG, Some("unavailable")).await;
    let dropped = page(FaultKind::DroppedBefore);
    check("dropped", dropped, LONG, Some("unavailable")).await;
    let page_of_html = page(FaultKind::Body("<html>".to_owned()));
    check("no JSON", page_of_html, LONG, Some("malformed")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_waited_out() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    place.stage.discord.clear_requests();
    let limited = Fault::rate_limited("GET", PAGE, 0.8).once();
    place.stage.discord.fault(limited);
    place.ask(place.thread, "what is it about?");
    place.answers(place.thread, 1).await;
    let pages = place.stage.discord.requests_to("GET", PAGE);
    assert_eq!(pages.len(), 2, "{pages:?}");
    assert!(
        pages[1].at >= pages[0].at + Duration::from_millis(800),
        "{pages:?}"
    );
    place.still_works(bot).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_starter_costs_only_the_starter() {
    let place = Place::new(&[("MEM_FETCH_TIMEOUT_S", "3")]).await;
    let bot = place.stage.start().await;
    let hang = Fault::new("GET", SINGLE, FaultKind::Hang(HANG));
    place.stage.discord.fault(hang);
    place.ask(place.thread, "what is it about?");
    assert_eq!(place.answers(place.thread, 1).await[0].content, "ok");
    let text = prompt(&place.stage.model.requests()[0]);
    assert!(text.contains("reading 119"), "{text}");
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "collect_fallback",
        &json!({"stage": "starter", "reason": "timeout"}),
    );
    has(&lines, "tail_ok", &json!({"k": 5, "count": 5}));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_read_message_history_the_bot_answers_without_history() {
    let place = Place::new(&[]).await;
    let us = OverwriteOf::Member(place.stage.discord.bot());
    let (none, denied) = (Permissions::NONE, Permissions::READ_MESSAGE_HISTORY);
    place.stage.discord.overwrite(place.help, us, none, denied);
    let bot = place.stage.start().await;
    place.stage.discord.clear_requests();
    place.ask(place.thread, "what is it about?");
    let answers = place.answers(place.thread, 1).await;
    assert_eq!(answers[0].content, "ok");
    assert_eq!(answers[0].reference, None, "{answers:?}");
    let pages = place.stage.discord.requests_to("GET", "/messages");
    assert!(pages.is_empty(), "{pages:?}");
    let lines = bot.stop().await;
    has(
        &lines,
        "collect_fallback",
        &json!({"stage": "history", "reason": "forbidden"}),
    );
    has(&lines, "tail_fallback", &json!({"reason": "forbidden"}));
    has(
        &lines,
        "send_fallback",
        &json!({"stage": "reference", "reason": "forbidden"}),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_link_ends_the_chain_with_a_marker() {
    let place = Place::new(&[]).await;
    let discord = &place.stage.discord;
    let mut chain = vec![discord.seed(place.help, place.ada, "link 0")];
    for link in 1..8 {
        let author = [place.ada, place.boris][link % 2];
        let draft = Draft::new(format!("link {link}")).reply_to(chain[link - 1]);
        chain.push(discord.seed(place.help, author, draft));
    }
    place
        .stage
        .discord
        .world(|world| world.seed_delete(place.help, chain[3]));
    let bot = place.stage.start().await;
    let us = discord.bot();
    let draft = Draft::new(format!("<@{us}> what now?")).reply_to(chain[7]);
    discord.post(place.help, place.ada, draft);
    assert_eq!(place.answers(place.help, 1).await[0].content, "ok");
    let text = prompt(&place.stage.model.requests()[0]);
    assert!(text.contains("link 4") && text.contains("link 7"), "{text}");
    assert!(
        !text.contains("link 3") && !text.contains("link 2"),
        "{text}"
    );
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "collect_fallback",
        &json!({"case": "reply_chain", "stage": "chain", "reason": "deleted"}),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_cannot_be_fetched_is_left_out() {
    let place = Place::new(&[("MEM_FETCH_TIMEOUT_S", LONG)]).await;
    let discord = &place.stage.discord;
    let root = discord.seed(place.help, place.ada, "link 0");
    let link = Draft::new("link 1").reply_to(root);
    let link = discord.seed(place.help, place.boris, link);
    let last = Draft::new("link 2").reply_to(link);
    let last = discord.seed(place.help, place.boris, last);
    let bot = place.stage.start().await;
    discord.fault(status(500, 0));
    let us = discord.bot();
    let draft = Draft::new(format!("<@{us}> what now?")).reply_to(last);
    discord.post(place.help, place.ada, draft);
    assert_eq!(place.answers(place.help, 1).await[0].content, "ok");
    let text = prompt(&place.stage.model.requests()[0]);
    assert!(
        text.contains("link 2") && !text.contains("link 0"),
        "{text}"
    );
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "collect_fallback",
        &json!({"case": "reply_chain", "stage": "chain", "reason": "unavailable"}),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_message_in_a_page_costs_at_most_itself() {
    let place = Place::new(&[]).await;
    let discord = &place.stage.discord;
    let ids: Vec<_> = discord
        .messages(place.thread)
        .iter()
        .map(|m| m.id)
        .collect();
    // twilight rejects a hash that is not 32 digits; our own reader accepts it.
    let mut odd = discord.message_object(place.thread, ids[ids.len() - 2]);
    odd["author"]["avatar"] = json!("odd");
    odd["interaction_metadata"] = json!({"type": 99});
    discord.override_message(ids[ids.len() - 2], odd);
    // A message without an author cannot be read at all.
    let mut broken = discord.message_object(place.thread, ids[ids.len() - 3]);
    broken["author"] = json!(null);
    discord.override_message(ids[ids.len() - 3], broken);
    let bot = place.stage.start().await;
    place.ask(place.thread, "what is it about?");
    assert_eq!(place.answers(place.thread, 1).await[0].content, "ok");
    let text = prompt(&place.stage.model.requests()[0]);
    assert!(text.contains("reading 118"), "{text}");
    assert!(text.contains("reading 116"), "{text}");
    assert!(!text.contains("reading 117"), "{text}");
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "collect_fallback",
        &json!({"stage": "history", "reason": "malformed"}),
    );
}
