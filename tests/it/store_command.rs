//! `clew store`: the program itself, run on real stores.

mod backup;
mod copy;
mod erase;
#[cfg(feature = "postgres")]
mod role;
mod world;

use std::fs;

use clew_discord::session::SessionLock;
use clew_store::{Kind, Record};
use serde_json::Value;

use world::{ADA, Home, MARKER, at, everything, line_of, logged, plain};

/// A place with a store that holds every kind of record, and with logs.
async fn sqlite_home() -> Home {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&everything()).await;
    home.log(&logged(ADA)).await;
    home.leave_outputs().await;
    home
}

#[tokio::test]
async fn statistics_name_every_kind() {
    let home = sqlite_home().await;
    let (code, out, errors) = home.run(&["stats"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{out}");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("sqlite:var/clew.db, version 7"));
    for kind in Kind::ALL {
        let line = out.lines().find(|line| line.starts_with(kind.as_str()));
        let rest = line.unwrap().strip_prefix(kind.as_str()).unwrap();
        let entries = rest.split_whitespace().next().unwrap();
        assert_ne!(entries, "0", "{out}");
    }
    let messages = out.lines().find(|line| line.starts_with("messages "));
    assert!(
        messages
            .unwrap()
            .ends_with(" 2026-05-28 20:26 2026-05-28 21:16"),
        "{out}"
    );
    let (_, out, _) = home.run(&["stats", "--json"]);
    let read: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(read["version"], 7);
    assert_eq!(read["store"], "sqlite:var/clew.db");
    let kinds = read["kinds"].as_array().unwrap();
    let kinds: Vec<&str> = kinds
        .iter()
        .map(|of| of["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, Kind::ALL.map(Kind::as_str));
    let messages = everything()
        .iter()
        .filter(|record| record.kind() == Kind::Messages)
        .count();
    assert_eq!(read["kinds"][0]["entries"], messages);
    assert_eq!(read["kinds"][0]["oldest"], at(1).rfc3339());
    assert_eq!(read["kinds"][0]["newest"], at(3_002).rfc3339());
    let settings = Kind::ALL.iter().position(|kind| *kind == Kind::Settings);
    assert!(read["kinds"][settings.unwrap()]["oldest"].is_null());
    let of = |part: &str| {
        let parts = read["disk"].as_array().unwrap();
        let found = parts.iter().find(|of| of["part"] == part);
        found.unwrap()["bytes"].as_u64().unwrap()
    };
    let length = fs::metadata(home.path("var/clew.db")).unwrap().len();
    assert_eq!(of("database"), length);
    assert!(of("unused part of the database") < length);
    assert_eq!(of("write-ahead log"), 0, "nobody writes");
    assert!(of("saved conversations") > 0);
}

#[tokio::test]
async fn an_export_is_all_there_is() {
    let home = sqlite_home().await;
    let (code, out, _) = home.run(&["export"]);
    assert_eq!(code, 0);
    let logs = out
        .lines()
        .filter(|line| line.starts_with(r#"{"kind":"direct_message_log","#));
    assert_eq!(logs.count(), 2);
    let outputs = out
        .lines()
        .filter(|line| line.contains(r#""kind":"tool_output""#));
    assert_eq!(outputs.count(), 3);
    let mut read: Vec<String> = out
        .lines()
        .filter_map(|line| Record::from_line(line).ok().map(|record| record.to_line()))
        .collect();
    read.sort();
    assert_eq!(read, home.lines().await);
    for line in out.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

/// The marker in an entry of each kind is found in the export of each kind.
#[tokio::test]
async fn an_export_of_a_user_is_all_of_theirs() {
    let home = sqlite_home().await;
    let (code, out, errors) = home.run(&["export", "--user", "7", "--out", "ada.jsonl"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let text = fs::read_to_string(home.path("ada.jsonl")).unwrap();
    let entries = text.lines().count() - 1;
    assert_eq!(out, format!("{entries} entries in ada.jsonl\n"));
    let end = format!(r#"{{"kind":"end","entries":{entries},"sha256":""#);
    assert!(text.lines().last().unwrap().starts_with(&end), "{text}");
    let marked = |kind: &str| {
        let of_kind = format!(r#"{{"kind":"{kind}","#);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with(&of_kind))
            .collect();
        lines.iter().filter(|line| line.contains(MARKER)).count()
    };
    let found = [
        "message",
        "snapshot",
        "fact",
        "receipt",
        "direct_message_log",
    ]
    .map(marked);
    assert_eq!(found.map(|count| count > 0), [true; 5], "{found:?}");
    let lines = text.lines().map(|line| line.parse::<Value>().unwrap());
    let outputs: Vec<Value> = lines.filter(|line| line["kind"] == "tool_output").collect();
    assert_eq!(outputs.len(), 1, "not what others had made from her words");
    assert_eq!(outputs[0]["result"], MARKER);
    let theirs = everything().into_iter().filter(|record| match record {
        Record::Marker(key, _) => key.user == Some(ADA),
        Record::OptOut(user, _) => *user == ADA,
        _ => false,
    });
    let theirs: Vec<String> = theirs.map(|record| record.to_line()).collect();
    assert_eq!(theirs.len(), 2);
    for line in theirs {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    assert!(!text.contains("Grace"), "others' are not in it");
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(home.path("ada.jsonl")).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    // An existing file is not overwritten.
    let (code, out, errors) = home.run(&["export", "--out", "ada.jsonl"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        errors.starts_with("clew: cannot write ada.jsonl\n"),
        "{errors}"
    );
    assert_eq!(fs::read_to_string(home.path("ada.jsonl")).unwrap(), text);
}

#[tokio::test]
async fn migrating_says_what_it_did() {
    for (address, version) in [("sqlite:var/clew.db", 7), ("files:context", 1)] {
        let home = Home::new(address);
        let check = |expected: &str| {
            let (code, out, errors) = home.run(&["migrate"]);
            assert_eq!((code, out.as_str(), errors.as_str()), (0, expected, ""));
        };
        check(&format!("{address} was made, of version {version}\n"));
        check(&format!(
            "{address} is of version {version}: nothing to do\n"
        ));
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_database_tells_its_version_without_being_changed() {
    use crate::support::postgres::{Postgres, query};
    let database = Postgres::shared().fresh_database().await;
    let home = Home::new(&database.url);
    let schemas = "SELECT nspname FROM pg_namespace WHERE nspname = 'clew'";
    let (code, _, errors) = home.run(&["stats"]);
    assert_eq!(code, 2);
    assert!(
        errors.starts_with("clew: there is nothing at postgres://test_"),
        "{errors}"
    );
    assert!(errors.contains(":[secret]@"), "{errors}");
    assert!(query(&database.admin_url, schemas).await.is_empty());
    let (code, out, _) = home.run(&["migrate"]);
    assert_eq!(code, 0);
    assert!(out.ends_with(" was made, of version 8\n"), "{out}");
    let (_, out, _) = home.run(&["migrate"]);
    assert!(out.ends_with(" is of version 8: nothing to do\n"), "{out}");
    assert_eq!(home.run(&["vacuum"]).0, 0);
    let newer = "UPDATE clew.clew_schema SET version = 99, serves = 99";
    query(&database.admin_url, newer).await;
    let (code, _, errors) = home.run(&["migrate"]);
    assert_eq!(code, 2);
    assert!(
        errors.contains("is of version 99, this program knows 8"),
        "{errors}"
    );
}

/// What only reads does not wait for the bot to end, and what waits says so.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn reading_beside_a_bot_waits_for_nobody() {
    let database = crate::support::postgres::Postgres::shared()
        .fresh_database()
        .await;
    let home = Home::new(&database.url);
    home.fill(&plain()).await;
    let bot = home.open_own().await;
    let waits = "another process uses the store: waiting for it to end";
    for arguments in [
        &["stats"][..],
        &["export"],
        &["backup", "all"],
        &["erase", "--user", "7"],
    ] {
        let (code, out, errors) = home.run(arguments);
        assert!(
            [0, 3].contains(&code) && !out.is_empty(),
            "{arguments:?}: {errors}"
        );
        assert!(!errors.contains(waits), "{errors}");
    }
    let (code, out, errors) = home.run(&["erase", "--user", "7", "--yes"]);
    assert_eq!((code, out.as_str()), (2, ""), "{errors}");
    assert!(
        errors.contains(waits) && errors.contains("is in use by another process"),
        "{errors}"
    );
    bot.close().await.unwrap();
}

#[tokio::test]
async fn a_vacuum_keeps_everything() {
    let home = sqlite_home().await;
    let before = home.lines().await;
    let (code, out, _) = home.run(&["vacuum"]);
    assert_eq!((code, out.as_str()), (0, "sqlite:var/clew.db: done\n"));
    assert_eq!(home.lines().await, before);
}

/// Reading never creates a store, and a newer program's database is refused.
#[tokio::test]
async fn what_is_not_there_is_not_made() {
    let nothing = "clew: there is nothing at sqlite:var/clew.db yet: CONTEXT_STORE names another \
                   place, or nothing was stored so far\n";
    let home = Home::new("sqlite:var/clew.db");
    for arguments in [
        &["stats"][..],
        &["export"],
        &["vacuum"],
        &["erase", "--user", "7", "--yes"],
        &["copy", "configured", "sqlite:other.db"],
    ] {
        let (code, out, errors) = home.run(arguments);
        let expected = (2, "", nothing);
        assert_eq!(
            (code, out.as_str(), errors.as_str()),
            expected,
            "{arguments:?}"
        );
    }
    assert!(!home.path("var/clew.db").exists());
    assert!(!home.path("other.db").exists());
    home.fill(&[]).await;
    let database = rusqlite::Connection::open(home.path("var/clew.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let (code, _, errors) = home.run(&["stats"]);
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("is of version 99, this program knows 7"),
        "{errors}"
    );
}

/// A running bot would write what it has in memory again.
#[tokio::test]
async fn a_running_bot_is_in_the_way() {
    let home = sqlite_home().await;
    let before = home.lines().await;
    let lock = SessionLock::take(&home.path("var/session.json")).unwrap();
    for arguments in [
        &["erase", "--user", "7", "--yes"][..],
        &["migrate"],
        &["copy", "configured", "sqlite:other.db"],
        &["copy", "sqlite:var/clew.db", "sqlite:other.db"],
    ] {
        let (code, out, errors) = home.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        let expected = format!("clew: another process (pid {})", std::process::id());
        assert!(errors.starts_with(&expected), "{errors}");
    }
    assert_eq!(home.run(&["stats"]).0, 0);
    assert_eq!(home.run(&["export"]).0, 0);
    let (code, out, errors) = home.run(&["erase", "--user", "7"]);
    assert_eq!((code, errors.as_str()), (3, ""), "{out}");
    assert!(out.starts_with("Would erase of user 7:\n"), "{out}");
    drop(lock);
    assert_eq!(home.lines().await, before);
}

/// Two processes never write files; what only reads gets a copy.
#[tokio::test]
async fn files_in_use_are_read_from_a_copy() {
    let home = Home::new("files:context");
    home.fill(&plain()).await;
    let (_, expected, _) = home.run(&["export"]);
    let store = home.open_own().await;
    for arguments in [&["vacuum"][..], &["migrate"]] {
        let (code, out, errors) = home.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        let expected = "clew: cannot open the store context: the folder is in use";
        assert!(errors.starts_with(expected), "{errors}");
    }
    assert_eq!(home.run(&["stats"]).0, 0);
    assert_eq!(home.run(&["export"]).1, expected);
    assert_eq!(home.run(&["backup", "all"]).0, 0);
    // What cannot be read is named, and stays for the bot to set aside.
    let damaged = home.path("context/dms/7.json");
    fs::write(&damaged, "{").unwrap();
    let (code, out, errors) = home.run(&["export"]);
    assert_eq!(code, 0, "{errors}");
    assert!(out.len() < expected.len());
    assert!(errors.contains("context/dms/7.json"), "{errors}");
    assert_eq!(fs::read_to_string(&damaged).unwrap(), "{");
    store.close().await.unwrap();
}

#[test]
fn the_command_line_is_checked() {
    let home = Home::new("sqlite:var/clew.db");
    let check = |arguments: &[&str], expected: &str| {
        let (code, out, errors) = home.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(errors.contains(expected), "{errors}");
    };
    check(&["erase", "--yes"], "required");
    check(
        &["erase", "--user", "1", "--guild", "2"],
        "cannot be used with",
    );
    check(&["erase", "--before", "soon"], "accepted: 2026-01-31, or");
    check(&["erase", "--user", "ada"], "--user");
    check(&["copy", "configured"], "<TO>");
    check(
        &["copy", "configured", "sqlite:./var/../var/clew.db"],
        "there is nothing at",
    );
    check(
        &["copy", "configured", "configured"],
        "FROM and TO are the same store",
    );
    let files = "two stores of files would share USER_PROFILE_DIR";
    check(&["copy", "files:one", "files:two"], files);
    // No part of a text that may be a password is repeated.
    for text in ["postgres://ada:hush/x@db", "hush"] {
        let (code, out, errors) = home.run(&["copy", text, "configured"]);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(
            errors.starts_with(
                "clew: FROM is no store's address; accepted: `configured`, sqlite:PATH"
            ),
            "{errors}"
        );
        assert!(!errors.contains("hush"), "{errors}");
    }
}

/// There is a record of each kind, as the tests of this module assume.
#[test]
fn everything_is_of_every_kind() {
    for kind in Kind::ALL {
        let is_there = everything().iter().any(|record| record.kind() == kind);
        let is_in_a_store = !matches!(kind, Kind::Transcripts | Kind::Outputs);
        assert_eq!(is_there, is_in_a_store, "{}", kind.as_str());
    }
    let mut lines: Vec<String> = everything().iter().map(line_of).collect();
    lines.dedup();
    assert!(lines.len() > 1_000, "several pages");
}
