//! People who write through apps are read like people; without the setting they are apps.

use clew_context::model::{Access, ApplicationId, Message, Missing, OmitReason, ProxyId, Speaker};

use crate::support::build::{
    ADA, ALERT, BOB, EVE, Shape, asked, private_thread, said, thread, thread_id, us,
};
use crate::support::world::{Start, World, outline, target};

const APP: u64 = 50;

/// Somebody who bears this name in the app.
fn proxied(message: Message, name: &str) -> Message {
    message.shaped(|message| {
        message.author = ALERT.author();
        message.author.name = name.into();
        message.author.application = Some(ApplicationId::new(APP));
    })
}

fn here(n: u64, text: &str) -> Message {
    said(n, BOB, text).into_channel(thread_id(0))
}

fn listed(start: Start) -> Start {
    let mut us = us();
    us.proxies = [ProxyId::new(APP)].into_iter().collect();
    Start { us, ..start }
}

/// Bob starts a thread in which two write through an app, one under Ada's name. Somebody asks.
fn talk(text: &str) -> (World, Message) {
    let trigger = asked(9, EVE, text).into_channel(thread_id(0));
    let mut world = World::of([said(0, BOB, "the pump")]);
    world.add([
        here(1, "it leaks"),
        proxied(here(2, "since when?"), "Luna"),
        said(3, ADA, "since noon").into_channel(thread_id(0)),
        proxied(here(4, "since ever"), "Ada"),
        proxied(here(5, "says Luna"), "Luna"),
        trigger.clone(),
    ]);
    (world, trigger)
}

#[tokio::test]
async fn their_words_are_in_the_block_under_the_name_they_bear() {
    let (world, trigger) = talk("so?");
    let start = listed(Start::within(thread(0)));
    let collected = start.collect(&world, &trigger).await;
    let prepared = start.prepare(&collected);
    assert_eq!(outline(&prepared.block), "s0 1 2 3 4 5");
    let items = prepared.block.items();
    let names: Vec<(&str, bool)> = items.map(|one| (&*one.name, one.proxied)).collect();
    let expected = [
        ("Bob", false),
        ("Bob", false),
        ("Luna", true),
        ("Ada", false),
        ("Ada (2)", true),
        ("Luna", true),
    ];
    assert_eq!(names, expected);
    let context = prepared.prompt.messages[1].content();
    assert!(context.contains(" Ada (2) [through an app]: since ever\n"));
    assert!(!context.contains("[app]"));
}

/// What nobody lists leaves no trace: neither what is read of a message nor what others list.
#[tokio::test]
async fn without_the_setting_the_prompt_is_to_the_letter_as_if_no_app_were_known() {
    let mut prompts = Vec::new();
    for (is_known, lists_another) in [(false, false), (true, false), (true, true)] {
        let (mut world, trigger) = talk("so?");
        if !is_known {
            let unknown =
                |message: Message| message.shaped(|message| message.author.application = None);
            world.add([
                unknown(proxied(here(2, "since when?"), "Luna")),
                unknown(proxied(here(4, "since ever"), "Ada")),
                unknown(proxied(here(5, "says Luna"), "Luna")),
            ]);
        }
        let mut start = Start::within(thread(0));
        if lists_another {
            start.us.proxies = [ProxyId::new(APP + 1)].into_iter().collect();
        }
        let collected = start.collect(&world, &trigger).await;
        let prepared = start.prepare(&collected);
        assert_eq!(prepared.block.omitted_for(OmitReason::App), 3);
        prompts.push(prepared.prompt);
    }
    assert_eq!(prompts[0], prompts[1]);
    assert_eq!(prompts[0], prompts[2]);
}

#[tokio::test]
async fn the_answer_replies_to_what_they_said_last() {
    let (world, bare) = talk("");
    for (start, expected) in [
        (listed(Start::within(thread(0))), 5),
        (Start::within(thread(0)), 3),
    ] {
        let collected = start.collect(&world, &bare).await;
        assert_eq!(target(&collected), Some(expected));
    }
}

#[test]
fn a_speaker_is_known_by_app_and_name_whatever_the_webhook() {
    let us = listed(Start::default()).us;
    let app = ProxyId::new(APP);
    let luna = proxied(here(1, "x"), "Luna");
    let elsewhere = luna
        .clone()
        .shaped(|message| message.author.id = EVE.user());
    assert_eq!(us.speaker(&luna), Speaker::Proxied(app, "Luna"));
    assert_eq!(us.speaker(&luna), us.speaker(&elsewhere));
    assert_ne!(us.speaker(&luna), us.speaker(&proxied(here(1, "x"), "Sol")));
    assert_eq!(us.speaker(&here(1, "x")), Speaker::User(BOB.user()));
    let us = Start::default().us;
    assert_eq!(us.speaker(&luna), Speaker::Webhook(ALERT.user(), "Luna"));
}

/// A webhook writes in every private thread: that makes nobody a member, whatever is known.
#[tokio::test]
async fn writing_in_a_private_thread_makes_nobody_a_member() {
    // A copy has what its original replied to.
    let trigger = proxied(asked(3, EVE, "so?"), "Luna").into_channel(thread_id(0));
    let trigger = trigger.replying(1).carrying(here(1, "the plan"));
    let world = World::of([here(1, "the plan"), trigger.clone()]);
    let Access::Allowed(rights) = Access::FULL else {
        panic!("it allows everything");
    };
    for known in [Access::Unknown(Missing::Membership(rights)), Access::Denied] {
        let start = listed(Start {
            asker_access: known,
            ..Start::within(private_thread(0))
        });
        let collected = start.collect(&world, &trigger).await;
        assert_eq!(outline(&start.prepare(&collected).block), "");
        assert!(!world.calls().contains(&"thread member".to_owned()));
    }
}
