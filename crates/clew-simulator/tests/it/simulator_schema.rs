//! Checks the fake Discord's objects and error bodies against the official
//! `OpenAPI` document of the API.

use clew_simulator::{ChannelKind, Fault, Id, Permissions, Simulator, Use};
use serde_json::{Value, json};

use crate::openapi::Document;
use crate::simulator::messages::messages_of_every_kind;
use crate::support::{Rest, Small, small};

/// Field errors use names as codes, as the API does. The document says numbers,
/// so names are replaced before the check.
fn numbered(mut body: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, inner) in fields {
                    if key == "code" && inner.is_string() {
                        *inner = json!(0);
                    }
                    walk(inner);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut body);
    body
}

#[test]
fn the_check_can_fail() {
    let document = Document::load();
    let validator = document.validator("MessageResponse");
    assert!(!validator.is_valid(&json!({"id": "1"})));
    assert!(
        !document
            .validator("Error")
            .is_valid(&json!({"message": "no code"}))
    );
}

#[tokio::test]
async fn every_kind_of_message_matches_the_schema() {
    let document = Document::load();
    let mut small = small();
    messages_of_every_kind(&mut small);
    let Small {
        world,
        channel,
        alice,
        ..
    } = small;
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = rest
        .get(&format!("/channels/{channel}/messages?limit=100"))
        .await;
    document.check("[MessageResponse]", &page);
    let thread = page
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["thread"].is_object())
        .unwrap();
    let inside = rest
        .get(&format!(
            "/channels/{}/messages",
            thread["id"].as_str().unwrap()
        ))
        .await;
    document.check("[MessageResponse]", &inside);
    let sent = rest
        .post(
            &format!("/channels/{channel}/messages"),
            json!({
                "content": "answer", "nonce": "n", "enforce_nonce": true,
                "embeds": [{"title": "t"}], "message_reference": {"message_id": page[0]["id"]},
            }),
        )
        .await;
    document.check("MessageResponse", &sent);
    let id = Id(sent["id"].as_str().unwrap().parse().unwrap());
    simulator.react(channel, id, "👍", alice);
    let again = rest
        .get(&format!("/channels/{channel}/messages/{id}"))
        .await;
    document.check("MessageResponse", &again);
    simulator.pin(channel, id, alice);
    let pins = rest
        .get(&format!("/channels/{channel}/messages/pins"))
        .await;
    document.check("PinnedMessagesResponse", &pins);
}

#[tokio::test]
async fn guilds_channels_threads_and_people_match_the_schema() {
    let document = Document::load();
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let role = world.role(guild, "role", Permissions::MANAGE_GUILD);
    world.give_role(guild, alice, role);
    world.deny_everyone(channel, Permissions::MENTION_EVERYONE);
    let forum = world.channel(guild, ChannelKind::Forum, "help");
    let tag = world.tag(forum, "rust");
    world.forum_post(forum, alice, "How?", &[tag], "like this");
    let mut channels = vec![channel, forum];
    for kind in [
        ChannelKind::Voice,
        ChannelKind::Category,
        ChannelKind::Announcement,
    ] {
        channels.push(world.channel(guild, kind, "more"));
    }
    let secret = world.thread(channel, ChannelKind::PrivateThread, "Secret", world.bot);
    let open = world.thread(channel, ChannelKind::PublicThread, "Open", alice);
    let archived = world.thread(channel, ChannelKind::PublicThread, "Old", alice);
    world.set_archived(archived, true, true);
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let bot = simulator.bot();
    for id in channels {
        let object = rest.get(&format!("/channels/{id}")).await;
        document.check("GuildChannelResponse", &object);
    }
    for id in [secret, open, archived] {
        let object = rest.get(&format!("/channels/{id}")).await;
        document.check("ThreadResponse", &object);
    }
    for (path, schema) in [
        (
            format!("/guilds/{guild}?with_counts=true"),
            "GuildWithCountsResponse",
        ),
        (format!("/guilds/{guild}/roles"), "[GuildRoleResponse]"),
        (
            format!("/guilds/{guild}/channels"),
            "[GuildChannelResponse]",
        ),
        (
            format!("/guilds/{guild}/members?limit=10"),
            "[GuildMemberResponse]",
        ),
        (
            format!("/guilds/{guild}/members/{bot}"),
            "GuildMemberResponse",
        ),
        (format!("/guilds/{guild}/threads/active"), "ThreadsResponse"),
        (
            format!("/channels/{channel}/threads/archived/public"),
            "ThreadsResponse",
        ),
        (
            format!("/channels/{secret}/thread-members/@me"),
            "ThreadMemberResponse",
        ),
        ("/gateway".to_owned(), "GatewayResponse"),
        ("/gateway/bot".to_owned(), "GatewayBotResponse"),
        ("/users/@me".to_owned(), "UserPIIResponse"),
        (format!("/users/{alice}"), "UserResponse"),
        ("/users/@me/guilds".to_owned(), "[MyGuildResponse]"),
        ("/applications/@me".to_owned(), "PrivateApplicationResponse"),
    ] {
        document.check(schema, &rest.get(&path).await);
    }
}

