//! Nothing is fetched in vain or twice, and an incomplete page is not taken for complete.

use std::time::Duration;

use clew_context::collect::{FetchError, NegativeCache};
use clew_context::engine::window::CHANNEL_START;
use clew_context::model::{Access, Fallback, Limits, Message, Missing};

use crate::support::build::{
    ADA, ALERT, BOB, EVE, Shape, asked, id, post, said, text_channel, thread, thread_id,
};
use crate::support::world::{Start, World, failures, outline, window};

fn here(n: u64, text: &str) -> Message {
    said(n, BOB, text).into_channel(thread_id(0))
}

fn ask(n: u64, text: &str) -> Message {
    asked(n, EVE, text).into_channel(thread_id(0))
}

/// The start of a turn that saw the trigger arrive and message `gone` deleted.
fn knowing(start: Start, trigger: &Message, gone: u64) -> Start {
    let mut window = window();
    window.created(trigger.clone());
    window.deleted(trigger.channel, &[id(gone)]);
    Start {
        view: Some(window.view(trigger.channel)),
        ..start
    }
}

fn calls_for(world: &World, word: &str) -> Vec<String> {
    let calls = world.calls().into_iter();
    calls.filter(|call| call.starts_with(word)).collect()
}

/// The retry finds the budget used up: the reported reason is that of the first attempt.
#[tokio::test]
async fn the_first_reason_is_kept_when_the_budget_is_used_up() {
    tokio::time::pause();
    let passing = FetchError {
        reason: Fallback::Unavailable,
        transient: true,
    };
    let world = World::of([said(0, ADA, "start"), ask(3, "so?")]).failing("page", passing);
    let start = Start {
        limits: Limits {
            max_fetches: 2,
            ..Limits::default()
        },
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &ask(3, "so?")).await;
    assert_eq!(failures(&collected), ["history:unavailable"]);
    assert_eq!(world.calls().len(), 2);
}

#[tokio::test]
async fn what_is_known_to_be_deleted_is_not_fetched() {
    // The pointed-at message, older than the pages that are fetched.
    let mut world = World::of([said(0, ADA, "start")]);
    world.add((1..=150).map(|n| here(n, "words")));
    let trigger = ask(151, "so?").replying(1);
    world.add([trigger.clone()]);
    let start = knowing(Start::within(thread(0)), &trigger, 1);
    let shown = start.outline(&world, &trigger).await;
    assert!(shown.starts_with("s0 deleted "), "{shown}");
    assert_eq!(calls_for(&world, "message"), ["message 0"]);

    // A post's first message.
    let world = World::of([here(0, "post"), here(1, "words"), ask(2, "so?")]);
    let start = knowing(Start::within(post(0)), &ask(2, "so?"), 0);
    start.collect(&world, &ask(2, "so?")).await;
    assert_eq!(calls_for(&world, "message"), [""; 0]);

    // A link of a reply chain.
    let world = World::of([said(1, ADA, "root")]);
    let trigger = asked(2, EVE, "so?").replying(1);
    let start = knowing(Start::within(text_channel()), &trigger, 1);
    assert_eq!(start.outline(&world, &trigger).await, "deleted");
    assert_eq!(world.calls(), [""; 0]);
}

/// A channel that the bot may not view is not asked for a minute, and neither are its messages.
#[tokio::test]
async fn a_channel_that_refuses_is_not_asked_again() {
    tokio::time::pause();
    let world = World::of([said(0, ADA, "start"), here(1, "a"), ask(3, "so?")])
        .failing("channel", FetchError::lasting(Fallback::Forbidden));
    let negative_cache = NegativeCache::default();
    let start = Start {
        our_access: Access::Unknown(Missing::Facts),
        ..Start::default()
    };
    let trigger = ask(3, "so?").replying(1);
    start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(world.calls(), ["channel"]);
    let again = start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(world.calls(), [""; 0]);
    assert!(failures(&again).contains(&"channel:forbidden".to_owned()));
    tokio::time::advance(Duration::from_secs(61)).await;
    start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(calls_for(&world, "channel"), ["channel"]);
}

