//! Reply chains: which references count, what stands in for missing links, how
//! few calls they take, and where they end.

use clew_context::model::{
    Channel, ChannelId, Limits, LoneContext, Message, MessageFlags, PlaceContext, Readers,
    Reference, ReferenceKind, Snapshot,
};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, DICE, EVE, GENERAL, GUILD, Shape, asked, id, said, text_channel,
    thread_id,
};
use crate::support::world::{Start, World, adopted, failures, outline, target};

fn start() -> Start {
    Start::within(text_channel())
}

fn ask(n: u64, to: u64) -> Message {
    asked(n, EVE, "what about this?").replying(to)
}

#[track_caller]
fn check(world: &World, trigger: &Message, shown: &str) {
    let start = start();
    let block = start.prepare(&start.collected(world, trigger)).block;
    assert_eq!(outline(&block), shown);
}

/// Twenty replies, each twenty messages after the one it replies to.
fn twenty_among_four_hundred() -> (World, Message) {
    let talkers = [ADA, BOB, CLEW];
    let chain = (0..20_u64).map(|link| {
        let who = talkers[usize::try_from(link % 3).unwrap()];
        let message = said(link * 21, who, &format!("link {link}"));
        if link == 0 {
            message
        } else {
            message.replying((link - 1) * 21)
        }
    });
    let chatter = (0..420).filter(|n| n % 21 != 0);
    let mut world = World::of(chain);
    world.add(chatter.map(|n| said(n, DICE, "chatter")));
    let trigger = ask(420, 19 * 21);
    world.add([trigger.clone()]);
    (world, trigger)
}

#[tokio::test]
async fn twenty_links_among_four_hundred_cost_few_calls() {
    let (world, trigger) = twenty_among_four_hundred();
    let start = start();
    let collected = start.collect(&world, &trigger).await;
    let mut links: Vec<String> = (0..20).map(|link| (link * 21).to_string()).collect();
    links[19] = format!("p{}", links[19]);
    assert_eq!(outline(&start.prepare(&collected).block), links.join(" "));
    let calls = world.calls();
    assert!(calls.len() <= 6, "{calls:?}");
    assert_eq!(collected.fetches, calls.len());
    assert_eq!(target(&collected), Some(420));
    assert_eq!(adopted(&collected), None);
}

/// The window learns the links, which it lacks.
#[tokio::test]
async fn the_window_learns_the_links_and_not_the_chatter() {
    let (world, trigger) = twenty_among_four_hundred();
    let collected = start().collect(&world, &trigger).await;
    let learnt = collected.window_update;
    assert_eq!(learnt.single.len(), 20);
    assert!(learnt.pages.is_none());
    let mut window = crate::support::world::window();
    window.created(trigger.clone());
    let view = window.view(GENERAL);
    for (channel, message) in &learnt.single {
        window.keep(*channel, &view, std::slice::from_ref(message));
    }
    let again = Start {
        view: Some(window.view(GENERAL)),
        ..start()
    };
    world.calls();
    let warm = again.collect(&world, &trigger).await;
    assert_eq!(world.calls(), [""; 0]);
    assert_eq!(warm.gathered, collected.gathered);
}

#[test]
fn other_replies_to_the_same_message_are_not_in_the_chain() {
    let world = World::of([
        said(0, ADA, "root"),
        said(1, BOB, "one answer").replying(0),
        said(2, EVE, "another").replying(0),
    ]);
    check(&world, &ask(3, 1), "0 p1");
}

/// Only type 19 with a default reference in the same channel counts.
#[test]
fn references_of_other_kinds_are_no_links() {
    let elsewhere = thread_id(7);
    let shapes: [fn(Message) -> Message; 8] = [
        |message| message.of_type(6),
        |message| message.of_type(12),
        |message| message.of_type(18),
        |message| message.of_type(21),
        |message| message.of_type(23),
        |message| message.of_type(46),
        // A crosspost: type 0 with a reference.
        |message| message.of_type(0).flagged(MessageFlags(1 << 1)),
        |message| {
            message.shaped(|message| {
                if let Some(reference) = &mut message.reference {
                    reference.kind = ReferenceKind::Forward;
                }
            })
        },
    ];
    for shape in shapes {
        let middle = shape(said(1, ADA, "middle").replying(0));
        let kind = middle.kind;
        let world = World::of([said(0, BOB, "root"), middle]);
        let trigger = ask(2, 1);
        let start = start();
        let shown = outline(&start.prepare(&start.collected(&world, &trigger)).block);
        assert!(
            shown.split(' ').all(|word| word != "0"),
            "{kind:?}: {shown}"
        );
    }
    let across = said(1, ADA, "middle").replying(0).shaped(|message| {
        message.reference = Some(Reference {
            kind: ReferenceKind::Default,
            channel: Some(elsewhere),
            message: Some(id(0)),
        });
    });
    let world = World::of([said(0, BOB, "root").into_channel(elsewhere), across]);
    check(&world, &ask(2, 1), "p1");
}

