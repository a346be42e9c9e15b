//! `/healthz` and `/readyz` fail while something is wrong, and say what.

use std::path::Path;

use clew::app;
use clew_simulator::World;
use rusqlite::Connection;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::{Place, answer, own_address};
use crate::support::bot::Stage;
use crate::support::model::Behaviour;

/// More than the bot accepts at once.
const CONNECTIONS: usize = 20;
/// Many times as many.
const SLOW_CONNECTIONS: usize = 100;
/// How long a health check may take before whoever asks gives up: systemd's and Docker's usual
/// limits are longer.
const SOON: std::time::Duration = std::time::Duration::from_secs(3);

/// Keeps everybody else from writing to an SQLite store until it is dropped.
fn lock(folder: &Path) -> Connection {
    let lock = Connection::open(folder.join("clew.db")).unwrap();
    lock.busy_timeout(super::PATIENCE).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    lock
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_ready_while_every_shard_is_connected() {
    let p = Place::new(&[]).await;
    p.stage.discord.refuse_identifies(1_000_000);
    let bot = p.stage.launch();
    // The bot answers as soon as it has taken the address.
    while TcpStream::connect(p.address).await.is_err() {
        tokio::time::sleep(super::LOOK).await;
    }
    p.says("/readyz", 503, "not ready\ndiscord: not connected yet\n")
        .await;
    p.says("/healthz", 200, "alive\n").await;
    assert_eq!(p.scrape().await.count("clew_ready", &[]), 0);
    p.stage.discord.refuse_identifies(0);
    p.says("/readyz", 200, "ready\n").await;
    let scrape = p.scrape().await;
    for (name, value) in [
        ("clew_ready", 1),
        ("clew_loop_alive", 1),
        ("clew_discord_shards", 1),
        ("clew_discord_shards_connected", 1),
        ("clew_turns_running_limit", 32),
    ] {
        assert_eq!(scrape.count(name, &[]), value, "{name}");
    }
    p.stage.discord.refuse_identifies(1_000_000);
    p.stage.discord.forget_sessions();
    p.stage.discord.drop_gateway();
    let lost = "not ready\ndiscord: 0 of 1 shards are connected\n";
    p.says("/readyz", 503, lost).await;
    p.says("/healthz", 200, "alive\n").await;
    p.stage.discord.refuse_identifies(0);
    p.says("/readyz", 200, "ready\n").await;
    let scrape = p.scrape().await;
    assert_eq!(scrape.count("clew_discord_sessions_lost_total", &[]), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_is_told_and_so_is_a_loop_that_waits_for_it() {
    let p = Place::new(&[("MEM_FETCH_TIMEOUT_S", "1")]).await;
    p.stage.discord.refuse_identifies(1_000_000);
    let bot = p.stage.launch();
    while TcpStream::connect(p.address).await.is_err() {
        tokio::time::sleep(super::LOOK).await;
    }
    p.says("/readyz", 503, "not ready\ndiscord: not connected yet\n")
        .await;
    // The loop waits for the store once: to be told whose it is.
    let locked = lock(p.stage.folder.path());
    p.stage.discord.refuse_identifies(0);
    let hangs = "the loop has not answered for 2 s: restart the bot\n";
    p.says("/healthz", 503, hangs).await;
    drop(locked);
    p.says("/healthz", 200, "alive\n").await;
    p.says("/readyz", 200, "ready\n").await;
    let locked = lock(p.stage.folder.path());
    p.ask(p.help, "hello").await;
    let told = "not ready\nstore: reading is open, writing is open; 1 answered turns wait for it\n";
    p.says("/readyz", 503, told).await;
    p.says("/healthz", 200, "alive\n").await;
    let scrape = p.scrape().await;
    let circuit = |operation, state| {
        let labels = [("operation", operation), ("state", state)];
        scrape.count("clew_store_circuit", &labels)
    };
    assert_eq!(circuit("write", "open"), 1);
    assert_eq!(circuit("write", "closed"), 0);
    assert_eq!(scrape.count("clew_unsaved_turns", &[]), 1);
    assert!(scrape.count("clew_store_failures_total", &[]) >= 1);
    drop(locked);
    p.says("/readyz", 200, "ready\n").await;
    let scrape = p
        .scraped(|scrape| scrape.count("clew_turns_recorded_total", &[]) == 1)
        .await;
    assert_eq!(scrape.count("clew_unsaved_turns", &[]), 0);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_that_stops_is_alive_and_not_ready() {
    let p = Place::new(&[]).await;
    let bot = p.stage.start().await;
    let (words, gate) = Behaviour::gated(&["one", " two"]);
    p.stage.model.script(words);
    p.ask_only(p.help, "slowly");
    p.stage.model.wait_requests(1).await;
    let scrape = p
        .scraped(|scrape| scrape.count("clew_turns_running", &[]) == 1)
        .await;
    assert_eq!(scrape.count("clew_turns_waiting", &[]), 0);
    bot.ask_to_stop();
    p.says("/readyz", 503, "not ready\nprocess: it is stopping\n")
        .await;
    assert_eq!(p.get("/healthz").await.status, 200);
    gate.open();
    bot.ended().await.unwrap();
    let closed = TcpStream::connect(p.address).await;
    assert!(closed.is_err(), "nothing is served after the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_requests_are_refused_and_idle_connections_keep_nobody_out() {
    let p = Place::new(&[]).await;
    let bot = p.stage.start().await;
    assert_eq!(p.get("/").await.status, 404);
    let mut long = TcpStream::connect(p.address).await.unwrap();
    let head = format!(
        "GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n",
        "a".repeat(64 << 10)
    );
    // The bot may hang up before it has read all of it.
    let _ = long.write_all(head.as_bytes()).await;
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        idle.push(TcpStream::connect(p.address).await.unwrap());
    }
    assert_eq!(p.get("/healthz").await.status, 200);
    let mut posts = TcpStream::connect(p.address).await.unwrap();
    posts
        .write_all(b"POST /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(answer(posts).await.status, 405);
    bot.stop().await;
}

/// Each sends its request a letter at a time, so that it is never idle and never done.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_slow_connections_keep_nobody_out() {
    let p = Place::new(&[]).await;
    let bot = p.stage.start().await;
    let mut slow = Vec::new();
    for _ in 0..SLOW_CONNECTIONS {
        let mut stream = TcpStream::connect(p.address).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nx:")
            .await
            .unwrap();
        slow.push(stream);
    }
    let asked = tokio::time::timeout(SOON, p.get("/healthz")).await;
    assert_eq!(asked.expect("the check is answered soon").status, 200);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_ends_the_start_with_a_remedy() {
    let address = own_address();
    let taken = TcpListener::bind(address).await.unwrap();
    let address = address.to_string();
    let stage = Stage::new(World::new(), &[("METRICS_ADDR", &address)]).await;
    let error = stage.launch().ended().await.unwrap_err();
    assert!(matches!(error, app::Error::Address { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains(&format!("METRICS_ADDR={address}")), "{told}");
    assert!(told.contains("choose a free port"), "{told}");
    drop(taken);
}