/// A bare reply points at, targets and adopts the same message; and a file whose
/// text is present is not fetched.
#[tokio::test]
async fn no_file_is_fetched_twice() {
    let pointed = said(1, BOB, "this").with_file("b.log", None, 10);
    let trigger = asked(2, EVE, "").replying(1).carrying(pointed.clone());
    let mut world = World::of([pointed.clone()]);
    world.files.insert("b.log".to_owned(), "line".to_owned());
    let start = Start::within(text_channel());
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(calls_for(&world, "file"), ["file b.log"]);
    let question = start.prepare(&collected).prompt;
    let question = question.messages.last().unwrap().content();
    assert!(question.contains("line"), "{question}");

    let known = pointed.with_extras(|extras| extras.attachments[0].text = Some("line".into()));
    let trigger = asked(2, EVE, "").replying(1).carrying(known);
    start.collect(&world, &trigger).await;
    assert_eq!(calls_for(&world, "file"), [""; 0]);
}

/// The window takes such a page only from after the unreadable message.
#[tokio::test]
async fn a_page_with_an_unreadable_message_is_not_complete() {
    let mut world = World::of([
        said(0, ADA, "start"),
        here(1, "a"),
        here(2, "b"),
        here(4, "d"),
        ask(5, "so?"),
    ]);
    world.unreadable.insert(id(2));
    let trigger = ask(5, "so?");
    let mut window = window();
    window.created(trigger.clone());
    let start = Start {
        view: Some(window.view(trigger.channel)),
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &trigger).await;
    let pages = collected.window_update.pages.as_ref().unwrap();
    assert_eq!((pages.from, pages.to), (id(2).next(), id(5)));
    collected.update(&mut window);
    let view = window.view(trigger.channel);
    assert_eq!(view.whole_from, Some(id(2).next()));
    assert_eq!(view.recent.len(), 2);
}

/// A page shows the channel up to the turn's start, including what was deleted.
#[tokio::test]
async fn pages_reach_to_the_start_of_the_turn() {
    let world = World::of([said(0, ADA, "start"), here(1, "a")]);
    let start = Start {
        cause: crate::collectors::target::ask_command(),
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &ask(5, "so?")).await;
    let pages = collected.window_update.pages.unwrap();
    assert_eq!((pages.from, pages.to), (CHANNEL_START, id(5)));
}

/// The window holds more than a page, it is unknown whether the bot may read, and the page before is empty:
/// that does not prove that the channel starts there.
#[tokio::test]
async fn an_empty_page_before_a_full_window_is_a_refusal() {
    let chatter: Vec<Message> = (10..=130)
        .map(|n| said(n, ALERT, "noise").into_channel(thread_id(0)))
        .chain([ask(131, "so?")])
        .collect();
    let mut world = World::of([said(0, ADA, "start"), here(1, "hidden words")]);
    world.add(chatter.iter().cloned());
    let start = Start {
        our_access: Access::Unknown(Missing::Facts),
        ..Start::within(thread(0))
    }
    .watching(&chatter, false);
    let trigger = chatter.last().unwrap();
    let collected = start.collect(&world, trigger).await;
    assert_eq!(failures(&collected), [""; 0]);
    let shown = outline(&start.prepare(&collected).block);
    assert!(shown.starts_with("s0 1"), "{shown}");
    assert_eq!(calls_for(&world, "page"), ["page to 10"]);
    let pages = collected.window_update.pages.unwrap();
    assert_eq!(pages.from, CHANNEL_START);

    world.hidden.insert(thread_id(0));
    let collected = start.collect(&world, trigger).await;
    assert_eq!(failures(&collected), ["history:forbidden"]);
    assert!(collected.window_update.pages.is_none());
}
