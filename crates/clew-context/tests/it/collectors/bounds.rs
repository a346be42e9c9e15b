//! What limits a block: caps, deadline, budget, permissions; and the reasons
//! given for missing parts.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use clew_context::collect::{FetchError, NegativeCache};
use clew_context::engine::render::{Directory, Renderer};
use clew_context::model::{
    Access, BlockPlace, Cause, ChannelId, Fallback, Limits, Message, Missing, OmitReason, Rights,
    RoleId, Stage, UserId,
};
use proptest::prelude::*;

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, DICE, EVE, Shape, asked, id, post, said, text_channel, thread,
    thread_id, us,
};
use crate::support::world::{Start, World, failures, outline, target};

fn here(n: u64, text: &str) -> Message {
    said(n, BOB, text).into_channel(thread_id(0))
}

fn ask(n: u64, text: &str) -> Message {
    asked(n, EVE, text).into_channel(thread_id(0))
}

/// A thread of two messages and the trigger.
fn small() -> World {
    World::of([
        said(0, ADA, "start"),
        here(1, "a"),
        here(2, "b"),
        ask(3, "so?"),
    ])
}

fn within(change: impl FnOnce(&mut Limits)) -> Start {
    let mut start = Start::within(thread(0));
    change(&mut start.limits);
    start
}

const UNREADABLE: Access = Access::Allowed(Rights {
    read_history: false,
    send: true,
    react: true,
    attach: true,
    open_threads: true,
});

#[tokio::test]
async fn one_message_is_shortened_to_its_cap() {
    let mut world = small();
    world.add([here(2, &"x".repeat(3000))]);
    let start = within(|limits| limits.max_msg_chars = 100);
    let collected = start.collect(&world, &ask(3, "so?")).await;
    let block = start.prepare(&collected).block;
    let long = block.items().last().unwrap();
    assert!(
        long.cut == Some(OmitReason::MsgChars) && long.text.chars().count() <= 100,
        "{}",
        long.text
    );
    assert!(long.text.contains("characters cut"));
}

/// Kept messages are shortened, never dropped; of the others the oldest go first.
#[tokio::test]
async fn the_characters_of_a_block_are_capped() {
    let long = |n| here(n, &"words ".repeat(300));
    let mut world = World::of([said(0, ADA, &"start ".repeat(300))]);
    world.add((1..20).map(long));
    let trigger = ask(20, "and this?").replying(3);
    world.add([trigger.clone()]);
    let start = within(|limits| limits.max_chars = 2_000);
    let collected = start.collect(&world, &trigger).await;
    let block = start.prepare(&collected).block;
    assert!(block.chars <= 2_000, "{}", block.chars);
    let shown = outline(&block);
    assert!(shown.starts_with("s0 ..2.. p3 .."), "{shown}");
    assert!(shown.ends_with(" 18 19"), "{shown}");
    assert!(
        block
            .items()
            .all(|item| item.cut == Some(OmitReason::Chars))
    );
}

/// With caps too small even for a header nothing is shown, and nothing panics.
#[tokio::test]
async fn a_cap_too_small_for_anything_shows_nothing() {
    for cap in 0..200 {
        let start = within(|limits| limits.max_chars = cap);
        let collected = start.collect(&small(), &ask(3, "so?")).await;
        let block = start.prepare(&collected).block;
        assert!(block.chars <= cap);
        let known = block.items().count() + block.omitted.len();
        assert_eq!(known, 3, "cap {cap}: what is not shown is listed");
    }
}

/// If not all headers fit, the newest message stays, as soon as it fits exactly.
#[tokio::test]
async fn under_the_smallest_cap_the_newest_stays() {
    let trigger = ask(3, "so?").replying(2);
    let shown = async |cap| {
        let start = within(|limits| limits.max_chars = cap);
        let collected = start.collect(&small(), &trigger).await;
        start.prepare(&collected).block
    };
    let mut one = None;
    for cap in 0..200 {
        let block = shown(cap).await;
        one = one.or((outline(&block) == "p2").then_some(block));
    }
    let one = one.unwrap();
    assert_eq!(outline(&shown(one.chars).await), "p2");
    assert_ne!(outline(&shown(one.chars - 1).await), "p2");
}

