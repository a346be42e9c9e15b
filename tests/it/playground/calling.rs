//! Slash commands, the choices for their options, and the buttons under their answers.

use std::time::Duration;

use clew::playground::Playground;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::client::Page;
use super::opened;
use crate::monitor::own_address;
use crate::support::client::Client;
use crate::support::mcp::McpServer;

/// How long the bot may take to register its commands.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// A playground whose bot has registered its commands, and its page.
async fn with_commands() -> (Playground, Page) {
    with_commands_and(&[]).await
}

async fn with_commands_and(settings: &[(&str, &str)]) -> (Playground, Page) {
    let (playground, page) = opened(settings).await;
    let (boats, mira) = (page.channel("boats"), page.person("mira"));
    let path = format!("/api/channels/{boats}/commands?author={mira}");
    let registered = async {
        while page.get(&path).await.as_array().unwrap().is_empty() {
            sleep(LOOK).await;
        }
    };
    timeout(PATIENCE, registered)
        .await
        .expect("commands are registered");
    (playground, page)
}

/// What people are told of a call: the first answer to it with this text.
async fn told(page: &mut Page, text: &str) -> Value {
    let dispatch = page
        .wait("dispatch", |event| {
            event["t"]
                .as_str()
                .is_some_and(|name| name.starts_with("MESSAGE_"))
                && event["d"]["interaction_metadata"].is_object()
                && event["d"].to_string().contains(text)
        })
        .await;
    dispatch["d"].clone()
}

async fn call(page: &Page, place: &str, author: &str, command: &str, options: Value) {
    let body = json!({"author": author, "command": command, "options": options});
    page.post(&format!("/api/channels/{place}/commands"), body)
        .await;
}

