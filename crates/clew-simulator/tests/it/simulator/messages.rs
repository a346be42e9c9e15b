//! Messages over REST: pages, permissions, replies, nonces, edits, deletions,
//! files, and every type of message as twilight reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clew_simulator::{
    ChannelKind, Draft, File, Id, OverwriteOf, Permissions, Reference, Referenced, Simulator,
};
use serde_json::{Value, json};
use twilight_model::channel::Message;

use crate::support::{Rest, START_MS, Small, small};

fn ids(page: &Value) -> Vec<u64> {
    let page = page.as_array().unwrap().iter();
    page.map(|message| message["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_are_newest_first_and_end_where_asked() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    for id in 1..=120 {
        world.seed(channel, alice, Draft::new("m").id(id));
    }
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let down = |from: u64, to: u64| (to..=from).rev().collect::<Vec<u64>>();
    for (query, expected) in [
        ("", down(120, 71)),
        ("?limit=3", down(120, 118)),
        ("?limit=100", down(120, 21)),
        ("?limit=3&before=50", down(49, 47)),
        ("?limit=3&after=50", down(53, 51)),
        ("?limit=3&after=119", down(120, 120)),
        ("?limit=100&before=3", down(2, 1)),
        ("?limit=5&around=50", down(52, 48)),
        ("?limit=2&before=999", down(120, 119)),
    ] {
        let page = rest
            .get(&format!("/channels/{channel}/messages{query}"))
            .await;
        assert_eq!(ids(&page), expected, "{query}");
    }
    for query in ["?limit=0", "?limit=101", "?limit=x", "?before=x"] {
        let path = format!("/channels/{channel}/messages{query}");
        let refused = rest.refused("GET", &path, Value::Null).await;
        assert_eq!(refused, (400, 50035), "{query}");
    }
}

#[tokio::test]
async fn unknown_objects_have_their_error_codes() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    for (method, path, expected) in [
        ("GET", "/channels/1".to_owned(), (404, 10003)),
        ("GET", "/channels/x".to_owned(), (400, 50035)),
        (
            "GET",
            format!("/channels/{channel}/messages/1"),
            (404, 10008),
        ),
        (
            "PATCH",
            format!("/channels/{channel}/messages/1"),
            (404, 10008),
        ),
        (
            "DELETE",
            format!("/channels/{channel}/messages/1"),
            (404, 10008),
        ),
        ("GET", "/nowhere".to_owned(), (404, 0)),
    ] {
        let refused = rest.refused(method, &path, Value::Null).await;
        assert_eq!(refused, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn overwrites_apply_to_the_bot() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let known = world.seed(channel, alice, "known");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{channel}/messages");
    let one = format!("{page}/{known}");
    let deny = |what| {
        simulator.overwrite(channel, OverwriteOf::Role(guild), Permissions::NONE, what);
    };
    let hello = json!({"content": "hello"});
    let reply = json!({"content": "hello", "message_reference": {
        "message_id": known.to_string(), "fail_if_not_exists": false,
    }});

    deny(Permissions::READ_MESSAGE_HISTORY);
    assert_eq!(rest.get(&page).await, json!([]));
    assert_eq!(rest.refused("GET", &one, Value::Null).await, (403, 50013));
    assert_eq!(rest.refused("POST", &page, reply).await, (400, 160_002));
    rest.post(&page, hello.clone()).await;

    deny(Permissions::SEND_MESSAGES);
    assert_eq!(
        rest.refused("POST", &page, hello.clone()).await,
        (403, 50013)
    );
    let typing = format!("/channels/{channel}/typing");
    assert_eq!(
        rest.refused("POST", &typing, Value::Null).await,
        (403, 50013)
    );
    assert_eq!(ids(&rest.get(&page).await).len(), 2);

    deny(Permissions::VIEW_CHANNEL);
    for (method, path) in [
        ("GET", &page),
        ("GET", &one),
        ("POST", &page),
        ("POST", &typing),
    ] {
        let refused = rest.refused(method, path, Value::Null).await;
        assert_eq!(refused, (403, 50001), "{method} {path}");
    }

    // A member's overwrite takes precedence over a role's, Administrator over all.
    let bot = simulator.bot();
    simulator.overwrite(
        channel,
        OverwriteOf::Member(bot),
        Permissions::VIEW_CHANNEL,
        Permissions::NONE,
    );
    rest.post(&page, hello.clone()).await;
    simulator.overwrite(
        channel,
        OverwriteOf::Member(bot),
        Permissions::NONE,
        Permissions::VIEW_CHANNEL,
    );
    assert_eq!(
        rest.refused("POST", &page, hello.clone()).await,
        (403, 50001)
    );
    let role = simulator.world(|world| world.bot_role(guild).unwrap());
    simulator.set_role_permissions(guild, role, Permissions::ADMINISTRATOR);
    rest.post(&page, hello).await;

    simulator.kick_bot(guild);
    assert_eq!(rest.refused("GET", &page, Value::Null).await, (403, 50001));
}

#[tokio::test]
async fn replies_are_checked() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let human = world.seed(channel, alice, "ask");
    let notice = world.seed(channel, alice, Draft::system(7));
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{channel}/messages");
    let reply = |id: Id, fail: bool| {
        json!({"content": "answer", "message_reference": {
            "message_id": id.to_string(), "fail_if_not_exists": fail,
        }})
    };
    let sent = rest.post(&page, reply(human, true)).await;
    assert_eq!(sent["type"], 19);
    assert_eq!(sent["referenced_message"]["id"], human.to_string());
    assert_eq!(sent["mentions"][0]["id"], alice.to_string());

    let mut silent = reply(human, true);
    silent["allowed_mentions"] = json!({"parse": []});
    assert_eq!(rest.post(&page, silent).await["mentions"], json!([]));

    for (target, fail) in [(notice, false), (Id(1), true)] {
        let (status, body) = rest.call("POST", &page, reply(target, fail)).await;
        assert_eq!(
            (status, body["code"].as_u64()),
            (400, Some(50035)),
            "{target}"
        );
        assert!(body["errors"]["message_reference"]["_errors"].is_array());
    }
    let plain = rest.post(&page, reply(Id(1), false)).await;
    assert_eq!(
        (plain["type"].as_u64(), plain.get("message_reference")),
        (Some(0), None)
    );

    // When the message is deleted, the reference stays and `referenced_message` is null.
    simulator.delete(channel, human);
    let again = rest
        .get(&format!("{page}/{}", sent["id"].as_str().unwrap()))
        .await;
    assert_eq!(again["message_reference"]["message_id"], human.to_string());
    assert_eq!(again["referenced_message"], Value::Null);
    assert!(
        again
            .as_object()
            .unwrap()
            .contains_key("referenced_message")
    );
}

#[tokio::test]
async fn a_nonce_is_enforced_only_when_asked_and_for_minutes() {
    let Small {
        mut world, channel, ..
    } = small();
    let time = Arc::new(AtomicI64::new(1_790_000_000_000));
    let now = Arc::clone(&time);
    world.follow_clock(Arc::new(move || now.load(Ordering::Relaxed)));
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{channel}/messages");
    let body = |enforce: bool| json!({"content": "once", "nonce": "n1", "enforce_nonce": enforce});
    let first = rest.post(&page, body(true)).await;
    let second = rest.post(&page, body(true)).await;
    assert_eq!(first["id"], second["id"]);
    assert_eq!(second["nonce"], "n1");
    let third = rest.post(&page, body(false)).await;
    assert_ne!(first["id"], third["id"]);
    assert_eq!(simulator.answers(channel).len(), 2);
    let shown = rest.get(&page).await;
    let shown = shown.as_array().unwrap().iter();
    assert!(shown.clone().all(|message| message.get("nonce").is_none()));
    time.fetch_add(181_000, Ordering::Relaxed);
    let forgotten = rest.post(&page, body(true)).await;
    assert_ne!(first["id"], forgotten["id"]);
    let long = json!({"content": "x", "nonce": "n".repeat(26)});
    assert_eq!(rest.refused("POST", &page, long).await, (400, 50035));
}

#[tokio::test]
async fn texts_have_limits() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{channel}/messages");
    for (content, expected) in [
        (String::new(), (400, 50006)),
        ("ä".repeat(2001), (400, 50035)),
    ] {
        let body = json!({ "content": content });
        assert_eq!(rest.refused("POST", &page, body).await, expected);
    }
    let sent = rest.post(&page, json!({"content": "ä".repeat(2000)})).await;
    let one = format!("{page}/{}", sent["id"].as_str().unwrap());
    let refused = rest.refused("PATCH", &one, json!({"content": ""})).await;
    assert_eq!(refused, (400, 50006));
    let (status, edited) = rest.call("PATCH", &one, json!({"content": "short"})).await;
    assert_eq!((status, &edited["content"]), (200, &json!("short")));
    assert!(edited["edited_timestamp"].is_string());
}

