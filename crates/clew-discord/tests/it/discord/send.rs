//! What is posted, how often, and how refusals are classified.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::time::Duration;

use clew_context::model::{
    ApplicationId, Fallback, GuildId, Interaction, InteractionId, InteractionPlace, MessageId,
    Secret, UserId,
};
use clew_discord::send::{Callback, CreatedMessage, MessageText, NewMessage};
use clew_simulator::{Fault, FaultKind, Id, Permissions, Simulator, Use};

use super::rest::{channel_id, message_id, patient, rest};
use crate::simulator::{Small, small};

async fn asked() -> (Simulator, Small, Id) {
    let mut small = small();
    let asked = small.world.seed(small.channel, small.alice, "question");
    let world = std::mem::take(&mut small.world);
    (Simulator::start(world).await.unwrap(), small, asked)
}

fn answer(to: Id) -> NewMessage {
    NewMessage {
        content: "@everyone answer".to_owned(),
        reply_to: Some(message_id(to)),
        nonce: "t1-0".to_owned(),
        ..NewMessage::default()
    }
}

fn posts(simulator: &Simulator, small: &Small) -> usize {
    let path = format!("/channels/{}/messages", small.channel.0);
    simulator.requests_to("POST", &path).len()
}

#[tokio::test]
async fn an_answer_is_posted_edited_and_deleted() {
    let (simulator, small, asked) = asked().await;
    let (rest, channel) = (rest(&simulator), channel_id(small.channel));
    let mut message = answer(asked);
    message.files = vec![("answer.md".to_owned(), b"# long".to_vec())];
    let sent = rest
        .create_message(channel, &message, patient())
        .await
        .unwrap();
    assert_eq!(sent.reference_dropped, None);
    let posted = simulator
        .wait_answers(small.channel, 1)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(posted.id.0, sent.id.get());
    assert_eq!(posted.reference.unwrap().message, Some(asked));
    assert!(posted.mentions.is_empty() && !posted.mention_everyone);
    let path = format!("/channels/{channel}/messages");
    let request = simulator.requests_to("POST", &path).remove(0);
    assert_eq!(request.files, ["answer.md"]);
    assert_eq!(request.body["enforce_nonce"], true);

    rest.edit_message(channel, sent.id, &MessageText::plain("better"), patient())
        .await
        .unwrap();
    let edited = rest
        .reader()
        .message(channel, sent.id, patient())
        .await
        .unwrap();
    assert_eq!(
        (&*edited.content, edited.edited.is_some()),
        ("better", true)
    );
    rest.add_reaction(channel, sent.id, "👍", patient())
        .await
        .unwrap();
    rest.delete_message(channel, sent.id, patient())
        .await
        .unwrap();
    rest.delete_message(channel, sent.id, patient())
        .await
        .unwrap();
    let gone = rest
        .reader()
        .message(channel, sent.id, patient())
        .await
        .unwrap_err();
    assert_eq!(gone.reason, Fallback::Deleted);
}

