//! `LONE_CONTEXT`: what a mention with text gets of its channel, and how many messages
//! it would have been.

use clew_context::engine::prepare::lone_in_window;
use clew_context::engine::turn::{Collected, TurnInput};
use clew_context::model::{Access, Limits, LoneContext, Message, OmitReason};

use crate::support::build::{ADA, BOB, DICE, EVE, Shape, asked, id, said, text_channel};
use crate::support::world::{Start, World, outline};

fn recent(limits: Limits) -> Start {
    Start {
        limits: Limits {
            lone_context: LoneContext::Recent,
            ..limits
        },
        ..Start::within(text_channel())
    }
}

#[track_caller]
fn check(start: &Start, world: &World, trigger: &Message, shown: &str, calls: &[&str]) {
    let collected = start.collected(world, trigger);
    let block = start.prepare(&collected).block;
    assert_eq!(outline(&block), shown);
    assert!(block.chars <= start.limits.max_chars);
    assert_eq!(world.calls(), calls);
}

/// Messages 1 to 8 of this length, and a question.
fn talk(chars: usize) -> (World, Message) {
    let text = "x".repeat(chars);
    let trigger = asked(20, EVE, "so?");
    let mut world = World::of((1..9).map(|n| said(n, ADA, &text)));
    world.add([said(9, DICE, "42"), trigger.clone()]);
    (world, trigger)
}

#[test]
fn a_plain_mention_gets_nothing_by_default() {
    let (world, trigger) = talk(10);
    check(&Start::within(text_channel()), &world, &trigger, "", &[]);
}

#[test]
fn with_recent_it_gets_the_last_messages() {
    let (world, trigger) = talk(10);
    let start = recent(Limits::default());
    check(&start, &world, &trigger, "1 2 3 4 5 6 7 8", &["page to 20"]);
    // What the window holds needs no call.
    let seen: Vec<Message> = (1..9).map(|n| said(n, BOB, "x")).collect();
    let seen: Vec<Message> = seen.into_iter().chain([trigger.clone()]).collect();
    let start = recent(Limits::default()).watching(&seen, true);
    check(&start, &world, &trigger, "1 2 3 4 5 6 7 8", &[]);
}

#[test]
fn lone_max_chars_and_mem_max_msgs_bound_it() {
    let start = recent(Limits::default());
    let (world, trigger) = talk(600);
    check(&start, &world, &trigger, "6 7 8", &["page to 20"]);
    let (world, trigger) = talk(4_000);
    let mut collected = start.collected(&world, &trigger);
    let block = start.prepare(&collected).block;
    assert_eq!(
        (outline(&block).as_str(), block.chars <= 2_000),
        ("8", true)
    );
    // It is the smaller of both caps that cuts.
    for (max_chars, cap) in [(8_000, OmitReason::LoneChars), (1_000, OmitReason::Chars)] {
        collected.turn.limits.max_chars = max_chars;
        let block = start.prepare(&collected).block;
        let cut: Vec<_> = block.items().map(|item| item.cut).collect();
        assert_eq!(cut, [Some(cap)]);
    }
    let start = recent(Limits {
        max_msgs: 2,
        ..Limits::default()
    });
    let (world, trigger) = talk(10);
    check(&start, &world, &trigger, "7 8", &["page to 20"]);
}

#[test]
fn what_recent_leaves_out_is_named_with_its_cap() {
    let left_out = |limits: Limits, chars: usize| {
        let start = recent(limits);
        let (world, trigger) = talk(chars);
        let block = start.prepare(&start.collected(&world, &trigger)).block;
        let omitted = block.omitted.into_iter();
        omitted.map(|one| (one.id, one.reason)).collect::<Vec<_>>()
    };
    let named = |last: u64, cap| {
        let beyond = (1..=last).map(|n| (id(n), cap));
        beyond.chain([(id(9), OmitReason::App)]).collect::<Vec<_>>()
    };
    assert_eq!(
        left_out(Limits::default(), 600),
        named(5, OmitReason::LoneChars)
    );
    let two = Limits {
        max_msgs: 2,
        ..Limits::default()
    };
    assert_eq!(left_out(two, 10), named(6, OmitReason::Msgs));
}

#[test]
fn other_scenes_stay_as_they_are() {
    let (world, _) = talk(10);
    let start = recent(Limits::default());
    let bare = asked(20, EVE, "");
    let default = Start::within(text_channel());
    for trigger in [bare, asked(20, EVE, "so?").replying(8)] {
        let with = start.prepare(&start.collected(&world, &trigger)).prompt;
        let without = default.prepare(&default.collected(&world, &trigger)).prompt;
        assert_eq!(with, without);
    }
}

#[test]
fn while_off_the_window_tells_how_many_it_would_have_been() {
    let (world, trigger) = talk(600);
    let seen: Vec<Message> = (3..9).map(|n| said(n, ADA, &"x".repeat(600))).collect();
    let seen: Vec<Message> = seen.into_iter().chain([trigger.clone()]).collect();
    let start = Start::within(text_channel()).watching(&seen, false);
    let collected = start.collected(&world, &trigger);
    assert_eq!(lone_in_window(&collected), (3, 1));
    assert_eq!(world.calls(), [""; 0]);
    let denied = Collected {
        turn: TurnInput {
            asker_access: Access::Denied,
            ..collected.turn.clone()
        },
        ..collected
    };
    assert_eq!(lone_in_window(&denied), (0, 0));
    let start = recent(Limits::default()).watching(&seen, false);
    assert_eq!(lone_in_window(&start.collected(&world, &trigger)), (0, 0));
    let bare = asked(21, EVE, "");
    let start = Start::within(text_channel()).watching(&seen, false);
    assert_eq!(lone_in_window(&start.collected(&world, &bare)), (0, 0));
}

#[test]
fn a_link_to_a_recent_message_labels_it_there() {
    let (world, _) = talk(10);
    let link = format!("https://discord.com/channels/77/500/{}", id(4));
    let trigger = asked(20, EVE, &link);
    let start = recent(Limits::default());
    let shown = "1 2 3 l4 5 6 7 8";
    check(
        &start,
        &world,
        &trigger,
        shown,
        &["page to 20", "page around 4"],
    );
}
