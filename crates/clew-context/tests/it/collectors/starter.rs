//! The starter in its five cases, and what stands in for a missing one.

use std::sync::Arc;

use clew_context::collect::{FetchError, NegativeCache};
use clew_context::model::{Channel, Fallback, Limits, Message, Reference, ReferenceKind};

use crate::support::build::{
    ADA, BOB, EVE, GENERAL, Shape, asked, id, post, private_thread, said, thread, thread_id,
};
use crate::support::world::{Start, World, failures, outline};

fn ask(n: u64) -> Message {
    asked(n, EVE, "so?").into_channel(thread_id(0))
}

fn here(n: u64, text: &str) -> Message {
    said(n, BOB, text).into_channel(thread_id(0))
}

/// The message of type 21 that comes first in a thread started from a message.
fn notice(n: u64) -> Message {
    here(n, "").of_type(21).shaped(|notice| {
        notice.reference = Some(Reference {
            kind: ReferenceKind::Default,
            channel: Some(GENERAL),
            message: Some(id(0)),
        });
    })
}

/// Expects what is shown and which calls are made, with an empty window.
#[track_caller]
fn check(start: &Start, world: &World, shown: &str, calls: &[&str]) {
    let block = start.prepare(&start.collected(world, &ask(9))).block;
    assert_eq!(outline(&block), shown);
    assert_eq!(world.calls(), calls);
}

#[test]
fn the_starter_of_a_thread_on_a_message_is_in_the_parent() {
    let world = World::of([said(0, ADA, "start"), notice(1), here(2, "a"), ask(9)]);
    let start = Start::within(thread(0));
    check(&start, &world, "s0 2", &["page to 9", "message 0"]);
}

#[test]
fn a_starter_in_the_parents_window_needs_no_call() {
    let world = World::of([here(2, "a"), ask(9)]);
    let start = Start {
        starter: Some(Arc::new(said(0, ADA, "start"))),
        ..Start::within(thread(0))
    };
    check(&start, &world, "s0 2", &["page to 9"]);
}

#[test]
fn the_notice_has_the_starter_when_the_parent_refuses() {
    let notice = notice(1).carrying(said(0, ADA, "start"));
    let mut world = World::of([notice, here(2, "a"), ask(9)]);
    world.hidden.insert(GENERAL);
    let start = Start::within(thread(0));
    check(&start, &world, "s0 2", &["page to 9", "message 0"]);
}

#[test]
fn a_posts_starter_is_in_the_thread() {
    let world = World::of([here(0, "it crashes"), here(2, "a"), ask(9)]);
    let calls = ["page to 9", "message 0"];
    check(&Start::within(post(0)), &world, "s0 2", &calls);
}

#[test]
fn a_private_thread_starts_with_its_first_message() {
    let world = World::of([here(1, "first"), here(2, "a"), ask(9)]);
    let start = Start::within(private_thread(0));
    check(&start, &world, "s1 2", &["page to 9"]);

    let mut long = World::of([here(1, "first")]);
    long.add((1000..1200).map(|n| here(n, "a")));
    let trigger = ask(1201);
    long.add([trigger.clone()]);
    let shown = outline(&start.prepare(&start.collected(&long, &trigger)).block);
    assert!(shown.starts_with("s1 ..60.. 1161 "), "{shown}");
    assert_eq!(long.calls(), ["page to 1201", "page after 0 limit 1"]);
}

#[test]
fn a_public_thread_may_start_with_its_first_message() {
    let world = World::of([here(1, "first"), here(2, "a"), ask(9)]);
    let start = Start::within(thread(0));
    check(&start, &world, "s1 2", &["page to 9", "message 0"]);
}

#[test]
fn a_deleted_starter_is_marked() {
    let anchored = World::of([notice(1).carrying_null(), here(2, "a"), ask(9)]);
    let start = Start::within(thread(0));
    let calls = ["page to 9", "message 0"];
    check(&start, &anchored, "deleted 2", &calls);
    let post_without = World::of([here(2, "a"), ask(9)]);
    check(&Start::within(post(0)), &post_without, "deleted 2", &calls);
}