#[tokio::test]
async fn channels_that_the_bot_opens_match_the_schema() {
    let document = Document::load();
    let Small {
        world,
        channel,
        alice,
        ..
    } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let open = json!({"recipient_id": alice.to_string()});
    let direct = rest.post("/users/@me/channels", open).await;
    document.check("PrivateChannelResponse", &direct);
    let body = json!({"name": "Made", "type": 11});
    let made = rest
        .post(&format!("/channels/{channel}/threads"), body)
        .await;
    document.check("CreatedThreadResponse", &made);
}

#[tokio::test]
async fn commands_and_interactions_match_the_schema() {
    let document = Document::load();
    let Small {
        world,
        channel,
        alice,
        ..
    } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let commands = format!("/applications/{}/commands", simulator.bot());
    let body = json!([
        {"name": "ask", "description": "Ask", "type": 1, "options": [
            {"name": "question", "description": "What", "type": 3, "required": true},
        ]},
        {"name": "Ask about this message", "type": 3},
    ]);
    let (status, set) = rest.call("PUT", &commands, body).await;
    assert_eq!(status, 200);
    document.check("[ApplicationCommandResponse]", &set);
    for flags in [0, 64] {
        let used = simulator.interact(channel, alice, &Use::slash("ask", &[("question", "why?")]));
        let token = simulator.interaction(used).unwrap().token;
        let path = format!("/interactions/{used}/{token}/callback?with_response=true");
        let answer = json!({"type": 4, "data": {"content": "because", "flags": flags}});
        let response = rest.post(&path, answer).await;
        document.check("InteractionCallbackResponse", &response);
        let original = format!("/webhooks/{}/{token}/messages/@original", simulator.bot());
        document.check("MessageResponse", &rest.get(&original).await);
    }
}

#[tokio::test]
async fn error_bodies_match_the_schema() {
    let document = Document::load();
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let hidden = world.channel(guild, ChannelKind::Text, "hidden");
    world.deny_everyone(hidden, Permissions::VIEW_CHANNEL);
    let old = world.seed(channel, alice, "old");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = format!("/channels/{channel}/messages");
    for (method, path, body) in [
        ("GET", "/channels/1".to_owned(), Value::Null),
        ("GET", format!("/channels/{hidden}/messages"), Value::Null),
        ("GET", format!("{page}/1"), Value::Null),
        ("GET", format!("{page}?limit=0"), Value::Null),
        ("POST", page.clone(), json!({"content": ""})),
        ("POST", page.clone(), json!({"content": "x".repeat(2001)})),
        (
            "POST",
            page.clone(),
            json!({"content": "x", "message_reference": {"message_id": "1"}}),
        ),
        ("PATCH", format!("{page}/{old}"), json!({"content": "x"})),
        ("GET", "/nowhere".to_owned(), Value::Null),
    ] {
        let (status, answer) = rest.call(method, &path, body).await;
        assert!(status >= 400, "{method} {path}");
        document.check("ErrorResponse", &numbered(answer));
    }
    simulator.fault(Fault::rate_limited("GET", "/users/@me", 1.5));
    let (status, answer) = rest.call("GET", "/users/@me", Value::Null).await;
    assert_eq!(status, 429);
    document.check("RatelimitedResponse", &answer);
}
