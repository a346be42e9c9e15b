//! Whole prompts as a model reads them: with block, memory and history, one snapshot per scene.

use clew_context::engine::status::{RunningTurn, status};
use clew_context::model::{
    AgentDoc, Channel, ChannelId, ChannelKind, HistoryMessage, Message, Poll, Profiles,
    ThreadState, UnixMillis,
};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, DICE, EVE, Person, Shape, asked, id, post, said, text_channel, thread_id,
};
use crate::support::world::{Start, World};

fn profiles() -> Profiles {
    Profiles {
        user: vec![
            "Works on the Android client.".to_owned(),
            "Prefers short answers.".to_owned(),
        ],
        server: vec!["Releases are cut on Fridays.".to_owned()],
    }
}

/// A question by Eve and our answer, from before the rest.
fn history() -> Vec<HistoryMessage> {
    vec![
        HistoryMessage {
            ours: false,
            author: Some((EVE.user(), EVE.name.to_owned())),
            message: Some(id(1)),
            timestamp: id(1).created(),
            restored: false,
            text: "Which version are we on?".to_owned(),
        },
        HistoryMessage {
            ours: true,
            author: None,
            message: Some(id(2)),
            timestamp: id(2).created(),
            restored: false,
            text: "2.4.1, since Tuesday.".to_owned(),
        },
    ]
}

/// The whole prompt, each message with its role.
async fn prompt(start: &Start, world: &World, trigger: &Message) -> String {
    let collected = start.collect(world, trigger).await;
    let prompt = start
        .prepare_with(&collected, &profiles(), &history())
        .prompt;
    let messages = prompt.messages.iter();
    let shown: Vec<String> = messages
        .map(|message| format!("=== {} ===\n{}\n", message.role(), message.content()))
        .collect();
    shown.join("\n")
}

fn here(minute: u64, who: Person, text: &str) -> Message {
    said(minute * 60, who, text).into_channel(thread_id(0))
}

#[tokio::test]
async fn a_mention_in_a_forum_post() {
    let starter = said(
        0,
        ADA,
        "It crashes on start since 2.4.1:\n```\njava.lang.Nothing\n```",
    )
    .into_channel(thread_id(0))
    .with_file("crash.log", Some("text/plain"), 1_234);
    let poll = here(6, BOB, "").with_extras(|extras| {
        extras.poll = Some(Poll {
            question: "Roll back?".into(),
            answers: vec![("yes".into(), Some(3)), ("no".into(), None)],
        });
    });
    let mut world = World::of([starter]);
    world.files.insert(
        "crash.log".to_owned(),
        "at Main.kt:12\nat App.kt:3".to_owned(),
    );
    world.add((1..=45).map(|n| said(100 + n, BOB, "me too").into_channel(thread_id(0))));
    world.add([
        here(5, CLEW, "Which device is it?"),
        poll,
        here(7, DICE, "rolled 6"),
        here(8, ADA, "A Pixel, <@12> knows more").pinging(BOB),
        here(9, BOB, &"All of them, and at length. ".repeat(100)),
    ]);
    let trigger = asked(600, EVE, "what do we know so far?").into_channel(thread_id(0));
    world.add([trigger.clone()]);
    let channel = Channel {
        thread: Some(ThreadState {
            message_count: Some(51),
            ..ThreadState::default()
        }),
        ..post(0)
    };
    let mut start = Start::within(channel);
    start.limits.max_msgs = 10;
    start.limits.max_msg_chars = 200;
    insta::assert_snapshot!(prompt(&start, &world, &trigger).await);
}

#[tokio::test]
async fn a_reply_to_an_alert() {
    let alert = said(120, ALERT, "")
        .with_embed("Disk full", "node 7 is at 98 %")
        .replying(60);
    let world = World::of([said(60, ADA, "watch node 7 please"), alert]);
    let trigger = asked(180, EVE, "what is this, and does <@90> know?").replying(120);
    let start = Start::within(text_channel());
    insta::assert_snapshot!(prompt(&start, &world, &trigger).await);
}

#[tokio::test]
async fn a_bare_mention_in_a_channel() {
    let world = World::of([
        said(60, ADA, "when is the release?"),
        said(120, BOB, "no idea"),
        said(180, CLEW, "Friday, I think."),
    ]);
    let start = Start::within(text_channel());
    insta::assert_snapshot!(prompt(&start, &world, &asked(240, EVE, "")).await);
}

/// Somebody else's text is answered, and attributed to them.
#[tokio::test]
async fn a_bare_mention_in_a_thread() {
    let world = World::of([
        said(0, ADA, "the release is today").into_channel(thread_id(0)),
        here(1, BOB, "how do I get the build?"),
    ]);
    let trigger = asked(120, EVE, "").into_channel(thread_id(0));
    let start = Start::within(post(0));
    insta::assert_snapshot!(prompt(&start, &world, &trigger).await);
}

#[tokio::test]
async fn a_direct_message() {
    let channel = Channel {
        id: ChannelId::new(900),
        guild: None,
        kind: ChannelKind::Dm,
        name: String::new(),
        ..text_channel()
    };
    let trigger = said(240, EVE, "and the one before?").into_channel(channel.id);
    let start = Start::within(channel);
    insta::assert_snapshot!(prompt(&start, &World::default(), &trigger).await);
}

/// Docs follow the agent's prompt in order; what changes with every turn ends the
/// system message.
#[tokio::test]
async fn an_agent_with_docs_that_answers_elsewhere_too() {
    let doc = |name: &str, text: &str| AgentDoc {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let running = |channel: &str, asker: Option<&str>, minute: i64| RunningTurn {
        channel: channel.to_owned(),
        asker: asker.map(str::to_owned),
        since: UnixMillis(minute * 60_000),
        is_run: false,
        tools: Vec::new(),
    };
    let world = World::of([said(60, ADA, "when is the release?")]);
    let start = Start {
        docs: vec![
            doc("1-prices.md", "A seat is 5 EUR.\n"),
            doc("2-hours.md", "Open from 9 to 17."),
        ],
        status: status(&[
            running("general", None, 3),
            running("help", Some("Bob"), 12),
        ]),
        ..Start::within(text_channel())
    };
    insta::assert_snapshot!(prompt(&start, &world, &asked(240, EVE, "")).await);
}