/// The age limit is exact to the second: in a chain, in a thread, and for withheld messages in it.
#[tokio::test]
async fn a_message_exactly_as_old_as_allowed_is_shown() {
    let age = |start: &mut Start| {
        start.limits.max_age = Some(Duration::from_secs(40));
        start.limits.max_chain_age = start.limits.max_age;
    };
    let chain = asked(100, EVE, "so?").replying(50);
    let linked = said(50, BOB, "b").replying(10);
    let root = said(10, ADA, "a").replying(9);
    let world = World::of([said(9, ADA, "old"), root, linked, chain.clone()]);
    let mut start = Start::within(text_channel());
    age(&mut start);
    assert_eq!(start.outline(&world, &chain).await, "earlier 10 p50");

    let ada = |n| said(n, ADA, "private").into_channel(thread_id(0));
    let trigger = ask(100, "so?");
    let old = [8, 9].map(|n| here(n, "old"));
    for (messages, expected) in [
        ([here(10, "a"), here(50, "b")], "s0 ..2.. 10 50"),
        ([ada(10), here(50, "b")], "s0 private ..2.. 50"),
        ([ada(7), ada(10)], "s0 private 8 9 private"),
    ] {
        let mut world = World::of([said(0, EVE, "start")]);
        world.add(old.clone());
        world.add(messages);
        world.add([trigger.clone()]);
        let mut start = Start::within(thread(0));
        start.opted_out = [ADA.user()].into_iter().collect();
        start.limits.tail = 0;
        age(&mut start);
        assert_eq!(start.outline(&world, &trigger).await, expected);
    }
}

/// Headers take little of the characters: a chat keeps nearly as many messages as
/// bare lines `[10:00] <name> text` would.
#[tokio::test]
async fn a_block_holds_nearly_as_many_words_as_bare_lines() {
    let lengths = [12, 48, 7, 95, 31, 3, 64, 22, 140, 17, 55, 9];
    let people = [ADA, BOB, EVE];
    let talk = "talk ".repeat(40);
    let lines = lengths.into_iter().cycle().zip(people.into_iter().cycle());
    let chat: Vec<Message> = (1..=200)
        .zip(lines)
        .map(|(n, (length, who))| {
            said(n * 37, who, talk[..length].trim()).into_channel(thread_id(0))
        })
        .collect();
    let mut room = 2_000;
    let mut bare = 0;
    for message in chat.iter().rev() {
        let words = message.content.chars().count();
        let line = "[10:00] <> \n".len() + message.author.name.chars().count() + words;
        if line > room {
            break;
        }
        room -= line;
        bare += words;
    }
    let trigger = ask(9_000, "so?");
    let mut world = World::of(chat);
    world.add([said(0, ADA, "start"), trigger.clone()]);
    let start = within(|limits| {
        limits.max_chars = 2_000;
        limits.max_msgs = 1_000;
    });
    let collected = start.collect(&world, &trigger).await;
    let block = start.prepare(&collected).block;
    let words: usize = block.items().map(|item| item.text.chars().count()).sum();
    assert!(words * 100 >= bare * 96, "{words} of {bare}");
}

