//! Trouble that any store can have: a full disk, damaged snapshots, ten
//! thousand conversations.
//!
//! If a test needs its own process, that process runs the same test in a folder
//! that contains [`LOAD`].

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use clew_store::model::Scope;
use clew_store::{Backend, Error, SnapshotFiles, Sqlite, SqliteSettings};

use super::build::{all_of, at, guild, member, numbered, snapshot, turn, user};
use super::contract::everything;
use super::fixture::{self, Fixture, on_each_store};

on_each_store! {
    a_damaged_snapshot_is_named_and_the_rest_works
}

/// Marks a child's folder; holds a database's address.
const LOAD: &str = "load";
/// Largest file a child may write, in KiB.
const LARGEST_FILE_KIB: u64 = 900;
/// Concurrent conversations of a server of some size.
const CONVERSATIONS: u64 = 10_000;
/// Most memory they may take, in KiB.
const MOST_MEMORY_KIB: u64 = 100 * 1024;

async fn a_damaged_snapshot_is_named_and_the_rest_works<F: Fixture>(place: &F) {
    if !F::IS_DATABASE {
        // Refused, as the contract requires.
        let one = snapshot(1, turn(member(1, 2, 3), 10, at(0)), at(1));
        let store = place.open().await;
        return drop(store.save_snapshot(&one).await.unwrap_err());
    }
    for text in ["", "{", "null", "[]", "{\"messages\": 7}", "\u{0}\u{1}"] {
        let place = F::fresh().await;
        let store = place.open().await;
        let sessions = place.ground().agents().join("default/sessions");
        for number in 1..=2 {
            let rows = turn(member(1, 2, 3), number * 10, at(0));
            store
                .save_snapshot(&snapshot(number, rows, at(1)))
                .await
                .unwrap();
        }
        let mut files: Vec<_> = fs::read_dir(&sessions)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        fs::write(&files[0], text).unwrap();
        let infos = store
            .snapshots(user(3), Some(guild(1)), None, 9)
            .await
            .unwrap();
        assert_eq!(infos.len(), 2);
        let (mut read, mut refused) = (0, 0);
        for info in infos {
            match store.snapshot(user(3), &info.id).await {
                Ok(found) => read += usize::from(found.is_some()),
                Err(error) => {
                    assert!(
                        matches!(error, Error::Corrupt { .. }),
                        "{text:?}: {error:?}"
                    );
                    let name = files[0].file_name().unwrap().to_str().unwrap();
                    assert!(error.to_string().contains(name), "{error}");
                    refused += 1;
                }
            }
        }
        assert_eq!((read, refused), (1, 1), "{text:?}");
        let purge = clew_store::Purge::User(user(3));
        store.purge(&purge).await.unwrap();
        assert!(
            fs::read_dir(&sessions).unwrap().next().is_none(),
            "what cannot be read is removed too"
        );
    }
}

