//! What the program tells operators in its readable log.

use clew::config::VARIABLES;
use clew_simulator::World;
use serde_json::{Value, json};

use super::Place;
use super::process::{Process, connected};
use crate::support::bot::Stage;
use crate::support::model::Behaviour;

/// The only line of the log that contains `of`.
#[track_caller]
fn line(log: &str, of: &str) -> String {
    let found: Vec<&str> = log.lines().filter(|line| line.contains(of)).collect();
    assert_eq!(found.len(), 1, "{of}: {log}");
    found[0].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_one_line_without_a_word_of_it() {
    let place = Place::new(&[]).await;
    let process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.stage.model.script(Behaviour::text(&["xylophone"]));
    let asked = place.ask(place.thread, "what is a xylophone?");
    place.wait_for_answer(place.thread, "xylophone").await;
    process.wait_for_log("a turn is over", 1).await;
    let log = process.log();
    let line = line(&log, "a turn is over");
    for part in [
        " INFO ".to_owned(),
        format!("guild={}", place.guild),
        format!("channel={}", place.thread),
        format!("user={}", place.ada),
        format!("trigger={asked}"),
        "case=\"thread\" outcome=\"answered\" agent=\"default\" model=\"fake\" ms=".to_owned(),
        "ms_to_model=".to_owned(),
    ] {
        assert!(line.contains(&part), "{part}: {line}");
    }
    assert!(!log.contains("xylophone"), "{log}");
    assert!(!log.contains("cannot reach"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_is_a_line_with_its_cause() {
    let place = Place::new(&[]).await;
    let process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.stage.discord.invalidate_sessions(false);
    process.wait_for_log("the session is lost", 1).await;
    let line = line(&process.log(), "the session is lost");
    assert!(
        line.contains("why=\"Discord does not know the session"),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pseudonyms_are_used_in_the_log_too() {
    let place = Place::new(&[("TELEMETRY_IDS", "keyed")]).await;
    let process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.ask(place.thread, "who am I?");
    process.wait_for_log("a turn is over", 1).await;
    let line = line(&process.log(), "a turn is over");
    assert!(
        line.contains(&format!("channel={}", place.thread)),
        "{line}"
    );
    assert!(!line.contains(&place.ada.to_string()), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_settings_are_logged_in_one_line_that_a_program_can_read() {
    let place = Place::new(&[("LLM_API_KEY", "hush")]).await;
    std::fs::write(place.stage.folder.path().join(".env"), "MEM_MAX_MSGS=39").unwrap();
    let process = Process::start(&place.stage, &[]);
    connected(&place).await;
    let log = process.log();
    let line = line(&log, "the settings in effect");
    let (_, settings) = line.split_once("settings=").unwrap();
    let settings: Value = serde_json::from_str(settings).unwrap();
    assert_eq!(settings.as_object().unwrap().len(), VARIABLES.len());
    for (name, expected) in [
        ("LLM_API_KEY", json!(["[set]", "environment"])),
        ("MEM_MAX_MSGS", json!(["39", ".env"])),
        ("MEM_MAX_CHARS", json!(["8000", "default"])),
        ("DM_LOGS_DIR", json!(["[not set]", "default"])),
    ] {
        assert_eq!(settings[name], expected, "{name}");
    }
    assert!(!log.contains("hush"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_in_no_server_logs_how_to_invite_it() {
    let stage = Stage::new(World::new(), &[]).await;
    let process = Process::start(&stage, &[]);
    process.wait_for_log("the bot is in no server", 1).await;
    let line = line(&process.log(), "the bot is in no server");
    let application = stage.discord.bot();
    let link = format!(
        "https://discord.com/oauth2/authorize?client_id={application}\
         &scope=bot+applications.commands&permissions=309237746752"
    );
    assert!(line.contains(&link), "{line}");
}

/// Nothing listens on port 1.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_named_with_the_cause() {
    async fn check(settings: &[(&str, &str)], what: &str, url: &str, cause: &str) {
        let place = Place::new(&[]).await;
        let process = Process::start(&place.stage, settings);
        process.wait_for_log(what, 1).await;
        let log = process.log();
        let line = log.lines().find(|line| line.contains(what)).unwrap();
        assert!(line.contains(" WARN "), "{line}");
        assert!(line.contains(url) && line.contains(cause), "{line}");
    }
    check(
        &[
            ("DISCORD_API_URL", "http://127.0.0.1:1"),
            ("DISCORD_GATEWAY_URL", ""),
        ],
        "cannot reach Discord: trying again",
        "http://127.0.0.1:1",
        "the connection was refused",
    )
    .await;
    check(
        &[
            ("DISCORD_API_URL", "http://nowhere.invalid"),
            ("DISCORD_GATEWAY_URL", ""),
        ],
        "cannot reach Discord: trying again",
        "http://nowhere.invalid",
        "the name of the server cannot be resolved",
    )
    .await;
    check(
        &[("DISCORD_GATEWAY_URL", "ws://127.0.0.1:1")],
        "cannot reach Discord",
        "ws://127.0.0.1:1",
        "refused",
    )
    .await;
    check(
        &[("LLM_BASE_URL", "http://127.0.0.1:1/v1")],
        "cannot reach the model",
        "http://127.0.0.1:1/v1/models",
        "refused",
    )
    .await;
}

/// Checking the model at the start delays nothing and detects a wrong address.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_address_that_does_not_work_is_warned_of() {
    let place = Place::new(&[]).await;
    let url = place.stage.model.url().replace("/v1", "/v2");
    let process = Process::start(&place.stage, &[("LLM_BASE_URL", &url)]);
    connected(&place).await;
    process.wait_for_log("cannot reach the model", 1).await;
    let line = line(&process.log(), "cannot reach the model");
    assert!(line.contains(&format!("{url}/models")), "{line}");
    assert!(line.contains("no such model or endpoint"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_taken_back_is_logged_with_the_reason() {
    let place = Place::new(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let mut process = Process::start(&place.stage, &[]);
    connected(&place).await;
    let partial = async || {
        let (pieces, gate) = Behaviour::gated(&["The pump\n", "is fine."]);
        place.stage.model.script(pieces);
        let asked = place.ask(place.thread, "what is it about?");
        gate.step(1);
        place.wait_for_answer(place.thread, "The pump").await;
        (asked, gate)
    };
    let (asked, _gate) = partial().await;
    place.stage.discord.delete(place.thread, asked);
    process.wait_for_log("1 answer was taken back", 1).await;
    let first = line(&process.log(), "1 answer was taken back");
    assert!(first.contains("the question was deleted"), "{first}");
    assert!(first.contains(&format!("trigger={asked}")), "{first}");
    process.wait_for_log("a turn is over", 1).await;
    let (_, _gate) = partial().await;
    process.signal("TERM");
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    let log = process.log();
    assert_eq!(log.matches("1 answer was taken back").count(), 2, "{log}");
    assert!(log.contains("the process ends"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_session_file_is_named_with_what_to_do() {
    let place = Place::new(&[]).await;
    let path = place.stage.state().join("session.json");
    std::fs::create_dir_all(place.stage.state()).unwrap();
    std::fs::write(&path, "{").unwrap();
    let process = Process::start(&place.stage, &[]);
    connected(&place).await;
    let line = line(&process.log(), "a fresh session begins");
    for part in [
        " WARN ",
        &path.display().to_string(),
        "damaged",
        "STATE_DIR",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
