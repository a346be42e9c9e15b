//! Mentions outside threads: bare, with text, in direct messages.

use clew_context::engine::window::CHANNEL_START;
use clew_context::model::{Channel, ChannelId, ChannelKind, Limits, Message, Scene};

use crate::support::build::{ADA, BOB, CLEW, DICE, EVE, GENERAL, Shape, asked, said, text_channel};
use crate::support::world::{Start, World, outline, target};

const DM: ChannelId = ChannelId::new(900);

fn direct() -> Channel {
    Channel {
        id: DM,
        guild: None,
        kind: ChannelKind::Dm,
        name: String::new(),
        ..text_channel()
    }
}

fn whisper(n: u64, text: &str) -> Message {
    said(n, EVE, text).into_channel(DM)
}

/// A bare mention outside threads gets the last messages, whatever their age.
#[tokio::test]
async fn a_bare_mention_takes_the_last_messages() {
    let day = 24 * 3600;
    let mut world = World::of((0..200).map(|n| said(n, ADA, "talk")));
    world.add([said(200, DICE, "noise"), said(201, CLEW, "ours")]);
    let trigger = asked(day, EVE, "");
    world.add([trigger.clone()]);
    let start = Start::within(text_channel());
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(
        outline(&start.prepare(&collected).block),
        "196 197 198 199 201"
    );
    assert_eq!(collected.scene, Scene::Lone);
    assert_eq!(target(&collected), Some(day));
    assert_eq!(world.calls().len(), 1);
}

/// Messages after the mention are not what it is about, and do not count.
#[tokio::test]
async fn messages_after_the_mention_do_not_count() {
    let trigger = asked(10, EVE, "");
    let after: Vec<Message> = (11..20).map(|n| said(n, BOB, "later")).collect();
    let mut world = World::of((0..10).map(|n| said(n, ADA, "talk")));
    world.add([trigger.clone()]);
    world.add(after.clone());
    let seen: Vec<Message> = std::iter::once(trigger.clone()).chain(after).collect();
    let start = Start::within(text_channel()).watching(&seen, false);
    assert_eq!(start.outline(&world, &trigger).await, "5 6 7 8 9");
}

#[tokio::test]
async fn an_empty_channel_shows_nothing() {
    let trigger = asked(1, EVE, "");
    let world = World::of([trigger.clone()]);
    let start = Start::within(text_channel());
    let collected = start.collect(&world, &trigger).await;
    let prepared = start.prepare(&collected);
    assert_eq!(outline(&prepared.block), "");
    assert!(!prepared.has_question, "which asks for an invitation");
}

#[tokio::test]
async fn with_a_tail_of_zero_nothing_is_fetched() {
    let trigger = asked(9, EVE, "");
    let world = World::of([said(1, ADA, "talk"), trigger.clone()]);
    let start = Start {
        limits: Limits {
            tail: 0,
            ..Limits::default()
        },
        ..Start::within(text_channel())
    };
    assert_eq!(start.outline(&world, &trigger).await, "");
    assert_eq!(world.calls(), [""; 0]);
}

/// A mention with text and a direct message rely on stored history only.
#[tokio::test]
async fn a_mention_with_text_fetches_nothing() {
    let world = World::of([said(1, ADA, "talk"), whisper(1, "talk")]);
    let lone = asked(9, EVE, "how tall is it?");
    for (channel, trigger, scene) in [
        (text_channel(), lone, Scene::Lone),
        (direct(), whisper(9, "hello"), Scene::Direct),
        (direct(), whisper(9, "?"), Scene::Direct),
    ] {
        let start = Start::within(channel);
        let collected = start.collect(&world, &trigger).await;
        assert_eq!(collected.scene, scene);
        assert_eq!(outline(&start.prepare(&collected).block), "");
        assert_eq!(target(&collected), Some(9));
        assert_eq!(world.calls(), [""; 0]);
    }
}

#[tokio::test]
async fn a_reply_in_a_direct_message_gets_its_chain() {
    let ours = said(2, CLEW, "an answer").into_channel(DM);
    let world = World::of([whisper(1, "first"), ours.replying(1)]);
    let trigger = whisper(9, "why?").replying(2);
    let start = Start::within(direct());
    let collected = start.collect(&world, &trigger).await;
    assert_eq!(collected.scene, Scene::Direct);
    assert_eq!(outline(&start.prepare(&collected).block), "1 p2");
}

/// The pages fetched for the tail are complete, so the window can take them over.
#[tokio::test]
async fn the_window_learns_the_page() {
    let trigger = asked(10, EVE, "");
    let mut world = World::of((0..10).map(|n| said(n, ADA, "talk")));
    world.add([trigger.clone()]);
    let mut window = crate::support::world::window();
    window.created(trigger.clone());
    let start = Start {
        view: Some(window.view(GENERAL)),
        ..Start::within(text_channel())
    };
    let collected = start.collect(&world, &trigger).await;
    let pages = collected.window_update.pages.unwrap();
    let view = start.view.as_ref().unwrap();
    window.backfill(pages.channel, view, pages.from, &pages.messages);
    assert_eq!(window.view(GENERAL).whole_from, Some(CHANNEL_START));
    assert_eq!(window.view(GENERAL).recent.len(), 11);
}
