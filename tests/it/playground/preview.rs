//! The last question collected again with other caps, and with faults.

use clew::config::Config;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::Page;
use super::{opened, pairs};

fn included(context: &Value) -> Vec<&str> {
    let included = context["included"].as_array().unwrap().iter();
    included.map(|one| one["id"].as_str().unwrap()).collect()
}

/// Asks in the long thread. Returns the turn, and where to preview it.
async fn asked(page: &mut Page) -> (Value, String) {
    let (thread, mira) = (page.channel("Leak at the stern"), page.person("mira"));
    let turn = page.ask(&thread, &mira, "what was tried?").await;
    let path = format!("/api/turns/{}/preview", turn["trigger"].as_str().unwrap());
    (turn, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn other_caps_show_what_would_have_been_collected() {
    let (playground, mut page) = opened(&[("MEM_MAX_CHARS", "6000")]).await;
    let (turn, path) = asked(&mut page).await;
    let settings = json!({
        "MEM_MAX_MSGS": 7, "THREAD_CONTEXT_TAIL_COUNT": "2", "MEM_MAX_CHARS": 6000,
        "LONE_CONTEXT": "recent",
    });
    let both = page.post(&path, json!({"settings": settings})).await;
    assert_eq!(included(&both["now"]), included(&turn));
    assert_eq!(both["now"]["block"], turn["block"]);
    assert_eq!(included(&both["changed"]).len(), 7);
    let omitted = both["changed"]["omitted"].as_array().unwrap();
    assert!(
        omitted.iter().any(|one| one["cap"] == "MEM_MAX_MSGS"),
        "{both}"
    );
    let env = both["env"].as_str().unwrap();
    assert_eq!(
        env,
        "LONE_CONTEXT=recent\nMEM_MAX_MSGS=7\nTHREAD_CONTEXT_TAIL_COUNT=2\n"
    );
    let lines: Vec<(&str, &str)> = env
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let config = Config::load(pairs(&lines), None).unwrap();
    assert_eq!((config.limits.max_msgs, config.limits.tail), (7, 2));
    playground.stop().await.unwrap();
}

/// The reasons are words, as those of every other message are.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_comes_with_the_reason_of_each_message() {
    let (playground, mut page) = opened(&[]).await;
    let (general, mira, noor) = (
        page.channel("general"),
        page.person("mira"),
        page.person("noor"),
    );
    let said =
        json!({"author": mira, "content": format!("<@{noor}> did you find the long ladder?")});
    page.post(&format!("/api/channels/{general}/messages"), said)
        .await;
    let turn = page
        .ask(&general, &noor, "where is the long ladder, Mira asks?")
        .await;
    assert_eq!(included(&turn), [""; 0]);
    let path = format!("/api/turns/{}/preview", turn["trigger"].as_str().unwrap());
    let settings = json!({"settings": {"LONE_CONTEXT": "conversation", "LONE_MAX_CHARS": "300"}});
    let changed = &page.post(&path, settings).await["changed"];
    let included = changed["included"].as_array().unwrap().iter();
    let why: Vec<&str> = included.map(|one| one["why"].as_str().unwrap()).collect();
    assert!(why.contains(&"named"), "{changed}");
    let known = ["reply", "named", "answers", "same_topic"];
    assert!(why.iter().all(|why| known.contains(why)), "{why:?}");
    for cap in ["long_ago", "LONE_MAX_CHARS"] {
        let mut omitted = changed["omitted"].as_array().unwrap().iter();
        assert!(omitted.any(|one| one["cap"] == cap), "{cap}: {changed}");
    }
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_a_place_is_a_setting_like_any() {
    let (playground, mut page) = opened(&[]).await;
    let (general, noor) = (page.channel("general"), page.person("noor"));
    let turn = page.ask(&general, &noor, "when is it open?").await;
    let path = format!("/api/turns/{}/preview", turn["trigger"].as_str().unwrap());
    let settings = json!({"settings": {"PLACE_CONTEXT": "topic,pins"}});
    let both = page.post(&path, settings).await;
    let [now, changed] = ["now", "changed"].map(|key| both[key]["block"].as_str().unwrap());
    for text in ["Dates, keys and coffee.", "Bring boots, the yard is mud."] {
        assert!(!now.contains(text) && changed.contains(text), "{both}");
    }
    assert_eq!(both["env"], "PLACE_CONTEXT=topic,pins\n");
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_leaves_no_trace() {
    let (playground, mut page) = opened(&[]).await;
    let (turn, path) = asked(&mut page).await;
    playground.discord().wait_idle().await.unwrap();
    let config = playground.config();
    let traces = || {
        let telemetry = files(&config.telemetry.dir);
        let world = playground.discord().world(|world| format!("{world:?}"));
        (telemetry, world, playground.discord().requests().len())
    };
    let (mut before, mut latest) = (traces(), Vec::new());
    // Lines are written some milliseconds after they were queued.
    while latest != before.0 {
        latest = before.0.clone();
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        before = traces();
    }
    for most in [1, 5, 20, 40] {
        let settings = json!({"MEM_MAX_MSGS": most, "MEM_MAX_AGE_MIN": 0});
        let both = page.post(&path, json!({"settings": settings})).await;
        assert!(!both["changed"]["fetches"].as_array().unwrap().is_empty());
    }
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(
        before == traces(),
        "something was written, posted or asked for"
    );
    let after = page
        .get(&format!("/api/turns/{}", turn["trigger"].as_str().unwrap()))
        .await;
    assert_eq!(after, turn);
    playground.stop().await.unwrap();
}

/// The contents of a folder's files.
fn files(folder: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    texts.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_taken_by_name_and_checked_as_at_the_start() {
    let (playground, mut page) = opened(&[]).await;
    let settings = page.state["settings"].as_array().unwrap();
    let setting = |name: &str| settings.iter().find(|one| one["name"] == name).unwrap();
    let most = setting("MEM_MAX_MSGS");
    let fields = ["value", "default", "min", "max"].map(|field| most[field].as_u64().unwrap());
    assert_eq!(fields, [40, 40, 1, 1_000]);
    assert_eq!(
        setting("LONE_CONTEXT")["choices"],
        json!(["off", "recent", "conversation"])
    );
    assert_eq!(
        setting("MEM_INCLUDE_POINTED_APPS")["choices"],
        json!(["true", "false"])
    );
    assert_eq!(setting("MEM_FETCH_TIMEOUT_S")["min"], json!(0.05));
    let (_, path) = asked(&mut page).await;
    for (settings, words) in [
        (json!({"MEM_MAX_MSGS": 0}), "from 1 to 1000"),
        (json!({"MEM_MAX_MSGS": "many"}), "from 1 to 1000"),
        (json!({"LINK_CONTEXT": "3"}), "two numbers"),
        (json!({"LINK_CONTEXT": "3,\n1"}), "one line"),
        (json!({"DISCORD_TOKEN": "x"}), "no setting of the context"),
        (json!({"MEM_MAX_MSG": 5}), "no setting of the context"),
        (json!({"MEM_MAX_MSGS": null}), "a text or a number"),
    ] {
        let body = json!({"settings": settings});
        let error = page.refused(Method::POST, &path, body, 400).await;
        assert!(error.contains(words), "{settings}: {error}");
    }
    playground.stop().await.unwrap();
}

/// The age of chains follows that of threads, and its own default is a change.
#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_follows_another_shows_its_value() {
    let (playground, mut page) = opened(&[("MEM_MAX_AGE_MIN", "60")]).await;
    let mut settings = page.state["settings"].as_array().unwrap().iter();
    let chain = settings.find(|one| one["name"] == "MEM_CHAIN_MAX_AGE_MIN");
    assert_eq!(chain.unwrap()["value"], 60);
    let (_, path) = asked(&mut page).await;
    let changes = json!({"settings": {"MEM_CHAIN_MAX_AGE_MIN": 10_080}});
    let both = page.post(&path, changes).await;
    assert_eq!(both["env"], "MEM_CHAIN_MAX_AGE_MIN=10080\n");
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_cost_the_context_and_not_the_answer() {
    let (playground, mut page) = opened(&[("MEM_FETCH_TIMEOUT_S", "1")]).await;
    let mira = page.person("mira");
    let (thread, post) = (
        page.channel("Leak at the stern"),
        page.channel("Orbital sander leaves swirls"),
    );
    let faults = page
        .expect(Method::PUT, "/api/faults", json!({"status": 403}))
        .await;
    assert_eq!(faults, json!({"slow_ms": 0, "status": 403}));
    page.wait("state", |_| true).await;
    let turn = page.ask(&thread, &mira, "what was tried?").await;
    assert_eq!(turn["outcome"], "answered");
    let reasons = |turn: &Value| -> Vec<String> {
        let missing = turn["fallbacks"].as_array().unwrap().iter();
        missing
            .map(|one| one["reason"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(reasons(&turn).contains(&"forbidden".to_owned()), "{turn}");
    assert!(
        turn["fetches"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["status"] == 403)
    );

    page.expect(
        Method::PUT,
        "/api/faults",
        json!({"status": null, "slow_ms": 3000}),
    )
    .await;
    let turn = page.ask(&post, &mira, "what was tried?").await;
    assert_eq!(turn["outcome"], "answered");
    assert!(reasons(&turn).contains(&"timeout".to_owned()), "{turn}");
    let path = format!("/api/turns/{}/preview", turn["trigger"].as_str().unwrap());
    page.expect(Method::PUT, "/api/faults", json!({"slow_ms": 0}))
        .await;
    let both = page.post(&path, json!({"settings": {}})).await;
    assert_eq!(reasons(&both["now"]), Vec::<String>::new(), "{both}");
    page.expect(Method::PUT, "/api/faults", json!({"status": 500}))
        .await;
    let both = page.post(&path, json!({"settings": {}})).await;
    assert!(
        reasons(&both["now"]).contains(&"unavailable".to_owned()),
        "{both}"
    );

    for wrong in [json!({"status": 200}), json!({"slow_ms": 60_001})] {
        page.refused(Method::PUT, "/api/faults", wrong, 400).await;
    }
    page.expect(Method::PUT, "/api/faults", json!({"status": null}))
        .await;
    let sessions = playground.discord().sessions_begun();
    page.post("/api/faults/disconnect", json!({})).await;
    playground
        .discord()
        .wait_sessions(sessions + 1)
        .await
        .unwrap();
    let turn = page.ask(&thread, &mira, "and now?").await;
    assert_eq!(turn["outcome"], "answered");
    playground.stop().await.unwrap();
}
