//! Twelve defects that a predecessor was shown to have. Each test is named after one and shows that Clew does
//! not have it.

use clew_context::collect::FetchError;
use clew_context::collect::NegativeCache;
use clew_context::engine::route::{RouteFacts, Rules, Verdict, route};
use clew_context::model::{
    AccessRules, Cause, ChannelKind, ChannelMode, Fallback, Limits, Message, OmitReason,
    TriggerRules,
};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, DICE, EVE, Person, Shape, asked, said, text_channel, thread, thread_id,
    us,
};
use crate::support::world::{Start, World, adopted, failures, outline, target};

fn here(n: u64, who: Person, text: &str) -> Message {
    said(n, who, text).into_channel(thread_id(0))
}

fn ask(n: u64, who: Person, text: &str) -> Message {
    asked(n, who, text).into_channel(thread_id(0))
}

/// A thread of `last` messages, followed by the trigger.
fn full(last: u64, trigger: &Message) -> World {
    let mut world = World::of([said(0, ADA, "start")]);
    world.add((1..=last).map(|n| here(n, BOB, "talk")));
    world.add([trigger.clone()]);
    world
}

#[tokio::test]
async fn defect_01_full_thread_is_not_the_oldest_k() {
    let trigger = ask(101, EVE, "what now?");
    let shown = Start::within(thread(0))
        .outline(&full(100, &trigger), &trigger)
        .await;
    assert!(shown.starts_with("s0 ..60.. 62 63 "), "{shown}");
    assert!(shown.ends_with(" 99 100"), "{shown}");
}

#[tokio::test]
async fn defect_02_a_thread_of_two_days_ago_shows_its_recent_messages() {
    let day = 24 * 3600;
    let mut world = World::of([said(0, ADA, "start")]);
    world.add((1..50).map(|n| here(n, BOB, "long ago")));
    world.add((0..10).map(|n| here(2 * day + n, BOB, "today")));
    let trigger = ask(2 * day + 60, EVE, "what now?");
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    let block = start.prepare(&collected).block;
    let today = block.items().filter(|item| item.text == "today").count();
    assert_eq!(today, 10, "{}", outline(&block));
    assert_eq!(block.omitted_for(OmitReason::Age), 49);
}

#[tokio::test]
async fn defect_03_the_target_is_in_the_block_beside_its_tail() {
    let mut world = full(8, &ask(10, EVE, ""));
    world.add([here(9, CLEW, "ours")]);
    let start = Start {
        cause: Cause::AutoReply,
        ..Start::within(thread(0))
    };
    let shown = start.outline(&world, &ask(10, EVE, "")).await;
    assert_eq!(shown, "s0 ..0.. 3 4 5 6 7 t8 9");
}