#[tokio::test]
async fn one_deadline_covers_all_calls_and_what_arrived_is_used() {
    tokio::time::pause();
    let mut world = small();
    world.latency = Duration::from_secs(20);
    let before = tokio::time::Instant::now();
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &ask(3, "so?")).await;
    assert!(before.elapsed() <= Duration::from_millis(5_200));
    assert_eq!(
        outline(&start.prepare(&collected).block),
        "unavailable ..0.."
    );
    assert_eq!(failures(&collected), ["history:timeout", "starter:timeout"]);
    assert_eq!(
        target(&collected),
        Some(3),
        "there is an answer nevertheless"
    );

    // Each call takes three seconds: the first two are answered in time, later ones are not.
    let mut slow = World::of([said(0, ADA, "start")]);
    slow.add((1..=200).map(|n| said(n, DICE, "noise").into_channel(thread_id(0))));
    let trigger = ask(201, "so?");
    slow.add([here(200, "a person"), trigger.clone()]);
    slow.latency = Duration::from_secs(3);
    let collected = start.collect(&slow, &trigger).await;
    assert_eq!(outline(&start.prepare(&collected).block), "s0 ..0.. 200");
    assert_eq!(failures(&collected), ["history:timeout"]);
    // Both ran at once.
    let stages = collected.stages.iter();
    let stages = stages.map(|one| (one.stage, one.fetches, one.took.as_secs()));
    let expected = [(Stage::History, 2, 5), (Stage::Starter, 1, 3)];
    assert_eq!(stages.collect::<Vec<_>>(), expected);
    assert_eq!(collected.fetches, 3);
}

#[tokio::test]
async fn the_number_of_fetches_is_capped() {
    let mut world = World::of([said(0, ADA, "start")]);
    world.add((1..=2000).map(|n| said(n, DICE, "noise").into_channel(thread_id(0))));
    let trigger = ask(2001, "so?");
    world.add([trigger.clone()]);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(collected.fetches, 8);
    assert_eq!(world.calls().len(), 8);
    assert!(failures(&collected).contains(&"history:fetch_budget".to_owned()));
    let none = within(|limits| limits.max_fetches = 0);
    let collected = none.collect(&world, &trigger).await;
    assert_eq!(world.calls().len(), 0);
    assert_eq!(collected.fetches, 0);
}

/// One retry after a transient error, within the budget.
#[tokio::test]
async fn a_temporary_error_is_retried_once() {
    tokio::time::pause();
    let passing = FetchError {
        reason: Fallback::Unavailable,
        transient: true,
    };
    let world = small().failing("page", passing);
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &ask(3, "so?")).await;
    assert_eq!(outline(&start.prepare(&collected).block), "s0 1 2");
    assert_eq!(failures(&collected), [""; 0]);
    assert_eq!(collected.fetches, 3);

    let twice = small().failing("page", passing).failing("page", passing);
    let collected = start.collect(&twice, &ask(3, "so?")).await;
    assert_eq!(failures(&collected), ["history:unavailable"]);
}

/// Whatever fails, there is still a result, and the reason is reported.
#[tokio::test]
async fn every_reason_is_reported() {
    for reason in [
        Fallback::Timeout,
        Fallback::Forbidden,
        Fallback::NotFound,
        Fallback::RateLimited,
        Fallback::Unavailable,
        Fallback::Malformed,
    ] {
        let world = small().failing("page", FetchError::lasting(reason));
        let start = Start::within(thread(0));
        let collected = start.collect(&world, &ask(3, "so?")).await;
        assert_eq!(failures(&collected), [format!("history:{reason}")]);
        assert_eq!(outline(&start.prepare(&collected).block), "s0 ..0..");
        assert_eq!(target(&collected), Some(3));
    }
}

#[tokio::test]
async fn an_unreadable_message_costs_only_itself() {
    let mut world = small();
    world.unreadable.insert(id(1));
    let start = Start::within(thread(0));
    let collected = start.collect(&world, &ask(3, "so?")).await;
    assert_eq!(outline(&start.prepare(&collected).block), "s0 2");
    assert_eq!(failures(&collected), ["history:malformed"]);
}