/// Runs a test again in a folder, limiting its files to this many KiB.
fn again(test: &str, folder: &Path, largest_file: Option<u64>) -> String {
    fs::write(folder.join(LOAD), "").unwrap();
    // A write beyond the limit fails, as on a full disk, instead of killing the
    // process. `ulimit` counts in units of 512 bytes (POSIX).
    let limit = largest_file.map_or_else(String::new, |kib| format!("ulimit -f {};", kib * 2));
    let script = format!("trap '' XFSZ; {limit} exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    fs::remove_file(folder.join(LOAD)).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    said
}

fn is_child() -> bool {
    Path::new(LOAD).exists()
}

fn here(number: u64) -> Scope {
    member(1, 2, number)
}

/// Writes turns of 32 KiB until the disk is full, then one of 1 MiB to be sure.
/// What was confirmed stays readable, and the store works again when there is
/// space.
async fn fill(store: &impl Backend) {
    let mut confirmed = 0;
    for number in 1..200 {
        let mut rows = turn(here(number / 5 + 1), number * 10, at(0));
        rows[1].content = "x".repeat(if number == 100 { 1 << 20 } else { 32 << 10 });
        match store.append(&rows).await {
            Ok(_) => confirmed += 1,
            Err(error) => {
                let is_full = matches!(error, Error::Unavailable { .. } | Error::Io { .. });
                assert!(is_full, "{error:?}");
                break;
            }
        }
    }
    assert!((5..199).contains(&confirmed), "{confirmed}");
    let mut found = 0;
    for number in 1..=confirmed / 5 + 1 {
        found += store.window(&all_of(here(number))).await.unwrap().len();
    }
    assert_eq!(
        found,
        usize::try_from(confirmed).unwrap() * 2,
        "what was confirmed is readable"
    );
    store.close().await.unwrap();
}

/// Runs in the parent, which has no limit.
async fn works_again(store: impl Backend) {
    let rows = everything(&store).await.len();
    assert!(rows >= 10, "{rows}");
    let one = turn(here(9_999), 99_990, at(0));
    assert_eq!(store.append(&one).await.unwrap(), 1);
    let back = store.window(&all_of(here(9_999))).await.unwrap();
    assert_eq!(back, numbered(one, 1));
}

#[tokio::test]
async fn on_a_full_disk_sqlite_keeps_what_it_confirmed() {
    if is_child() {
        let store = fixture::open_sqlite(Path::new("."), SqliteSettings::default()).await;
        return fill(&store).await;
    }
    let place = fixture::fast_folder();
    let test = "store::trouble::on_a_full_disk_sqlite_keeps_what_it_confirmed";
    again(test, place.path(), Some(LARGEST_FILE_KIB));
    works_again(fixture::open_sqlite(place.path(), SqliteSettings::default()).await).await;
}

#[tokio::test]
async fn on_a_full_disk_files_keep_what_they_confirmed() {
    let clock = clew_context::model::fixed_clock(at(0));
    if is_child() {
        return fill(&fixture::open_files(Path::new("."), clock).await).await;
    }
    let place = fixture::fast_folder();
    let test = "store::trouble::on_a_full_disk_files_keep_what_they_confirmed";
    again(test, place.path(), Some(LARGEST_FILE_KIB));
    works_again(fixture::open_files(place.path(), clock).await).await;
}

/// This process's peak memory, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

async fn converse(store: &impl Backend) {
    let before = peak();
    for first in (1..=CONVERSATIONS).step_by(100) {
        let turns: Vec<_> = (first..first + 100)
            .map(|number| turn(here(number), number * 10, at(0)))
            .collect();
        let appends = turns.iter().map(|turn| store.append(turn));
        futures_util::future::try_join_all(appends).await.unwrap();
    }
    for number in (1..=CONVERSATIONS).step_by(7) {
        let rows = store.window(&all_of(here(number))).await.unwrap();
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row.scope == here(number)));
    }
    let grown = peak() - before;
    assert!(grown < MOST_MEMORY_KIB, "{grown} KiB");
    store.close().await.unwrap();
}

#[tokio::test]
async fn ten_thousand_conversations_fit_in_sqlite() {
    if is_child() {
        let store = fixture::open_sqlite(Path::new("."), SqliteSettings::default()).await;
        return converse(&store).await;
    }
    let test = "store::trouble::ten_thousand_conversations_fit_in_sqlite";
    again(test, fixture::fast_folder().path(), None);
}

#[tokio::test]
async fn ten_thousand_conversations_fit_in_files() {
    if is_child() {
        let clock = clew_context::model::fixed_clock(at(0));
        return converse(&fixture::open_files(Path::new("."), clock).await).await;
    }
    let test = "store::trouble::ten_thousand_conversations_fit_in_files";
    again(test, fixture::fast_folder().path(), None);
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn ten_thousand_conversations_fit_in_postgres() {
    // The server's memory is not counted, as it is another process.
    let place = fixture::Postgres::fresh().await;
    converse(&place.open().await).await;
}

#[test]
fn a_file_in_the_way_of_a_database_is_named() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "text").unwrap();
    fs::create_dir(place.path().join("folder")).unwrap();
    for name in ["file/clew.db", "folder", "file/deeper/clew.db"] {
        let path = place.path().join(name);
        let files = SnapshotFiles::new(place.path().join("agents"));
        let opened = Sqlite::open(&path, files, &SqliteSettings::default());
        let error = opened.err().unwrap().to_string();
        let stands = if name == "folder" { "folder" } else { "file" };
        assert!(error.contains(stands), "{error}");
    }
}