#[tokio::test]
async fn defect_04_our_own_last_answer_is_not_lost_on_a_follow_up_by_another() {
    let trigger = ask(3, BOB, "follow up");
    let world = World::of([
        said(0, ADA, "start"),
        here(1, ADA, "q1"),
        here(2, CLEW, "a1"),
        trigger.clone(),
    ]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(target(&collected), Some(3), "not q1's author");
    assert_eq!(outline(&start.prepare(&collected).block), "s0 1 2");
}

#[tokio::test]
async fn defect_05_an_explicit_reply_inside_a_thread_counts() {
    let trigger = ask(60, EVE, "what about this?").replying(2);
    let world = full(59, &trigger);
    let start = Start::within(thread(0));
    let shown = start.outline(&world, &trigger).await;
    assert!(shown.starts_with("s0 ..1.. p2 ..19.. 22 "), "{shown}");
}

#[tokio::test]
async fn defect_06_a_chain_costs_pages_not_links() {
    let mut world = World::of((0..20).map(|link| {
        let message = said(link, ADA, "link");
        if link == 0 {
            message
        } else {
            message.replying(link - 1)
        }
    }));
    let trigger = asked(20, EVE, "so?")
        .replying(19)
        .carrying(said(19, ADA, "link").replying(18));
    world.add([trigger.clone()]);
    let start = Start::within(text_channel());
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(start.prepare(&collected).block.items().count(), 20);
    assert_eq!(collected.fetches, 1, "what the payload carries is used");

    // A limit on the number of links, and a single deadline for all.
    let short = Start {
        limits: Limits {
            max_msgs: 4,
            ..Limits::default()
        },
        ..Start::within(text_channel())
    };
    assert_eq!(
        short.outline(&world, &trigger).await,
        "earlier 16 17 18 p19"
    );
    tokio::time::pause();
    world.latency = std::time::Duration::from_secs(3);
    let began = tokio::time::Instant::now();
    start.collect(&world, &trigger).await;
    assert!(began.elapsed() < std::time::Duration::from_millis(5_200));
}

#[tokio::test]
async fn defect_07_a_reply_without_a_ping_gets_its_chain() {
    let trigger = said(3, EVE, "why?").replying(2);
    let world = World::of([
        said(1, ADA, "q"),
        said(2, CLEW, "an answer").replying(1),
        trigger.clone(),
    ]);
    let rules = Rules {
        access: AccessRules::default(),
        triggers: TriggerRules::default(),
        message_content: true,
    };
    let facts = RouteFacts {
        kind: Some(ChannelKind::Text),
        parent: None,
        roles: Some(&[]),
        replied_author: Some(CLEW.user()),
        bot_turns: 0,
        mode: ChannelMode::Mentions,
    };
    let verdict = route(&trigger, &us(), &rules, facts);
    assert!(
        matches!(verdict, Verdict::Turn(Cause::Mention)),
        "{verdict:?}"
    );
    let start = Start::within(text_channel());
    assert_eq!(start.outline(&world, &trigger).await, "1 p2");
}

#[tokio::test]
async fn defect_08_an_alert_that_is_pointed_at_is_shown() {
    for app in [ALERT, DICE] {
        let trigger = asked(2, EVE, "what is this alert?").replying(1);
        let alert = said(1, app, "").with_embed("Disk full", "node 7 at 98 %");
        let start = Start::within(text_channel());
        let collected = start.collect(&World::of([alert]), &trigger).await;
        let prompt = start.prepare(&collected).prompt;
        let context = prompt.messages[1].content();
        assert!(
            context.contains(" [app] [pointed at by the asker]: "),
            "{context}"
        );
        assert!(
            context.contains("Disk full") && context.contains("98 %"),
            "{context}"
        );
    }
}

#[tokio::test]
async fn defect_09_the_cap_on_messages_is_used() {
    let trigger = ask(60, EVE, "so?");
    let world = full(59, &trigger);
    for max_msgs in [1, 2, 7, 40] {
        let mut start = Start::within(thread(0));
        start.limits.max_msgs = max_msgs;
        let collected = start.collect(&world, &trigger).await;
        assert_eq!(start.prepare(&collected).block.items().count(), max_msgs);
    }
}

#[tokio::test]
async fn defect_10_a_failed_fetch_an_empty_tail_and_a_deletion_differ() {
    let trigger = ask(3, EVE, "so?");
    let start = Start::within(thread(0));
    let empty = World::of([said(0, ADA, "start"), trigger.clone()]);
    let collected = start.collect(&empty, &trigger).await;
    assert_eq!(failures(&collected), [""; 0]);

    let failing = || {
        World::of([said(0, ADA, "start"), here(1, BOB, "talk"), trigger.clone()])
            .failing("page", FetchError::lasting(Fallback::Unavailable))
    };
    let collected = start.collect(&failing(), &trigger).await;
    assert_eq!(failures(&collected), ["history:unavailable"]);

    let reply = asked(3, EVE, "so?").replying(2);
    let chain = Start::within(text_channel());
    let gone = chain.collect(&World::of([said(1, ADA, "x")]), &reply).await;
    let markers = |collected| {
        let selection = chain.prepare(&collected).block.entries;
        format!("{selection:?}")
    };
    assert!(markers(gone).contains("Deleted"));
    let unfetched =
        World::of([said(1, ADA, "x")]).failing("page", FetchError::lasting(Fallback::Unavailable));
    let unfetched = chain
        .collect_with(&unfetched, &NegativeCache::default(), &reply)
        .await;
    assert_eq!(failures(&unfetched), ["chain:unavailable"]);
    assert!(markers(unfetched).contains("Unavailable"));
}

#[tokio::test]
async fn defect_11_text_of_any_script_is_text() {
    for text in ["これは何ですか", "что это", "ما هذا", "यह क्या है", "🤔"]
    {
        let trigger = ask(3, EVE, text);
        let world = full(2, &trigger);
        let start = Start::within(thread(0));
        let collected = start.collect(&world, &trigger).await;
        assert_eq!(target(&collected), Some(3), "{text}");
        assert_eq!(adopted(&collected), None, "{text}");
    }
    assert!(!us().has_meaning(&asked(1, EVE, "?!")));
}