#[tokio::test]
async fn the_bot_can_change_only_its_own_messages() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let others = world.seed(channel, alice, "mine");
    let more: Vec<Id> = (0..3).map(|_| world.seed(channel, alice, "old")).collect();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{channel}/messages");
    let one = format!("{page}/{others}");
    let change = json!({"content": "changed"});
    assert_eq!(rest.refused("PATCH", &one, change).await, (403, 50005));
    assert_eq!(
        rest.refused("DELETE", &one, Value::Null).await,
        (403, 50013)
    );
    let bulk = format!("{page}/bulk-delete");
    let listed: Vec<String> = more.iter().map(ToString::to_string).collect();
    let body = json!({ "messages": listed });
    assert_eq!(
        rest.refused("POST", &bulk, body.clone()).await,
        (403, 50013)
    );
    let role = simulator.world(|world| world.bot_role(guild).unwrap());
    simulator.set_role_permissions(guild, role, Permissions::MANAGE_MESSAGES);
    assert_eq!(rest.call("DELETE", &one, Value::Null).await.0, 204);
    assert_eq!(rest.call("POST", &bulk, body).await.0, 204);
    let single = json!({"messages": [others.to_string()]});
    assert_eq!(rest.refused("POST", &bulk, single).await, (400, 50016));
    assert_eq!(rest.get(&page).await, json!([]));
}

