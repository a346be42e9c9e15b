//! The tests' own PostgreSQL server works, enforces the rules on roles, and
//! leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, NoTls};

use crate::support::postgres::{Database, Postgres, dump_all, query};

/// File that marks the folder of a process that starts a server and then just
/// waits.
const HOLDER: &str = "holder";
/// Longest wait for a server to end.
const PATIENCE: Duration = Duration::from_mins(1);
/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(20);

#[track_caller]
fn check_values(rows: &[Vec<Option<String>>], expected: &[&str]) {
    let values: Vec<_> = rows.iter().flatten().map(Option::as_deref).collect();
    let expected: Vec<_> = expected.iter().copied().map(Some).collect();
    assert_eq!(values, expected);
}

async fn check_refused(config: &Config, expected: &SqlState) {
    let refused = config.connect(NoTls).await.err().unwrap();
    assert_eq!(refused.code(), Some(expected), "{refused:?}");
}

async fn fresh_database() -> Database {
    Postgres::shared().fresh_database().await
}

/// The real, effective, saved and file system user ids of a process; `None`
/// once it has ended.
fn users(process: u32) -> Option<Vec<u32>> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    // A zombie: it has ended, but its parent has not reaped it.
    if field("State:")?.trim().starts_with('Z') {
        return None;
    }
    let ids = field("Uid:")?.split_whitespace();
    Some(ids.map(|id| id.parse().unwrap()).collect())
}

/// Waits until both the process and the folder are gone.
async fn wait_gone(process: u32, folder: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while users(process).is_some() || folder.exists() {
        let left = format!("{process} or {}", folder.display());
        assert!(Instant::now() < deadline, "still there: {left}");
        sleep(LOOK).await;
    }
}

#[test]
fn no_part_of_the_server_runs_as_root() {
    let users = users(Postgres::shared().process()).unwrap();
    assert_eq!(users.len(), 4);
    assert!(!users.contains(&0), "{users:?}");
}

#[tokio::test]
async fn row_level_security_applies_to_the_role_of_a_fresh_database() {
    let database = fresh_database().await;
    let rights = "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb \
                  FROM pg_roles WHERE rolname = current_user";
    let rights = query(&database.url, rights).await;
    check_values(&rights, &["f", "f", "f", "f"]);
    let table = "CREATE TABLE kept (word text); \
                 INSERT INTO kept VALUES ('seen'), ('hidden'); \
                 ALTER TABLE kept ENABLE ROW LEVEL SECURITY; \
                 ALTER TABLE kept FORCE ROW LEVEL SECURITY; \
                 CREATE POLICY by_word ON kept USING (word = 'seen')";
    query(&database.url, table).await;
    let all = "SELECT word FROM kept ORDER BY word";
    check_values(&query(&database.url, all).await, &["seen"]);
    check_values(&query(&database.admin_url, all).await, &["hidden", "seen"]);
}

#[tokio::test]
async fn two_fresh_databases_are_separate() {
    let (one, other) = (fresh_database().await, fresh_database().await);
    query(&one.url, "CREATE TABLE kept AS SELECT 1 AS number").await;
    let tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'kept'";
    check_values(&query(&one.url, tables).await, &["1"]);
    check_values(&query(&other.url, tables).await, &["0"]);
    let mut trespass: Config = one.url.parse().unwrap();
    trespass.dbname(&other.name);
    check_refused(&trespass, &SqlState::INSUFFICIENT_PRIVILEGE).await;
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let database = fresh_database().await;
    let mut wrong: Config = database.url.parse().unwrap();
    wrong.password("guessed");
    check_refused(&wrong, &SqlState::INVALID_PASSWORD).await;
}

#[tokio::test]
async fn a_dump_shows_every_kind_of_value() {
    let database = fresh_database().await;
    let table = "CREATE SCHEMA aside; \
                 CREATE TABLE aside.kept (a text, b bytea, c jsonb, d tsvector, e text[]); \
                 INSERT INTO aside.kept VALUES ('marker-a', 'marker-b', '{\"k\": \"marker-c\"}', \
                 to_tsvector('simple', 'markerd'), '{marker-e}'); \
                 ALTER TABLE aside.kept ENABLE ROW LEVEL SECURITY; \
                 ALTER TABLE aside.kept FORCE ROW LEVEL SECURITY";
    query(&database.url, table).await;
    let dump = dump_all(&database.admin_url);
    for marker in ["marker-a", "marker-b", "marker-c", "markerd", "marker-e"] {
        assert!(dump.contains(marker), "{marker} is not in {dump}");
    }
}

#[tokio::test]
async fn a_stopped_server_comes_back_with_its_rows() {
    let mut server = Postgres::own();
    let database = server.fresh_database().await;
    query(&database.url, "CREATE TABLE kept AS SELECT 'stays' AS word").await;
    let process = server.process();
    server.stop();
    assert_eq!(users(process), None);
    let refused = tokio_postgres::connect(&database.url, NoTls).await;
    assert!(refused.is_err());
    server.start();
    let rows = query(&database.url, "SELECT word FROM kept").await;
    check_values(&rows, &["stays"]);
}

#[tokio::test]
async fn a_dropped_server_leaves_nothing() {
    let server = Postgres::own();
    let (process, folder) = (server.process(), server.folder().to_owned());
    assert!(users(process).is_some() && folder.exists());
    drop(server);
    wait_gone(process, &folder).await;
}

#[tokio::test]
async fn a_killed_process_leaves_no_server() {
    if Path::new(HOLDER).exists() {
        return hold();
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join(HOLDER), "").unwrap();
    let test = "postgres_server::a_killed_process_leaves_no_server";
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .current_dir(place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(holder.stdout.take().unwrap());
    let held = output.lines().find_map(|line| {
        let line = line.unwrap();
        let (process, folder) = line.strip_prefix("held ")?.split_once(' ')?;
        Some((process.parse::<u32>().unwrap(), PathBuf::from(folder)))
    });
    let (process, folder) = held.expect("the other process starts a server");
    assert!(users(process).is_some() && folder.exists());
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_gone(process, &folder).await;
}

/// Starts the shared server, reports it, and waits to be killed.
#[expect(clippy::print_stdout, reason = "read by the process that kills this")]
fn hold() {
    let server = Postgres::shared();
    println!("\nheld {} {}", server.process(), server.folder().display());
    let _ = std::io::stdin().lines().next();
}
