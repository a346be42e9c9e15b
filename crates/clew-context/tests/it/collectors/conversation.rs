//! `LONE_CONTEXT=conversation`: of a channel's last messages a mention with text gets those
//! of its asker's conversation, for one call, or two if it reaches the first page's end.

use clew_context::model::{
    BlockPlace, Limits, LoneContext, Message, OmitReason, OptedOut, Snapshot, Tie,
};
use proptest::prelude::*;

use crate::support::build::{
    ADA, BOB, CLEW, DICE, EVE, Person, Shape, asked, id, said, text_channel,
};
use crate::support::world::{Start, World, outline};

fn conversation(limits: Limits) -> Start {
    Start {
        limits: Limits {
            lone_context: LoneContext::Conversation,
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
    assert!(block.chars <= start.limits.lone_max_chars);
    assert_eq!(world.calls(), calls);
}

/// Ada and Eve talk about a migration, Bob goes on about his cat, a minute apart; then Eve
/// asks.
fn talk() -> Vec<Message> {
    vec![
        said(60, ADA, "<@13> did the billing migration finish?"),
        said(120, BOB, "look at my cat").replying(1_000),
        said(180, EVE, "<@11> nearly, the migration is at 80 percent"),
        said(240, BOB, "it sleeps on the keyboard").replying(120),
        said(300, DICE, "<@13> rolled a 4"),
        said(360, ADA, "<@13> tell me when it is through"),
        said(420, BOB, "and now in the sink").replying(240),
        asked(
            500,
            EVE,
            "what do we tell people about the billing migration?",
        ),
    ]
}

fn world() -> (World, Message) {
    let mut talk = talk();
    let trigger = talk.pop().unwrap();
    let mut world = World::of(talk);
    world.add([trigger.clone()]);
    (world, trigger)
}

#[test]
fn it_gets_what_belongs_to_its_askers_conversation_and_why() {
    let (world, trigger) = world();
    let start = conversation(Limits::default());
    let collected = start.collected(&world, &trigger);
    let block = start.prepare(&collected).block;
    assert_eq!(outline(&block), "60 180 360");
    let ties: Vec<BlockPlace> = block.items().map(|item| item.place).collect();
    assert!(
        ties.contains(&BlockPlace::Conversation(Tie::Named)),
        "{ties:?}"
    );
    assert_eq!(block.omitted_for(OmitReason::OtherConversation), 3);
    assert_eq!(block.omitted_for(OmitReason::App), 1);
}

#[test]
fn where_little_is_said_more_is_shown() {
    let shown = |apart: u64| {
        let lines = [
            (BOB, "good morning"),
            (BOB, "the coffee machine is back"),
            (ADA, "<@13> did the billing migration finish?"),
            (EVE, "<@11> nearly, the migration is at 80 percent"),
            (BOB, "it works on the other server"),
            (ADA, "<@13> tell me when it is through"),
            (BOB, "since Monday"),
            (EVE, "what do we tell people about it?"),
        ];
        let at = |nth: u64| (nth + 1) * apart;
        let mut talk: Vec<Message> = (0..)
            .zip(lines)
            .map(|(nth, (who, text))| said(at(nth), who, text))
            .collect();
        talk.pop();
        let trigger = asked(at(7), EVE, lines[7].1);
        let mut world = World::of(talk);
        world.add([trigger.clone()]);
        let start = conversation(Limits::default());
        let block = start.prepare(&start.collected(&world, &trigger)).block;
        block.items().count()
    };
    assert_eq!([shown(60), shown(200)], [3, 7]);
}

#[test]
fn it_costs_one_page_where_it_does_not_reach_its_end() {
    let (world, trigger) = world();
    let start = conversation(Limits::default());
    check(&start, &world, &trigger, "60 180 360", &["page to 500"]);
    // All there is has been seen.
    let start = conversation(Limits::default()).watching(&talk(), true);
    check(&start, &world, &trigger, "60 180 360", &[]);
    // Less than a page has been seen.
    let start = conversation(Limits::default()).watching(&talk()[3..], false);
    check(&start, &world, &trigger, "60 180 360", &["page to 500"]);
    // More than a page has been seen, and more than that was said before.
    let old = (0..150).map(|n| said(n, DICE, "tick"));
    let seen: Vec<Message> = old.collect();
    let trigger = asked(300, EVE, "so?");
    let mut world = World::of(seen.clone());
    world.add([trigger.clone()]);
    let start = conversation(Limits::default()).watching(&seen[20..], false);
    check(&start, &world, &trigger, "", &[]);
    // Nothing has been seen, and a page is neither all there is nor all readable.
    world.unreadable.insert(id(149));
    let start = conversation(Limits::default());
    check(&start, &world, &trigger, "", &["page to 300"]);
}

#[test]
fn a_second_page_is_fetched_where_the_conversation_reaches_the_firsts_end() {
    // Every tenth message is about a migration, the others are somebody's log.
    let talk = (1..=260).map(|number| match number % 20 {
        0 => said(
            number,
            ADA,
            "<@13> another table of the migration is through",
        ),
        10 => said(number, EVE, "<@11> good, next table of the migration"),
        _ => said(number, BOB, &format!("entry {number}")),
    });
    let mut world = World::of(talk);
    let trigger = asked(300, EVE, "<@11> which table of the migration is next?");
    world.add([trigger.clone()]);
    conversation(Limits::default()).collected(&world, &trigger);
    assert_eq!(world.calls(), ["page to 300", "page before 162"]);
    let mut world = World::of((1..=260).map(|number| said(number, DICE, "tick")));
    let trigger = asked(300, EVE, "so?");
    world.add([trigger.clone()]);
    let start = conversation(Limits::default());
    check(&start, &world, &trigger, "", &["page to 300"]);
}

#[test]
fn where_nothing_belongs_nothing_is_shown() {
    let mut talk = talk();
    let trigger = asked(90_000, ADA, "which holidays does Norway have in May?");
    talk.pop();
    let bobs = talk.into_iter().filter(|one| one.author.id == BOB.user());
    let mut world = World::of(bobs);
    world.add([trigger.clone()]);
    let start = conversation(Limits::default());
    check(&start, &world, &trigger, "", &["page to 90000"]);
}

/// What does not belong is told apart: others' messages, what a question that begins something new
/// leaves behind, and what was said long ago.
#[test]
fn why_it_does_not_belong_is_told() {
    #[track_caller]
    fn check(others: &[Person], second: u64, who: Person, text: &str, expected: [usize; 4]) {
        let talk = talk().into_iter();
        let talk = talk.filter(|one| others.iter().any(|who| who.user() == one.author.id));
        let mut world = World::of(talk.take(6));
        let trigger = asked(second, who, text);
        world.add([trigger.clone()]);
        let start = conversation(Limits::default());
        let block = start.prepare(&start.collected(&world, &trigger)).block;
        let reasons = [
            OmitReason::OtherConversation,
            OmitReason::NewConversation,
            OmitReason::LongAgo,
        ];
        let [others, new, ago] = reasons.map(|reason| block.omitted_for(reason));
        let found = [block.items().count(), others, new, ago];
        assert_eq!(found, expected, "{:?}", block.omitted);
    }
    let people = [ADA, BOB, EVE];
    let plan = "what do we tell people about the billing migration?";
    check(&people, 500, EVE, plan, [3, 3, 0, 0]);
    let holidays = "which holidays does Norway have in May?";
    check(&[BOB], 40_000, ADA, holidays, [0, 0, 3, 0]);
    check(&[BOB], 90_000, ADA, holidays, [0, 0, 0, 3]);
    check(&people, 90_000, EVE, plan, [0, 0, 3, 3]);
}

#[test]
fn the_caps_hold() {
    let (world, trigger) = world();
    let limits = Limits {
        max_msgs: 1,
        ..Limits::default()
    };
    let start = conversation(limits);
    assert_eq!(
        start
            .prepare(&start.collected(&world, &trigger))
            .block
            .items()
            .count(),
        1
    );
    let limits = Limits {
        lone_max_chars: 120,
        ..Limits::default()
    };
    let start = conversation(limits);
    let block = start.prepare(&start.collected(&world, &trigger)).block;
    assert!(block.chars <= 120 && block.items().count() > 0, "{block:?}");
}

/// What belongs and finds no room is told apart from what does not belong, and nothing of it is
/// marked in the block.
#[test]
fn the_cap_that_leaves_out_is_named() {
    #[track_caller]
    fn check(limits: Limits, msgs: usize, chars: usize) {
        let (world, trigger) = world();
        let start = conversation(limits);
        let block = start.prepare(&start.collected(&world, &trigger)).block;
        let reasons = [
            OmitReason::Msgs,
            OmitReason::LoneChars,
            OmitReason::OtherConversation,
        ];
        let left_out = reasons.map(|reason| block.omitted_for(reason));
        assert_eq!(left_out, [msgs, chars, 3], "{:?}", block.omitted);
        assert_eq!(block.entries.len(), 3 - msgs - chars, "no markers");
    }
    check(Limits::default(), 0, 0);
    let over = |max_msgs, lone_max_chars| Limits {
        max_msgs,
        lone_max_chars,
        ..Limits::default()
    };
    check(over(2, 2_000), 1, 0);
    check(over(3, 100), 0, 2);
    check(over(1, 100), 1, 1);
}

/// All that a message shows counts, not only what its author typed.
#[test]
fn embeds_and_forwards_take_room() {
    let mut talk = talk();
    let trigger = talk.pop().unwrap();
    let long = "the billing migration is slow ".repeat(30);
    for minute in [370, 380, 390, 400] {
        let said = said(minute, ADA, "<@13> about the migration");
        talk.push(if minute < 390 {
            said.with_embed("plan", &long)
        } else {
            said.with_extras(|extras| {
                extras.snapshots.push(Snapshot {
                    content: long.as_str().into(),
                    timestamp: None,
                    extras: None,
                    withheld: false,
                });
            })
        });
    }
    let mut world = World::of(talk);
    world.add([trigger.clone()]);
    let start = conversation(Limits::default());
    let block = start.prepare(&start.collected(&world, &trigger)).block;
    let theirs = block.items();
    let theirs = theirs.filter(|item| item.message.author.id == ADA.user());
    let theirs: Vec<usize> = theirs.map(|item| item.text.chars().count()).collect();
    let sum = theirs.iter().sum::<usize>();
    assert!(sum <= 1_000 && theirs.len() > 1, "{theirs:?}");
    assert!(block.omitted_for(OmitReason::LoneChars) > 1);
}

/// A message that alone exceeds the room is shortened.
#[test]
fn a_long_message_is_shortened() {
    let long = format!("<@13> {}", "the plan is long ".repeat(200));
    let trigger = asked(500, EVE, "<@11> is that the whole plan?");
    let mut world = World::of([said(1, EVE, "<@11> what is the plan?"), said(2, ADA, &long)]);
    world.add([trigger.clone()]);
    check(
        &conversation(Limits::default()),
        &world,
        &trigger,
        "1 2",
        &["page to 500"],
    );
}

#[test]
fn our_answers_belong_to_whom_they_answer() {
    let talk = vec![
        asked(60, EVE, "how do I drain the tank?"),
        said(61, CLEW, "Open valve 4 first.").replying(60),
        asked(120, BOB, "who won yesterday?"),
        said(121, CLEW, "The home team.").replying(120),
    ];
    let trigger = asked(500, EVE, "and then?");
    let mut world = World::of(talk);
    world.add([trigger.clone()]);
    let start = conversation(Limits::default());
    check(&start, &world, &trigger, "60 61", &["page to 500"]);
}

/// Nothing is known of what they said, so nothing shows that they spoke.
#[test]
fn of_people_who_opted_out_nothing_is_shown() {
    let (world, trigger) = world();
    let opted_out: OptedOut = [ADA.user()].into_iter().collect();
    let start = Start {
        opted_out,
        ..conversation(Limits::default())
    };
    let collected = start.collected(&world, &trigger);
    let block = start.prepare(&collected).block;
    let mut authors = block.items().map(|item| item.message.author.id);
    assert!(authors.all(|author| author != ADA.user()));
    assert_eq!(block.omitted_for(OmitReason::OptedOut), 2);
}

#[test]
fn a_bare_mention_stays_as_it_is() {
    let (world, _) = world();
    let start = conversation(Limits::default());
    let default = Start::within(text_channel());
    let trigger = asked(500, EVE, "");
    let with = start.prepare(&start.collected(&world, &trigger)).prompt;
    let without = default.prepare(&default.collected(&world, &trigger)).prompt;
    assert_eq!(with, without);
}

#[test]
fn a_reply_gets_its_chain_and_the_conversation_around_it() {
    let (mut world, _) = world();
    let trigger = asked(500, EVE, "what do we tell people about it?").replying(360);
    world.add([trigger.clone()]);
    let start = conversation(Limits::default());
    let calls = ["page to 360", "page to 500"];
    let collected = start.collected(&world, &trigger);
    assert_eq!(outline(&start.prepare(&collected).block), "60 180 p360");
    assert!(world.calls().iter().all(|call| calls.contains(&&**call)));
    // Only the chain without the setting.
    let off = Start::within(text_channel());
    let collected = off.collected(&world, &trigger);
    assert_eq!(outline(&off.prepare(&collected).block), "p360");
    // Nothing is fetched where all has been seen.
    world.calls();
    let start = conversation(Limits::default()).watching(&talk(), true);
    let collected = start.collected(&world, &trigger);
    assert_eq!(outline(&start.prepare(&collected).block), "60 180 p360");
    assert_eq!(world.calls(), [""; 0]);
}

#[test]
fn a_chain_into_another_conversation_is_shown_with_that_one() {
    let (mut world, _) = world();
    let trigger = asked(500, EVE, "where was that?").replying(420);
    world.add([trigger.clone()]);
    let start = conversation(Limits::default());
    let block = start.prepare(&start.collected(&world, &trigger)).block;
    let shown = outline(&block);
    assert!(shown.starts_with("120 "), "{shown}");
    assert!(
        shown.contains("240 p420") || shown.contains("240 360 p420"),
        "{shown}"
    );
}

/// The caps are for both together, and the chain is what stays.
#[test]
fn a_chain_leaves_less_room_for_the_conversation() {
    let (mut world, _) = world();
    let trigger = asked(500, EVE, "what do we tell people about it?").replying(360);
    world.add([trigger.clone()]);
    let shown = |limits: Limits| {
        let start = conversation(limits);
        outline(&start.prepare(&start.collected(&world, &trigger)).block)
    };
    let with = |max_msgs, lone_max_chars| Limits {
        max_msgs,
        lone_max_chars,
        ..Limits::default()
    };
    assert_eq!(shown(with(2, 2_000)), "180 p360");
    assert_eq!(shown(with(1, 2_000)), "p360");
    assert_eq!(shown(with(40, 100)), "180 p360");
    assert_eq!(shown(with(40, 20)), "p360");
    let tight = Limits {
        max_chars: 120,
        ..Limits::default()
    };
    assert!(shown(tight).ends_with("p360"));
}

/// One message of a flood: names, mentions, the question's own words, and replies to anybody.
fn flood() -> impl Strategy<Value = (String, Option<u64>)> {
    let text = prop_oneof![
        "(<@1[13]> ?){1,3}(billing|migration|people|percent)( (billing|migration|tell|what)){0,40}",
        "(Ada|Eve)[:,] (what do we tell people about the billing migration){1,9}",
        "(billing migration ){1,120}",
    ];
    (text, prop::option::of((1..8_u64).prop_map(|n| n * 60)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever somebody pours into a channel costs at most the caps, and half of the room; with
    /// `LONE_CONTEXT=off` the prompt is, byte for byte, that of an empty channel.
    #[test]
    fn a_flood_costs_at_most_the_caps(
        floods in prop::collection::vec(flood(), 0..60),
        max_msgs in 1..60_usize,
        lone_max_chars in 100..4_000_usize,
        warm in any::<bool>(),
    ) {
        let (mut world, _) = world();
        let trigger = asked(900, EVE, "what do we tell people about the billing migration?");
        let floods: Vec<Message> = (501..).zip(floods).map(|(n, (text, reply))| {
            let flood = said(n, BOB, &text);
            match reply {
                Some(to) => flood.replying(to),
                None => flood,
            }
        }).collect();
        world.add(floods.iter().cloned().chain([trigger.clone()]));
        let limits = Limits { max_msgs, lone_max_chars, ..Limits::default() };
        let start = conversation(limits);
        let seen: Vec<Message> = talk().into_iter().take(7).chain(floods).collect();
        let start = if warm { start.watching(&seen, false) } else { start };
        let block = start.prepare(&start.collected(&world, &trigger)).block;
        prop_assert!(world.calls().len() <= 1);
        prop_assert!(block.chars <= lone_max_chars && block.items().count() <= max_msgs);
        let bobs = block.items().filter(|item| item.message.author.id == BOB.user());
        let bobs: Vec<usize> = bobs.map(|item| item.text.chars().count()).collect();
        let half = lone_max_chars / 2;
        prop_assert!(bobs.len() <= 1 || bobs.iter().sum::<usize>() <= half, "{:?} of {}", bobs, half);

        let off = Start { limits, ..Start::within(text_channel()) };
        let with = off.prepare(&off.collected(&world, &trigger)).prompt;
        prop_assert_eq!(world.calls(), [""; 0]);
        let empty = World::of([trigger.clone()]);
        prop_assert_eq!(with, off.prepare(&off.collected(&empty, &trigger)).prompt);
    }
}
