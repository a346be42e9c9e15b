//! Confirmed writes survive `kill -9`: a child writes and reports what was
//! confirmed, is killed at a random moment, and the store is opened again;
//! fifty times on the same place.
//!
//! The child is this same test, run in a folder that contains [`LOAD`].

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use clew_store::model::{ClearKey, Subject};
use clew_store::{Backend, Error, Purge, SqliteSettings};

use super::build::{
    all_of, at, default_agent, direct, guild, member, snapshot, snapshot_id, turn, user, user_fact,
};
use super::contract::everything;
use super::fixture::{self, Fixture, Ground};
use super::random::{Random, seed};

/// Holds the round and, for PostgreSQL, the database, on a line each.
const LOAD: &str = "load";
/// Prefix of what was confirmed.
const CONFIRMED: &str = "confirmed ";
/// How many children are killed.
const KILLS: u64 = 50;
/// Most confirmations before a kill.
const LONGEST: u64 = 60;
/// Concurrent tasks of a child.
const TASKS: u64 = 4;
/// Turns per conversation; a file holds 15 rows.
const TURNS: u64 = 5;
/// Seed of runs that do not specify one.
const SEED: u64 = 99;

/// Reports a confirmed write: its kind, and the number the rest derives from.
fn say(kind: &str, number: u64) {
    use std::io::Write as _;
    // A single call, so that a kill leaves a whole line or none.
    let line = format!("{CONFIRMED}{kind} {number}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The rows of the turn with this number, in its conversation.
fn turn_of(number: u64) -> Vec<clew_store::model::StoredMessage> {
    let talk = number / TURNS;
    let scope = if talk.is_multiple_of(3) {
        direct(talk + 1)
    } else {
        member(1, 7, talk + 1)
    };
    let when = i64::try_from(number % TURNS * 10).unwrap();
    let mut rows = turn(scope, number * 10 + 10, at(when));
    let length = usize::try_from(number * 7_919 % 20_000).unwrap();
    rows[1].content = format!("{number} {}", "x".repeat(length));
    rows
}

/// Writes until killed. Numbers are never reused on the same place.
#[expect(clippy::print_stdout, reason = "read by the process that kills this")]
async fn load<S: Backend + 'static>(store: S, is_database: bool, round: u64) {
    let store = Arc::new(store);
    println!();
    let tasks = (0..TASKS).map(|task| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let first = (round * TASKS + task) * 100_000;
            for number in first.. {
                write(&*store, is_database, number).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

async fn write(store: &impl Backend, is_database: bool, number: u64) {
    let rows = turn_of(number);
    store.append(&rows).await.unwrap();
    say("turn", number);
    match number % 10 {
        3 => {
            let fact = user_fact(number, 5_000_000 + number, "it is so");
            store.put_facts(&[fact]).await.unwrap();
            say("fact", number);
        }
        5 => {
            store.clear(&marker(number), at(1)).await.unwrap();
            say("marker", number);
        }
        6 if is_database => {
            let saved = snapshot(number, rows, at(5));
            store.save_snapshot(&saved).await.unwrap();
            say("snapshot", number);
        }
        // Only the last turn of a conversation, so that nothing comes after.
        9 => {
            let owner = rows[0].owner;
            store.purge(&Purge::User(owner)).await.unwrap();
            say("purge", number);
        }
        _ => {}
    }
}

fn marker(number: u64) -> ClearKey {
    ClearKey {
        agent: default_agent(),
        guild: Some(guild(2)),
        user: Some(user(5_000_000 + number)),
    }
}

/// The child process; killed when dropped.
struct Killed(Child);

impl Killed {
    fn start(folder: &Path, test: &str) -> (Self, BufReader<ChildStdout>) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        (Self(child), output)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // SIGKILL.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a child confirmed before it was killed, after `kill_after`
/// confirmations.
fn confirmed(folder: &Path, test: &str, kill_after: u64) -> Vec<(String, u64)> {
    let (child, mut output) = Killed::start(folder, test);
    let mut child = Some(child);
    let mut all = Vec::new();
    loop {
        if all.len() as u64 > kill_after {
            drop(child.take());
        }
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ended = line.is_empty();
        // Everything before the kill counts, up to the last whole line.
        let whole = line
            .strip_suffix('\n')
            .and_then(|line| line.strip_prefix(CONFIRMED));
        if let Some((kind, number)) = whole.and_then(|line| line.split_once(' ')) {
            all.push((kind.to_owned(), number.parse().unwrap()));
        }
        if ended {
            assert!(child.is_none(), "the child ended by itself");
            return all;
        }
    }
}

async fn look(store: &impl Backend, all: &[(String, u64)]) {
    let purged: Vec<u64> = all
        .iter()
        .filter(|(kind, _)| kind == "purge")
        .map(|(_, number)| number / TURNS)
        .collect();
    for (kind, number) in all {
        let mut expected = turn_of(*number);
        let (scope, owner) = (expected[0].scope, expected[0].owner);
        match kind.as_str() {
            "turn" => {
                let rows = store.window(&all_of(scope)).await.unwrap();
                let talk = number / TURNS;
                if purged.contains(&talk) {
                    assert_eq!(rows, [], "{number}: purged");
                } else if number % TURNS == TURNS - 1 && number % 10 == 9 && rows.is_empty() {
                    // An unconfirmed purge may have happened or not.
                } else if rows.is_empty() {
                    let last = talk * TURNS + TURNS - 1;
                    let was_to_be_purged = last % 10 == 9 && said(all, "turn", last);
                    assert!(was_to_be_purged, "{number} is lost");
                } else {
                    let row = rows.iter().find(|row| row.turn == expected[0].turn);
                    expected[0].ordinal = row.unwrap_or_else(|| panic!("{number} is lost")).ordinal;
                    let answer = rows
                        .iter()
                        .filter(|row| row.turn == expected[0].turn)
                        .nth(1);
                    assert_eq!(row, Some(&expected[0]));
                    assert_eq!(answer.unwrap().content, expected[1].content);
                    assert_eq!(rows.len() % 2, 0, "half a turn");
                }
            }
            "fact" => {
                let facts = store
                    .facts(Subject::User(user(5_000_000 + number)), usize::MAX)
                    .await;
                assert_eq!(facts.unwrap().len(), 1, "fact {number} is lost");
            }
            "marker" => {
                let key = marker(*number);
                let cleared = store
                    .cleared_at(&key.agent, key.guild, key.user.unwrap())
                    .await;
                assert_eq!(cleared.unwrap(), Some(at(1)), "marker {number} is lost");
            }
            "snapshot" => {
                let talk = number / TURNS;
                let found = store.snapshot(owner, &snapshot_id(*number)).await;
                let may_be = (talk * TURNS + TURNS - 1) % 10 == 9;
                if purged.contains(&talk) {
                    assert_eq!(found.unwrap(), None, "snapshot {number} is back");
                } else if may_be {
                    // An unconfirmed purge may have removed the file already.
                    let is_gone = matches!(found, Ok(None) | Err(Error::Corrupt { .. }));
                    assert!(is_gone || found.unwrap().is_some());
                } else {
                    assert!(found.unwrap().is_some(), "snapshot {number} is lost");
                }
            }
            _ => assert_eq!(kind, "purge"),
        }
    }
}

fn said(all: &[(String, u64)], kind: &str, number: u64) -> bool {
    all.iter().any(|(of, said)| of == kind && *said == number)
}

/// Kills, reopens and checks, fifty times.
#[expect(clippy::print_stdout, reason = "shown when the test fails")]
async fn check<F: Fixture>(place: &F, test: &str, address: &str, sound: impl Fn(&Ground)) {
    let seed = seed(SEED);
    println!("STORE_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let folder = place.ground().folder();
    let mut all = Vec::new();
    for round in 1..=KILLS {
        fs::write(folder.join(LOAD), format!("{round}\n{address}")).unwrap();
        let said = confirmed(folder, test, random.below(LONGEST));
        fs::remove_file(folder.join(LOAD)).unwrap();
        let store = place.open().await;
        look(&store, &said).await;
        all.extend(said);
        store.close().await.unwrap();
        drop(store);
        sound(place.ground());
    }
    assert!(
        all.len() as u64 > KILLS * LONGEST / 4,
        "{} confirmed",
        all.len()
    );
    let store = place.open().await;
    look(&store, &all).await;
    assert!(!everything(&store).await.is_empty());
}

/// In the child: the round and the address.
fn is_child() -> Option<(u64, String)> {
    let text = fs::read_to_string(LOAD).ok()?;
    let (round, address) = text.split_once('\n').unwrap();
    Some((round.parse().unwrap(), address.to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_what_it_confirmed() {
    let test = "store::crash::sqlite_keeps_what_it_confirmed";
    if let Some((round, _)) = is_child() {
        let store = fixture::open_sqlite(Path::new("."), SqliteSettings::default()).await;
        return load(store, true, round).await;
    }
    let place = fixture::Sqlite::fresh().await;
    check(&place, test, "", |ground| {
        let database = rusqlite::Connection::open(ground.folder().join("clew.db")).unwrap();
        let check = "PRAGMA integrity_check";
        let says: String = database.query_row(check, [], |row| row.get(0)).unwrap();
        assert_eq!(says, "ok");
        no_file_is_torn(ground.folder());
    })
    .await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_what_it_confirmed() {
    let test = "store::crash::postgres_keeps_what_it_confirmed";
    if let Some((round, url)) = is_child() {
        let store = fixture::open_postgres(&url, Path::new(".")).await;
        return load(store, true, round).await;
    }
    let place = fixture::Postgres::fresh().await;
    let url = place.database.url.clone();
    check(&place, test, &url, |ground| {
        no_file_is_torn(ground.folder());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_keep_what_they_confirmed() {
    let test = "store::crash::files_keep_what_they_confirmed";
    if let Some((round, _)) = is_child() {
        let clock = clew_context::model::fixed_clock(at(0));
        let store = fixture::open_files(Path::new("."), clock).await;
        return load(store, false, round).await;
    }
    let place = fixture::Files::fresh().await;
    check(&place, test, "", |ground| no_file_is_torn(ground.folder())).await;
}

/// Every JSON file is whole; none was set aside, and none is temporary.
fn no_file_is_torn(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(!name.contains(".corrupt-"), "{name} was set aside");
            assert!(!name.ends_with(".clew-tmp"), "{name} was left");
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "json") {
                let text = fs::read(&path).unwrap();
                let whole = serde_json::from_slice::<serde_json::Value>(&text);
                assert!(whole.is_ok(), "{}", path.display());
            }
        }
    }
}
