//! Users who opted out: nothing of theirs is gathered by any collector or goes
//! back into the window. Bob opted out; everything he says contains a mark that
//! must not be found anywhere afterwards.

use std::sync::Arc;

use clew_context::engine::turn::Collected;
use clew_context::model::{
    Access, Cause, Channel, HistoryMessage, Message, OmitReason, OptedOut, Profiles, Reference,
    ReferenceKind, Snapshot, ThreadState, UserId,
};

use crate::support::build::{
    ADA, BOB, EVE, GENERAL, Shape, asked, id, post, private_thread, said, text_channel, thread,
    thread_id,
};
use crate::support::world::{Start, World, adopted, failures, outline, target};

/// Contained in everything that Bob says.
pub(super) const MARK: &str = "kumquat";

pub(super) fn without_bob() -> OptedOut {
    [BOB.user()].into_iter().collect()
}

fn within(channel: Channel) -> Start {
    Start {
        opted_out: without_bob(),
        ..Start::within(channel)
    }
}

/// A message in which Bob says the mark in every possible way.
pub(super) fn bobs(n: u64) -> Message {
    said(n, BOB, &format!("{MARK} <@11> <@&8000>"))
        .with_embed(MARK, MARK)
        .with_file(&format!("{MARK}.txt"), Some("text/plain"), 20)
        .with_extras(|extras| {
            extras.snapshots.push(Snapshot {
                withheld: false,
                content: MARK.into(),
                timestamp: None,
                extras: None,
            });
        })
}

pub(super) fn here(message: Message) -> Message {
    message.into_channel(thread_id(0))
}

fn ask(n: u64) -> Message {
    here(asked(n, EVE, "so?"))
}

/// Collects, and checks that nothing of Bob's is in what was gathered, learnt or
/// fetched, or in the prompt.
#[track_caller]
fn collect(start: &Start, world: &World, trigger: &Message) -> (Collected, String) {
    let collected = start.collected(world, trigger);
    let prepared = start.prepare(&collected);
    for text in [format!("{collected:?}"), format!("{prepared:?}")] {
        assert!(!text.contains(MARK) && !text.contains("Bob"), "{text}");
    }
    let outline = outline(&prepared.block);
    (collected, outline)
}

#[track_caller]
fn check(start: &Start, world: &World, trigger: &Message, shown: &str) -> Collected {
    let (collected, outline) = collect(start, world, trigger);
    assert_eq!(outline, shown);
    assert_eq!(failures(&collected), [""; 0]);
    collected
}

fn talk() -> Vec<Message> {
    let mut talk = vec![said(0, ADA, "start")];
    talk.extend((1..=8).map(|n| match n {
        2 | 5 | 6 => here(bobs(n)),
        _ => here(said(n, ADA, "talk")),
    }));
    talk
}

#[test]
fn in_a_threads_history_markers_replace_their_messages() {
    let trigger = ask(9);
    let mut world = World::of(talk());
    world.add([trigger.clone()]);
    let start = within(thread(0));
    let collected = check(&start, &world, &trigger, "s0 1 private 3 4 private*2 7 8");
    let block = start.prepare(&collected).block;
    assert_eq!(block.omitted_for(OmitReason::OptedOut), 3);
    let shown = clew_context::engine::frame::block(&block);
    assert!(shown.contains("... a message that its author keeps private ...\n"));
    assert!(shown.contains("... 2 messages that their authors keep private ...\n"));
}

/// Withheld messages do not count: the tail is as long as ever.
#[test]
fn in_a_threads_tail_their_messages_do_not_count() {
    let trigger = ask(9);
    let mut world = World::of(talk());
    world.add([trigger.clone()]);
    let start = Start {
        cause: Cause::AutoReply,
        ..within(thread(0))
    };
    // Five before the trigger; Bob's messages before those are not mentioned.
    world.add([here(said(10, ADA, "later"))]);
    check(&start, &world, &trigger, "s0 1 private 3 4 private*2 7 8");
    let mut long = talk();
    long.extend((10..=13).map(|n| here(said(n, ADA, "more"))));
    let trigger = ask(14);
    let mut world = World::of(long);
    world.add([trigger.clone()]);
    check(&start, &world, &trigger, "s0 ..0.. 8 10 11 12 13");
}

/// Beyond a cap, withheld messages are not counted.
#[test]
fn beyond_a_cap_their_messages_are_not_mentioned() {
    let trigger = ask(9);
    let mut world = World::of(talk());
    world.add([trigger.clone()]);
    let mut start = within(thread(0));
    start.limits.max_msgs = 4;
    check(&start, &world, &trigger, "s0 ..2.. 4 private*2 7 8");
}