#[tokio::test]
async fn files_are_served_by_the_cdn() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let seeded = world.seed(
        channel,
        alice,
        Draft::new("").attachment(File::text("a.rs", "fn a() {}")),
    );
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{channel}/messages");
    let object = rest.get(&format!("{page}/{seeded}")).await;
    let fetch = async |url: &Value| {
        let answer = reqwest::get(url.as_str().unwrap()).await.unwrap();
        answer.text().await.unwrap()
    };
    assert_eq!(fetch(&object["attachments"][0]["url"]).await, "fn a() {}");

    let payload = json!({"content": "rest", "attachments": [{"id": 0, "filename": "b.md"}]});
    let body = format!(
        "--X\r\nContent-Disposition: form-data; name=\"payload_json\"\r\n\
         Content-Type: application/json\r\n\r\n{payload}\r\n--X\r\n\
         Content-Disposition: form-data; name=\"files[0]\"; filename=\"b.md\"\r\n\r\n# More\r\n--X--\r\n",
    );
    let request = rest.request("POST", &page);
    let request = request.header("content-type", "multipart/form-data; boundary=X");
    let answer = request.body(body).send().await.unwrap();
    let sent: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(sent["content"], "rest");
    assert_eq!(sent["attachments"][0]["filename"], "b.md");
    assert_eq!(fetch(&sent["attachments"][0]["url"]).await, "# More");
    assert_eq!(
        simulator.requests_to("POST", "/messages")[0].files,
        ["b.md"]
    );
}

