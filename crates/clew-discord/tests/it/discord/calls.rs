//! Commands, buttons and autocompletion: from the client through the gateway's event to the crate's types,
//! and back to what the user sees.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::time::Duration;

use clew_context::model::{ApplicationId, Fallback, GuildId, UserId};
use clew_discord::commands::{parse, register};
use clew_discord::event::IncomingInteraction;
use clew_discord::model::{
    Answer, AnswerEmbed, ButtonStyle, CallerRights, CommandData, InteractionData, OptionValue,
};
use clew_discord::rest::Rest;
use clew_discord::send::Callback;
use clew_simulator::{Fault, FaultKind, Id, Permissions, Simulator};
use futures_util::StreamExt as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use twilight_gateway::{Message, Shard};

use super::rest::{channel_id, patient, rest};
use crate::openapi::Document;
use crate::simulator::{Small, all_intents, greeted, shard, small};
use crate::specs::specs;

/// A bot that registered its commands but does nothing by itself; the test
/// reads its events from a shard of its own.
struct Hand {
    discord: Simulator,
    small: Small,
    rest: Rest,
}

impl Hand {
    async fn new() -> (Self, Shard) {
        let mut small = small();
        let world = std::mem::take(&mut small.world);
        let discord = Simulator::start(world).await.unwrap();
        let rest = rest(&discord);
        assert!(register(&rest, us(&discord), None, &specs()).await.unwrap());
        let mut shard = shard(&discord, all_intents());
        greeted(&mut shard).await;
        let hand = Self {
            discord,
            small,
            rest,
        };
        (hand, shard)
    }

    async fn answer(&self, call: &IncomingInteraction, callback: Callback) {
        let answered = self
            .rest
            .answer_interaction(&call.interaction, &callback, patient());
        answered.await.unwrap();
    }
}

/// The next interaction, as the crate reads it.
async fn next(shard: &mut Shard) -> IncomingInteraction {
    #[derive(serde::Deserialize)]
    struct Frame<'a> {
        t: Option<String>,
        #[serde(borrow)]
        d: &'a RawValue,
    }
    let read = async {
        loop {
            let Message::Text(text) = shard.next().await.unwrap().unwrap() else {
                continue;
            };
            let frame: Frame<'_> = serde_json::from_str(&text).unwrap();
            if frame.t.as_deref() == Some("INTERACTION_CREATE") {
                return parse(frame.d.get()).unwrap().unwrap();
            }
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(20), read);
    read.await.unwrap()
}

fn us(discord: &Simulator) -> ApplicationId {
    ApplicationId::new(discord.bot().0)
}

#[tokio::test]
async fn commands_are_registered_only_when_they_changed() {
    let (hand, _shard) = Hand::new().await;
    let Small {
        guild,
        channel,
        alice,
        bob,
        ..
    } = hand.small;
    let application = us(&hand.discord);
    let specs = specs();
    let register = async |of| {
        let registered = register(&hand.rest, application, of, &specs);
        registered.await.unwrap()
    };
    for of in [None, Some(GuildId::new(guild.0))] {
        assert_eq!(register(of).await, of.is_some(), "{of:?}");
        assert!(!register(of).await);
    }
    // Another version of the bot registered its commands meanwhile.
    let plain = crate::simulator::Rest::new(&hand.discord);
    let path = format!("/applications/{application}/commands");
    let all = plain.get(&path).await;
    let mut all = all.as_array().unwrap().clone();
    let memory = all.iter_mut().find(|one| one["name"] == "memory").unwrap();
    memory["options"][1]["options"][0]["max_length"] = 299.into();
    assert_eq!(plain.call("PUT", &path, Value::from(all)).await.0, 200);
    assert!(register(None).await);
    assert!(!register(None).await);

    let manager = hand
        .discord
        .role(guild, "manager", Permissions::MANAGE_GUILD);
    hand.discord.set_role(guild, alice, manager, true);
    let offered = |user: Id, channel: Id| hand.discord.offered(user, channel);
    let has = |offered: &[Value], name: &str| offered.iter().any(|one| one["name"] == name);
    assert!(has(&offered(alice, channel), "settings"));
    assert!(!has(&offered(bob, channel), "settings"));
    assert!(has(&offered(bob, channel), "server-memory"));
    let direct = hand.discord.world(|world| world.direct(alice));
    let offered = offered(alice, direct);
    assert!(has(&offered, "help") && !has(&offered, "server-memory"));
}

