//! PostgreSQL is killed, paused or locked, then back: turns answered meanwhile are stored, a hang delays one
//! turn up to the timeout, and telemetry reports it once.

use std::fs;
use std::process::Command;

use clew::app;
use clew_context::model::Secret;
use clew_store::{Backend as _, Error, Postgres as PostgresStore, SnapshotFiles};
use serde_json::json;

use super::place::{Kind, Place, assert_says, assert_says_nothing_of};
use crate::support::postgres::{Database, Postgres, query};

/// How long a turn may wait for a hanging store in these tests, in milliseconds.
const PATIENCE_MS: f64 = 5_000.0;

/// A place with a database server of its own and a short timeout.
async fn place(server: &Postgres, settings: &[(&str, &str)]) -> Place {
    let database: Database = server.fresh_database().await;
    let mut all = vec![
        ("CONTEXT_STORE", database.url.as_str()),
        ("MEM_FETCH_TIMEOUT_S", "2"),
    ];
    all.extend(settings);
    let mut p = Place::new(Kind::Sqlite, &all).await;
    p.kind = Kind::Postgres;
    p.database = Some(database);
    p
}

/// Stops all processes of a server (`STOP`), or lets them continue (`CONT`).
fn signal(server: &Postgres, signal: &str) {
    let parent = server.process();
    let all = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let process: u32 = entry.file_name().to_str()?.parse().ok()?;
            // "pid (name) state parent ..."; missing if the process has ended.
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let of = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
            (process == parent || of.parse() == Ok(parent)).then(|| process.to_string())
        });
    let kill = format!("kill -{signal} {}", all.collect::<Vec<_>>().join(" "));
    let done = Command::new("/bin/sh").args(["-c", &kill]).status();
    assert!(done.unwrap().success(), "{kill}");
}

async fn contents(p: &Place) -> Vec<String> {
    let url = &p.database.as_ref().unwrap().admin_url;
    let rows = query(
        url,
        "SELECT content FROM clew.messages ORDER BY ordinal, position",
    )
    .await;
    rows.into_iter()
        .map(|row| row[0].clone().unwrap())
        .collect()
}