fn is_for_one(message: &Value) -> bool {
    message["flags"].as_u64().unwrap() & 64 != 0
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_called_as_in_a_client() {
    let (playground, mut page) = with_commands().await;
    let (boats, mira) = (page.channel("boats"), page.person("mira"));
    let offered = page
        .get(&format!("/api/channels/{boats}/commands?author={mira}"))
        .await;
    let names: Vec<&str> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    for name in ["ask", "help", "context", "memory", "privacy"] {
        assert!(names.contains(&name), "{names:?}");
    }

    call(&page, &boats, &mira, "help", json!({})).await;
    let help = told(&mut page, "/memory").await;
    assert!(is_for_one(&help) && help["command"] == "help", "{help}");
    let embed = &help["embeds"][0];
    let texts = [&help["html"], &embed["html"], &embed["fields"][0]["html"]];
    assert!(
        texts
            .iter()
            .any(|html| html.as_str().is_some_and(|html| html.contains("<p>"))),
        "{help}"
    );
    for (command, text) in [("context show", "context"), ("privacy show", "privacy")] {
        call(&page, &boats, &mira, command, json!({})).await;
        assert!(is_for_one(&told(&mut page, text).await), "{command}");
    }

    let fact = json!({"text": "I sail a ketch called Dunlin", "everywhere": true});
    call(&page, &boats, &mira, "memory remember", fact).await;
    told(&mut page, "called Dunlin").await;
    let typing =
        json!({"author": mira, "command": "memory forget", "option": "fact", "typed": "ketch"});
    let choices = page
        .post(&format!("/api/channels/{boats}/choices"), typing)
        .await;
    assert!(
        choices[0]["name"].as_str().unwrap().contains("Dunlin"),
        "{choices}"
    );
    let forget = json!({"fact": choices[0]["value"]});
    call(&page, &boats, &mira, "memory forget", forget).await;
    let asked = told(&mut page, "called Dunlin").await;
    assert!(
        !asked["components"].as_array().unwrap().is_empty(),
        "{asked}"
    );

    call(
        &page,
        &boats,
        &mira,
        "ask",
        json!({"question": "who is on board?"}),
    )
    .await;
    let turn = page
        .wait("turn", |turn| turn["outcome"] == "answered")
        .await;
    assert_eq!(turn["asker"], mira.as_str());
    let answer = told(&mut page, "who is on board?").await;
    assert!(
        !is_for_one(&answer) && answer["command"] == "ask",
        "{answer}"
    );
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}

/// Each point leads to a message; in the menu of a message it begins there.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_told_with_links() {
    let (playground, mut page) = with_commands().await;
    let (workshop, mira) = (page.channel("workshop"), page.person("mira"));
    call(&page, &workshop, &mira, "catch-up", json!({"since": "1d"})).await;
    let told_all = told(&mut page, "What you missed").await;
    assert!(is_for_one(&told_all), "{told_all}");
    let link = r#"<a href="https://discord.com/channels/"#;
    let html = told_all["embeds"][0]["html"].as_str().unwrap();
    assert!(html.contains(link) && html.contains(&workshop), "{html}");

    let (boats, noor) = (page.channel("boats"), page.person("noor"));
    let path = format!("/api/channels/{boats}/commands");
    let offered = page.get(&format!("{path}?author={noor}")).await;
    let mut offered = offered.as_array().unwrap().iter();
    let name = "Summarise from here";
    assert!(offered.any(|one| one["name"] == name && one["type"] == 3));
    let newest = page
        .get(&format!("/api/channels/{boats}/messages?limit=2"))
        .await;
    let on =
        |name: &str, message: &Value| json!({"author": noor, "command": name, "message": message});
    page.post(&path, on(name, &newest[0]["id"])).await;
    let from = told(&mut page, "2 messages in").await;
    assert!(is_for_one(&from) && from["command"] == name, "{from}");
    page.refused(Method::POST, &path, on("help", &newest[0]["id"]), 404)
        .await;
    page.refused(Method::POST, &path, on(name, &json!("1")), 404)
        .await;
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_uploaded_with_a_question() {
    let (playground, mut page) = with_commands().await;
    let (boats, mira) = (page.channel("boats"), page.person("mira"));
    let path = format!("/api/channels/{boats}/commands");
    let ask = |file: &str| {
        json!({
            "author": mira, "command": "ask", "options": {"question": "what is wrong?"},
            "files": {"file": {"filename": file, "text": "09:00 the float switch sticks"}},
        })
    };
    page.refused(Method::POST, &path, ask("a/b.txt"), 400).await;
    page.post(&path, ask("pump.txt")).await;
    let turn = page
        .wait("turn", |turn| turn["outcome"] == "answered")
        .await;
    let turn = page
        .get(&format!("/api/turns/{}", turn["trigger"].as_str().unwrap()))
        .await;
    let prompt = turn["prompt"].to_string();
    for text in ["pump.txt", "the float switch sticks", "what is wrong?"] {
        assert!(prompt.contains(text), "no {text} in {prompt}");
    }
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}

/// A button is for whom its message is.
#[tokio::test(flavor = "multi_thread")]
async fn buttons_are_pressed_by_whom_they_are_for() {
    let (playground, mut page) = with_commands().await;
    let (boats, mira) = (page.channel("boats"), page.person("mira"));
    let noor = page.person("noor");
    call(&page, &boats, &mira, "privacy erase", json!({})).await;
    let asked = told(&mut page, "Cancel").await;
    let button = asked["components"][0]["components"]
        .as_array()
        .unwrap()
        .iter()
        .find(|button| button["label"] == "Cancel")
        .unwrap();
    let path = format!(
        "/api/channels/{boats}/messages/{}/press",
        asked["id"].as_str().unwrap()
    );
    let press = |author: &str, button: &Value| json!({"author": author, "button": button});
    let other = press(&noor, &button["custom_id"]);
    let refused = page.refused(Method::POST, &path, other, 404).await;
    assert_eq!(refused, "this button is gone");
    let unknown = press(&mira, &"nothing".into());
    page.refused(Method::POST, &path, unknown, 404).await;
    page.post(&path, press(&mira, &button["custom_id"])).await;
    let id = asked["id"].clone();
    let changed = page
        .wait("dispatch", |event| {
            event["t"] == "MESSAGE_UPDATE" && event["d"]["id"] == id
        })
        .await;
    assert_eq!(changed["d"]["components"], json!([]));
    playground.stop().await.unwrap();
}

/// A tool of an MCP server asks there as on Discord.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_servers_tool_is_allowed_by_its_button() {
    let server = McpServer::start(&[("find", "seven pumps")]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    let web = json!({"url": server.url(), "private": true, "allow": ["find"],
        "askerApproves": true});
    std::fs::write(&path, json!({"mcpServers": {"web": web}}).to_string()).unwrap();
    let (playground, mut page) = opened(&[("MCP_CONFIG", path.to_str().unwrap())]).await;
    server.listed(1).await;
    let (boats, mira) = (page.channel("boats"), page.person("mira"));
    let path = format!("/api/channels/{boats}/messages");
    let asked = format!("<@{}> call web__find {{\"words\": \"pumps\"}}", page.bot());
    page.post(&path, json!({"author": mira, "content": asked}))
        .await;
    let question = page
        .wait("dispatch", |event| {
            event["t"] == "MESSAGE_CREATE" && event["d"]["content"].to_string().contains("May I")
        })
        .await["d"]
        .clone();
    let path = format!("{path}/{}/press", question["id"].as_str().unwrap());
    let allow = &question["components"][0]["components"][0];
    assert_eq!(allow["label"], "Allow once");
    page.post(&path, json!({"author": mira, "button": allow["custom_id"]}))
        .await;
    page.wait("dispatch", |event| {
        event["d"]["content"].to_string().contains("seven pumps")
    })
    .await;
    assert_eq!(server.calls().len(), 1);
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_client_would_call_is_refused_with_its_reason() {
    let (playground, page) = with_commands().await;
    let (boats, mira) = (page.channel("boats"), page.person("mira"));
    let lotte = page.person("lotte");
    let path = format!("/api/channels/{boats}/commands");
    let refused = |author: &str, command: &str, options: Value, status: u16| {
        let body = json!({"author": author, "command": command, "options": options});
        page.refused(Method::POST, &path, body, status)
    };
    let nothing = refused(&mira, "dance", json!({}), 404).await;
    assert_eq!(nothing, "there is no command `/dance` here");
    let nothing = refused(&mira, "memory dance", json!({}), 400).await;
    assert_eq!(nothing, "`/memory dance` has no `dance`");
    let incomplete = refused(&mira, "ask", json!({}), 400).await;
    assert_eq!(incomplete, "`/ask` needs `question`");
    let wrong = json!({"question": "why?", "private": "perhaps"});
    let wrong = refused(&mira, "ask", wrong, 400).await;
    assert_eq!(wrong, r#"`private` of `/ask` is no "perhaps""#);
    refused(&lotte, "help", json!({}), 403).await;
    refused("1", "help", json!({}), 404).await;
    // A command of the server's managers is not offered to others.
    refused(&page.person("noor"), "settings show", json!({}), 404).await;
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}

/// As with `MCP_LISTEN` in the environment.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_a_token_and_reads() {
    let address = own_address();
    let listen = address.to_string();
    let (playground, mut page) = with_commands_and(&[("MCP_LISTEN", &listen)]).await;
    let (boats, mira) = (page.channel("boats"), page.person("mira"));
    let lets = json!({"programs": "on"});
    call(&page, &boats, &mira, "settings set", lets).await;
    told(&mut page, "rograms").await;
    let client = json!({"client": "editor"});
    call(&page, &boats, &mira, "connect new", client).await;
    let shown = told(&mut page, "clew_").await["content"].to_string();
    let token = shown.split("```").nth(1).unwrap().replace("\\n", "");
    let program = Client::new(address, token.trim());
    let listed = program.call("list_channels", json!({})).await.unwrap();
    assert!(listed.contains("#boats"), "{listed}");
    playground.stop().await.unwrap();
}
