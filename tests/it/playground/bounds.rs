//! What is just allowed, and what is just too much.

use std::path::Path;

use clew_simulator::{Id, OverwriteOf, Permissions};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::id;
use super::opened;

#[tokio::test(flavor = "multi_thread")]
async fn what_people_send_is_bounded_to_the_letter() {
    let (playground, page) = opened(&[]).await;
    let (general, forum) = (page.channel("general"), page.channel("how-to"));
    let mira = page.person("mira");
    let messages = format!("/api/channels/{general}/messages");
    let message = id(&page
        .post(&messages, json!({"author": mira, "content": "tea"}))
        .await);
    let reactions = format!("{messages}/{message}/reactions");
    let webhook = format!("/api/channels/{general}/webhook");
    let threads = format!("/api/channels/{general}/threads");
    let posts = format!("/api/channels/{forum}/threads");
    let tags = page.get("/api/state").await;
    let tag = tags["guilds"][0]["channels"].as_array().unwrap().iter();
    let tag = tag.clone().find(|one| one["id"] == forum.as_str()).unwrap();
    let tag = id(&tag["available_tags"][0]);
    let react = |emoji: &str| json!({"author": mira, "emoji": emoji});
    let hook = |chars: usize| json!({"name": "n".repeat(chars), "content": "tide"});
    let named = |chars: usize| json!({"author": mira, "name": "n".repeat(chars), "content": "a"});
    let tagged = |tags: usize| json!({"author": mira, "name": "n", "content": "a", "tags": vec![&tag; tags]});
    let file =
        |name: &str| json!({"author": mira, "attachments": [{"filename": name, "text": ""}]});
    let put = || Method::PUT;
    let post = || Method::POST;
    for (method, path, fits, exceeds) in [
        (
            put(),
            &reactions,
            react(&"é".repeat(32)),
            react(&"é".repeat(33)),
        ),
        (put(), &reactions, react("☕"), react("")),
        (post(), &webhook, hook(80), hook(81)),
        (
            post(),
            &webhook,
            hook(1),
            json!({"name": " ", "content": "tide"}),
        ),
        (post(), &threads, named(100), named(101)),
        (
            post(),
            &threads,
            named(1),
            json!({"author": mira, "name": " "}),
        ),
        (post(), &posts, tagged(5), tagged(6)),
        (
            post(),
            &messages,
            file(&"f".repeat(100)),
            file(&"f".repeat(101)),
        ),
        (post(), &messages, file("f"), file("")),
        (post(), &messages, file("a b"), file("a\u{7}b")),
    ] {
        page.expect(method.clone(), path, fits).await;
        page.refused(method, path, exceeds, 400).await;
    }
    let nobody = json!({"author": "0", "content": "a"});
    let error = page.refused(post(), &messages, nobody, 400).await;
    assert!(error.contains("no id"), "{error}");
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_twenty_different_reactions() {
    let (playground, page) = opened(&[]).await;
    let (general, mira) = (page.channel("general"), page.person("mira"));
    let messages = format!("/api/channels/{general}/messages");
    let message = id(&page
        .post(&messages, json!({"author": mira, "content": "tea"}))
        .await);
    let reactions = format!("{messages}/{message}/reactions");
    let react = |author: &str, nth: usize| {
        let emoji = char::from_u32(0x1F600 + u32::try_from(nth).unwrap()).unwrap();
        json!({"author": author, "emoji": emoji.to_string()})
    };
    for nth in 0..20 {
        page.expect(Method::PUT, &reactions, react(&mira, nth))
            .await;
    }
    let error = page
        .refused(Method::PUT, &reactions, react(&mira, 20), 400)
        .await;
    assert!(error.contains("at most 20"), "{error}");
    // One of them has room for others.
    let noor = react(&page.person("noor"), 0);
    page.expect(Method::PUT, &reactions, noor).await;
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_opened_in_text_channels_and_once_a_message() {
    let (playground, page) = opened(&[]).await;
    let (general, mira) = (page.channel("general"), page.person("mira"));
    let threads = |channel: &str| format!("/api/channels/{channel}/threads");
    let body = json!({"author": mira, "name": "Tea", "content": "which?"});
    let thread = id(&page.post(&threads(&general), body.clone()).await);
    let first = page
        .get(&format!("/api/channels/{thread}/messages?limit=10"))
        .await;
    assert_eq!(first.as_array().map(Vec::len), Some(1), "{first}");
    let direct = id(&page.post("/api/dms", json!({"author": mira})).await);
    for channel in [&thread, &direct] {
        page.refused(Method::POST, &threads(channel), body.clone(), 400)
            .await;
    }
    let gone = json!({"author": mira, "name": "Tea", "message": "5"});
    page.refused(Method::POST, &threads(&general), gone, 404)
        .await;
    // Who writes there and may not open threads.
    let parsed = |id: &str| Id(id.parse().unwrap());
    let everyone = OverwriteOf::Role(parsed(&id(&page.state["guilds"][0])));
    let (none, deny) = (Permissions::NONE, Permissions::CREATE_PUBLIC_THREADS);
    let discord = playground.discord();
    discord.overwrite(parsed(&general), everyone, none, deny);
    let noor = json!({"author": page.person("noor"), "name": "Tea"});
    page.refused(Method::POST, &threads(&general), noor, 403)
        .await;
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_exports_are_open_at_most() {
    let (playground, page) = opened(&[]).await;
    let export = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archive/general.json");
    let body = json!({"path": export.display().to_string()});
    for _ in 0..10 {
        let opened = page.post("/api/open", body.clone()).await;
        assert_eq!(
            (&opened["left_out"], &opened["note"]),
            (&json!(0), &json!(""))
        );
    }
    let error = page.refused(Method::POST, "/api/open", body, 503).await;
    assert!(error.contains("10 exports"), "{error}");
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_there_is_not_is_refused() {
    let (playground, page) = opened(&[]).await;
    for (fits, exceeds) in [
        (json!({"slow_ms": 60_000}), json!({"slow_ms": 60_001})),
        (json!({"status": 403}), json!({"status": 404})),
        (json!({"status": Value::Null}), json!({"status": 200})),
    ] {
        page.expect(Method::PUT, "/api/faults", fits).await;
        page.refused(Method::PUT, "/api/faults", exceeds, 400).await;
    }
    playground.stop().await.unwrap();
}