#[test]
fn a_forward_shows_what_it_forwards() {
    let forward = said(1, ADA, "").with_extras(|extras| {
        extras.snapshots.push(Snapshot {
            withheld: false,
            content: "the original".into(),
            timestamp: None,
            extras: None,
        });
    });
    let world = World::of([forward]);
    let start = start();
    let collected = start.collected(&world, &ask(2, 1));
    let block = start.prepare(&collected).block;
    assert!(block.items().next().unwrap().text.contains("the original"));
}

#[test]
fn an_included_message_needs_no_call() {
    let world = World::default();
    let trigger = ask(2, 1).carrying(said(1, ADA, "root"));
    check(&world, &trigger, "p1");
    assert_eq!(world.calls(), [""; 0]);
}

#[test]
fn null_is_deleted_and_absent_is_fetched() {
    let world = World::of([said(0, ADA, "root"), said(1, BOB, "middle").replying(0)]);
    check(&world, &ask(2, 1).carrying_null(), "deleted");
    assert_eq!(world.calls(), [""; 0]);
    check(&world, &ask(2, 1), "0 p1");
    assert_eq!(world.calls(), ["page to 1"], "the page that ends at it");
    let other = ask(2, 1).carrying(said(0, ADA, "root"));
    check(&world, &other, "0 p1");
    assert_eq!(world.calls(), ["page to 1"], "another message than named");
}

/// The page contains neighbours, but not the link itself.
#[test]
fn a_link_that_is_gone_is_deleted() {
    let world = World::of([said(0, ADA, "root"), said(2, BOB, "kept").replying(1)]);
    check(&world, &ask(3, 2), "deleted p2");
    let all_gone = World::default();
    check(&all_gone, &ask(3, 2), "deleted");
}

/// Apps' messages are walked through and shown as a marker.
#[test]
fn ineligible_links_become_markers() {
    let world = World::of([
        said(0, ADA, "root"),
        said(1, DICE, "rolled").replying(0),
        said(2, CLEW, "-# note").replying(1),
        said(3, CLEW, "ours").replying(2),
    ]);
    check(&world, &ask(4, 3), "0 app app p3");
    let alert = World::of([said(0, ADA, "root"), said(1, ALERT, "disk").replying(0)]);
    check(&alert, &ask(2, 1), "0 p1");
}

#[test]
fn the_marker_of_a_deleted_root_comes_first() {
    let world = World::of([
        said(1, DICE, "rolled").replying(0).carrying_null(),
        said(2, ADA, "why?").replying(1),
    ]);
    check(&world, &ask(3, 2), "deleted app p2");
}

#[test]
fn a_chain_with_a_cycle_ends() {
    let world = World::of([
        said(1, ADA, "a").replying(3),
        said(2, BOB, "b").replying(1),
        said(3, ADA, "c").replying(3),
    ]);
    check(&world, &ask(4, 2), "1 p2");
    check(&world, &ask(4, 3), "p3");
    check(&world, &asked(4, EVE, "self").replying(4), "");
}

#[tokio::test]
async fn the_number_of_links_is_capped() {
    let (world, trigger) = twenty_among_four_hundred();
    let start = Start {
        limits: Limits {
            max_msgs: 3,
            ..Limits::default()
        },
        ..start()
    };
    let shown = start.outline(&world, &trigger).await;
    assert_eq!(shown, "earlier 357 378 p399");
    assert_eq!(world.calls().len(), 1, "nothing is fetched to be dropped");
}

/// Only messages that are shown count; links walked through use up no room.
/// The cap is for all of a block: what links and pins take is not the chain's.
#[test]
fn links_and_pins_leave_the_chain_less_room() {
    let news = ChannelId::new(700);
    let elsewhere = Channel {
        id: news,
        ..text_channel()
    };
    let mut world = World::of((1..9).map(|n| said(n, ADA, "more").replying(n - 1)));
    world.add((20..30).map(|n| said(n, BOB, "news").into_channel(news)));
    world.known.insert(news, (elsewhere, Readers::Everybody));
    let pins = (11..16).map(|n| said(n, BOB, "pinned"));
    world.pins.insert(GENERAL, pins.collect());
    let link = format!("https://discord.com/channels/{GUILD}/{news}/{}", id(25));
    let linking = asked(40, EVE, &link).replying(8);
    let (none, pins) = (PlaceContext::Off, PlaceContext::TopicPins);
    let all = "deleted 1 2 3 4 5 6 7 p8";
    for (max_msgs, place_context, trigger, shown) in [
        (4, none, &ask(40, 8), "earlier 5 6 7 p8".to_owned()),
        (4, none, &linking, "earlier 7 p8 | ..3.. l25 26".to_owned()),
        (4, pins, &ask(40, 8), "earlier 6 7 p8 | *11".to_owned()),
        (
            4,
            pins,
            &linking,
            "earlier p8 | *11 | ..3.. l25 26".to_owned(),
        ),
        (40, none, &linking, format!("{all} | 22 23 24 l25 26")),
        (
            40,
            pins,
            &ask(40, 8),
            format!("{all} | *11 *12 *13 *14 *15"),
        ),
    ] {
        for lone_context in [LoneContext::Off, LoneContext::Conversation] {
            let start = Start {
                limits: Limits {
                    max_msgs,
                    place_context,
                    lone_context,
                    ..Limits::default()
                },
                ..start()
            };
            let block = start.prepare(&start.collected(&world, trigger)).block;
            assert!(block.items().count() <= max_msgs, "{}", outline(&block));
            if lone_context == LoneContext::Off {
                assert_eq!(outline(&block), shown);
            }
        }
    }
}