#[tokio::test]
async fn only_the_author_replied_to_is_pinged() {
    let (simulator, small, asked) = asked().await;
    let rest = rest(&simulator);
    let mut message = answer(asked);
    message.content = format!("<@{}> <@{}>", small.alice.0, small.bob.0);
    rest.create_message(channel_id(small.channel), &message, patient())
        .await
        .unwrap();
    message.ping_replied = true;
    message.nonce = "t1-1".to_owned();
    rest.create_message(channel_id(small.channel), &message, patient())
        .await
        .unwrap();
    let path = format!("/channels/{}/messages", small.channel.0);
    let pings: Vec<_> = simulator
        .requests_to("POST", &path)
        .iter()
        .map(|request| request.body["allowed_mentions"].to_string())
        .collect();
    for (sent, replied_user) in pings.iter().zip([false, true]) {
        let expected = format!(r#"{{"parse":[],"replied_user":{replied_user},"users":[]}}"#);
        assert_eq!(*sent, expected);
    }
    assert_eq!(pings.len(), 2);
}

#[tokio::test]
async fn a_post_whose_response_is_lost_gives_one_message() {
    for kind in [FaultKind::DroppedAfter, FaultKind::Truncated] {
        let (simulator, small, asked) = asked().await;
        let rest = rest(&simulator);
        simulator.fault(Fault::new("POST", "/messages", kind).once());
        let sent = rest
            .create_message(channel_id(small.channel), &answer(asked), patient())
            .await;
        assert_eq!(posts(&simulator, &small), 2);
        let answers = simulator.wait_answers(small.channel, 1).await.unwrap();
        assert_eq!(answers.len(), 1);
        assert_eq!(sent.unwrap().id.get(), answers[0].id.0);
    }
}

#[tokio::test]
async fn a_server_error_is_retried_twice() {
    let (simulator, small, asked) = asked().await;
    let rest = rest(&simulator);
    simulator.fault(Fault::status("POST", "/messages", 502, 0, "Bad Gateway").times(2));
    rest.create_message(channel_id(small.channel), &answer(asked), patient())
        .await
        .unwrap();
    assert_eq!(posts(&simulator, &small), 3);
    simulator.fault(Fault::status("POST", "/messages", 500, 0, "oops"));
    let error = rest
        .create_message(channel_id(small.channel), &answer(asked), patient())
        .await;
    assert_eq!(error.unwrap_err().reason, Fallback::Unavailable);
    assert_eq!(posts(&simulator, &small), 6);
}

#[tokio::test]
async fn a_refused_reference_is_left_out_once() {
    let (simulator, small, _) = asked().await;
    let rest = rest(&simulator);
    let gone = answer(Id(START));
    let sent = rest
        .create_message(channel_id(small.channel), &gone, patient())
        .await
        .unwrap();
    assert_eq!(sent.reference_dropped, Some(Fallback::Deleted));
    let posted = simulator
        .wait_answers(small.channel, 1)
        .await
        .unwrap()
        .remove(0);
    assert_eq!((posted.reference, posts(&simulator, &small)), (None, 2));

    let (simulator, small, asked) = asked_without_history().await;
    let rest = super::rest::rest(&simulator);
    let sent: CreatedMessage = rest
        .create_message(channel_id(small.channel), &answer(asked), patient())
        .await
        .unwrap();
    assert_eq!(sent.reference_dropped, Some(Fallback::Forbidden));
    simulator.fault(Fault::status("POST", "/messages", 404, 10_008, "Unknown Message").once());
    let mut again = answer(asked);
    again.nonce = "t1-1".to_owned();
    let sent = rest
        .create_message(channel_id(small.channel), &again, patient())
        .await
        .unwrap();
    assert_eq!(sent.reference_dropped, Some(Fallback::Deleted));
}

/// An id that no message has.
const START: u64 = 1_000_000;

async fn asked_without_history() -> (Simulator, Small, Id) {
    let mut small = small();
    let asked = small.world.seed(small.channel, small.alice, "question");
    small
        .world
        .deny_everyone(small.channel, Permissions::READ_MESSAGE_HISTORY);
    let world = std::mem::take(&mut small.world);
    (Simulator::start(world).await.unwrap(), small, asked)
}

#[tokio::test]
async fn a_refused_post_has_its_reason() {
    let mut small = small();
    let asked = small.world.seed(small.channel, small.alice, "question");
    let kind = clew_simulator::ChannelKind::PublicThread;
    let locked = small
        .world
        .thread(small.channel, kind, "Closed", small.alice);
    small.world.set_archived(locked, true, true);
    let mute = small
        .world
        .channel(small.guild, clew_simulator::ChannelKind::Text, "mute");
    small.world.deny_everyone(mute, Permissions::SEND_MESSAGES);
    let world = std::mem::take(&mut small.world);
    let simulator = Simulator::start(world).await.unwrap();
    let rest = rest(&simulator);
    let post = async |channel: Id| {
        let message = NewMessage {
            reply_to: None,
            ..answer(asked)
        };
        rest.create_message(channel_id(channel), &message, patient())
            .await
            .unwrap_err()
            .reason
    };
    assert!(matches!(
        post(locked).await,
        Fallback::Archived | Fallback::Locked
    ));
    assert_eq!(post(mute).await, Fallback::Forbidden);
    assert_eq!(post(Id(START)).await, Fallback::NotFound);
}

#[tokio::test]
async fn a_hanging_post_ends_at_its_deadline() {
    let (simulator, small, asked) = asked().await;
    let rest = rest(&simulator);
    let hang = FaultKind::Hang(Duration::from_mins(1));
    simulator.fault(Fault::new("POST", "/messages", hang));
    let soon = tokio::time::Instant::now() + Duration::from_millis(200);
    let error = rest
        .create_message(channel_id(small.channel), &answer(asked), soon)
        .await;
    assert_eq!(error.unwrap_err().reason, Fallback::Timeout);
}

#[tokio::test]
async fn interactions_are_answered() {
    let (simulator, small, _) = asked().await;
    let rest = rest(&simulator);
    let used = Use::slash("ask", &[("question", "why")]);
    let id = simulator.interact(small.channel, small.alice, &used);
    let known = simulator.interaction(id).unwrap();
    // The simulator's application has the id of its bot.
    let application = ApplicationId::new(simulator.bot().0);
    let interaction = interaction(&known, application, &small);
    let deferred = Callback::Deferred { ephemeral: false };
    rest.answer_interaction(&interaction, &deferred, patient())
        .await
        .unwrap();
    let id: MessageId = rest
        .edit_original(&interaction, &MessageText::plain("because"), patient())
        .await
        .unwrap();
    let answers = simulator.interaction_answers(known.id);
    assert_eq!(
        (answers[0].id.0, &*answers[0].content),
        (id.get(), "because")
    );
    rest.follow_up(
        &interaction,
        &MessageText::plain("-# only you"),
        true,
        patient(),
    )
    .await
    .unwrap();
    assert_eq!(simulator.interaction_answers(known.id).len(), 2);
    let again = rest
        .answer_interaction(&interaction, &deferred, patient())
        .await;
    assert!(again.is_err(), "Discord takes one first answer");
    assert!(!format!("{:?}", again.unwrap_err()).contains(&known.token));
}

fn interaction(
    known: &clew_simulator::Interaction,
    application: ApplicationId,
    small: &Small,
) -> Interaction {
    Interaction {
        id: InteractionId::new(known.id.0),
        application,
        token: Secret::new(known.token.clone()),
        channel: channel_id(small.channel),
        guild: Some(GuildId::new(small.guild.0)),
        user: UserId::new(small.alice.0),
        place: InteractionPlace::Guild,
    }
}