/// The changes of the circuit's state, in order.
fn states(p: &Place) -> Vec<(String, String)> {
    let word = |detail: &serde_json::Value, side: &str| detail[side].as_str().unwrap().to_owned();
    let details = p.details("circuit").into_iter();
    details
        .map(|one| (word(&one, "read"), word(&one, "write")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_while_the_server_is_gone_is_stored() {
    let mut server = Postgres::own();
    let p = place(&server, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "one").await;
    server.stop();
    for number in 2..=7 {
        p.ask_only(p.help, p.ada, &number.to_string()).await;
    }
    server.start();
    p.until("stored", || p.event_count("recorded") == 7).await;
    p.until("closed", || states(&p).last() == Some(&both("closed")))
        .await;
    bot.stop().await;
    let stored = contents(&p).await;
    let expected = ["one", "2", "3", "4", "5", "6", "7"];
    let expected: Vec<String> = expected
        .iter()
        .flat_map(|words| [(*words).to_owned(), format!("so: {words}")])
        .collect();
    assert_eq!(stored, expected);
    // Reads and writes each began to fail once, and each came back.
    assert!(states(&p).len() <= 4, "{:?}", states(&p));
    assert!(p.details("store_failed").len() <= 2);
}

fn both(word: &str) -> (String, String) {
    (word.to_owned(), word.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_server_delays_one_turn() {
    let server = Postgres::own();
    let p = place(&server, &[("MEM_FETCH_TIMEOUT_S", "5")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "one").await;
    signal(&server, "STOP");
    for number in 2..=5 {
        let asked = p.ask_only(p.help, p.ada, &number.to_string()).await;
        assert_says_nothing_of(&asked.prompt, &["one"]);
    }
    p.until("done", || p.event_count("turn_done") == 5).await;
    let took = p.details("turn_done").into_iter();
    let took: Vec<f64> = took.map(|one| one["ms"].as_f64().unwrap()).collect();
    assert!(took[1] >= PATIENCE_MS, "the first turn waits: {took:?}");
    let waited = took.iter().filter(|took| **took >= PATIENCE_MS).count();
    assert_eq!(waited, 1, "the others do not wait: {took:?}");
    assert_eq!(states(&p), [both("open")]);
    signal(&server, "CONT");
    p.until("stored", || p.event_count("recorded") == 5).await;
    p.until("closed", || states(&p).last() == Some(&both("closed")))
        .await;
    let asked = p.prompt(p.help, p.ada).await;
    assert_says(&asked, &["one", "so: one", "2", "so: 2", "so: 5"]);
    bot.stop().await;
    assert_eq!(states(&p), [both("open"), both("closed")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clear_during_a_lock_is_refused_or_takes_effect() {
    let server = Postgres::own();
    let p = place(&server, &[("MEM_FETCH_TIMEOUT_S", "1")]).await;
    let bot = p.start().await;
    let connected = tokio_postgres::connect(
        &p.database.as_ref().unwrap().admin_url,
        tokio_postgres::NoTls,
    );
    let (client, connection) = connected.await.unwrap();
    tokio::spawn(connection);
    p.ask(p.help, p.ada, "one").await;
    let lock = "BEGIN; LOCK TABLE clew.messages IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(lock).await.unwrap();
    p.ask_only(p.help, p.ada, "two").await;
    p.until("kept", || p.event_count("turn_done") == 2).await;
    let clear = async || {
        let called = p
            .stage
            .discord
            .call(p.ada, p.help, "context clear", json!({}));
        called.await.unwrap().answer().await.unwrap().text()
    };
    let refused = clear().await;
    let asked = p.ask_only(p.help, p.ada, "three").await;
    assert_says(&asked.prompt, &["two", "so: two"]);
    client.batch_execute("ROLLBACK").await.unwrap();
    p.until("stored", || p.event_count("recorded") == 3).await;
    let cleared = clear().await;
    assert_ne!(refused, cleared);
    let asked = p.prompt(p.help, p.ada).await;
    assert_says_nothing_of(&asked, &["one", "two", "three"]);
    bot.stop().await;
}

/// The server ends the bot's connections and with them its hold, and somebody else takes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_bot_whose_database_another_process_took_ends_and_answers_nothing_more() {
    let server = Postgres::own();
    let p = place(&server, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "one").await;
    let database = p.database.as_ref().unwrap();
    let snapshots = SnapshotFiles::new(p.stage.folder.path().join("others_agents"));
    let url = Secret::new(database.url.clone());
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid() \
         AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = pg_stat_activity.pid \
         AND l.locktype = 'advisory' AND l.mode = 'ShareLock')";
    // One after the other: the other process's own connections are not to be ended.
    let other = loop {
        query(&database.admin_url, end).await;
        match PostgresStore::open(&url, snapshots.clone()).await {
            Err(Error::Unavailable { .. } | Error::NotReady { .. }) => {}
            opened => break opened.unwrap(),
        }
    };
    let before = p.stage.discord.answers(p.help).len();
    let us = p.stage.discord.bot();
    p.stage
        .discord
        .post(p.help, p.ada, format!("<@{us}> are you there?").as_str());
    let ended = bot.ended().await.unwrap_err();
    assert!(
        matches!(ended, app::Error::Store(Error::Held { .. })),
        "{ended:?}"
    );
    assert_eq!(p.stage.discord.answers(p.help).len(), before);
    other.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_not_stored_before_the_end_are_counted() {
    let mut server = Postgres::own();
    let p = place(&server, &[]).await;
    let bot = p.start().await;
    server.stop();
    p.ask_only(p.help, p.ada, "one").await;
    p.ask_only(p.help, p.ada, "two").await;
    bot.stop().await;
    let dropped = p.details("turns_dropped");
    assert_eq!(dropped, [json!({"turns": 2, "reason": "stopping"})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_back_at_the_end_gets_the_waiting_turns() {
    let mut server = Postgres::own();
    let p = place(&server, &[]).await;
    let bot = p.start().await;
    server.stop();
    p.ask_only(p.help, p.ada, "one").await;
    server.start();
    bot.stop().await;
    assert_eq!(contents(&p).await, ["one", "so: one"]);
    assert_eq!(p.event_count("turns_dropped"), 0);
}
