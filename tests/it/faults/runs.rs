//! An agent run whose process is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use clew_simulator::{Fault, FaultKind};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Place;
use super::process::{Process, connected};
use crate::support::bot::{details, lines};
use crate::support::model::Behaviour;

const INTERRUPTED: &str = "-# Agent run: interrupted by my restart. Start it again.";

impl Place {
    /// Waits until the file of runs holds this many.
    async fn kept_runs(&self, count: usize) -> String {
        let fits = |runs: &Value| runs.as_object().is_some_and(|runs| runs.len() == count);
        self.kept_as(fits).await
    }

    /// Waits until the file of runs is as expected.
    async fn kept_as(&self, fits: impl Fn(&Value) -> bool) -> String {
        let path = self.stage.state().join("runs.json");
        for _ in 0..1_000 {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let runs: Value = serde_json::from_str(&text).unwrap_or_default();
            if fits(&runs) {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
                return text;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("the file of runs is not as expected");
    }
}

/// Once it has been said, nothing is left to say; until then each process tries.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_kill_broke_off_is_reported_by_the_next_process() {
    let place = Place::new(&[]).await;
    let discord = &place.stage.discord;
    let mut process = Process::start(&place.stage, &[]);
    connected(&place).await;
    place.stage.model.script(Behaviour::Hang);
    let task = json!({"task": "count the pumps"});
    let called = discord.call(place.ada, place.thread, "agent run", task);
    let told = called.await.unwrap().answer().await.unwrap();
    assert_eq!(told.text(), "Started. I'll answer here.");
    place.stage.model.wait_requests(1).await;
    let has_message = |runs: &Value| runs.to_string().contains("message");
    let kept = place.kept_as(has_message).await;
    let message = discord.answers(place.thread).remove(0);
    assert!(
        kept.contains(&message.id.to_string()) && !kept.contains("pumps"),
        "{kept}"
    );
    process.signal("KILL");
    process.ended().await;

    let edits = format!("/channels/{}/messages/*", place.thread);
    let fault = discord.fault(Fault::status("PATCH", &edits, 503, 0, "down").times(3));
    let bot = place.stage.start().await;
    discord.wait_request("PATCH", &edits, 3).await.unwrap();
    bot.stop().await;
    assert_eq!(discord.hits(fault), 3);
    place.kept_runs(1).await;

    let bot = place.stage.start().await;
    place.wait_for_answer(place.thread, INTERRUPTED).await;
    place.kept_runs(0).await;
    assert_eq!(
        discord.answers(place.thread)[0].components,
        [] as [Value; 0]
    );
    let lines = bot.stop().await;
    let last = details(&lines, "run_done").pop().unwrap();
    assert_eq!(
        (&last["end"], &last["rounds"]),
        (&json!("interrupted"), &Value::Null)
    );
    assert_eq!(place.stage.model.requests().len(), 1);
}

/// What is no longer there needs no report; a file that nobody can read is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_runs_that_leads_nowhere_is_left_behind() {
    let place = Place::new(&[]).await;
    let path = place.stage.state().join("runs.json");
    fs::create_dir_all(place.stage.state()).unwrap();
    let gone = json!({"7": {"channel": place.thread.to_string(), "message": "8", "began": 0}});
    fs::write(&path, gone.to_string()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let bot = place.stage.start().await;
    place.kept_runs(0).await;
    bot.stop().await;
    fs::write(&path, "{\"7\":").unwrap();
    let bot = place.stage.start().await;
    place.still_works(bot).await;
}

/// It is written down before its message is posted: a process that is killed in between has
/// said nothing, and the next one says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_written_down_before_its_message_is_posted() {
    let place = Place::new(&[]).await;
    let discord = &place.stage.discord;
    let mut process = Process::start(&place.stage, &[]);
    connected(&place).await;
    let posts = format!("/channels/{}/messages", place.thread);
    let hang = FaultKind::Hang(Duration::from_mins(1));
    discord.fault(Fault::new("POST", &posts, hang));
    let task = json!({"task": "count the pumps"});
    let call = discord.call(place.ada, place.thread, "agent run", task);
    call.await.unwrap();
    discord.wait_request("POST", &posts, 1).await.unwrap();
    let kept = place.kept_runs(1).await;
    assert!(!kept.contains("message"), "{kept}");
    process.signal("KILL");
    process.ended().await;
    discord.end_faults();
    let bot = place.stage.start().await;
    place.wait_for_answer(place.thread, INTERRUPTED).await;
    place.kept_runs(0).await;
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "run_done")[0]["end"], "interrupted");
    assert_eq!(discord.answers(place.thread).len(), 1);
}

/// A message of which no answer came may stand there: the next process finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_id_is_lost_is_found_by_its_nonce() {
    let place = Place::new(&[]).await;
    let discord = &place.stage.discord;
    let bot = place.stage.start().await;
    let posts = format!("/channels/{}/messages", place.thread);
    let lost = Fault::new("POST", &posts, FaultKind::DroppedAfter).times(3);
    discord.fault(lost);
    let task = json!({"task": "count the pumps"});
    let called = discord.call(place.ada, place.thread, "agent run", task);
    let told = called.await.unwrap().answer().await.unwrap();
    assert_eq!(told.text(), "-# I can't write here, so I didn't start.");
    let begun = discord.answers(place.thread).remove(0);
    assert!(begun.content.contains("at work"), "{}", begun.content);
    place.kept_runs(1).await;
    bot.stop().await;
    let bot = place.stage.start().await;
    place.wait_for_answer(place.thread, INTERRUPTED).await;
    let answers = discord.answers(place.thread);
    assert_eq!((answers.len(), answers[0].id), (1, begun.id));
    place.kept_runs(0).await;
    bot.stop().await;
}

/// The next process says what could not be shown for so long; telemetry had it before.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_that_could_not_be_shown_is_shown_by_the_next_process() {
    let place = Place::new(&[]).await;
    let discord = &place.stage.discord;
    let mut process = Process::start(&place.stage, &[]);
    connected(&place).await;
    let edits = format!("/channels/{}/messages/*", place.thread);
    discord.fault(Fault::status("PATCH", &edits, 503, 0, "down"));
    let task = json!({"task": "count the pumps"});
    let called = discord.call(place.ada, place.thread, "agent run", task);
    called.await.unwrap().answer().await.unwrap();
    place.wait_for_answer(place.thread, "ok").await;
    let is_over = |runs: &Value| runs.to_string().contains(r#""is_over":true"#);
    place.kept_as(is_over).await;
    let telemetry = place.stage.folder.path().join("telemetry");
    while details(&lines(&telemetry), "run_done").is_empty() {
        sleep(Duration::from_millis(20)).await;
    }
    process.signal("KILL");
    process.ended().await;
    discord.end_faults();
    let bot = place.stage.start().await;
    place
        .wait_for_answer(place.thread, "-# Agent run: over.")
        .await;
    place.kept_runs(0).await;
    let done = details(&bot.stop().await, "run_done");
    assert_eq!((done.len(), &done[0]["end"]), (1, &json!("done")));
}
