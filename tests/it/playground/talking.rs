//! What people do on the page, and what they see.

use clew_simulator::{Id, OverwriteOf, Permissions};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::id;
use super::opened;

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_in_a_thread_is_answered_live_and_explained() {
    let (playground, mut page) = opened(&[]).await;
    assert_eq!(page.state["model"], "scripted");
    let (thread, mira) = (page.channel("Leak at the stern"), page.person("mira"));
    assert_eq!(page.state["suggestion"]["channel"], thread);
    let content = format!("<@{}> what was tried?", page.bot());
    let body = json!({"author": mira, "content": content});
    let asked = page
        .post(&format!("/api/channels/{thread}/messages"), body)
        .await;
    assert!(
        asked["html"]
            .as_str()
            .unwrap()
            .contains(r#"<span class="mention" data-user="#)
    );
    let trigger = id(&asked);
    page.wait("dispatch", |event| {
        event["t"] == "MESSAGE_CREATE" && event["d"]["id"] == trigger
    })
    .await;
    let begun = page.wait("turn", |turn| turn["trigger"] == trigger).await;
    assert_eq!(
        (&begun["channel"], &begun["outcome"]),
        (&json!(thread), &Value::Null)
    );
    let bot = page.bot();
    let grows = |event: &Value| {
        event["t"] == "MESSAGE_UPDATE" && event["d"]["author"]["id"] == bot.as_str()
    };
    let answer = page.wait("dispatch", grows).await;
    assert!(answer["d"]["html"].as_str().unwrap().contains("<p>"));
    page.wait("turn", |turn| {
        turn["trigger"] == trigger && turn["outcome"] == "answered"
    })
    .await;
    let turn = page.get(&format!("/api/turns/{trigger}")).await;
    assert_eq!(turn["scene"], "thread");
    assert_eq!(turn["answers"], json!([answer["d"]["id"]]));
    is_explained(&turn);
    let newest = page
        .get(&format!("/api/channels/{thread}/messages?limit=2"))
        .await;
    assert_eq!(newest[0]["id"], trigger);
    assert_eq!(newest[1]["id"], answer["d"]["id"]);
    let older = page
        .get(&format!(
            "/api/channels/{thread}/messages?limit=2&before={trigger}"
        ))
        .await;
    assert_eq!(older.as_array().unwrap().len(), 2);
    playground.stop().await.unwrap();
}

/// Everything that the answer was made from is told.
#[track_caller]
fn is_explained(turn: &Value) {
    let included = turn["included"].as_array().unwrap();
    assert!(included.len() > 20, "{turn}");
    assert!(included.iter().any(|one| one["why"] == "starter"));
    assert!(
        turn["title"]
            .as_str()
            .unwrap()
            .contains("Leak at the stern")
    );
    assert!(
        turn["block"]
            .as_str()
            .unwrap()
            .starts_with("<discord-context ")
    );
    let prompt = turn["prompt"].as_array().unwrap();
    let sent = prompt.iter().filter_map(|one| one["content"].as_str());
    assert!(
        sent.clone()
            .any(|text| text.contains(turn["block"].as_str().unwrap()))
    );
    assert!(sent.clone().any(|text| text.contains("what was tried?")));
    let fetches = turn["fetches"].as_array().unwrap();
    assert!(
        fetches
            .iter()
            .all(|one| one["method"] == "GET" && one["status"] == 200),
        "{turn}"
    );
    assert!(!fetches.is_empty());
    let lines = turn["telemetry"].as_array().unwrap();
    assert!(
        lines.iter().any(|line| line["event"] == "turn_done"),
        "{turn}"
    );
    let stages = turn["timings"].as_array().unwrap().iter();
    assert!(stages.clone().any(|one| one["stage"] == "turn"));
}

#[tokio::test(flavor = "multi_thread")]
async fn people_open_threads_posts_and_direct_conversations() {
    let (playground, mut page) = opened(&[]).await;
    let (aiko, samuel) = (page.person("aiko"), page.person("samuel"));
    let general = page.channel("general");
    let newest = page
        .get(&format!("/api/channels/{general}/messages?limit=1"))
        .await;
    let message = id(&newest[0]);
    let threads = format!("/api/channels/{general}/threads");
    let body = json!({"author": aiko, "name": "Gloves", "message": message, "content": "which?"});
    let thread = page.post(&threads, body.clone()).await;
    assert_eq!(
        (&thread["id"], &thread["type"]),
        (&json!(message), &json!(11))
    );
    page.wait("dispatch", |event| event["t"] == "THREAD_CREATE")
        .await;
    page.refused(Method::POST, &threads, body, 400).await;

    let forum = page.channel("how-to");
    let guilds = page.state["guilds"].as_array().unwrap();
    let mut channels = guilds[0]["channels"].as_array().unwrap().iter();
    let tags = &channels.find(|one| one["id"] == forum.as_str()).unwrap()["available_tags"];
    let posts = format!("/api/channels/{forum}/threads");
    let tag = id(&tags[0]);
    let body = json!({"author": samuel, "name": "Saw", "tags": [tag], "content": "it smokes"});
    let post = page.post(&posts, body).await;
    assert_eq!(post["applied_tags"], json!([tag]));
    let turn = page.ask(&id(&post), &samuel, "why?").await;
    assert!(turn["title"].as_str().unwrap().contains("Saw"), "{turn}");
    for wrong in [
        json!({"author": samuel, "name": "Saw", "tags": ["1"], "content": "x"}),
        json!({"author": samuel, "name": "Saw"}),
        json!({"author": samuel, "name": " ", "content": "x"}),
        json!({"author": samuel, "name": "n".repeat(101), "content": "x"}),
    ] {
        page.refused(Method::POST, &posts, wrong, 400).await;
    }

    let direct = page.post("/api/dms", json!({"author": samuel})).await;
    assert_eq!(direct["recipients"][0]["id"], samuel.as_str());
    let turn = page.ask(&id(&direct), &samuel, "hello").await;
    assert_eq!(turn["scene"], "direct");
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_and_files_reach_the_bot() {
    let (playground, mut page) = opened(&[]).await;
    let (workshop, noor) = (page.channel("workshop"), page.person("noor"));
    let path = format!("/api/channels/{workshop}/messages");
    let newest = page.get(&format!("{path}?limit=3")).await;
    let last = id(&newest[0]);
    let content = format!("<@{}> so what is it?", page.bot());
    let files = json!([{"filename": "notes.txt", "text": "valve 7 is new"}]);
    let body = json!({"author": noor, "content": content, "reply_to": last, "attachments": files});
    let asked = page.post(&path, body).await;
    assert_eq!(asked["referenced_message"]["id"], last.as_str());
    assert!(asked["referenced_message"]["html"].is_string());
    let trigger = id(&asked);
    page.wait("turn", |turn| {
        turn["trigger"] == trigger && turn["outcome"] == "answered"
    })
    .await;
    let turn = page.get(&format!("/api/turns/{trigger}")).await;
    assert_eq!(turn["scene"], "reply_chain");
    let prompt = turn["prompt"].to_string();
    assert!(prompt.contains("valve 7 is new"), "{prompt}");
    let files = turn["fetches"].as_array().unwrap().iter();
    assert!(
        files
            .clone()
            .any(|one| one["path"].as_str().unwrap().contains("/attachments/"))
    );
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_posted_is_refused_with_its_remedy() {
    let (playground, page) = opened(&[]).await;
    let path = |channel: &str| format!("/api/channels/{}/messages", page.channel(channel));
    let (mira, lotte) = (page.person("mira"), page.person("lotte"));
    let (bot, long) = (page.bot(), "x".repeat(2_001));
    let slash = json!([{"filename": "../x", "text": ""}]);
    let large = json!([{"filename": "x", "text": "y".repeat(200_001)}]);
    let files = |number: usize| -> Value {
        let named = (0..number).map(|nth| json!({"filename": nth.to_string(), "text": "y"}));
        named.collect()
    };
    let by_mira = |content: &str| json!({"author": mira, "content": content});
    let by = |author: &str| json!({"author": author, "content": "a"});
    let reply = json!({"author": mira, "content": "a", "reply_to": "5"});
    let none = "/api/channels/5/messages".to_owned();
    for (path, body, status, words) in [
        (path("general"), by_mira(&long), 400, "at most 2000"),
        (path("general"), by_mira(" "), 400, "write something"),
        (
            path("general"),
            json!({"author": mira}),
            400,
            "write something",
        ),
        (path("general"), by("x"), 400, "no id"),
        (path("general"), by("5"), 404, "no such person"),
        (path("general"), by(&bot), 404, "no such person"),
        (path("general"), by(&lotte), 403, "may not write"),
        (path("general"), reply, 404, "is gone"),
        (path("general"), json!({"content": "a"}), 422, "author"),
        (
            path("general"),
            json!({"author": mira, "attachments": slash}),
            400,
            "no name",
        ),
        (
            path("general"),
            json!({"author": mira, "attachments": large}),
            400,
            "200000",
        ),
        (
            path("general"),
            json!({"author": mira, "attachments": files(11)}),
            400,
            "at most 10 files",
        ),
        (path("how-to"), by_mira("a"), 400, "open one"),
        (none, by_mira("a"), 404, "gone"),
        (
            "/api/dms".to_owned(),
            json!({"author": bot}),
            404,
            "no such person",
        ),
    ] {
        let error = page.refused(Method::POST, &path, body, status).await;
        assert!(error.contains(words), "{error}");
    }
    let largest = json!([{"filename": "x", "text": "y".repeat(200_000)}]);
    for most in [largest, files(10)] {
        let body = json!({"author": mira, "attachments": most});
        let posted = page.post(&path("general"), body).await;
        assert_eq!(
            posted["attachments"].as_array().map(Vec::len),
            most.as_array().map(Vec::len)
        );
    }
    let missing = page
        .refused(Method::GET, "/api/turns/5", Value::Null, 404)
        .await;
    assert!(missing.contains("ask again"), "{missing}");
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_a_channel_may_not_always_write_there() {
    let (playground, page) = opened(&[]).await;
    let (noor, general) = (page.person("noor"), page.channel("general"));
    let number = |id: &str| Id(id.parse().unwrap());
    let (nothing, writing) = (Permissions::NONE, Permissions::SEND_MESSAGES);
    let muted = OverwriteOf::Member(number(&noor));
    playground
        .discord()
        .overwrite(number(&general), muted, nothing, writing);
    let path = format!("/api/channels/{general}/messages");
    let body = json!({"author": noor, "content": "a"});
    let error = page.refused(Method::POST, &path, body, 403).await;
    assert!(error.contains("may not write"), "{error}");
    playground.stop().await.unwrap();
}

/// The playground's own model calls a tool where that is asked for, and cites what it gave.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_answered_with_links_to_what_was_found() {
    let (playground, mut page) = opened(&[]).await;
    let (general, noor) = (page.channel("general"), page.person("noor"));
    for (question, tool, found) in [
        ("catch up", "catch_up", "New gloves are in the store"),
        ("search exhaust hose", "search_messages", "exhaust"),
    ] {
        let turn = page.ask(&general, &noor, question).await;
        let lines = turn["telemetry"].as_array().unwrap().iter();
        let mut called = lines.filter(|line| line["event"] == "tool_called");
        assert!(called.any(|line| line["detail"]["tool"] == tool), "{turn}");
        let answer = turn["answers"][0].as_str().unwrap();
        let newest = page
            .get(&format!("/api/channels/{general}/messages?limit=1"))
            .await;
        assert_eq!(newest[0]["id"], answer);
        let html = newest[0]["html"].as_str().unwrap();
        assert!(html.contains(found), "{html}");
        let links = html.split_once("<small>").map_or("", |(_, links)| links);
        assert!(
            links.contains(r#"<a href="https://discord.com/channels/"#),
            "{html}"
        );
    }
    playground.stop().await.unwrap();
}