#[test]
fn their_messages_in_the_window_are_withheld_too() {
    let trigger = ask(9);
    let world = World::default();
    let seen: Vec<Message> = talk()
        .into_iter()
        .skip(1)
        .chain([trigger.clone()])
        .collect();
    let start = Start {
        starter: Some(Arc::new(said(0, ADA, "start"))),
        ..within(thread(0)).watching(&seen, true)
    };
    check(&start, &world, &trigger, "s0 1 private 3 4 private*2 7 8");
    assert_eq!(world.calls(), [""; 0], "withheld messages leave no hole");
}

#[test]
fn their_starter_is_withheld_wherever_it_is() {
    let shown = "private 2";
    let notice = here(said(1, BOB, MARK)).of_type(21).shaped(|notice| {
        notice.reference = Some(Reference {
            kind: ReferenceKind::Default,
            channel: Some(GENERAL),
            message: Some(id(0)),
        });
    });
    let talk = || [here(said(2, ADA, "a")), ask(9)];
    // In the parent, included in the notice, as a post's first message, as a
    // thread's first message.
    let mut world = World::of([bobs(0), notice.clone()]);
    world.add(talk());
    check(&within(thread(0)), &world, &ask(9), shown);
    let mut world = World::of([notice.carrying(bobs(0))]);
    world.add(talk());
    world.hidden.insert(GENERAL);
    assert_eq!(collect(&within(thread(0)), &world, &ask(9)).1, shown);
    let mut world = World::of([here(bobs(0))]);
    world.add(talk());
    check(&within(post(0)), &world, &ask(9), shown);
    let mut world = World::of([here(bobs(1))]);
    world.add(talk());
    check(&within(private_thread(0)), &world, &ask(9), shown);
    // Fetched separately, since the pages do not reach back to it.
    world.add((10..150).map(|n| here(said(n, ADA, "talk"))));
    let late = ask(151);
    world.add([late.clone()]);
    let (_, shown) = collect(&within(private_thread(0)), &world, &late);
    assert!(shown.starts_with("private ..59.. 110 "), "{shown}");
}

/// A post's title is text of its author's.
#[test]
fn the_title_of_their_post_is_withheld() {
    let of = |owner: UserId| Channel {
        name: MARK.to_owned(),
        thread: Some(ThreadState {
            owner: Some(owner),
            ..ThreadState::default()
        }),
        ..post(0)
    };
    let (theirs, anothers) = (of(BOB.user()), of(ADA.user()));
    let world = World::of([here(bobs(0)), ask(9)]);
    let start = within(theirs.clone());
    let collected = check(&start, &world, &ask(9), "private");
    let title = start.prepare(&collected).block.title;
    assert_eq!(
        title.as_deref(),
        Some("Forum post in #help · tags: bug, android")
    );
    // A fetched channel, for a thread that the caller does not know.
    let world = World::of([here(bobs(0)), ask(9)]).with_channel(theirs);
    collect(
        &Start {
            opted_out: without_bob(),
            ..Start::default()
        },
        &world,
        &ask(9),
    );
    let start = within(anothers);
    let collected = start.collected(&world, &ask(9));
    let title = start.prepare(&collected).block.title.unwrap();
    assert!(title.contains(MARK), "another's stays: {title}");
}

/// A chain continues through what they wrote.
#[test]
fn in_a_reply_chain_markers_replace_their_messages() {
    let chain = [
        said(0, ADA, "root"),
        bobs(1).replying(0),
        bobs(2).replying(1),
        said(3, ADA, "answer").replying(2),
    ];
    let trigger = asked(4, EVE, "what?")
        .replying(3)
        .carrying(chain[3].clone());
    let mut world = World::of(chain.clone());
    world.add([trigger.clone()]);
    let start = within(text_channel());
    let collected = check(&start, &world, &trigger, "0 private*2 p3");
    assert_eq!(
        collected.window_update.single.len(),
        4,
        "withheld messages are learnt"
    );
    // Each page and each single message can include one of theirs.
    let carrying = [
        chain[0].clone(),
        chain[1].clone().carrying(chain[0].clone()),
        chain[2].clone().carrying(chain[1].clone()),
        chain[3].clone().carrying(chain[2].clone()),
    ];
    let mut world = World::of(carrying);
    world.add([trigger.clone()]);
    check(&start, &world, &trigger, "0 private*2 p3");
}

/// A forward of somebody else's words appears under the forwarder's name only.
#[test]
fn what_they_forward_is_withheld() {
    let forward = said(1, BOB, "").with_extras(|extras| {
        extras.snapshots.push(Snapshot {
            withheld: false,
            content: MARK.into(),
            timestamp: None,
            extras: None,
        });
    });
    let trigger = asked(2, EVE, "what?").replying(1).carrying(forward.clone());
    let world = World::of([forward, trigger.clone()]);
    check(&within(text_channel()), &world, &trigger, "private");
}