/// An empty list where at least the trigger should be is a refusal, and a channel
/// that refused is not asked for a minute.
#[tokio::test]
async fn an_empty_page_is_a_refusal() {
    tokio::time::pause();
    let mut world = small();
    world.hidden.insert(thread_id(0));
    let negative_cache = NegativeCache::default();
    let start = Start {
        our_access: Access::Unknown(Missing::Facts),
        ..Start::within(thread(0))
    };
    let trigger = ask(3, "so?");
    let collected = start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(failures(&collected), ["history:forbidden"]);
    assert!(
        collected.window_update.pages.is_none(),
        "the window learns no hole"
    );
    assert_eq!(world.calls(), ["page to 3", "message 0"]);

    let again = start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(failures(&again), ["history:forbidden"]);
    assert_eq!(world.calls(), ["message 0"], "the parent alone is asked");

    tokio::time::advance(Duration::from_secs(61)).await;
    start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(world.calls(), ["page to 3", "message 0"]);

    world.hidden.clear();
    negative_cache.permissions_changed(|_| false);
    start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(world.calls(), ["message 0"], "another server's change");
    negative_cache.permissions_changed(|channel| channel == thread_id(0));
    let collected = start.collect_with(&world, &negative_cache, &trigger).await;
    assert_eq!(outline(&start.prepare(&collected).block), "s0 1 2");
}

/// A command's question is on no page, so an empty page does not prove that the
/// channel is empty.
#[tokio::test]
async fn an_empty_page_before_a_command_proves_nothing() {
    let world = World::of([said(0, ADA, "start")]);
    let start = Start {
        our_access: Access::Unknown(Missing::Facts),
        cause: crate::collectors::target::ask_command(),
        ..Start::within(thread(0))
    };
    let collected = start.collect(&world, &ask(3, "so?")).await;
    assert!(collected.window_update.pages.is_none());
    assert_eq!(failures(&collected), ["history:forbidden"]);
}

/// If the bot knows that it may not read a channel, it does not ask.
#[tokio::test]
async fn what_we_may_not_read_is_not_fetched() {
    let world = small();
    for channel in [thread(0), post(0)] {
        let start = Start {
            our_access: UNREADABLE,
            ..Start::within(channel)
        };
        let collected = start.collect(&world, &ask(3, "so?")).await;
        assert_eq!(world.calls(), [""; 0]);
        assert_eq!(
            failures(&collected),
            ["history:forbidden", "starter:forbidden"]
        );
    }
    let lone = Start {
        our_access: UNREADABLE,
        ..Start::within(text_channel())
    };
    let collected = lone.collect(&world, &asked(3, EVE, "how tall?")).await;
    assert_eq!(failures(&collected), [""; 0], "nothing was needed");
}

/// The channel itself can be visible even if its history is not.
#[tokio::test]
async fn a_channel_is_shown_even_if_its_messages_are_refused() {
    let world = small().with_channel(thread(0));
    let start = Start {
        our_access: UNREADABLE,
        ..Start::default()
    };
    let collected = start.collect(&world, &ask(3, "so?")).await;
    assert_eq!(world.calls(), ["channel"]);
    assert!(collected.turn.channel.is_some());
}

/// An asker who may not read the history gets the trigger and the message it includes.
#[tokio::test]
async fn the_askers_rights_count_too() {
    let world = small();
    let start = Start {
        asker_access: UNREADABLE,
        ..Start::within(thread(0))
    };
    let trigger = ask(3, "so?").replying(1);
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(outline(&start.prepare(&collected).block), "");
    assert_eq!(failures(&collected), ["asker:forbidden"]);
    let carrying = trigger.carrying(here(1, "a"));
    let collected = start.collect(&world, &carrying).await;
    assert_eq!(outline(&start.prepare(&collected).block), "p1");
    assert_eq!(world.calls(), [""; 0]);
    assert_eq!(target(&collected), Some(3));
}

/// Counts the lookups.
struct Counting(Cell<usize>);

impl Directory for Counting {
    fn user(&self, id: UserId) -> Option<String> {
        self.0.set(self.0.get() + 1);
        Some(format!("p{id}"))
    }
    fn role(&self, _: RoleId) -> Option<String> {
        None
    }
    fn channel(&self, _: ChannelId) -> Option<String> {
        None
    }
}

