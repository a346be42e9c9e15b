//! Tests with what Discord sends, what it might send, and what twilight's model refuses.

use serde_json::{Value, json};

use super::*;
use crate::model::{
    ApplicationId, Attachment, Author, ChannelKind, Embed, Extras, MessageFlags, MessageKind,
    ReferenceKind, Referenced, RoleId, UnixMillis, UserId,
};

/// Code samples from Discord's documentation (MIT, see the licence beside them).
const EXAMPLES: &str = include_str!("../../../../../fixtures/discord/examples.jsonl");

/// A message with the required fields and `more`.
fn with(more: Value) -> String {
    let mut message = json!({
        "id": "1000", "channel_id": "7", "type": 0, "content": "hello",
        "timestamp": "2026-01-02T03:04:05.678000+00:00",
        "author": {"id": "5", "username": "ada"},
    });
    let Value::Object(more) = more else {
        panic!("an object")
    };
    message.as_object_mut().unwrap().extend(more);
    message.to_string()
}

#[track_caller]
fn read(more: Value) -> Message {
    message(&with(more)).unwrap()
}

#[track_caller]
fn extras(more: Value) -> Extras {
    *read(more).extras.unwrap()
}

/// `more` is accepted, and exactly the parts named `unread` are lost.
#[track_caller]
fn check_unread(more: Value, unread: &[&str]) {
    let message = read(more);
    let noted = message.extras.map(|extras| extras.unread);
    assert_eq!(noted.unwrap_or_default(), unread);
    assert_eq!(&*message.content, "hello");
}

fn examples(heading: &str) -> Vec<Value> {
    let lines = EXAMPLES
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["heading"] == heading)
        .map(|mut line| line["example"].take())
        .collect()
}

/// Reading each part separately takes twice as long.
#[test]
fn what_discord_documents_is_read_in_one_pass() {
    let documented = examples("Example Message")
        .into_iter()
        .chain(examples("Example Crossposted Message"));
    let full = json!({
        "member": {"nick": null, "roles": ["3"]}, "mentions": [], "mention_roles": [],
        "embeds": [], "attachments": [], "components": [], "edited_timestamp": null,
        "flags": 0, "tts": false, "pinned": false, "nonce": 7, "guild_id": "1",
    });
    let full = serde_json::from_str(&with(full)).unwrap();
    for message in documented.chain([full]) {
        let json = message.to_string();
        serde_json::from_str::<wire::WireMessage<'_>>(&json).unwrap();
    }
}

