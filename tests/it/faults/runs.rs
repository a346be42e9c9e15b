//! An agent run whose process is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use clew_simulator::Fault;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Place;
use super::process::{Process, connected};
use crate::support::bot::details;
use crate::support::model::Behaviour;

impl Place {
    /// Waits until the file of runs holds this many.
    async fn kept_runs(&self, count: usize) -> String {
        let path = self.stage.state().join("runs.json");
        for _ in 0..1_000 {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let runs: Value = serde_json::from_str(&text).unwrap_or_default();
            if runs.as_object().is_some_and(|runs| runs.len() == count) {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
                return text;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("the file of runs does not hold {count}");
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
    assert_eq!(told.text(), "I have begun. My answer will stand here.");
    place.stage.model.wait_requests(1).await;
    let kept = place.kept_runs(1).await;
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
    let expected = "-# Agent run: interrupted, since I was restarted. Please start it again.";
    place.wait_for_answer(place.thread, expected).await;
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