/// Message `n` by Ada, forwarding message `original` of the channel.
pub(crate) fn forwarding(n: u64, original: u64) -> Message {
    let reference = Reference {
        kind: ReferenceKind::Forward,
        channel: Some(GENERAL),
        message: Some(id(original)),
    };
    let snapshot = Snapshot {
        withheld: false,
        content: MARK.into(),
        timestamp: Some(id(original).created()),
        extras: None,
    };
    said(n, ADA, "")
        .shaped(|message| message.reference = Some(reference))
        .with_extras(|extras| extras.snapshots.push(snapshot))
}

const PRIVATE: &str = "[forwarded message, which its author keeps private]";

#[track_caller]
fn shows(start: &Start, collected: &Collected, text: &str, expected: bool) {
    let prompt = format!("{:?}", start.prepare(collected).prompt.messages);
    assert_eq!(prompt.contains(text), expected, "{prompt}");
}

/// The forward names its original, which was seen to be theirs.
#[test]
fn what_others_forward_of_theirs_is_withheld() {
    // Both on the same page.
    let talk = [bobs(1), forwarding(2, 1), said(3, ADA, "talk")];
    let bare = asked(9, EVE, "");
    let mut world = World::of(talk.clone());
    world.add([bare.clone()]);
    let start = within(text_channel());
    let collected = check(&start, &world, &bare, "private 2 3");
    shows(&start, &collected, PRIVATE, true);
    // Held by the window, from before and after the opt-out.
    let watching = within(text_channel()).watching(&talk, true);
    let collected = check(&watching, &World::default(), &bare, "private 2 3");
    shows(&watching, &collected, PRIVATE, true);
    // The question itself, and what it replies to.
    let trigger = asked(9, EVE, "and?").shaped(|message| {
        message.extras.clone_from(&forwarding(9, 1).extras);
        message.reference = forwarding(9, 1).reference;
    });
    let watching = within(text_channel()).watching(&talk, true);
    let collected = check(&watching, &World::default(), &trigger, "");
    shows(&watching, &collected, PRIVATE, true);
    let reply = asked(9, EVE, "and?").replying(2).carrying(forwarding(2, 1));
    let collected = check(&watching, &World::default(), &reply, "p2");
    shows(&watching, &collected, PRIVATE, true);
}

/// The original is fetched after its forward.
#[test]
fn what_others_forwarded_earlier_is_withheld_once_the_original_is_seen() {
    let forward = here(forwarding(180, 20)).shaped(|message| {
        if let Some(reference) = &mut message.reference {
            reference.channel = Some(thread_id(0));
        }
    });
    let mut world = World::of([said(0, ADA, "start"), here(bobs(20)), forward]);
    world.add((21..180).map(|n| here(bobs(n))));
    world.add((1..20).map(|n| here(said(n, ADA, "talk"))));
    world.add([here(asked(200, EVE, "so?"))]);
    let start = within(thread(0));
    let (collected, shown) = collect(&start, &world, &here(asked(200, EVE, "so?")));
    assert!(shown.ends_with("180"), "{shown}");
    shows(&start, &collected, PRIVATE, true);
}

/// If nobody saw the original, its author is unknown; somebody else's is shown.
#[tokio::test]
async fn other_forwards_are_shown() {
    for talk in [
        vec![forwarding(2, 1)],
        vec![said(1, EVE, "x"), forwarding(2, 1)],
    ] {
        let mut world = World::of(talk);
        let bare = asked(9, EVE, "");
        world.add([bare.clone()]);
        let start = within(text_channel());
        let collected = start.collect(&world, &bare).await;
        shows(&start, &collected, MARK, true);
    }
}

#[test]
fn before_a_bare_mention_markers_replace_their_messages() {
    let mut world = World::of((0..6).map(|n| said(n, ADA, "talk")));
    world.add([bobs(6), bobs(7), said(8, ADA, "talk"), bobs(9)]);
    let trigger = asked(10, EVE, "");
    world.add([trigger.clone()]);
    check(
        &within(text_channel()),
        &world,
        &trigger,
        "2 3 4 5 private*2 8 private",
    );
    let alone = World::of([bobs(9), trigger.clone()]);
    let start = within(text_channel());
    let (collected, _) = collect(&start, &alone, &trigger);
    let prepared = start.prepare(&collected);
    assert!(!prepared.has_question, "a marker says nothing");
}

