//! Threads: tail, history, pointed-at message, further pages.

use clew_context::model::{Cause, Channel, Limits, Message, OmitReason, ReplyTarget, ThreadState};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, DICE, EVE, GENERAL, Person, Shape, asked, id, post, private_thread,
    said, text_channel, thread, thread_id,
};
use crate::support::world::{Start, World, adopted, failures, outline, target};

/// Message `n` of the thread on message 0.
fn here(n: u64, who: Person, text: &str) -> Message {
    said(n, who, text).into_channel(thread_id(0))
}

fn ask(n: u64, who: Person, text: &str) -> Message {
    asked(n, who, text).into_channel(thread_id(0))
}

/// A thread on Ada's message 0, with messages 1 to `last`.
fn talk(last: u64) -> World {
    let talkers = [ADA, BOB];
    let mut world = World::of([said(0, ADA, "the release is today")]);
    world.add((1..=last).map(|n| {
        let who = talkers[usize::try_from(n % 2).unwrap()];
        here(n, who, &format!("message {n}"))
    }));
    world
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[tokio::test]
async fn a_mention_gets_the_newest_that_fit_and_the_starter() {
    let trigger = ask(61, EVE, "what happened?");
    let mut world = talk(60);
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    let shown = outline(&start.prepare(&collected).block);
    let newest: Vec<String> = (22..=60).map(|n| n.to_string()).collect();
    assert_eq!(shown, format!("s0 ..21.. {}", newest.join(" ")));
    assert_eq!(collected.fetches, 2, "one page, and the starter");
    assert_eq!(target(&collected), Some(61));
    assert_eq!(failures(&collected), [""; 0]);
}

#[tokio::test]
async fn an_automatic_answer_gets_only_the_tail() {
    let trigger = here(9, EVE, "and now?");
    let mut world = talk(8);
    world.add([trigger.clone()]);
    let start = Start {
        cause: Cause::AutoReply,
        limits: limits(|limits| limits.tail = 3),
        ..Start::within(thread(0))
    };
    assert_eq!(start.outline(&world, &trigger).await, "s0 ..0.. 6 7 8");
}

/// The tail comes before the target, the target is shown, and the bot's own messages after it stay.
#[tokio::test]
async fn the_tail_ends_strictly_before_the_target() {
    let mut world = talk(8);
    world.add([here(9, CLEW, "an answer"), ask(10, EVE, "")]);
    let trigger = ask(10, EVE, "");
    let start = Start {
        cause: Cause::AutoReply,
        limits: limits(|limits| limits.tail = 2),
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &trigger).await;
    let prepared = start.prepare(&collected);
    assert_eq!(outline(&prepared.block), "s0 ..0.. 6 7 t8 9");
    assert_eq!(
        (target(&collected), adopted(&collected)),
        (Some(8), Some(8))
    );
    assert_eq!(prepared.tail.shown, 2);
}

#[tokio::test]
async fn with_a_tail_of_zero_starter_and_target_remain() {
    let mut world = talk(8);
    world.add([ask(9, EVE, "")]);
    let start = Start {
        cause: Cause::AutoReply,
        limits: limits(|limits| limits.tail = 0),
        ..Start::within(thread(0))
    };
    assert_eq!(start.outline(&world, &ask(9, EVE, "")).await, "s0 t8");
}

/// Bots and system messages are left out, unless the asker points at them.
#[tokio::test]
async fn people_and_the_bot_itself_are_shown() {
    let mut world = talk(2);
    world.add([
        here(3, DICE, "rolled 6"),
        here(4, ALERT, "disk full"),
        here(5, CLEW, "the answer"),
        here(6, CLEW, "-# a note"),
        here(7, ADA, "").of_type(7),
        here(8, DICE, "pong").of_type(20),
        here(9, CLEW, "by command").of_type(20),
    ]);
    let trigger = ask(10, EVE, "what is this?").replying(4).pinging(ALERT);
    let start = Start::within(thread(0));
    assert_eq!(start.outline(&world, &trigger).await, "s0 1 2 p4 5 9");
    let without = Start {
        limits: limits(|limits| limits.include_pointed_apps = false),
        ..start
    };
    assert_eq!(without.outline(&world, &trigger).await, "s0 1 2 5 9");
}

#[tokio::test]
async fn a_pointed_at_message_of_an_app_is_labelled() {
    let mut world = talk(1);
    world.add([here(2, ALERT, "disk full")]);
    let trigger = ask(3, EVE, "what is this?").replying(2);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    let prompt = start.prepare(&collected).prompt;
    let context = prompt.messages[1].content();
    let line = "10:00 Alertmanager [app] [pointed at by the asker]: disk full\n";
    assert!(context.contains(line), "{context}");
}

/// Fetches further pages while fewer than `MEM_MAX_MSGS` messages are eligible.
#[tokio::test]
async fn a_thread_full_of_bots_needs_more_pages() {
    let mut world = World::of([said(0, ADA, "start")]);
    world.add((1..=10).map(|n| here(n, BOB, "early")));
    world.add((11..=250).map(|n| here(n, DICE, "noise")));
    let trigger = ask(251, EVE, "who was here?");
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    let shown = outline(&start.prepare(&collected).block);
    assert_eq!(shown, "s0 1 2 3 4 5 6 7 8 9 10");
    let calls = world.calls();
    assert_eq!(
        calls,
        [
            "page to 251",
            "page before 152",
            "page before 52",
            "message 0"
        ]
    );
}

/// No more pages are fetched where messages are too old, but the tail may have any age.
#[tokio::test]
async fn age_ends_the_history_and_not_the_tail() {
    let later = 4 * 3600 + 97;
    let mut world = talk(97);
    world.add((1..=3).map(|n| here(later + n, BOB, "tail")));
    let trigger = ask(later + 10, EVE, "anybody?");
    world.add([trigger.clone()]);
    let start = Start {
        limits: limits(|limits| limits.tail = 3),
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &trigger).await;
    let block = start.prepare(&collected).block;
    assert_eq!(collected.fetches, 2);
    // The page contains the trigger and 99 more.
    assert_eq!(outline(&block), "s0 ..96.. 14498 14499 14500");
    assert_eq!(block.omitted_for(OmitReason::Age), 96);
    assert_eq!(
        block.dropped_for(OmitReason::Age),
        97,
        "one was not looked at"
    );
    let shown = clew_context::engine::frame::block(&block);
    let cap = "... 96 messages omitted ... (MEM_MAX_AGE_MIN)\n";
    assert!(shown.contains(cap), "{shown}");
}

/// The age counts back from the tail or from the pointed-at message.
#[tokio::test]
async fn yesterdays_thread_is_shown_today() {
    let day = 24 * 3600;
    let mut world = talk(20);
    let trigger = ask(day, EVE, "what came of it?");
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    let all = "s0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";
    assert_eq!(start.outline(&world, &trigger).await, all);
    let tailless = Start {
        limits: limits(|limits| limits.tail = 0),
        ..Start::within(thread(0))
    };
    assert_eq!(tailless.outline(&world, &trigger).await, all);

    world.add((1..=5).map(|n| here(day + n, BOB, "another day")));
    let new = [1, 2, 3, 4, 5].map(|n| (day + n).to_string()).join(" ");
    let trigger = ask(day + 9, EVE, "and that?");
    world.add([trigger.clone()]);
    let shown = format!("s0 ..20.. {new} {day}");
    let shown = shown.replace(&format!("{new} {day}"), &format!("{day} {new}"));
    assert_eq!(start.outline(&world, &trigger).await, shown);
    let pointing = ask(day + 9, EVE, "and that?").replying(3);
    let shown = start.outline(&world, &pointing).await;
    assert!(shown.starts_with("s0 1 2 p3 4 5 6 7 "), "{shown}");
}

/// What could not be shown anyway is not fetched: every message takes at least
/// the shortest line.
#[tokio::test]
async fn paging_ends_with_the_character_budget() {
    let page = |text: &str| {
        let mut world = World::of([said(0, ADA, "start")]);
        world.add((1..=900).map(|n| here(n, BOB, text)));
        world.add([ask(901, EVE, "so?")]);
        world
    };
    let start = Start {
        limits: limits(|limits| limits.max_msgs = 1_000),
        ..Start::within(thread(0))
    };
    let word = "word ".repeat(40);
    let link = "https://discord.com/channels/1/2/3 ".repeat(40);
    for (text, expected) in [
        (word.as_str(), 1),
        ("<@90> <#7> -- \u{200B}", 8),
        (&link, 8),
    ] {
        let world = page(text);
        let trigger = ask(901, EVE, "so?");
        let collected = start.collect(&world, &trigger).await;
        let block = start.prepare(&collected).block;
        assert!(block.chars <= 8_000);
        let calls = world.calls();
        let pages = calls.iter().filter(|call| call.starts_with("page"));
        assert_eq!(pages.count(), expected, "{text:?}");
    }
    let block = start
        .prepare(&start.collect(&page(&word), &ask(901, EVE, "so?")).await)
        .block;
    let shown = clew_context::engine::frame::block(&block);
    assert!(shown.contains("(MEM_MAX_CHARS)"), "{shown}");
}

/// If the newest page has only bots, the tail is looked for beyond the age limit.
#[tokio::test]
async fn an_old_tail_is_found_behind_a_page_of_bots() {
    let old = 4 * 3600 + 100;
    let mut world = talk(20);
    world.add((21..=140).map(|n| here(n, DICE, "noise")));
    let trigger = ask(140 + old, EVE, "anybody?");
    world.add([trigger.clone()]);
    let start = Start {
        limits: limits(|limits| limits.tail = 3),
        ..Start::within(thread(0))
    };
    let all = (1..=20).map(|n| n.to_string()).collect::<Vec<_>>();
    let all = format!("s0 {}", all.join(" "));
    assert_eq!(start.outline(&world, &trigger).await, all);
    let untailed = Start {
        limits: limits(|limits| limits.tail = 0),
        ..Start::within(thread(0))
    };
    assert_eq!(untailed.outline(&world, &trigger).await, all);
}

/// Discord's count tells how many messages were not looked at.
#[tokio::test]
async fn the_gap_counts_what_was_not_fetched() {
    let trigger = ask(301, EVE, "what happened?");
    let mut world = talk(300);
    world.add([trigger.clone()]);
    let counted = |count| Channel {
        thread: Some(ThreadState {
            message_count: Some(count),
            ..ThreadState::default()
        }),
        ..thread(0)
    };
    let tail: Vec<String> = (262..=300).map(|n| n.to_string()).collect();
    let tail = tail.join(" ");
    for (channel, gap) in [
        (counted(301), "..261.."),
        (thread(0), "..60.."),
        (counted(50), "..60.."),
    ] {
        let shown = Start::within(channel).outline(&world, &trigger).await;
        assert_eq!(shown, format!("s0 {gap} {tail}"));
    }
}

/// The pointed-at message is shown, so it is not among the omitted ones.
#[tokio::test]
async fn the_gap_does_not_count_the_message_pointed_at() {
    let counted = Channel {
        thread: Some(ThreadState {
            message_count: Some(301),
            ..ThreadState::default()
        }),
        ..thread(0)
    };
    let start = Start::within(counted);
    for (to, expected) in [
        (7, "s0 p7 ..261.. 263 "),
        (202, "s0 ..201.. p202 ..60.. 263 "),
    ] {
        let trigger = ask(301, EVE, "and this?").replying(to);
        let mut world = talk(300);
        world.add([trigger.clone()]);
        let shown = start.outline(&world, &trigger).await;
        assert!(shown.starts_with(expected), "{shown}");
    }
}

/// The pointed-at message is part of the tail if its position is in the tail.
#[tokio::test]
async fn the_message_pointed_at_counts_in_the_tail() {
    let trigger = ask(21, EVE, "and this?").replying(18);
    let mut world = talk(20);
    world.add([here(2, CLEW, "ours, long ago"), trigger.clone()]);
    let start = Start {
        cause: Cause::AutoReply,
        ..Start::within(thread(0))
    };
    let shown = start.outline(&world, &trigger).await;
    assert_eq!(shown, "s0 ..0.. 16 17 p18 19 20");
    // For a bare reply that message is the target: the tail ends before it.
    let bare = ask(21, EVE, "").replying(18);
    world.add([bare.clone()]);
    let shown = start.outline(&world, &bare).await;
    assert_eq!(shown, "s0 ..0.. 13 14 15 16 17 p18");
}

/// What the cap on characters leaves out of the tail was found and is not shown.
#[tokio::test]
async fn the_tail_counts_what_is_shown() {
    let trigger = ask(6, EVE, "so?");
    let long = |n| here(n, BOB, &"valve ".repeat(100));
    let world = World::of((1..6).map(long).chain([trigger.clone()]));
    let start = Start {
        limits: limits(|limits| limits.max_chars = 1_000),
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &trigger).await;
    let prepared = start.prepare(&collected);
    let shown = prepared.block.items().count();
    assert_eq!((prepared.tail.found, prepared.tail.shown), (5, shown));
    assert!(shown < 5, "{shown}");
}

/// The starter is in another channel, so it is not part of the tail.
#[tokio::test]
async fn the_tail_counts_only_messages_in_the_thread() {
    let trigger = ask(3, EVE, "so?");
    let mut world = talk(2);
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(start.prepare(&collected).tail.shown, 2);
}

/// The pointed-at message is far above the page, but fetched separately and shown.
#[tokio::test]
async fn the_message_pointed_at_is_fetched_wherever_it_is() {
    let trigger = ask(301, EVE, "and this?").replying(7);
    let mut world = talk(300);
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    let shown = start.outline(&world, &trigger).await;
    assert!(shown.starts_with("s0 p7 ..61.. 263 "), "{shown}");
    assert_eq!(world.calls(), ["page to 301", "message 0", "message 7"]);

    let carrying = trigger.clone().carrying(here(7, BOB, "message 7"));
    let shown = start.outline(&world, &carrying).await;
    assert!(shown.starts_with("s0 p7 ..61.. 263 "), "{shown}");
    assert_eq!(world.calls(), ["page to 301", "message 0"]);

    let null = trigger.clone().carrying_null();
    let shown = start.outline(&world, &null).await;
    assert!(shown.starts_with("s0 deleted ..60.. "), "{shown}");

    // A message with another id is not the one pointed at.
    let other = trigger.carrying(here(8, BOB, "message 8"));
    let shown = start.outline(&world, &other).await;
    assert!(shown.starts_with("s0 p7 ..61.. "), "{shown}");
}

#[tokio::test]
async fn a_deleted_message_pointed_at_is_marked() {
    let trigger = ask(5, EVE, "and this?").replying(2);
    let mut world = talk(4);
    world.remove(thread_id(0), id(2));
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    assert_eq!(start.outline(&world, &trigger).await, "s0 1 deleted 3 4");
}

/// A warm window needs no calls.
#[tokio::test]
async fn a_thread_in_the_window_needs_no_call() {
    let world = World::of([said(0, ADA, "never asked for")]);
    let trigger = ask(4, EVE, "so?");
    let notice = here(1, ADA, "")
        .of_type(21)
        .shaped(|notice| {
            notice.reference = Some(clew_context::model::Reference {
                kind: clew_context::model::ReferenceKind::Default,
                channel: Some(GENERAL),
                message: Some(id(0)),
            });
        })
        .carrying(said(0, ADA, "the release"));
    let seen = [
        notice,
        here(2, ADA, "hm"),
        here(3, CLEW, "yes?"),
        trigger.clone(),
    ];
    let mut window = crate::support::world::window();
    window.opened(thread_id(0), None);
    for message in seen {
        window.created(message);
    }
    // The starter is in the parent's window, where its edits arrive.
    window.edited(said(0, ADA, "").edited_at(2, "the release, edited"));
    let start = Start {
        view: Some(window.view(thread_id(0))),
        starter: window.message(GENERAL, id(0)),
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &trigger).await;
    let block = start.prepare(&collected).block;
    assert_eq!(outline(&block), "s0 2 3");
    assert!(block.items().next().unwrap().text.contains("edited"));
    assert_eq!(world.calls(), [""; 0]);
}

/// Nothing newer than the turn's start is shown, even if a page contains it.
#[tokio::test]
async fn nothing_newer_than_the_turns_start_is_shown() {
    let trigger = ask(3, EVE, "so?");
    let mut world = talk(2);
    world.add([
        trigger.clone(),
        here(4, BOB, "before the start"),
        here(5, BOB, "later"),
    ]);
    let seen = [trigger.clone(), here(4, BOB, "before the start")];
    let start = Start::within(thread(0)).watching(&seen, false);
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(outline(&start.prepare(&collected).block), "s0 1 2 t4");
    assert_eq!(
        target(&collected),
        Some(4),
        "the newest human at the turn's start"
    );
}

#[tokio::test]
async fn titles_tags_and_kinds_are_shown() {
    let trigger = ask(1, EVE, "why?");
    let world = World::of([here(0, ADA, "it crashes"), trigger.clone()]);
    for (channel, title) in [
        (
            post(0),
            "Forum post \"App crashes on start\" in #help · tags: bug, android",
        ),
        (thread(0), "Thread \"Release day\" in #general"),
        (private_thread(0), "Thread \"Release day\" in #general"),
    ] {
        let start = Start::within(channel);
        let collected = start.collect(&world, &trigger).await;
        let block = start.prepare(&collected).block;
        assert_eq!(block.title.as_deref(), Some(title));
    }
    let start = Start::within(text_channel());
    let lone = asked(1, EVE, "why?");
    let collected = start.collect(&world, &lone).await;
    assert_eq!(start.prepare(&collected).block.title, None);
}

#[tokio::test]
async fn an_unknown_channel_is_fetched_once() {
    let trigger = ask(3, EVE, "so?");
    let mut world = talk(2).with_channel(thread(0));
    world.add([trigger.clone()]);
    let unknown = Start::default();
    let collected = unknown.collect(&world, &trigger).await;
    let block = unknown.prepare(&collected).block;
    assert_eq!(outline(&block), "s0 1 2");
    assert!(block.title.is_some());
    assert_eq!(world.calls(), ["channel", "page to 3", "message 0"]);
}

#[tokio::test]
async fn the_trigger_itself_may_be_the_reply_target() {
    let mut world = talk(2);
    let trigger = ask(3, EVE, "so?");
    world.add([trigger.clone(), here(4, BOB, "lol")]);
    let seen = [trigger.clone(), here(4, BOB, "lol")];
    let start = Start {
        reply_target: ReplyTarget::Trigger,
        ..Start::within(thread(0)).watching(&seen, false)
    };
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(target(&collected), Some(3));
    assert_eq!(outline(&start.prepare(&collected).block), "s0 1 2 4");
}
