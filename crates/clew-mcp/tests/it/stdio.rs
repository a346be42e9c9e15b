//! A server that is a process of ours.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clew_mcp::{CallError, Given, Servers};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{checked, servers, tool, tools, until};

const TIME: Duration = Duration::from_secs(20);

fn file(folder: &TempDir) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.sh");
    let allow = [
        "say", "far", "long", "ask", "take", "end", "spawn", "wait", "list",
    ];
    json!({"mcpServers": {"test": {
        "command": "sh",
        "args": [script, folder.path()],
        "env": {"KEY": "${KEY}"},
        "allow": allow,
        "auto": ["say"],
    }}})
}

fn start(folder: &TempDir) -> Servers {
    servers(&file(folder))
}

fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn call(servers: &Servers, name: &str, time: Duration) -> Result<Given, CallError> {
    let tool = tool(servers, &format!("test__{name}")).await;
    servers.call(&tool, Map::new(), time, &|_| ()).await
}

fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap_or_default()
}

#[tokio::test]
async fn what_a_tool_gives_is_texts_images_and_links() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let names: Vec<String> = tools(&servers)
        .await
        .iter()
        .map(|tool| tool.name.to_string())
        .collect();
    // `hidden` is not allowed; what `list` takes is no object.
    assert_eq!(
        names,
        [
            "test__ask",
            "test__end",
            "test__far",
            "test__long",
            "test__say",
            "test__spawn",
            "test__take",
            "test__wait"
        ]
    );
    let say = tool(&servers, "test__say").await;
    assert_eq!(say.description, "Says it again.");
    let given = servers
        .call(&say, arguments(&json!({"text": "hello"})), TIME, &|_| ())
        .await
        .unwrap();
    assert_eq!(
        given.text,
        "hello\n\na: https://example.org/a\n\nfile:///b:\ninside"
    );
    assert_eq!(given.images.len(), 1);
    assert_eq!(given.left_out, ["audio"]);
    // Structured content repeats the text; it counts only without one.
    let given = call(&servers, "spawn", TIME).await.unwrap();
    assert_eq!(given.text, r#"{"started":true}"#);
    let checked = checked(&file(&folder)).await.unwrap();
    assert_eq!(
        (checked.version.as_str(), checked.tools.len()),
        ("2025-11-25", 8)
    );
    assert!(
        checked.problems.concat().contains("test__list"),
        "{checked:?}"
    );
}

#[tokio::test]
async fn a_child_sees_what_its_entry_names_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    tools(&servers).await;
    let all = read(&folder, "variables");
    let known = ["HOME", "KEY", "LANG", "OLDPWD", "PATH", "PWD", "SHLVL", "_"];
    assert!(all.lines().all(|name| known.contains(&name)), "{all}");
    assert!(all.contains("KEY"));
}

#[tokio::test]
async fn it_is_started_again_and_greeted_at_once_the_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let ended = call(&servers, "end", TIME).await;
    assert_eq!(ended, Err(CallError::Unreachable));
    until("started again", || {
        read(&folder, "starts").lines().count() == 4
    })
    .await;
    assert_eq!(read(&folder, "starts"), "begun\ngreeted\nbegun\ngreeted\n");
    until("offered again", || !servers.tools().is_empty()).await;
    assert!(!call(&servers, "say", TIME).await.unwrap().is_error);
}

#[tokio::test]
async fn what_it_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    call(&servers, "spawn", TIME).await.unwrap();
    let spawned = read(&folder, "spawned");
    let proc = Path::new("/proc").join(spawned);
    assert!(proc.exists());
    drop(servers);
    let is_gone = || match fs::read_to_string(proc.join("stat")) {
        // A zombie waits for its parent to look.
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    until("ended", is_gone).await;
}

#[tokio::test]
async fn a_message_without_end_ends_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    assert_eq!(
        call(&servers, "long", TIME).await,
        Err(CallError::Unreachable)
    );
    until("started again", || {
        read(&folder, "starts").lines().count() == 4
    })
    .await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let late = call(&servers, "wait", Duration::from_millis(200)).await;
    assert_eq!(late, Err(CallError::Timeout));
    until("cancelled", || {
        read(&folder, "starts").ends_with("cancelled\n")
    })
    .await;
}

#[tokio::test]
async fn questions_to_people_are_declined() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let given = call(&servers, "ask", TIME).await.unwrap();
    assert_eq!(given.text, "nobody answered");
    assert!(given.is_error && given.asked_for_input);
}

#[tokio::test]
async fn what_is_asked_of_the_client_during_a_call_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let given = call(&servers, "take", TIME).await.unwrap();
    assert_eq!(given.text, "both refused");
}

#[tokio::test]
async fn a_changed_list_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let say = tool(&servers, "test__wait").await;
    fs::write(folder.path().join("does"), "Does another thing.").unwrap();
    let change = servers.call(
        &say,
        arguments(&json!({"text": "change"})),
        Duration::from_millis(300),
        &|_| (),
    );
    assert_eq!(change.await, Err(CallError::Timeout));
    let is_other = || {
        servers
            .tools()
            .iter()
            .any(|(tool, _)| tool.description == "Does another thing.")
    };
    until("the new description", is_other).await;
}

#[tokio::test]
async fn a_server_tells_how_far_a_call_is() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let far = tool(&servers, "test__far").await;
    let told = std::sync::Mutex::new(Vec::new());
    let note = |said: &str| told.lock().unwrap().push(said.to_owned());
    let given = servers.call(&far, Map::new(), TIME, &note).await.unwrap();
    assert_eq!(given.text, "there");
    // It says its key.
    let told = told.into_inner().unwrap();
    assert_eq!(told.last().unwrap(), "nearly, says ***");
}

/// A tool that reads otherwise than when the last process saw it may be another tool.
#[tokio::test]
async fn what_reads_otherwise_than_before_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(&folder);
    let say = tool(&servers, "test__say").await;
    until("seen", || servers.seen().contains_key("test__say")).await;
    let before = servers.seen()["test__say"].clone();
    assert_eq!(before, say.fingerprint());
    fs::write(folder.path().join("does"), "Sends it away.").unwrap();
    let servers = start(&folder);
    let say = tool(&servers, "test__say").await;
    assert_ne!(before, say.fingerprint());
}
