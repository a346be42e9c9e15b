//! Scenario files.

use clew_context::model::{
    ChannelId, ChannelKind, Message, MessageId, MessageKind, Referenced, UserId,
};

use serde_json::{Value, json};

use super::run::replay_with;
use super::{GENERAL, POST, THREAD, at, contents, message, world};

#[test]
fn a_scenario_gives_its_final_state() {
    let world = world(&["scenario.json"]);
    assert_eq!(world.bot(), Some(UserId::new(900)));
    let general: Vec<Message> = world.messages(GENERAL).map(Result::unwrap).collect();
    let expected = [
        "first, corrected",
        "Is the pump on?",
        "answering what goes",
        "",
        "",
        "<@900> what happened?",
    ];
    assert_eq!(contents(&general), expected);
    assert_eq!(general[0].edited, Some(at(95).created()));
    assert_eq!(&*general[0].author.name, "Maya R.");
    let (reply, alert, forward, trigger) = (&general[2], &general[3], &general[4], &general[5]);
    assert_eq!(reply.kind, MessageKind::Reply);
    assert_eq!(reply.referenced, Referenced::Deleted);
    assert_eq!(&*reply.mentions[0].name, "Maya R.");
    assert!(alert.author.webhook && alert.author.bot);
    let extras = alert.extras.as_ref().unwrap();
    assert_eq!(extras.embeds[0].title.as_deref(), Some("Pressure low"));
    assert_eq!(&*extras.attachments[0].filename, "line3.txt");
    assert_eq!(
        extras.attachments[0].content_type.as_deref(),
        Some("text/plain")
    );
    assert_eq!(forward.kind, MessageKind::Default);
    let snapshot = &forward.extras.as_ref().unwrap().snapshots[0];
    assert_eq!(&*snapshot.content, "forwarded words");
    assert_eq!(trigger.replies_to(), Some(alert.id));
    assert_eq!(trigger.mentions[0].id, UserId::new(900));
}

#[test]
fn a_scenarios_threads_have_parents_tags_and_state() {
    let world = world(&["scenario.json"]);
    let thread = world.channel(THREAD).unwrap();
    assert_eq!(thread.parent_kind, Some(ChannelKind::Text));
    let state = thread.thread.as_ref().unwrap();
    assert!(state.archived && state.locked);
    assert_eq!(state.owner, Some(UserId::new(502)));
    let messages = world.page_after(THREAD, MessageId::new(1), 9).unwrap();
    assert_eq!(messages[0].kind, MessageKind::ThreadStarter);
    assert_eq!(&*messages[0].author.name, "tomas");
    assert_eq!(messages[1].mentions[0].id, UserId::new(502));
    assert_eq!(messages[1].mention_roles[0].get(), 44);
    let post = world.channel(POST).unwrap();
    assert_eq!(post.parent_kind, Some(ChannelKind::Forum));
    assert_eq!(post.tags, ["solved"]);
    assert!(world.hidden(ChannelId::new(703)) && !world.hidden(GENERAL));
    // Nicknames belong to a server.
    let direct = message(&world, ChannelId::new(720), at(1100));
    assert_eq!((&*direct.author.name, direct.guild), ("Maya", None));
}

/// A thread in which somebody writes and asks through a proxy.
fn through_an_app() -> Value {
    let posted = |second: i64, content: &str| {
        json!({"op": "create", "message": {
            "id": at(second), "channel_id": "701", "author_id": "903", "content": content,
            "webhook_id": "903", "application_id": "466378653216014359",
        }})
    };
    json!({
        "bot": {"id": "900", "username": "clew", "bot": true},
        "users": [
            {"id": "501", "username": "maya"}, {"id": "903", "username": "Luna", "bot": true},
        ],
        "guilds": [{
            "id": "800",
            "channels": [{"id": "700", "type": 0, "name": "general"}],
            "threads": [{"id": "701", "type": 11, "parent_id": "700", "name": "pump", "owner_id": "501"}],
        }],
        "timeline": [
            {"op": "create", "message": {
                "id": at(1), "channel_id": "701", "author_id": "501", "content": "hello",
            }},
            posted(2, "the pump leaks"),
            posted(3, "<@900> what leaks?"),
            {"op": "create", "message": {
                "id": at(4), "channel_id": "701", "author_id": "501", "content": "<@900> well?",
            }},
        ],
    })
}

#[test]
fn who_writes_through_a_listed_app_is_a_person_in_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.json");
    std::fs::write(&file, through_an_app().to_string()).unwrap();
    for flags in ["--format jsonl --text", "--format jsonl --text --warm"] {
        let files = [file.clone()];
        let (apps, _) = replay_with(&files, flags, &[]).unwrap();
        assert_eq!(apps.lines().count(), 1);
        assert!(!apps.contains("the pump leaks"), "{apps}");
        let listed = [("PROXY_APPS", "pluralkit")];
        let (people, _) = replay_with(&files, flags, &listed).unwrap();
        assert_eq!(people.lines().count(), 2, "Luna asks as well");
        let said = "Luna [through an app]: the pump leaks";
        assert_eq!(people.matches(said).count(), 2, "{people}");
    }
}

/// An app that may not delete leaves the question beside its copy: it is asked once, as
/// by the bot; what is said again later is another question.
#[test]
fn a_question_and_its_copy_are_one_in_a_replay() {
    let mut scenario = through_an_app();
    let timeline = scenario["timeline"].as_array_mut().unwrap();
    let asked = |second: i64| {
        json!({"op": "create", "message": {
            "id": at(second), "channel_id": "701", "author_id": "501",
            "content": "L: <@900> how deep is it?",
        }})
    };
    let copied = |second: i64| {
        let mut copy = timeline[2].clone();
        copy["message"]["id"] = json!(at(second));
        copy["message"]["content"] = json!("<@900> how deep is it?");
        copy
    };
    let more = [asked(10), copied(11), copied(12), copied(30)];
    timeline.extend(more);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.json");
    std::fs::write(&file, scenario.to_string()).unwrap();
    let listed = [("PROXY_APPS", "pluralkit")];
    for (flags, seconds) in [
        ("--format jsonl", &[3, 4, 10, 12, 30][..]),
        ("--format jsonl --warm", &[3, 4, 10, 12, 30]),
        ("--format jsonl --trigger all", &[1, 2, 3, 4, 10, 12, 30]),
    ] {
        let (lines, _) = replay_with(std::slice::from_ref(&file), flags, &listed).unwrap();
        let lines = lines.lines().map(serde_json::from_str::<Value>);
        let triggers: Vec<Value> = lines.map(|line| line.unwrap()["trigger"].clone()).collect();
        let expected: Vec<Value> = seconds.iter().map(|second| json!(at(*second))).collect();
        assert_eq!(triggers, expected, "{flags}");
    }
}