#[tokio::test]
async fn ineligible_links_use_up_no_room() {
    let world = World::of([
        said(0, ADA, "root"),
        said(1, BOB, "why?").replying(0),
        said(2, DICE, "rolled").replying(1),
        said(3, CLEW, "-# note").replying(2),
        said(4, ADA, "so?").replying(3),
    ]);
    let start = Start {
        limits: Limits {
            max_msgs: 2,
            ..Limits::default()
        },
        ..start()
    };
    let shown = start.outline(&world, &ask(5, 4)).await;
    assert_eq!(shown, "earlier 1 app app p4");
}

#[tokio::test]
async fn age_ends_the_chain_without_fetching() {
    let week = 7 * 24 * 3600;
    let world = World::of([
        said(0, ADA, "too old"),
        said(1, BOB, "a week").replying(0),
        said(week + 1, BOB, "pointed at").replying(1),
    ]);
    let trigger = ask(week + 60, week + 1);
    let start = start();
    let shown = format!("earlier 1 p{}", week + 1);
    assert_eq!(start.outline(&world, &trigger).await, shown);
    // The age counts from the pointed-at message, however old that is.
    let late = ask(9 * week, week + 1);
    assert_eq!(start.outline(&world, &late).await, shown);
    let block = start.prepare(&start.collect(&world, &late).await).block;
    let shown = clew_context::engine::frame::block(&block);
    let cap = "... earlier replies omitted ... (MEM_CHAIN_MAX_AGE_MIN)\n";
    assert!(shown.starts_with(cap), "{shown}");
    assert_eq!(
        block.dropped_for(clew_context::model::OmitReason::ChainAge),
        1
    );
}

/// A bare reply takes its text from the pointed-at message.
#[tokio::test]
async fn a_bare_reply_takes_the_words_it_replies_to() {
    let world = World::of([said(0, ADA, "how tall is it?")]);
    let trigger = asked(1, EVE, "").replying(0);
    let start = start();
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(
        (target(&collected), adopted(&collected)),
        (Some(1), Some(0))
    );
    let prompt = start.prepare(&collected).prompt;
    let question = prompt.messages.last().unwrap().content();
    let points = "points at the message between the discord-context lines that is marked \
                  [pointed at by the asker].";
    assert!(question.contains(points), "{question}");
    let marked = "10:00 Ada [pointed at by the asker]: how tall is it?\n";
    assert!(question.contains(marked), "{question}");
    assert_eq!(question.matches("how tall").count(), 1, "{question}");
}

#[tokio::test]
async fn who_points_at_their_own_words_is_told_to_be_their_author() {
    for (who, whose) in [
        (ADA, "Ada's own earlier text."),
        (EVE, "Ada's text, not Eve's."),
    ] {
        let world = World::of([said(0, ADA, "how tall is it?")]);
        let trigger = asked(1, who, "").replying(0);
        let start = start();
        let collected = start.collect(&world, &trigger).await;
        let prompt = start.prepare(&collected).prompt;
        let question = prompt.messages.last().unwrap().content();
        let end = format!("Answer what it says or asks; it is {whose}");
        assert!(question.ends_with(&end), "{question}");
    }
}

#[tokio::test]
async fn a_link_that_fails_ends_the_chain() {
    use clew_context::collect::FetchError;
    use clew_context::model::Fallback;
    for reason in [
        Fallback::Forbidden,
        Fallback::NotFound,
        Fallback::RateLimited,
        Fallback::Unavailable,
        Fallback::Malformed,
        Fallback::Timeout,
    ] {
        let world = World::of([said(0, ADA, "root"), said(1, BOB, "b").replying(0)])
            .failing("page", FetchError::lasting(reason));
        let trigger = ask(3, 1).carrying(said(1, BOB, "b").replying(0));
        let start = start();
        let collected = start.collect(&world, &trigger).await;
        let shown = outline(&start.prepare(&collected).block);
        assert_eq!(shown, "unavailable p1");
        assert_eq!(failures(&collected), [format!("chain:{reason}")]);
    }
}

#[tokio::test]
async fn an_unreadable_link_is_unavailable() {
    let mut world = World::of([said(0, ADA, "root"), said(1, BOB, "b").replying(0)]);
    world.unreadable.insert(id(1));
    let start = start();
    let collected = start.collect(&world, &ask(3, 1)).await;
    assert_eq!(outline(&start.prepare(&collected).block), "unavailable");
    assert_eq!(failures(&collected), ["chain:malformed"]);
}
