//! `THREAD_SELECT`: which messages of a thread stay where the caps leave no room for all.

use clew_context::engine::prepare::Prepared;
use clew_context::model::{Limits, Message, OmitReason, ThreadSelect};
use proptest::prelude::*;

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, EVE, Person, Shape, asked, said, thread, thread_id,
};
use crate::support::world::{Start, World, outline};

fn here(n: u64, who: Person, text: &str) -> Message {
    said(n, who, text).into_channel(thread_id(0))
}

/// A thread in which Ada and Eve talk about a migration and Bob goes on about his cat; then
/// Eve asks.
fn talk() -> Vec<Message> {
    vec![
        said(0, ADA, "the release is today"),
        here(60, ADA, "<@13> did the billing migration finish?"),
        here(120, BOB, "look at my cat"),
        here(180, EVE, "<@11> nearly, the migration is at 80 percent"),
        here(240, BOB, "it sleeps on the keyboard").replying(120),
        here(300, ADA, "<@13> tell me when the migration is through"),
        here(360, BOB, "and now in the sink").replying(240),
        here(420, BOB, "and on the printer").replying(360),
        here(480, BOB, "good night").replying(420),
        asked(
            500,
            EVE,
            "what do we tell people about the billing migration?",
        )
        .into_channel(thread_id(0)),
    ]
}

fn prepared(messages: &[Message], limits: Limits) -> Prepared {
    let start = Start {
        limits,
        ..Start::within(thread(0))
    };
    let world = World::of(messages.iter().cloned());
    let trigger = messages.last().unwrap();
    start.prepare(&start.collected(&world, trigger))
}

#[track_caller]
fn check(limits: Limits, newest: &str, conversation: &str) {
    for (thread_select, expected) in [
        (ThreadSelect::Newest, newest),
        (ThreadSelect::Conversation, conversation),
    ] {
        let limits = Limits {
            tail: 1,
            thread_select,
            ..limits
        };
        let block = prepared(&talk(), limits).block;
        assert_eq!(outline(&block), expected, "{thread_select:?}");
        assert!(block.chars <= limits.max_chars);
    }
}

#[test]
fn the_askers_conversation_stays_when_the_caps_drop_others() {
    let limits = Limits::default();
    let all = "s0 60 120 180 240 300 360 420 480";
    check(limits, all, all);
    let max_msgs = 5;
    let limits = Limits { max_msgs, ..limits };
    check(limits, "s0 ..4.. 300 360 420 480", "s0 60 180 300 ... 480");
    // Of the first message of the conversation about the migration: at how small a cap it stays.
    let needed = |thread_select| {
        let shows = |max_chars: &usize| {
            let limits = Limits {
                max_chars: *max_chars,
                tail: 1,
                thread_select,
                ..Limits::default()
            };
            let block = prepared(&talk(), limits).block;
            assert!(block.chars <= *max_chars);
            outline(&block).split(' ').any(|one| one == "60")
        };
        (200..1_000).step_by(20).find(shows)
    };
    let (newest, conversation) = (
        needed(ThreadSelect::Newest),
        needed(ThreadSelect::Conversation),
    );
    assert!(conversation < newest, "{conversation:?} {newest:?}");
}

/// What we said since the message that is answered is part of that.
#[test]
fn our_own_messages_since_the_target_stay() {
    let mut messages = talk();
    messages.pop();
    messages.push(here(485, CLEW, "sleep well"));
    messages.push(here(490, CLEW, "and the cat, too"));
    messages.push(asked(500, EVE, "").into_channel(thread_id(0)));
    for thread_select in [ThreadSelect::Newest, ThreadSelect::Conversation] {
        let limits = Limits {
            tail: 1,
            max_msgs: 5,
            thread_select,
            ..Limits::default()
        };
        let shown = outline(&prepared(&messages, limits).block);
        let ends = shown.contains("485") && shown.ends_with("490");
        assert!(ends, "{thread_select:?}: {shown}");
    }
}

/// Of somebody whose words are withheld it is still told that they spoke among those shown.
#[test]
fn private_messages_among_those_shown_are_marked() {
    let mut talk = talk();
    for message in &mut talk {
        message.withheld = message.author.id == BOB.user() && message.content.contains("sink");
    }
    let limits = Limits {
        tail: 1,
        max_msgs: 5,
        thread_select: ThreadSelect::Conversation,
        ..Limits::default()
    };
    let shown = outline(&prepared(&talk, limits).block);
    assert_eq!(shown, "s0 60 180 300 private 480");
}

prop_compose! {
    fn message()(
        who in prop::sample::select(vec![ADA, BOB, EVE, ALERT]),
        text in "(<@1[123]> ?)?[a-d]{1,3}( [a-d]{1,3}){0,30}",
        reply in prop::option::weighted(0.3, 1..30_u64),
    ) -> (Person, String, Option<u64>) {
        (who, text, reply)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// It chooses among what does not fit, and shows no less; the rest is as ever.
    #[test]
    fn it_changes_only_what_the_caps_drop(
        lines in prop::collection::vec(message(), 1..30),
        max_msgs in 1..40_usize,
        max_chars in 100..4_000_usize,
        tail in 0..6_usize,
    ) {
        let mut talk = vec![said(0, ADA, "start")];
        talk.extend((1..).zip(&lines).map(|(n, (who, text, reply))| {
            let message = here(n, *who, text);
            match reply {
                Some(to) if *to < n => message.replying(*to),
                _ => message,
            }
        }));
        talk.push(asked(99, EVE, "what of a and dab?").into_channel(thread_id(0)));
        let with = |thread_select| {
            let limits = Limits { max_msgs, max_chars, tail, thread_select, ..Limits::default() };
            prepared(&talk, limits)
        };
        let (newest, conversation) = (with(ThreadSelect::Newest), with(ThreadSelect::Conversation));
        let dropped = |one: &Prepared| {
            let reasons = [OmitReason::Msgs, OmitReason::Chars];
            reasons.map(|reason| one.block.omitted_for(reason))
        };
        if dropped(&newest) == [0, 0] {
            prop_assert_eq!(&newest.prompt, &conversation.prompt);
        }
        prop_assert_eq!(dropped(&newest)[0], dropped(&conversation)[0]);
        prop_assert!(conversation.block.chars <= max_chars);
        let ids: Vec<_> = conversation.block.items().map(|item| item.message.id).collect();
        prop_assert!(ids.is_sorted());
        let known = |one: &Prepared| one.block.items().count() + one.block.omitted.len();
        prop_assert_eq!(known(&newest), known(&conversation));
    }
}