/// The asker points at a message of theirs: it is shown as private, and without
/// words of the asker's own there is nothing to answer.
#[test]
fn their_message_is_not_shown_when_pointed_at() {
    for (words, withheld) in [("and this?", false), ("", true)] {
        // In a thread: included, on the page, fetched separately.
        let trigger = here(asked(9, EVE, words)).replying(2);
        let carrying = trigger.clone().carrying(here(bobs(2)));
        let mut world = World::of(talk());
        world.add([trigger.clone()]);
        for trigger in [&carrying, &trigger] {
            let start = within(thread(0));
            let shown = "s0 1 private 3 4 private*2 7 8";
            let collected = check(&start, &world, trigger, shown);
            assert_eq!(collected.target.withheld, withheld);
            assert_eq!(adopted(&collected), None);
        }
        let mut far = World::of([said(0, ADA, "start"), here(bobs(2))]);
        far.add((3..200).map(|n| here(said(n, ADA, "talk"))));
        let late = here(asked(200, EVE, words)).replying(2);
        far.add([late.clone()]);
        let (collected, shown) = collect(&within(thread(0)), &far, &late);
        assert!(shown.starts_with("s0 private .."), "{shown}");
        assert_eq!(collected.target.withheld, withheld);
        // In a channel.
        let trigger = asked(9, EVE, words).replying(2).carrying(bobs(2));
        let start = within(text_channel());
        let collected = check(&start, &World::of([bobs(2)]), &trigger, "private");
        assert_eq!(collected.target.withheld, withheld);
        assert_eq!((adopted(&collected), target(&collected)), (None, Some(9)));
    }
}

/// Users who opted out are skipped like apps.
#[test]
fn no_answer_replies_to_what_they_wrote() {
    let world = World::of([
        said(0, ADA, "start"),
        here(said(1, ADA, "why?")),
        here(bobs(2)),
        here(asked(3, EVE, "")),
    ]);
    let trigger = here(asked(3, EVE, ""));
    let collected = check(&within(thread(0)), &world, &trigger, "s0 t1 private");
    assert_eq!(
        (target(&collected), adopted(&collected)),
        (Some(1), Some(1))
    );
}

/// An asker who may not read the history gets the trigger and the message it includes.
#[test]
fn without_history_their_included_message_is_withheld() {
    let start = Start {
        asker_access: Access::Denied,
        ..within(thread(0))
    };
    let trigger = ask(3).replying(1).carrying(here(bobs(1)));
    assert_eq!(collect(&start, &World::default(), &trigger).1, "private");
}

/// An app's message is shown if it is pointed at; a system message by somebody
/// who opted out is not.
#[test]
fn their_notice_is_not_shown_when_pointed_at() {
    let notice = said(1, BOB, MARK).of_type(6);
    let trigger = asked(2, EVE, "what?").replying(1).carrying(notice);
    check(&within(text_channel()), &World::default(), &trigger, "app");
}

/// Their own question is answered: nothing else in the prompt is theirs.
#[test]
fn their_own_question_is_answered_from_itself() {
    let trigger = here(asked(9, BOB, "how tall is it?"))
        .replying(2)
        .carrying(here(bobs(2)));
    let mut world = World::of(talk());
    world.add([trigger.clone()]);
    let start = within(thread(0));
    let collected = start.collected(&world, &trigger);
    assert!(collected.asker_opted_out);
    assert_eq!(target(&collected), Some(9));
    let learnt = format!("{:?}", collected.window_update);
    assert!(!learnt.contains("how tall"), "{learnt}");
    let (profiles, history) = remembered();
    let prompt = format!(
        "{:?}",
        start.prepare_with(&collected, &profiles, &history).prompt
    );
    assert!(prompt.contains("how tall is it?"), "{prompt}");
    assert!(prompt.contains("server-fact"), "{prompt}");
    for gone in [MARK, "own-fact", "own-row"] {
        assert!(!prompt.contains(gone), "{prompt}");
    }
    // Everybody else's stays.
    let collected = start.collected(&world, &ask(9));
    let prompt = format!(
        "{:?}",
        start.prepare_with(&collected, &profiles, &history).prompt
    );
    for there in ["own-fact", "own-row", "server-fact"] {
        assert!(prompt.contains(there), "{prompt}");
    }
}

fn remembered() -> (Profiles, Vec<HistoryMessage>) {
    let profiles = Profiles {
        user: vec!["own-fact".to_owned()],
        server: vec!["server-fact".to_owned()],
    };
    let row = HistoryMessage {
        ours: false,
        author: Some((EVE.user(), "Eve".to_owned())),
        message: None,
        timestamp: id(0).created(),
        restored: false,
        text: "own-row".to_owned(),
    };
    (profiles, vec![row])
}

/// What a post began with, and what the asker points at, may be one message.
#[test]
fn their_message_with_two_places_is_withheld_once() {
    let trigger = ask(9).replying(0).carrying(here(bobs(0)));
    let world = World::of([here(bobs(0)), here(said(2, ADA, "a")), trigger.clone()]);
    let start = within(post(0));
    let collected = check(&start, &world, &trigger, "private 2");
    let block = start.prepare(&collected).block;
    assert_eq!(block.omitted_for(OmitReason::OptedOut), 1);
}