#[test]
fn a_message_needs_little() {
    let message = message(r#"{"id":1000,"channel_id":"7","author":{"id":"5"}}"#).unwrap();
    assert_eq!(message.id, MessageId::new(1000));
    assert_eq!(message.author.id, UserId::new(5));
    assert_eq!(message.timestamp, message.id.created());
    assert_eq!(message.kind, MessageKind::Default);
    assert_eq!(message.extras, None);
}

#[test]
fn without_id_channel_or_author_it_is_unreadable() {
    #[track_caller]
    fn check(json: &str, reason: WhyUnreadable, id: Option<u64>) {
        let error = message(json).unwrap_err();
        assert_eq!((error.reason, error.id), (reason, id.map(MessageId::new)));
    }
    check("", WhyUnreadable::Json, None);
    check("[]", WhyUnreadable::Json, None);
    check(r#"{"id":"1""#, WhyUnreadable::Json, None);
    check(
        r#"{"id":"x","channel_id":"7","author":{"id":"5"}}"#,
        WhyUnreadable::Id,
        None,
    );
    check(
        r#"{"id":"0","channel_id":"7","author":{"id":"5"}}"#,
        WhyUnreadable::Id,
        None,
    );
    check(
        r#"{"id":"1","author":{"id":"5"}}"#,
        WhyUnreadable::Channel,
        Some(1),
    );
    check(
        r#"{"id":"1","channel_id":"7"}"#,
        WhyUnreadable::Author,
        Some(1),
    );
    check(
        r#"{"id":"1","channel_id":"7","author":{}}"#,
        WhyUnreadable::Author,
        Some(1),
    );
    check(
        r#"{"id":"1","channel_id":"7","author":"me"}"#,
        WhyUnreadable::Author,
        Some(1),
    );
}

#[test]
fn the_documentations_messages_are_read() {
    let crossposted = &examples("Example Crossposted Message")[0];
    let message = message(&crossposted.to_string()).unwrap();
    assert_eq!(&*message.author.name, "Mason");
    assert_eq!(message.flags, MessageFlags(2));
    assert_eq!(message.replies_to(), None, "a crosspost is no reply");
    assert_eq!(message.extras, None, "nothing unread");
}

#[test]
fn each_message_like_example_is_read() {
    let interaction = examples("Example Interaction").remove(0);
    let dispatch = examples("Example Message Dispatch Payload").remove(0);
    let mut inner = dispatch["data"]["message"].clone();
    inner["channel_id"] = dispatch["data"]["channel_id"].clone();
    let resolved = &interaction["data"]["resolved"]["messages"]["867793854505943041"];
    let plain = examples("Example Message").remove(0);
    for (example, content) in [
        (&plain, "Supa Hot"),
        (resolved, "some message"),
        (&inner, "test"),
    ] {
        let message = message(&example.to_string()).unwrap();
        assert_eq!(&*message.content, content);
        assert_eq!(message.extras, None, "{example}");
    }
}

#[test]
fn the_documentations_components_are_read_in_order() {
    let nested = &examples("Nesting Components with Layout Components")[0];
    let extras = extras(nested.clone());
    assert_eq!(
        extras
            .component_text
            .iter()
            .map(|line| &**line)
            .collect::<Vec<_>>(),
        [
            "This is a message with v2 components",
            "Click Me",
            "Click Me Too"
        ]
    );
}

#[test]
fn components_of_any_type_and_depth_give_their_text() {
    let extras = extras(json!({"components": [
        {"type": 17, "components": [
            {"type": 9,
             "components": [{"type": 10, "content": "# Release"}],
             "accessory": {"type": 11, "description": "a logo"}},
            {"type": 12, "items": [{"description": "before"}, {"media": {}}, {"description": "after"}]},
            {"type": 13, "file": {"url": "attachment://x"}, "name": "notes.txt"},
            {"type": 1, "components": [
                {"type": 3, "placeholder": "Pick", "options": [{"label": "One"}, {"label": "Two"}]}]},
            {"type": 99, "label": "new", "component": {"type": 100, "content": "newer"}},
        ]},
    ]}));
    let lines: Vec<&str> = extras.component_text.iter().map(|line| &**line).collect();
    assert_eq!(
        lines,
        [
            "# Release",
            "a logo",
            "before",
            "after",
            "notes.txt",
            "Pick",
            "One",
            "Two",
            "new",
            "newer"
        ]
    );
}

#[test]
fn a_bottomless_component_costs_no_stack() {
    let deep = format!(
        "{}{}",
        r#"{"type":17,"content":"x","components":["#.repeat(5_000),
        "]}".repeat(5_000)
    );
    let json =
        format!(r#"{{"id":"1","channel_id":"7","author":{{"id":"5"}},"components":[{deep}]}}"#);
    let extras = message(&json).unwrap().extras.unwrap();
    assert_eq!(extras.unread, ["components"]);
    assert_eq!(extras.component_text.len(), 8);
}

#[test]
fn what_twilights_model_refuses_is_read() {
    // Seen when running twilight 0.18 against odd input, one case per line.
    check_unread(
        json!({"author": {"id": "5", "username": "ada", "avatar": "no hash"}}),
        &[],
    );
    check_unread(json!({"interaction_metadata": {"type": 77}}), &[]);
    check_unread(
        json!({"message_reference": {"type": 300, "message_id": "4"}}),
        &["message_reference"],
    );
    check_unread(
        json!({"message_snapshots": [{"message": {"content": "x"}}]}),
        &[],
    );
    check_unread(
        json!({"attachments": [{"id": "1", "filename": "a.txt", "size": 3.0, "url": "u", "width": 1.5}]}),
        &[],
    );
    check_unread(json!({"embeds": [{"title": "no type"}]}), &[]);
    check_unread(json!({"mentions": [{"id": "6", "username": "bob"}]}), &[]);
    check_unread(json!({"member": {"nick": "A"}}), &[]);
    check_unread(
        json!({"nonce": 12, "unknown_field": {"deep": [1, null]}}),
        &[],
    );
}

#[test]
fn a_part_that_cannot_be_read_costs_itself() {
    check_unread(json!({"embeds": "x"}), &["embeds"]);
    check_unread(json!({"embeds": [5, {"title": "good"}]}), &["embeds"]);
    check_unread(
        json!({"attachments": [{"filename": 1, "url": "u", "size": 1}]}),
        &["attachments"],
    );
    check_unread(
        json!({"attachments": [{"filename": "a", "url": "u", "size": -1}]}),
        &["attachments"],
    );
    check_unread(json!({"mentions": [{"username": "nobody"}]}), &["mentions"]);
    check_unread(json!({"mention_roles": ["x", "9"]}), &["mention_roles"]);
    check_unread(json!({"mention_roles": ["0", "9"]}), &["mention_roles"]);
    check_unread(json!({"guild_id": "0"}), &["guild_id"]);
    check_unread(json!({"poll": 1}), &["poll"]);
    check_unread(json!({"components": {}}), &["components"]);
    check_unread(
        json!({"components": [{"components": [7]}]}),
        &["components"],
    );
    check_unread(json!({"message_snapshots": [{}]}), &["message_snapshots"]);
    check_unread(json!({"flags": "many"}), &["flags"]);
    check_unread(json!({"timestamp": "yesterday"}), &["timestamp"]);
    check_unread(json!({"edited_timestamp": 5}), &["edited_timestamp"]);
    check_unread(json!({"guild_id": true}), &["guild_id"]);
    check_unread(json!({"member": "x"}), &["member"]);
    check_unread(
        json!({"referenced_message": {"id": "3"}}),
        &["referenced_message"],
    );
    check_unread(json!({"type": "reply"}), &["type"]);
}

#[test]
fn an_unreadable_type_is_no_conversation() {
    assert!(!read(json!({"type": -1})).kind.is_conversation());
    assert_eq!(
        read(json!({"type": 4_000})).kind,
        MessageKind::System(4_000)
    );
    let lost = read(json!({"content": 5}));
    assert_eq!(
        (&*lost.content, lost.extras.unwrap().unread),
        ("", vec!["content"])
    );
}

#[test]
fn absent_null_and_carried_are_three_things() {
    assert_eq!(read(json!({})).referenced, Referenced::Absent);
    assert_eq!(
        read(json!({"referenced_message": null})).referenced,
        Referenced::Deleted
    );
    let reply = read(json!({
        "type": 19,
        "message_reference": {"message_id": "900", "channel_id": "7"},
        "referenced_message": {
            "id": "900", "channel_id": "7", "author": {"id": "6", "username": "bob"}, "content": "q",
            "referenced_message": {"id": "800", "channel_id": "7", "author": {"id": "5"}},
        },
    }));
    let carried = reply.referenced_message().unwrap();
    assert_eq!(&*carried.content, "q");
    assert_eq!(
        carried.referenced,
        Referenced::Absent,
        "one level is carried"
    );
    assert_eq!(reply.replies_to(), Some(MessageId::new(900)));
}

#[test]
fn the_name_is_the_one_that_people_see() {
    #[track_caller]
    fn check(author: &Value, member: &Value, expected: &str) {
        let message = read(json!({"author": author, "member": member}));
        assert_eq!(&*message.author.name, expected);
    }
    let full = json!({"id": "5", "username": "ada", "global_name": "Ada L"});
    check(&full, &json!({"nick": "Countess"}), "Countess");
    check(&full, &json!({"nick": null}), "Ada L");
    check(&full, &json!(null), "Ada L");
    check(
        &json!({"id": "5", "username": "ada", "global_name": null}),
        &json!({}),
        "ada",
    );
    check(
        &json!({"id": "5", "username": "ada", "global_name": 3}),
        &json!({"nick": 4}),
        "ada",
    );
    let mentioned = read(json!({"mentions": [
        {"id": "6", "username": "bob", "member": {"nick": "Bobby"}},
        {"id": 8, "username": "eve"},
    ]}));
    let names: Vec<&str> = mentioned
        .mentions
        .iter()
        .map(|mention| &*mention.name)
        .collect();
    assert_eq!(names, ["Bobby", "eve"]);
}

#[test]
fn webhooks_are_told_from_answers_to_interactions() {
    assert!(read(json!({"webhook_id": "5"})).author.webhook);
    let of_app = read(json!({"webhook_id": "5", "application_id": "9"})).author;
    assert!(of_app.webhook);
    assert_eq!(of_app.application, Some(ApplicationId::new(9)));
    let answer = read(json!({"webhook_id": "9", "application_id": "9",
        "author": {"id": "4", "username": "clew", "bot": true}}));
    let expected = Author {
        id: UserId::new(4),
        name: "clew".into(),
        bot: true,
        webhook: false,
        application: None,
    };
    assert_eq!(answer.author, expected);
}

#[test]
fn extras_keep_their_texts() {
    let extras = extras(json!({
        "embeds": [{
            "type": "rich", "title": "T", "url": "https://x", "description": "D",
            "provider": {"name": "P"}, "author": {"name": "A"}, "footer": {"text": "F"},
            "fields": [{"name": "k", "value": "v", "inline": true}], "thumbnail": {"url": "t"},
        }],
        "attachments": [{"id": "1", "filename": "a.txt", "content_type": "text/plain", "size": 12,
            "url": "https://cdn.discordapp.com/a.txt", "description": "notes"}],
        "sticker_items": [{"id": "1", "name": "wave", "format_type": 1}],
        "poll": {"question": {"text": "Which?"},
            "answers": [{"answer_id": 1, "poll_media": {"text": "Tea"}},
                        {"answer_id": 2, "poll_media": {"text": "Mate"}}],
            "results": {"is_finalized": false, "answer_counts": [{"id": 1, "count": 3}]}},
        "message_snapshots": [{"message": {"content": "fwd", "timestamp": "2026-01-02T03:04:05Z",
            "attachments": [{"filename": "b", "url": "u", "size": 1}]}}],
        "message_reference": {"type": 1, "message_id": "4", "channel_id": "8"},
    }));
    let embed = &extras.embeds[0];
    assert!(embed.media);
    assert_eq!(embed.footer.as_deref(), Some("F"));
    assert_eq!(&*embed.fields[0].value, "v");
    assert_eq!(
        Embed {
            fields: vec![],
            ..embed.clone()
        }
        .provider
        .as_deref(),
        Some("P")
    );
    let expected = Attachment {
        filename: "a.txt".into(),
        content_type: Some("text/plain".into()),
        size: 12,
        url: "https://cdn.discordapp.com/a.txt".into(),
        description: Some("notes".into()),
        text: None,
    };
    assert_eq!(extras.attachments, [expected]);
    assert_eq!(extras.stickers, ["wave".into()]);
    let poll = extras.poll.unwrap();
    assert_eq!(
        poll.answers,
        [("Tea".into(), Some(3)), ("Mate".into(), Some(0))]
    );
    let snapshot = &extras.snapshots[0];
    assert_eq!(
        snapshot.timestamp,
        UnixMillis::parse("2026-01-02T03:04:05Z")
    );
    assert_eq!(snapshot.extras.as_ref().unwrap().attachments.len(), 1);
}

#[test]
fn a_reference_says_what_it_is() {
    let kind = |value| {
        read(json!({"message_reference": value}))
            .reference
            .unwrap()
            .kind
    };
    assert_eq!(kind(json!({})), ReferenceKind::Default);
    assert_eq!(kind(json!({"type": 1})), ReferenceKind::Forward);
    assert_eq!(kind(json!({"type": 7})), ReferenceKind::Other(7));
    assert_eq!(read(json!({"message_reference": null})).reference, None);
}

#[test]
fn an_event_adds_channel_type_and_roles() {
    let event = incoming(&with(json!({"channel_type": 11, "guild_id": "3",
        "member": {"nick": "A", "roles": ["9", 10, "x"]}})))
    .unwrap();
    assert!(event.complete && event.has_content);
    assert_eq!(event.channel_kind, Some(ChannelKind::PublicThread));
    assert_eq!(event.roles, None, "not all of them");
    assert_eq!(&*event.message.author.name, "A");
    assert_eq!(event.message.extras.unwrap().unread, ["member"]);
}

#[test]
fn a_partial_update_is_read_as_far_as_it_goes() {
    let update = incoming(r#"{"id":"1","channel_id":"7","embeds":[{"title":"T"}]}"#).unwrap();
    assert!(!update.complete && !update.has_content);
    assert_eq!(update.message.extras.unwrap().embeds.len(), 1);
    let text = incoming(r#"{"id":"1","channel_id":"7","content":"new"}"#).unwrap();
    assert!(!text.complete && text.has_content);
    assert!(incoming(r#"{"content":"new"}"#).is_err());
}

#[test]
fn a_page_loses_only_what_cannot_be_read() {
    let json = json!([
        {"id": "3", "channel_id": "7", "author": {"id": "5"}},
        {"id": "2", "channel_id": "7"},
        null,
        {"id": "1", "channel_id": "7", "author": {"id": "5"}},
    ]);
    let read = page(json.to_string().as_bytes()).unwrap();
    let ids: Vec<u64> = read
        .messages
        .iter()
        .map(|message| message.id.get())
        .collect();
    assert_eq!(ids, [1, 3], "oldest first");
    assert_eq!(read.unreadable, [MessageId::new(2)]);
    assert_eq!(read.elements, 4);
    assert!(page(br#"[{"id":"1""#).is_err());
    assert!(page(b"\xff").is_err());
}

#[test]
fn pins_lose_only_what_cannot_be_read() {
    let pin = |id: &str| json!({"id": id, "channel_id": "7", "author": {"id": "5"}});
    let json = json!({"has_more": true, "items": [
        {"pinned_at": "2026-01-02T03:04:05Z", "message": pin("1")},
        {"pinned_at": "2026-01-01T03:04:05Z", "message": {"id": "2"}},
        {"pinned_at": null, "message": pin("3")},
    ]});
    let read = pins(json.to_string().as_bytes()).unwrap();
    let ids: Vec<u64> = read.iter().map(|message| message.id.get()).collect();
    assert_eq!(ids, [1, 3], "the last pinned first");
    assert!(pins(b"[]").is_err() && pins(br#"{"items": 1}"#).is_err());
}

#[test]
fn a_channel_takes_its_parents_words() {
    let thread = examples("Example Thread Channel").remove(0).to_string();
    let read = channel(&thread, None).unwrap();
    assert_eq!(read.kind, ChannelKind::PublicThread);
    assert_eq!(read.thread.unwrap().message_count, Some(1));
    let parent = json!({"id": "41771983423143937", "type": 15, "name": "help",
        "topic": "t".repeat(4_096), "available_tags": [{"id": "1", "name": "rust", "emoji_id": "0"}, {"id": "2", "name": "solved"}]});
    let mut post: Value = serde_json::from_str(&thread).unwrap();
    post["applied_tags"] = json!(["2", "77", 1]);
    let read = channel(&post.to_string(), Some(&parent.to_string())).unwrap();
    assert_eq!(read.parent_kind, Some(ChannelKind::Forum));
    assert_eq!(read.parent_name.as_deref(), Some("help"));
    assert_eq!(read.tags, ["solved", "rust"]);
    assert_eq!(read.topic.len(), 500);
    assert!(read.topic.ends_with('t'), "{}", read.topic);
    assert!(read.topic.contains("t [... 3,6"), "{}", read.topic);
    assert_eq!(channel("{}", None).unwrap_err().reason, WhyUnreadable::Id);
    let no_type = channel(r#"{"id":"4"}"#, None).unwrap_err();
    assert_eq!(no_type.channel, Some(ChannelId::new(4)));
}

#[test]
fn a_members_timeout_that_cannot_be_read_does_not_end() {
    let until = |timeout: Value| {
        let json = json!({"roles": ["7"], "communication_disabled_until": timeout});
        let read = member(&json.to_string()).unwrap();
        assert_eq!(read.roles, [RoleId::new(7)]);
        read.timed_out_until.map(|until| until.0)
    };
    assert_eq!(until(Value::Null), None);
    assert_eq!(until(json!("1970-01-01T00:00:01Z")), Some(1_000));
    assert_eq!(until(json!("tomorrow")), Some(i64::MAX));
    assert_eq!(until(json!(5)), Some(i64::MAX));
    assert!(member(r#"{"roles": [{}]}"#).is_err());
}

#[test]
fn twilights_own_message_is_read() {
    let example = examples("Example Crossposted Message").remove(0);
    let twilight: twilight_model::channel::Message =
        serde_json::from_value(example.clone()).unwrap();
    let converted = from_twilight(&twilight).unwrap();
    assert_eq!(converted, message(&example.to_string()).unwrap());
}
