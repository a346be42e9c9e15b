//! `PLACE_CONTEXT`: a channel's topic and pinned messages, what they cost and whom they show.

use clew_context::collect::FetchError;
use clew_context::engine::recheck::MessageNow;
use clew_context::engine::turn::Collected;
use clew_context::model::{
    Access, Cause, Channel, ChannelKind, Fallback, Limits, LoneContext, Message, OmitReason,
    OptedOut, PlaceContext, Readers, Rights,
};

use crate::support::build::{
    ADA, BOB, CLEW, DICE, EVE, GENERAL, Shape, asked, id, post, said, text_channel, thread,
    thread_id,
};
use crate::support::world::{Start, World, failures, outline, window};

const TOPIC: &str = "Tides \"and\"\nboats, see <@90>";

fn general() -> Channel {
    Channel {
        topic: TOPIC.to_owned(),
        ..text_channel()
    }
}

fn start(place_context: PlaceContext) -> Start {
    Start {
        limits: Limits {
            place_context,
            ..Limits::default()
        },
        ..Start::within(general())
    }
}

fn both() -> Start {
    start(PlaceContext::TopicPins)
}

/// A channel in which these are pinned.
fn world(pins: impl IntoIterator<Item = Message>) -> World {
    let mut world = World::default();
    world.pins.insert(GENERAL, pins.into_iter().collect());
    world
}

fn pinned() -> World {
    world([said(3, ADA, "three"), said(7, BOB, "seven")])
}

fn question() -> Message {
    asked(20, EVE, "when is high tide?")
}