/// A starter known to be missing is not asked for again.
#[tokio::test]
async fn missing_starters_are_remembered() {
    let negative_cache = NegativeCache::default();
    let anchored = World::of([notice(1).carrying_null(), here(2, "a"), ask(9)]);
    let unanchored = World::of([here(1, "first"), here(2, "a"), ask(9)]);
    let no_post = World::of([here(2, "a"), ask(9)]);
    let cases: [(World, Channel, &str); 3] = [
        (anchored, thread(0), "deleted 2"),
        (unanchored, thread(0), "s1 2"),
        (no_post, post(0), "deleted 2"),
    ];
    for (world, channel, shown) in cases {
        let start = Start::within(channel);
        for calls in [2, 1] {
            let collected = start.collect_with(&world, &negative_cache, &ask(9)).await;
            assert_eq!(outline(&start.prepare(&collected).block), shown);
            // The unanchored first message is on the page that is fetched at the same
            // time, so it may be asked for once more.
            let asked = world.calls();
            let expected = if shown == "s1 2" { 2 } else { calls };
            assert_eq!(asked.len(), expected, "{asked:?}");
            assert_eq!(failures(&collected), [""; 0], "no fallback");
        }
        negative_cache.forget(thread_id(0));
    }
}

#[test]
fn the_trigger_may_be_the_starter() {
    let trigger = asked(0, EVE, "it crashes").into_channel(thread_id(0));
    let world = World::of([trigger.clone()]);
    let start = Start::within(post(0)).watching(std::slice::from_ref(&trigger), true);
    let block = start.prepare(&start.collected(&world, &trigger)).block;
    assert_eq!(outline(&block), "");
    assert_eq!(world.calls(), [""; 0]);
}

/// Where a thread shows its starter anyway, nothing is missing, whatever kept us from fetching it.
#[tokio::test]
async fn a_starter_that_the_thread_shows_is_not_missing() {
    let one_call = Limits {
        max_fetches: 1,
        ..Limits::default()
    };
    let anchored = World::of([
        notice(1).carrying(said(0, ADA, "start")),
        here(2, "a"),
        ask(9),
    ]);
    let posted = World::of([here(0, "it crashes"), here(2, "a"), ask(9)]);
    let unanchored = World::of([here(1, "first"), here(2, "a"), ask(9)]);
    let cut_off = World::of([notice(1), here(2, "a"), ask(9)]);
    for (world, channel, shown, failed) in [
        (&anchored, thread(0), "s0 2", None),
        (&posted, post(0), "s0 2", None),
        (&unanchored, thread(0), "s1 2", None),
        (
            &cut_off,
            thread(0),
            "unavailable 2",
            Some("starter:fetch_budget".to_owned()),
        ),
    ] {
        let start = Start {
            limits: one_call,
            ..Start::within(channel)
        };
        let collected = start.collect(world, &ask(9)).await;
        assert_eq!(outline(&start.prepare(&collected).block), shown);
        assert_eq!(failures(&collected), Vec::from_iter(failed));
    }
    // The first message is known by its id from before, and is on the page.
    let negative_cache = NegativeCache::default();
    let start = Start::within(private_thread(0));
    start
        .collect_with(&unanchored, &negative_cache, &ask(9))
        .await;
    let start = Start {
        limits: one_call,
        ..start
    };
    let again = start
        .collect_with(&unanchored, &negative_cache, &ask(9))
        .await;
    assert_eq!(outline(&start.prepare(&again).block), "s1 2");
    assert_eq!(failures(&again), [""; 0]);
}

/// A refused starter affects nothing else.
#[tokio::test]
async fn a_starter_that_cannot_be_fetched_is_marked() {
    for (error, shown, failed) in [
        (Fallback::Forbidden, "unavailable 2", "starter:forbidden"),
        (
            Fallback::Unavailable,
            "unavailable 2",
            "starter:unavailable",
        ),
        (
            Fallback::RateLimited,
            "unavailable 2",
            "starter:rate_limited",
        ),
        (Fallback::Malformed, "unavailable 2", "starter:malformed"),
    ] {
        let world = World::of([notice(1), here(2, "a"), ask(9)])
            .failing("message", FetchError::lasting(error));
        let start = Start::within(thread(0));
        let collected = start.collect(&world, &ask(9)).await;
        assert_eq!(outline(&start.prepare(&collected).block), shown);
        assert_eq!(failures(&collected), [failed]);
    }
}