#[tokio::test]
async fn reactions_are_counted_once() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let message = world.seed(channel, alice, "ask");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let base = format!("/channels/{channel}/messages/{message}");
    let thumb = format!("{base}/reactions/%F0%9F%91%8D/@me");
    for _ in 0..2 {
        assert_eq!(rest.call("PUT", &thumb, Value::Null).await.0, 204);
    }
    simulator.react(channel, message, "👍", alice);
    let reactions = rest.get(&base).await["reactions"].clone();
    assert_eq!(reactions[0]["emoji"]["name"], "👍");
    assert_eq!(
        (&reactions[0]["count"], &reactions[0]["me"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(rest.call("DELETE", &thumb, Value::Null).await.0, 204);
    assert_eq!(rest.get(&base).await["reactions"][0]["me"], false);
    let text = format!("{base}/reactions/ok/@me");
    assert_eq!(rest.refused("PUT", &text, Value::Null).await, (400, 10014));
}

#[tokio::test]
async fn direct_messages_open_once() {
    let Small {
        world, alice, bob, ..
    } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let open = json!({"recipient_id": alice.to_string()});
    let first = rest.post("/users/@me/channels", open.clone()).await;
    assert_eq!(first["type"], 1);
    assert_eq!(
        rest.post("/users/@me/channels", open).await["id"],
        first["id"]
    );
    let page = format!("/channels/{}/messages", first["id"].as_str().unwrap());
    rest.post(&page, json!({"content": "hello"})).await;
    let closed = json!({"recipient_id": bob.to_string()});
    let other = rest.post("/users/@me/channels", closed).await;
    simulator.world(|world| world.settings.closed_to_dms.insert(bob));
    let page = format!("/channels/{}/messages", other["id"].as_str().unwrap());
    let refused = rest
        .refused("POST", &page, json!({"content": "hello"}))
        .await;
    assert_eq!(refused, (403, 50007));
}

/// A channel with a message of every kind that the simulator can produce.
pub(crate) fn messages_of_every_kind(small: &mut Small) -> Vec<Id> {
    let Small {
        world,
        guild,
        channel,
        alice,
        bob,
    } = small;
    let (channel, alice, bob) = (*channel, *alice, *bob);
    let bot = world.bot;
    let hook = world.fresh_id();
    let elsewhere = world.channel(*guild, ChannelKind::Text, "elsewhere");
    let source = world.seed(
        elsewhere,
        bob,
        Draft::new("original").embed(json!({"title": "t"})),
    );
    let first = world.seed(
        channel,
        alice,
        format!("<@{bot}> and <@&{guild}> @everyone"),
    );
    let gone = world.seed(channel, bob, "gone");
    let text = json!([{"type": 17, "components": [{"type": 10, "content": "shown"}]}]);
    let pin = Reference {
        kind: 0,
        channel,
        message: Some(first),
    };
    let drafts = [
        Draft::new("reply").reply_to(first),
        Draft::new("silent reply").reply_to(first).without_ping(),
        Draft::new("orphan").reply_to(gone),
        Draft::new("absent")
            .reply_to(first)
            .referenced(Referenced::Absent),
        Draft::new("null")
            .reply_to(first)
            .referenced(Referenced::Null),
        Draft::new("other")
            .reply_to(first)
            .referenced(Referenced::Other(gone)),
        Draft::new("").forward_of(elsewhere, source),
        Draft::new("embedded").embed(json!({"title": "t", "description": "d", "fields": [
            {"name": "n", "value": "v", "inline": true},
        ]})),
        Draft::new("").attachment(File::text("a.txt", "a")),
        Draft::new("").sticker("wave"),
        Draft::new("").poll("Which?", &["this", "that"]),
        Draft::new("").components(text.as_array().unwrap().clone()),
        Draft::new("edited").edited_ms(START_MS),
        Draft::system(6).reference(pin),
        Draft::system(7),
        Draft::system(8),
        Draft::new("title").kind(18).reference(Reference {
            kind: 0,
            channel: elsewhere,
            message: None,
        }),
    ];
    let mut made: Vec<Id> = drafts
        .into_iter()
        .map(|draft| world.seed(channel, bob, draft))
        .collect();
    made.push(world.seed(channel, hook, Draft::new("alert").webhook("Alerts")));
    made.push(world.seed(channel, bot, "answer"));
    let anchored = world.seed(channel, alice, "anchor");
    world.thread_from(channel, anchored, "On this", alice);
    made.push(anchored);
    made.push(first);
    world.seed_delete(channel, gone);
    made
}

#[tokio::test]
async fn twilight_reads_every_type_of_message() {
    let mut small = small();
    let made = messages_of_every_kind(&mut small);
    let channel = small.channel;
    let simulator = Simulator::start(small.world).await.unwrap();
    let rest = Rest::new(&simulator);
    for id in &made {
        let object = rest
            .get(&format!("/channels/{channel}/messages/{id}"))
            .await;
        let text = object.to_string();
        let read: Result<Message, _> = serde_json::from_str(&text);
        assert!(read.is_ok(), "{text}: {}", read.unwrap_err());
    }
    let page = rest
        .get(&format!("/channels/{channel}/messages?limit=100"))
        .await;
    let by_text = |text: &str| {
        let mut page = page.as_array().unwrap().iter();
        page.find(|message| message["content"] == text)
            .unwrap()
            .clone()
    };
    assert_eq!(by_text("orphan")["referenced_message"], Value::Null);
    assert!(by_text("absent").get("referenced_message").is_none());
    assert_eq!(by_text("alert")["author"]["username"], "Alerts");
    assert!(by_text("alert")["webhook_id"].is_string());
    assert_eq!(by_text("silent reply")["mentions"], json!([]));
    assert_eq!(by_text("anchor")["thread"]["name"], "On this");
    let mut all = page.as_array().unwrap().iter();
    let forward = all.find(|m| m["message_reference"]["type"] == 1).unwrap();
    assert_eq!(
        forward["message_snapshots"][0]["message"]["content"],
        "original"
    );
    assert!(forward.get("referenced_message").is_none());
}

#[tokio::test]
async fn pins_are_listed_by_when_they_were_pinned_and_their_changes_told() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let [first, second, third] =
        [1, 2, 3].map(|id| world.seed(channel, alice, Draft::new("m").id(id)));
    let simulator = Simulator::start(world).await.unwrap();
    let mut events = simulator.subscribe();
    for message in [second, first, third] {
        simulator.pin(channel, message, alice);
    }
    simulator.unpin(channel, third);
    let rest = Rest::new(&simulator);
    let path = format!("/channels/{channel}/messages/pins");
    let listed = async |query: &str| {
        let page = rest.get(&format!("{path}{query}")).await;
        let items = page["items"].as_array().unwrap();
        let messages: Value = items.iter().map(|pin| pin["message"].clone()).collect();
        (ids(&messages), page["has_more"] == true)
    };
    assert_eq!(listed("").await.0.len(), 2);
    assert!(listed("?limit=1").await.1);
    let page = rest.get(&path).await;
    let before = page["items"][0]["pinned_at"].as_str().unwrap();
    let older = format!("?before={}", before.replace('+', "%2B"));
    assert!(listed(&older).await.0.len() < 2);
    for query in ["?limit=0", "?limit=51"] {
        let refused = rest
            .refused("GET", &format!("{path}{query}"), Value::Null)
            .await;
        assert_eq!(refused, (400, 50035), "{query}");
    }
    let mut told = 0;
    while let Ok(event) = events.try_recv() {
        told += usize::from(&*event.name == "CHANNEL_PINS_UPDATE");
    }
    assert_eq!(told, 4);
    simulator.overwrite(
        channel,
        OverwriteOf::Member(simulator.bot()),
        Permissions::NONE,
        Permissions::READ_MESSAGE_HISTORY,
    );
    assert_eq!(listed("").await, (Vec::new(), false));
}
