//! Calls that are not made because earlier fetches or events already answer them;
//! and those that are needed after all.

use std::time::Duration;

use clew_context::collect::FetchError;
use clew_context::model::{Access, Cause, ChannelKind, Fallback, Message, Missing, OmitReason};

use crate::collectors::target::ask_command;
use crate::support::build::{
    ADA, BOB, DICE, EVE, GENERAL, Shape, asked, id, said, text_channel, thread, thread_id,
};
use crate::support::world::{Start, World, failures, outline, window};

fn here(n: u64) -> Message {
    said(n, BOB, "talk").into_channel(thread_id(0))
}

fn ask(n: u64) -> Message {
    asked(n, EVE, "so?").into_channel(thread_id(0))
}

/// The starter and messages `1..=last`, without those in `gone`.
fn talk(last: u64, gone: &[u64]) -> World {
    let mut world = World::of([said(0, ADA, "start")]);
    world.add((1..=last).filter(|n| !gone.contains(n)).map(here));
    world
}

/// The outline of a thread in which the trigger replies to message `to`, and the calls.
async fn replying(start: &Start, world: &mut World, to: u64) -> (String, Vec<String>) {
    let trigger = ask(9).replying(to);
    world.add([trigger.clone()]);
    (start.outline(world, &trigger).await, world.calls())
}

#[tokio::test]
async fn a_whole_page_shows_that_the_message_pointed_at_is_gone() {
    let start = Start::within(thread(0));
    let mut world = talk(4, &[2]);
    let (shown, calls) = replying(&start, &mut world, 2).await;
    assert_eq!(shown, "s0 1 deleted 3 4");
    assert_eq!(calls, ["page to 9", "message 0"]);
}

/// Nothing is certain up to the newest message that could not be read.
#[tokio::test]
async fn an_unreadable_message_is_fetched_by_itself() {
    let start = Start::within(thread(0));
    for (to, asked) in [(2, true), (3, true), (4, false)] {
        let mut world = talk(5, &[2, 4]);
        world.unreadable.insert(id(3));
        let (_, calls) = replying(&start, &mut world, to).await;
        assert_eq!(calls.contains(&format!("message {to}")), asked, "{to}");
    }
}

#[tokio::test]
async fn what_the_trigger_includes_is_not_fetched() {
    let trigger = ask(301).replying(7).carrying(here(7));
    let mut world = talk(300, &[]);
    world.add([trigger.clone()]);
    let start = Start {
        view: Some(window().view(thread_id(0))),
        ..Start::within(thread(0))
    };
    let shown = start.outline(&world, &trigger).await;
    assert!(shown.starts_with("s0 p7 "), "{shown}");
    assert_eq!(world.calls(), ["page to 301", "message 0"]);
}

fn chain(unreadable: &[u64]) -> (World, Message) {
    let trigger = asked(10, EVE, "so?").replying(9);
    let mut world = World::of([said(1, ADA, "talk"), said(3, ADA, "a root")]);
    world.add([said(9, ADA, "a link").replying(5), trigger.clone()]);
    world.unreadable.extend(unreadable.iter().map(|n| id(*n)));
    (world, trigger)
}

#[tokio::test]
async fn a_whole_page_shows_that_a_link_is_gone() {
    let (world, trigger) = chain(&[]);
    let start = Start {
        our_access: Access::Unknown(Missing::Facts),
        ..Start::within(text_channel())
    };
    assert_eq!(start.outline(&world, &trigger).await, "deleted p9");
    assert_eq!(world.calls(), ["page to 9"]);
    let (world, trigger) = chain(&[3]);
    assert_eq!(start.outline(&world, &trigger).await, "deleted p9");
    assert_eq!(world.calls(), ["page to 9", "page to 5"]);
}

#[tokio::test]
async fn what_the_window_saw_shows_that_a_link_is_gone() {
    let (world, trigger) = chain(&[]);
    let seen = [
        said(1, ADA, "talk"),
        said(9, ADA, "a link").replying(5),
        trigger.clone(),
    ];
    let start = Start::within(text_channel()).watching(&seen, true);
    assert_eq!(start.outline(&world, &trigger).await, "deleted p9");
    assert_eq!(world.calls(), [""; 0]);
}