#[tokio::test]
async fn every_command_arrives_as_it_was_called() {
    let (hand, mut shard) = Hand::new().await;
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let text = |text: &str| OptionValue::Text(text.to_owned());
    let in_channel = channel.to_string();
    let set = json!({"mode": "off", "channel": in_channel, "window": "90m"});
    let cases = [
        (
            "ask",
            json!({"question": "why?"}),
            vec![("question", text("why?"))],
        ),
        ("help", json!({}), vec![]),
        ("memory show", json!({}), vec![]),
        (
            "memory forget",
            json!({"fact": "7"}),
            vec![("fact", text("7"))],
        ),
        (
            "memory remember",
            json!({"text": "\"tea\"\n🍵", "everywhere": true}),
            vec![
                ("text", text("\"tea\"\n🍵")),
                ("everywhere", OptionValue::Flag(true)),
            ],
        ),
        (
            "settings set",
            set,
            vec![
                ("channel", text(&in_channel)),
                ("mode", text("off")),
                ("window", text("90m")),
            ],
        ),
    ];
    let manager = hand
        .discord
        .role(hand.small.guild, "manager", Permissions::MANAGE_GUILD);
    hand.discord
        .set_role(hand.small.guild, alice, manager, true);
    for (command, options, mut expected) in cases {
        hand.discord
            .call(alice, channel, command, options)
            .await
            .unwrap();
        let InteractionData::Command(mut called) = next(&mut shard).await.data else {
            panic!("{command} is a command");
        };
        let (name, sub) = match command.split_once(' ') {
            Some((name, sub)) => (name, Some(sub)),
            None => (command, None),
        };
        let by_name = |one: &(String, OptionValue)| one.0.clone();
        called.options.sort_by_key(by_name);
        expected.sort_by_key(|(name, _)| *name);
        let options = expected.into_iter();
        let expected = CommandData {
            name: name.to_owned(),
            sub: sub.map(str::to_owned),
            options: options
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..CommandData::default()
        };
        assert_eq!(called, expected, "{command}");
    }
}

#[tokio::test]
async fn a_call_has_its_callers_rights() {
    let (hand, mut shard) = Hand::new().await;
    let Small {
        guild,
        channel,
        alice,
        bob,
        ..
    } = hand.small;
    let of = |manage_server, manage_messages| CallerRights {
        manage_server,
        manage_messages,
        moderate_members: manage_server && manage_messages,
    };
    for (held, expected) in [
        (Permissions::NONE, of(false, false)),
        (Permissions::MANAGE_MESSAGES, of(false, true)),
        (Permissions::MANAGE_GUILD, of(true, false)),
        (Permissions::ADMINISTRATOR, of(true, true)),
    ] {
        let role = hand.discord.role(guild, "role", held);
        hand.discord.set_role(guild, alice, role, true);
        for (user, expected) in [(alice, expected), (bob, of(false, false))] {
            let call = hand.discord.call(user, channel, "help", json!({}));
            call.await.unwrap();
            assert_eq!(next(&mut shard).await.rights, expected);
        }
        hand.discord.set_role(guild, alice, role, false);
    }
    let direct = hand.discord.world(|world| world.direct(alice));
    let call = hand.discord.call(alice, direct, "help", json!({}));
    call.await.unwrap();
    assert_eq!(next(&mut shard).await.rights, of(false, false));
}

fn page(number: u16) -> Answer {
    Answer::for_caller("@everyone")
        .with_embed(AnswerEmbed {
            title: "Facts".to_owned(),
            description: "about you".to_owned(),
            fields: vec![("1".to_owned(), "likes tea".to_owned())],
            footer: format!("page {number}"),
        })
        .with_button("Next", ButtonStyle::Primary, format!("page:{}", number + 1))
        .with_button("Forget", ButtonStyle::Danger, "forget:7")
}

#[tokio::test]
async fn buttons_change_their_answer() {
    let (hand, mut shard) = Hand::new().await;
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let asked = hand.discord.call(alice, channel, "memory show", json!({}));
    let asked = asked.await.unwrap();
    let call = next(&mut shard).await;
    hand.answer(&call, Callback::Message(page(1))).await;
    let message = asked.answer().await.unwrap();
    assert!(message.ephemeral);
    let expected = "@everyone\nFacts\nabout you\n1\nlikes tea\npage 1";
    assert_eq!(message.text(), expected);
    let labels = message.buttons().into_iter().map(|(label, _)| label);
    assert_eq!(labels.collect::<Vec<_>>(), ["Next", "Forget"]);

    let pressed = hand.discord.press(alice, message.message, "Next");
    let call = next(&mut shard).await;
    let button = |id: &str| InteractionData::Button(id.to_owned());
    assert_eq!(call.data, button("page:2"));
    assert_eq!(call.asker.id, UserId::new(alice.0));
    hand.answer(&call, Callback::Update(page(2))).await;
    let second = pressed.answer().await.unwrap();
    assert_eq!(
        (pressed.callback(), second.message),
        (Some(7), message.message)
    );
    assert!(second.ephemeral && second.text().ends_with("page 2"));

    let pressed = hand.discord.press(alice, message.message, "Forget");
    let call = next(&mut shard).await;
    assert_eq!(call.data, button("forget:7"));
    hand.answer(&call, Callback::DeferredUpdate).await;
    let gone = Answer::for_caller("Forgotten.");
    hand.rest
        .edit_original_answer(&call.interaction, &gone, patient())
        .await
        .unwrap();
    let third = pressed.answer().await.unwrap();
    assert_eq!(
        (third.message, &*third.content),
        (message.message, "Forgotten.")
    );
    assert!(third.components.is_empty() && third.embeds.is_empty());
    let pings = hand.discord.ephemeral();
    assert!(pings.iter().all(|message| !message.mention_everyone));
}