/// What is cut out of a message is not rendered first.
#[test]
fn only_the_ends_of_a_huge_message_are_rendered() {
    let lookups = |mentions: u64| {
        let all = (0..mentions).map(|user| format!("<@{}> ", 1_000_000 + user));
        let text = all.collect::<Vec<_>>().concat();
        let message = Arc::new(said(1, BOB, &text));
        let (us, directory) = (us(), Counting(Cell::new(0)));
        let item = Renderer::new(&us, &directory).item(message, BlockPlace::History, 2_000);
        assert!(item.cut.is_some() && item.text.chars().count() <= 2_000);
        assert!(
            item.text.starts_with("@p1000000 @p1000001 "),
            "{}",
            item.text
        );
        let last = format!(" @p{}", 1_000_000 + mentions - 1);
        assert!(item.text.ends_with(&last), "{}", item.text);
        directory.0.get()
    };
    let few = lookups(2_000);
    assert_eq!(lookups(4_000), few);
    assert_eq!(lookups(100_000), few);
}

#[derive(Debug, Clone)]
struct Said {
    who: usize,
    text: String,
    reply: Option<u64>,
}

fn somebody_says() -> impl Strategy<Value = Said> {
    let text = prop_oneof![
        "[a-z ]{0,40}",
        "(\\PC|\n|👨‍👩‍👧|<@11>|`){0,300}",
        (1..3000_usize).prop_map(|length| "long ".repeat(length / 5)),
        Just("<@90>".to_owned()),
    ];
    (0..6_usize, text, prop::option::of(0..40_u64)).prop_map(|(who, text, reply)| Said {
        who,
        text,
        reply,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever is said, the caps hold, and the count matches the text that is shown.
    #[test]
    fn the_caps_always_hold(
        all in prop::collection::vec(somebody_says(), 1..40),
        asks in somebody_says(),
        max_chars in prop_oneof![0..400_usize, 400..9000_usize],
        max_msgs in 1..45_usize,
        tail in 0..41_usize,
        history in any::<bool>(),
        in_thread in any::<bool>(),
    ) {
        let people = [ADA, BOB, EVE, CLEW, DICE, ALERT];
        let channel = if in_thread { thread(0) } else { text_channel() };
        let shape = |n: u64, one: &Said| {
            let message = said(n, people[one.who], &one.text).into_channel(channel.id);
            match one.reply {
                Some(to) if to + 1 < n => message.replying(to + 1),
                _ => message,
            }
        };
        let mut world = World::of([said(0, ADA, "the starter of it all")]);
        world.add((1..).zip(&all).map(|(n, one)| shape(n, one)));
        let trigger = shape(all.len() as u64 + 1, &Said { who: 2, ..asks });
        world.add([trigger.clone()]);
        let start = Start {
            limits: Limits { max_chars, max_msgs, tail, ..Limits::default() },
            cause: if history { Cause::Mention } else { Cause::AutoReply },
            ..Start::within(channel)
        };
        let collected = start.collected(&world, &trigger);
        let prepared = start.prepare(&collected);
        let block = &prepared.block;
        let shown = clew_context::engine::frame::block(block);
        prop_assert_eq!(shown.chars().count(), block.chars);
        prop_assert!(block.chars <= max_chars);
        // Starter, pointed-at and target are kept whatever the cap.
        prop_assert!(block.items().count() <= max_msgs.max(3));
        prop_assert!(collected.fetches <= start.limits.max_fetches);
        let ids: Vec<_> = block.items().map(|item| item.message.id).collect();
        prop_assert!(ids.is_sorted() && !ids.contains(&trigger.id), "{:?}", ids);
        prop_assert!(block.omitted.iter().all(|omitted| !ids.contains(&omitted.id)));
    }
}