/// A link that exists but could not be read is not reported as deleted.
#[tokio::test]
async fn an_unreadable_link_above_another_is_not_reported_as_deleted() {
    let (world, trigger) = chain(&[5]);
    let mut world = world;
    world.add([said(5, ADA, "unreadable")]);
    let start = Start::within(text_channel());
    assert_eq!(start.outline(&world, &trigger).await, "unavailable p9");
}

/// A message before the command was seen, so an empty page is a refusal.
#[tokio::test]
async fn an_empty_page_where_something_was_seen_is_a_refusal() {
    let start = Start {
        cause: ask_command(),
        ..Start::within(thread(0)).watching(&[here(5)], false)
    };
    let collected = start.collect(&World::default(), &ask(9)).await;
    assert!(failures(&collected).contains(&"history:forbidden".to_owned()));
}

#[tokio::test]
async fn the_window_learns_a_whole_page() {
    let world = talk(300, &[]);
    let mut world = world;
    world.add([ask(301)]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &ask(301)).await;
    let pages = collected.window_update.pages.unwrap();
    assert_eq!(pages.messages.first().map(|one| one.id), Some(pages.from));
}

/// The message content intent is missing.
#[tokio::test]
async fn messages_without_content_have_a_reason_of_their_own() {
    let world = World::of([said(0, ADA, "start"), here(1).edited_at(2, ""), ask(9)]);
    let collected = Start::within(thread(0)).collect(&world, &ask(9)).await;
    assert_eq!(failures(&collected), ["history:no_content"]);
    let trigger = asked(9, EVE, "so?").replying(1);
    let world = World::of([said(1, ADA, ""), trigger.clone()]);
    let collected = Start::within(text_channel())
        .collect(&world, &trigger)
        .await;
    assert_eq!(failures(&collected), ["chain:no_content"]);
}

#[tokio::test]
async fn a_fetched_channel_is_reported_to_the_caller() {
    let trigger = asked(9, EVE, "so?").replying(1);
    let world = World::of([said(1, ADA, "a"), trigger.clone()]).with_channel(text_channel());
    let collected = Start::default().collect(&world, &trigger).await;
    assert_eq!(
        collected.turn.channel.map(|channel| channel.id),
        Some(GENERAL)
    );
}

/// A notice that includes no starter proves its deletion only if the starter
/// itself could be fetched.
#[tokio::test]
async fn a_notice_without_its_starter() {
    let notice = said(1, BOB, "").into_channel(thread_id(0)).of_type(21);
    let world = World::of([notice, here(2), ask(9)]);
    let known = Start::within(thread(0));
    assert_eq!(known.outline(&world, &ask(9)).await, "deleted 2");
    let unknown = Start {
        kind: Some(ChannelKind::PublicThread),
        ..Start::default()
    };
    assert_eq!(unknown.outline(&world, &ask(9)).await, "unavailable 2");
}

/// A retry needs time that is left; answers before the deadline count.
#[tokio::test]
async fn the_deadline_is_used_and_not_exceeded() {
    tokio::time::pause();
    let passing = FetchError {
        reason: Fallback::Unavailable,
        transient: true,
    };
    let start = Start::within(thread(0));
    let mut world = talk(3, &[]).failing("page", passing);
    world.add([ask(9)]);
    world.latency = Duration::from_millis(4_950);
    let collected = start.collect(&world, &ask(9)).await;
    assert_eq!(failures(&collected), ["history:unavailable"]);
    world.calls();
    let collected = start.collect(&world, &ask(9)).await;
    assert_eq!(failures(&collected), [""; 0]);
    assert_eq!(outline(&start.prepare(&collected).block), "s0 1 2 3");
}

/// If the pointed-at message is another app's and is not shown, it is listed once.
#[tokio::test]
async fn what_is_left_out_is_listed_once() {
    let app = said(2, DICE, "rolled 6").into_channel(thread_id(0));
    let trigger = ask(9).replying(2);
    let world = World::of([said(0, ADA, "start"), here(1), app, trigger.clone()]);
    let mut start = Start::within(thread(0));
    start.limits.include_pointed_apps = false;
    for cause in [Cause::Mention, Cause::AutoReply] {
        start.cause = cause;
        let collected = start.collect(&world, &trigger).await;
        let block = start.prepare(&collected).block;
        assert_eq!(block.omitted_for(OmitReason::App), 1);
    }
}