#[tokio::test]
async fn a_deferred_answer_has_files_and_follow_ups() {
    let (hand, mut shard) = Hand::new().await;
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let used = hand.discord.call(alice, channel, "help", json!({}));
    let used = used.await.unwrap();
    let call = next(&mut shard).await;
    let thinking = Callback::Deferred { ephemeral: true };
    hand.answer(&call, thinking).await;
    let export = Answer::for_caller("Two files")
        .with_file("one.json", b"{}".to_vec())
        .with_file("two.json", b"[]".to_vec());
    hand.rest
        .edit_original_answer(&call.interaction, &export, patient())
        .await
        .unwrap();
    hand.rest
        .follow_up_answer(&call.interaction, &page(1), patient())
        .await
        .unwrap();
    let shown = used.answer().await.unwrap();
    let files = shown.files.iter();
    let files: Vec<(&str, &[u8])> = files.map(|one| (&*one.name, &*one.bytes)).collect();
    assert_eq!(files, [("one.json", &b"{}"[..]), ("two.json", b"[]")]);
    let more = used.follow_up(0).await.unwrap();
    assert!(shown.ephemeral && more.ephemeral);
    assert!(more.text().contains("likes tea"));
}

#[tokio::test]
async fn a_first_answer_has_files_too() {
    let (hand, mut shard) = Hand::new().await;
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let used = hand.discord.call(alice, channel, "help", json!({}));
    let used = used.await.unwrap();
    let call = next(&mut shard).await;
    let answer = Answer::for_all("").with_file("a\"b.txt", b"text".to_vec());
    hand.answer(&call, Callback::Message(answer)).await;
    let shown = used.answer().await.unwrap();
    assert_eq!((shown.files.len(), shown.ephemeral), (1, false));
    assert_eq!(shown.files[0].bytes, b"text");
}

#[tokio::test]
async fn choices_are_offered_while_somebody_types() {
    let (hand, mut shard) = Hand::new().await;
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let typing = hand
        .discord
        .complete(alice, channel, "memory forget", "fact", "pi");
    let answering = async {
        let call = next(&mut shard).await;
        let typed = CommandData {
            name: "memory".to_owned(),
            sub: Some("forget".to_owned()),
            options: vec![("fact".to_owned(), OptionValue::Text("pi".to_owned()))],
            focused: Some("fact".to_owned()),
            ..CommandData::default()
        };
        assert_eq!(call.data, InteractionData::Autocomplete(typed));
        let wrong = Callback::Message(page(1));
        let wrong = hand
            .rest
            .answer_interaction(&call.interaction, &wrong, patient());
        assert_eq!(wrong.await.unwrap_err().code, Some(50_035));
        let choices = vec![("likes pizza".to_owned(), "7".to_owned()); 30];
        hand.answer(&call, Callback::Autocomplete(choices)).await;
    };
    let (choices, ()) = tokio::join!(typing, answering);
    let choices = choices.unwrap();
    assert_eq!(choices.len(), 25);
    assert_eq!(choices[0], ("likes pizza".to_owned(), "7".to_owned()));
}

#[tokio::test]
async fn discord_takes_one_answer_within_three_seconds() {
    let (hand, mut shard) = Hand::new().await;
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let code = async |call: &IncomingInteraction| {
        let again = Callback::Message(page(1));
        let answered = hand
            .rest
            .answer_interaction(&call.interaction, &again, patient());
        answered.await.unwrap_err().code
    };
    let used = hand.discord.call(alice, channel, "help", json!({}));
    used.await.unwrap();
    let call = next(&mut shard).await;
    hand.answer(&call, Callback::Message(page(1))).await;
    assert_eq!(code(&call).await, Some(40_060));
    hand.discord
        .world(|world| world.settings.callback_window = Duration::ZERO);
    let used = hand.discord.call(alice, channel, "help", json!({}));
    used.await.unwrap();
    let call = next(&mut shard).await;
    assert_eq!(code(&call).await, Some(10_062));
}