fn text(start: &Start, collected: &Collected) -> String {
    let prompt = start.prepare(collected).prompt;
    let texts = prompt.messages.iter().map(|one| one.content().to_owned());
    texts.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(start: &Start, world: &World, trigger: &Message, shown: &str, calls: &[&str]) {
    let collected = start.collected(world, trigger);
    assert_eq!(outline(&start.prepare(&collected).block), shown);
    assert_eq!(world.calls(), calls);
}

#[test]
fn topic_and_pins_stand_under_headings_as_other_peoples_words() {
    check(&both(), &pinned(), &question(), "| | *3 *7", &["pins"]);
    let collected = both().collected(&pinned(), &question());
    let shown = "\nTopic of #general: Tides 'and' boats, see @Clew\nPinned in this channel:\n\
                 2026-01-02\n10:00 Ada: three\n10:00 Bob: seven\n</discord-context ";
    let all = text(&both(), &collected);
    assert!(all.contains(shown), "{all}");
    let prepared = both().prepare(&collected);
    assert_eq!(prepared.block.topic, 48);
    check(
        &start(PlaceContext::Topic),
        &pinned(),
        &question(),
        "|",
        &[],
    );
    check(&start(PlaceContext::Off), &pinned(), &question(), "", &[]);
}

#[test]
fn a_pinned_message_is_not_left_out_too() {
    let start = Start {
        channel: Some(thread(0)),
        limits: Limits {
            max_msgs: 6,
            ..both().limits
        },
        ..both()
    };
    let here = |number| said(number, ADA, "more").into_channel(thread_id(0));
    let trigger = question().into_channel(thread_id(0));
    let mut world = World::of((3..15).map(here).chain([trigger.clone()]));
    world.pins.insert(thread_id(0), vec![here(3)]);
    let block = start.prepare(&start.collected(&world, &trigger)).block;
    let omitted: Vec<_> = block.omitted.iter().map(|one| one.id).collect();
    assert!(block.items().any(|item| item.message.id == id(3)));
    assert!(
        !omitted.contains(&id(3)) && omitted.contains(&id(4)),
        "{omitted:?}"
    );
}

#[test]
fn a_thread_shows_its_parents_topic_and_its_own_pins() {
    for (channel, line) in [
        (thread(0), "Topic of #general: Be kind"),
        (post(0), "Guidelines of #help: Be kind"),
    ] {
        let start = Start {
            channel: Some(Channel {
                topic: "Be kind".to_owned(),
                parent_name: channel.parent_name.clone().or(Some("general".to_owned())),
                ..channel
            }),
            ..both()
        };
        let trigger = question().into_channel(thread_id(0));
        let mut world = World::of([trigger.clone()]);
        let pin = said(3, ADA, "three").into_channel(thread_id(0));
        world.pins.insert(thread_id(0), vec![pin]);
        let collected = start.collected(&world, &trigger);
        let shown = text(&start, &collected);
        assert!(shown.contains(line), "{shown}");
        assert!(shown.contains("Pinned in this thread:\n"), "{shown}");
    }
}

/// Whoever may not read the channel gets nothing of it, nor does a direct message or a run.
#[test]
fn what_the_asker_may_not_read_is_not_asked_for() {
    let rights = Rights {
        read_history: false,
        send: true,
        react: true,
        attach: true,
        open_threads: true,
    };
    let with = |asker_access| Start {
        asker_access,
        ..both()
    };
    let views = with(Access::Allowed(rights));
    check(&views, &pinned(), &question(), "", &[]);
    check(&with(Access::Denied), &pinned(), &question(), "", &[]);
    let run = Start {
        cause: Cause::AgentRun,
        ..both()
    };
    check(&run, &pinned(), &question(), "", &[]);
    let direct = Start {
        channel: Some(Channel::new(GENERAL, ChannelKind::Dm)),
        kind: Some(ChannelKind::Dm),
        ..both()
    };
    let mut trigger = question();
    trigger.guild = None;
    check(&direct, &pinned(), &trigger, "", &[]);
    let barred = Start {
        our_access: Access::Denied,
        ..both()
    };
    check(&barred, &pinned(), &question(), "|", &[]);
}

#[test]
fn nothing_of_apps_notices_and_opted_out_people_is_shown() {
    let pins = || {
        world([
            said(2, BOB, "kumquat"),
            said(3, DICE, "rolled"),
            said(4, ADA, "four"),
            said(5, ADA, "").of_type(6),
            said(6, CLEW, "ours"),
        ])
    };
    let start = Start {
        opted_out: [BOB.user()].into_iter().collect::<OptedOut>(),
        ..both()
    };
    check(&start, &pins(), &question(), "| | *4 *6", &["pins"]);
    let mut collected = both().collected(&pins(), &question());
    let shown = text(&both(), &collected);
    assert!(shown.contains("kumquat"), "{shown}");
    assert!(collected.withhold(&[BOB.user()].into_iter().collect()));
    let prepared = both().prepare(&collected);
    assert_eq!(outline(&prepared.block), "| | *4 *6");
    assert_eq!(prepared.block.omitted_for(OmitReason::OptedOut), 1);
    assert!(!format!("{collected:?}").contains("kumquat"));
}

#[test]
fn edits_and_deletions_before_the_request_are_followed() {
    let mut collected = both().collected(&pinned(), &question());
    let is_changed = collected.take_changes(|message| {
        if message.id == id(3) {
            MessageNow::Gone
        } else if message.id == id(7) {
            MessageNow::Edited(said(7, BOB, "eight").into())
        } else {
            MessageNow::Unchanged
        }
    });
    assert!(is_changed);
    let shown = text(&both(), &collected);
    assert!(shown.contains("Bob: eight"), "{shown}");
    assert!(
        !shown.contains("three") && !shown.contains("seven"),
        "{shown}"
    );
    collected.close();
    assert_eq!(outline(&both().prepare(&collected).block), "");
}

/// The window keeps what was fetched, and a message stands in the block once.
#[test]
fn pins_are_fetched_once_and_shown_once() {
    let mut kept = window();
    kept.created(question());
    let from = |view| Start {
        view: Some(view),
        ..both()
    };
    let first = from(kept.view(GENERAL));
    let world = world([said(3, ADA, "three"), said(21, BOB, "newer")]);
    first.collected(&world, &question()).update(&mut kept);
    check(
        &from(kept.view(GENERAL)),
        &world,
        &question(),
        "| | *3",
        &["pins"],
    );
    check(
        &from(kept.view(GENERAL)),
        &world,
        &question(),
        "| | *3",
        &[],
    );
    kept.deleted(GENERAL, &[id(3)]);
    check(&from(kept.view(GENERAL)), &world, &question(), "|", &[]);
    let mut view = kept.view(GENERAL);
    view.pins = None;
    check(&from(view), &world, &question(), "|", &["pins"]);
    let mut talk = pinned();
    talk.add([said(7, BOB, "seven"), said(8, ADA, "eight")]);
    let recent = Start {
        limits: Limits {
            lone_context: LoneContext::Recent,
            ..both().limits
        },
        ..both()
    };
    check(
        &recent,
        &talk,
        &question(),
        "7 8 | | *3",
        &["page to 20", "pins"],
    );
    talk.known.insert(GENERAL, (general(), Readers::Everybody));
    let link = format!("https://discord.com/channels/77/{GENERAL}/{}", id(7));
    let calls = ["page around 7", "pins"];
    check(
        &both(),
        &talk,
        &asked(20, EVE, &link),
        "| | *3 | l7 8",
        &calls,
    );
}

#[test]
fn what_fails_costs_the_pins_alone() {
    for reason in [Fallback::Forbidden, Fallback::Timeout] {
        let world = pinned().failing("pins", FetchError::lasting(reason));
        let collected = both().collected(&world, &question());
        assert_eq!(outline(&both().prepare(&collected).block), "|");
        assert_eq!(failures(&collected), [format!("pins:{reason}")]);
        let mut kept = window();
        kept.created(question());
        collected.update(&mut kept);
        assert_eq!(kept.view(GENERAL).pins, None);
    }
    let poor = Start {
        limits: Limits {
            max_fetches: 0,
            ..both().limits
        },
        ..both()
    };
    check(&poor, &pinned(), &question(), "|", &[]);
}

#[test]
fn a_bare_mention_is_not_answered_with_pins_alone() {
    let bare = asked(20, EVE, "");
    let mut world = pinned();
    world.add([bare.clone()]);
    let prepared = both().prepare(&both().collected(&world, &bare));
    assert_eq!(outline(&prepared.block), "| | *3 *7");
    assert!(!prepared.has_question);
}

/// The caps hold for all of it together, and what belongs to the place takes a quarter.
#[test]
fn all_of_it_counts_within_the_caps() {
    let long = "x".repeat(3_000);
    let pins: Vec<Message> = (1..6).map(|n| said(n, ADA, &long)).collect();
    let mut world = world(pins);
    world.add((8..19).map(|n| said(n, BOB, &long)));
    for (max_chars, max_msgs, most) in [(8_000, 40, 5), (2_000, 8, 2), (400, 3, 0), (100, 1, 0)] {
        let start = Start {
            channel: Some(Channel {
                topic: "t".repeat(Channel::TOPIC_CHARS),
                ..text_channel()
            }),
            limits: Limits {
                max_chars,
                max_msgs,
                lone_context: LoneContext::Recent,
                place_context: PlaceContext::TopicPins,
                ..Limits::default()
            },
            ..Start::default()
        };
        let block = start.prepare(&start.collected(&world, &question())).block;
        assert!(block.chars <= max_chars && block.items().count() <= max_msgs);
        let pins: Vec<usize> = block
            .items()
            .filter(|item| item.message.id < id(8))
            .map(|item| item.text.chars().count())
            .collect();
        assert!(pins.len() <= most, "{pins:?}");
        assert!(block.topic + pins.iter().sum::<usize>() <= max_chars / 4);
        let others = block.items().filter(|item| item.message.id >= id(8));
        assert!(others.count() > 0 || max_chars < 400, "{max_chars}");
    }
}
