//! Edits, deletions, reactions, webhooks, and exports that are opened.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Page, id};
use super::opened;

/// Posts a message and returns its path.
async fn posted(page: &Page, channel: &str, author: &str, content: &str) -> String {
    let path = format!("/api/channels/{channel}/messages");
    let body = json!({"author": author, "content": content});
    let message = page.post(&path, body).await;
    format!("{path}/{}", id(&message))
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_edited_deleted_and_reacted_to() {
    let (playground, mut page) = opened(&[]).await;
    let (general, mira) = (page.channel("general"), page.person("mira"));
    let path = posted(&page, &general, &mira, "tea is reddy").await;
    let edited = json!({"content": "tea is **ready**"});
    let answer = page.expect(Method::PATCH, &path, edited).await;
    assert!(
        answer["html"]
            .as_str()
            .unwrap()
            .contains("<strong>ready</strong>")
    );
    let event = page
        .wait("dispatch", |event| event["t"] == "MESSAGE_UPDATE")
        .await;
    assert_eq!(event["d"]["content"], "tea is **ready**");
    let reactions = format!("{path}/reactions");
    let cup = json!({"author": page.person("noor"), "emoji": "☕"});
    page.expect(Method::PUT, &reactions, cup.clone()).await;
    page.wait("dispatch", |event| event["t"] == "MESSAGE_REACTION_ADD")
        .await;
    page.expect(Method::DELETE, &reactions, cup).await;
    page.wait("dispatch", |event| event["t"] == "MESSAGE_REACTION_REMOVE")
        .await;
    for (method, path, body, status) in [
        (
            Method::PATCH,
            &path,
            json!({"content": "x".repeat(2_001)}),
            400,
        ),
        (Method::PATCH, &path, json!({"content": ""}), 400),
        (
            Method::PUT,
            &reactions,
            json!({"author": mira, "emoji": "x"}),
            400,
        ),
        (
            Method::PUT,
            &reactions,
            json!({"author": page.person("lotte"), "emoji": "☕"}),
            403,
        ),
    ] {
        page.refused(method, path, body, status).await;
    }
    page.expect(Method::DELETE, &path, Value::Null).await;
    page.wait("dispatch", |event| event["t"] == "MESSAGE_DELETE")
        .await;
    page.refused(Method::DELETE, &path, Value::Null, 404).await;
    page.refused(Method::PATCH, &path, json!({"content": "x"}), 404)
        .await;
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_through_a_listed_app_asks_here_too() {
    let (playground, mut page) = opened(&[("PROXY_APPS", "pluralkit")]).await;
    assert_eq!(page.get("/api/state").await["proxies"], true);
    let path = format!("/api/channels/{}/webhook", page.channel("alarms"));
    let content = format!("<@{}> how high is the water?", page.bot());
    let body = json!({"name": "Luna", "content": content, "is_proxied": true});
    let asked = id(&page.post(&path, body).await);
    page.wait("turn", |turn| {
        turn["trigger"] == asked && turn["outcome"] == "answered"
    })
    .await;
    playground.stop().await.unwrap();
    let (playground, page) = opened(&[]).await;
    let path = format!("/api/channels/{}/webhook", page.channel("alarms"));
    let body = json!({"name": "Luna", "content": "hello", "is_proxied": true});
    page.refused(Method::POST, &path, body, 400).await;
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_webhook_posts_is_an_apps_message() {
    let (playground, mut page) = opened(&[]).await;
    let (alarms, mira) = (page.channel("alarms"), page.person("mira"));
    let path = format!("/api/channels/{alarms}/webhook");
    let body = json!({"name": "Tide station", "content": "Low water 0.3 m"});
    let message = page.post(&path, body).await;
    assert_eq!(message["webhook_id"], message["author"]["id"]);
    let content = format!("<@{}> what is this?", page.bot());
    let body = json!({"author": mira, "content": content, "reply_to": id(&message)});
    let asked = id(&page
        .post(&format!("/api/channels/{alarms}/messages"), body)
        .await);
    page.wait("turn", |turn| {
        turn["trigger"] == asked && turn["outcome"] == "answered"
    })
    .await;
    let turn = page.get(&format!("/api/turns/{asked}")).await;
    assert!(
        turn["block"].as_str().unwrap().contains("Low water 0.3 m"),
        "{turn}"
    );
    let edit = format!("/api/channels/{alarms}/messages/{}", id(&message));
    page.refused(Method::PATCH, &edit, json!({"content": "x"}), 403)
        .await;
    page.refused(
        Method::POST,
        &path,
        json!({"name": "", "content": "x"}),
        400,
    )
    .await;
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_opened_with_its_people_and_answered_in() {
    let (playground, mut page) = opened(&[]).await;
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archive");
    for name in [
        "general.json",
        "thread.json",
        "forum_post.json",
        "scenario.json",
    ] {
        let path = fixtures.join(name).display().to_string();
        let opened = page.post("/api/open", json!({"path": path})).await;
        page.wait("state", |_| true).await;
        page.state = page.get("/api/state").await;
        let channel = opened["channel"].as_str().unwrap();
        let messages = page
            .get(&format!("/api/channels/{channel}/messages?limit=100"))
            .await;
        let messages = messages.as_array().unwrap();
        assert!(!messages.is_empty(), "{name}");
        let mut people = page.state["people"].as_array().unwrap().iter();
        let wrote = |person: &&Value| {
            messages
                .iter()
                .any(|one| one["author"]["id"] == person["id"])
        };
        let author = id(people.find(wrote).unwrap());
        let turn = page.ask(channel, &author, "what is this about?").await;
        assert_eq!(turn["outcome"], "answered", "{name}");
    }
    let missing = json!({"path": fixtures.join("nothing.json").display().to_string()});
    let error = page.refused(Method::POST, "/api/open", missing, 400).await;
    assert!(error.contains("nothing.json"), "{error}");
    let wrong = json!({"path": concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")});
    let error = page.refused(Method::POST, "/api/open", wrong, 400).await;
    assert!(
        error.contains("is not an export") && error.contains("DiscordChatExporter"),
        "{error}"
    );
    page.refused(Method::POST, "/api/open", json!({"path": " "}), 400)
        .await;
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}