#[tokio::test]
async fn nobody_else_sees_an_ephemeral_message() {
    let (hand, mut shard) = Hand::new().await;
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let used = hand.discord.call(alice, channel, "help", json!({}));
    let used = used.await.unwrap();
    let call = next(&mut shard).await;
    hand.answer(&call, Callback::Message(page(1))).await;
    let message = used.answer().await.unwrap().message;
    let pressed = hand.discord.press(hand.small.bob, message, "Next");
    let refused = pressed.answer().await.unwrap_err().to_string();
    assert!(refused.contains("sees no message"), "{refused}");
}

#[tokio::test]
async fn an_export_goes_to_direct_messages_unless_they_are_closed() {
    let (hand, _shard) = Hand::new().await;
    let alice = hand.small.alice;
    let user = UserId::new(alice.0);
    let export = page(1).with_file("export.json", b"{}".to_vec());
    let channel = hand.rest.direct_channel(user, patient()).await.unwrap();
    let same = hand.rest.direct_channel(user, patient()).await.unwrap();
    assert_eq!(channel, same);
    hand.discord
        .fault(Fault::new("POST", "/messages", FaultKind::DroppedAfter).once());
    let sent = hand
        .rest
        .post_answer(channel, &export, "export-1", patient());
    let sent = sent.await.unwrap();
    let direct = Id(channel.get());
    let posted = hand.discord.wait_answers(direct, 1).await.unwrap();
    assert_eq!((posted.len(), posted[0].id.0), (1, sent.get()));
    assert_eq!(posted[0].attachments[0].file.bytes, b"{}");
    assert_eq!(posted[0].components.len(), 1);
    hand.discord.world(|world| {
        world.settings.closed_to_dms.insert(alice);
    });
    let refused = hand
        .rest
        .post_answer(channel, &export, "export-2", patient());
    assert_eq!(refused.await.unwrap_err().reason, Fallback::Forbidden);
    let nobody = hand.rest.direct_channel(UserId::new(1), patient()).await;
    assert_eq!(nobody.unwrap_err().code, Some(50_033));
}

/// Validates the crate's request bodies against Discord's official `OpenAPI` document.
#[tokio::test]
async fn requests_are_as_discord_documents_them() {
    let (hand, mut shard) = Hand::new().await;
    let document = Document::load();
    let (channel, alice) = (hand.small.channel, hand.small.alice);
    let sent = |method: &str, path: &str| {
        let calls = hand.discord.requests_to(method, path);
        calls.last().unwrap().body.clone()
    };
    document.check(
        "[ApplicationCommandUpdateRequest]",
        &sent("PUT", "/commands"),
    );
    let path = format!("/applications/{}/commands", us(&hand.discord));
    let set = crate::simulator::Rest::new(&hand.discord).get(&path).await;
    document.check("[ApplicationCommandResponse]", &set);

    let call = async |shard: &mut Shard| {
        let used = hand.discord.call(alice, channel, "help", json!({}));
        used.await.unwrap();
        next(shard).await
    };
    let answer = || page(1).with_file("export.json", b"{}".to_vec());
    let create = "CreateMessageInteractionCallbackRequest";
    let first = call(&mut shard).await;
    hand.answer(&first, Callback::Message(answer())).await;
    document.check(create, &sent("POST", "/callback"));
    hand.rest
        .follow_up_answer(&first.interaction, &answer(), patient())
        .await
        .unwrap();
    let follow_up = sent("POST", "/webhooks/");
    document.check("IncomingWebhookInteractionRequest", &follow_up);
    let message = hand.discord.ephemeral()[0].id;
    hand.discord.press(alice, message, "Next");
    let press = next(&mut shard).await;
    hand.answer(&press, Callback::Update(answer())).await;
    let update = "UpdateMessageInteractionCallbackRequest";
    document.check(update, &sent("POST", "/callback"));
    hand.discord.press(alice, message, "Next");
    let press = next(&mut shard).await;
    hand.answer(&press, Callback::DeferredUpdate).await;
    document.check(update, &sent("POST", "/callback"));
    hand.rest
        .edit_original_answer(&press.interaction, &answer(), patient())
        .await
        .unwrap();
    let edit = "IncomingWebhookUpdateForInteractionCallbackRequestPartial";
    document.check(edit, &sent("PATCH", "/@original"));
    let second = call(&mut shard).await;
    let thinking = Callback::Deferred { ephemeral: true };
    hand.answer(&second, thinking).await;
    document.check(create, &sent("POST", "/callback"));
    hand.rest
        .post_answer(channel_id(channel), &answer(), "n", patient())
        .await
        .unwrap();
    document.check("MessageCreateRequest", &sent("POST", "/messages"));
}
