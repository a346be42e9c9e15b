//! `clew store backup` and `import`: what was there is there again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use clew_context::model::{ContentSource, MessageId, UserId};
use clew_discord::session::SessionLock;
use clew_store::model::{Scope, StoredMessage, StoredRole};
use clew_store::{Purge, Record};

use super::world::{
    ADA, CHANNEL, GRACE, GUILD, Home, MARKER, at, everything, everything_with, logged, member,
    plain, row, snapshot,
};
#[cfg(feature = "postgres")]
use crate::support::postgres::Postgres;

/// Without Ada's opt-out, which would keep hers from entering; with rows of turns
/// that were stored at the same moment.
fn world(records: Vec<Record>) -> Vec<Record> {
    let kept = |record: &Record| !matches!(record, Record::OptOut(user, _) if *user == ADA);
    records.into_iter().filter(kept).collect()
}

fn interleaved() -> Vec<Record> {
    let rows = (5_000..5_600).flat_map(|turn| {
        let asked = row(member(GRACE), GRACE, turn + 1, StoredRole::User);
        let answered = row(member(GRACE), GRACE, turn, StoredRole::Assistant);
        [asked, answered]
    });
    rows.map(Record::Message).collect()
}

impl Home {
    /// A successful command's output.
    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let (code, out, errors) = self.run(arguments);
        assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}: {out}");
        out
    }

    /// Brings a file of another place.
    fn bring(&self, other: &Self, name: &str) {
        fs::copy(other.path(name), self.path(name)).unwrap();
    }

    /// The names in its folder, hidden ones included.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries
            .map(name)
            .map(|name| name.into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// A backup and an export of one place, imported into an empty one, give the export
/// again, to the byte; imported twice, the same.
async fn check_round_trip(address: &str, empty_address: &str, records: &[Record]) {
    let home = Home::new(address);
    home.fill(records).await;
    home.log(&logged(ADA)).await;
    let told = home.ok(&["backup", "all.backup"]);
    let exported = home.ok(&["export"]);
    let entries = exported.lines().count() - 1;
    let expected = format!(
        "{entries} entries in all.backup, written and read again. To restore them: clew store \
         import all.backup\n"
    );
    assert_eq!(told, expected);
    assert_eq!(
        fs::metadata(home.path("all.backup")).unwrap().mode() & 0o777,
        0o600
    );
    home.ok(&["export", "--out", "all.jsonl"]);
    let empty = Home::new(empty_address);
    for (file, added) in [
        ("all.backup", true),
        ("all.backup", false),
        ("all.jsonl", false),
    ] {
        empty.bring(&home, file);
        let told = empty.ok(&["import", file]);
        assert_eq!(told.contains(" were there already"), !added, "{told}");
        assert_eq!(empty.ok(&["export"]), exported, "{file}");
    }
    assert_eq!(home.ok(&["export"]), exported, "what was read is as it was");
}

#[tokio::test]
async fn a_backup_of_sqlite_is_restored_to_the_byte() {
    let mut records = world(everything());
    records.extend(interleaved());
    check_round_trip("sqlite:var/clew.db", "sqlite:new/clew.db", &records).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_backup_of_postgresql_is_restored_to_the_byte() {
    let server = Postgres::shared();
    let (full, empty) = (server.fresh_database().await, server.fresh_database().await);
    let mut records = world(everything());
    records.extend(interleaved());
    check_round_trip(&full.url, &empty.url, &records).await;
}

#[tokio::test]
async fn a_backup_of_files_is_restored_to_the_byte() {
    check_round_trip("files:context", "files:context", &world(plain())).await;
}

/// Beside a running bot, which holds the store and its session.
#[tokio::test]
async fn a_backup_is_made_while_the_bot_runs_and_an_import_is_not() {
    let home = super::sqlite_home().await;
    let bot = home.open_own().await;
    let lock = SessionLock::take(&home.path("var/session.json")).unwrap();
    // A log that the bot is just writing anew.
    let half_written = home.path("logs/.7.clew-tmp");
    fs::write(&half_written, "").unwrap();
    home.ok(&["backup", "all.backup"]);
    assert!(half_written.exists());
    let (code, out, errors) = home.run(&["import", "all.backup"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        errors.starts_with("clew: another process (pid "),
        "{errors}"
    );
    drop(lock);
    bot.close().await.unwrap();
    assert_eq!(home.names(), ["agents", "all.backup", "logs", "var"]);
}

#[tokio::test]
async fn nothing_is_overwritten() {
    let home = super::sqlite_home().await;
    fs::write(home.path("taken"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", home.path("dangling")).unwrap();
    for name in ["taken", "dangling", "var", "no/folder"] {
        for arguments in [&["backup", name][..], &["export", "--out", name]] {
            let (code, out, errors) = home.run(arguments);
            assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
            let expected = format!("clew: cannot write {name}\n");
            assert!(errors.starts_with(&expected), "{errors}");
        }
    }
    assert_eq!(fs::read_to_string(home.path("taken")).unwrap(), "mine");
    assert!(!home.path("nowhere").exists());
}

/// A full disk and a kill half way: nothing has the file's name, and the store is as
/// it was. The limit on the size of files stands for the full disk; where the error is
/// not ignored it kills.
#[tokio::test]
async fn half_a_backup_or_export_never_has_its_name() {
    let home = super::sqlite_home().await;
    let before = home.lines().await;
    let ways = [("trap '' XFSZ;", false), ("", true)];
    let commands = [&["backup", "half"][..], &["export", "--out", "half"]];
    for ((ignored, is_killed), arguments) in ways
        .into_iter()
        .flat_map(|way| commands.map(|arguments| (way, arguments)))
    {
        let script = format!("{ignored} ulimit -c 0; ulimit -f 100; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_clew"), "store"]);
        command.args(arguments);
        let done = home.with_settings(&mut command).output().unwrap();
        let errors = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.signal().is_some(), is_killed, "{errors}");
        let left = home.names();
        let left = left.iter().find(|name| name.ends_with(".clew-tmp"));
        if is_killed {
            fs::remove_file(home.path(left.unwrap())).unwrap();
        } else {
            assert_eq!(done.status.code(), Some(1), "{errors}");
            assert!(
                errors.starts_with("clew: cannot write half\n  because: "),
                "{errors}"
            );
            assert_eq!(left, None);
        }
        assert!(!home.path("half").exists());
    }
    assert_eq!(home.lines().await, before);
}

/// SQLite is copied into a folder that may have no room.
#[tokio::test]
async fn a_copy_without_room_names_its_folder() {
    let home = Home::new("sqlite:var/clew.db");
    // More than stays in memory.
    home.fill(&world(everything_with(4_000))).await;
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]);
    command.args([env!("CARGO_BIN_EXE_clew"), "store", "backup", "half"]);
    let done = home.with_settings(&mut command).output().unwrap();
    let errors = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{errors}");
    let expected = "clew: the store is not available: cannot copy the store\n  because: ";
    assert!(errors.starts_with(expected), "{errors}");
    assert!(
        errors.ends_with("; SQLITE_TMPDIR names a folder for the copy\n"),
        "{errors}"
    );
    assert_eq!(home.names(), ["agents", "var"]);
}

/// Neither what the export says of an opt-out nor what the store says is overruled.
#[tokio::test]
async fn nothing_enters_of_who_opted_out() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&everything()).await;
    home.log(&logged(ADA)).await;
    home.ok(&["export", "--out", "all.jsonl"]);
    let other = Home::new("sqlite:var/clew.db");
    other.fill(&[Record::OptOut(GRACE, at(1))]).await;
    other.bring(&home, "all.jsonl");
    let told = other.ok(&["import", "all.jsonl"]);
    assert!(
        told.contains(" are of people who opted out, and were left out.\n"),
        "{told}"
    );
    let text = other.ok(&["export"]);
    assert!(!text.contains(MARKER) && !text.contains("Grace"), "{text}");
    assert_eq!(text.matches(r#"{"kind":"opt_out""#).count(), 3);
    assert!(text.contains(r#"{"kind":"settings""#), "{text}");
}

/// Saved conversations go if they are of somebody who opted out, and lose the rows made from
/// what such people wrote.
#[tokio::test]
async fn saved_conversations_lose_what_is_of_people_who_opted_out() {
    let thread = Scope::Thread {
        guild: GUILD,
        channel: CHANNEL,
    };
    let of = |owner, words: &str| StoredMessage {
        content: words.to_owned(),
        ..row(thread, owner, 4_000, StoredRole::User)
    };
    let other = UserId::new(77);
    let of_grace = ContentSource {
        author: Some(GRACE),
        guild: Some(GUILD),
        channel: CHANNEL,
        message: None,
    };
    let made_from_grace = StoredMessage {
        sources: vec![of_grace],
        ..of(other, "made from hers")
    };
    let rows = vec![of(other, "their own"), of(GRACE, "hers"), made_from_grace];
    let saved = |owner, id: &str| {
        let Record::Snapshot(mut snapshot) = snapshot() else {
            panic!("a saved conversation");
        };
        snapshot.info.owner = owner;
        snapshot.info.id = id.parse().unwrap();
        snapshot.info.message_count = rows.len();
        snapshot.messages.clone_from(&rows);
        Record::Snapshot(snapshot)
    };
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&[
        saved(other, "0190b5a2-1111-4222-8333-444455556667"),
        saved(GRACE, "0190b5a2-1111-4222-8333-444455556668"),
    ])
    .await;
    home.ok(&["backup", "all"]);
    let to = Home::new("sqlite:var/clew.db");
    to.fill(&[Record::OptOut(GRACE, at(1))]).await;
    to.bring(&home, "all");
    to.ok(&["import", "all"]);
    let text = to.ok(&["export"]);
    assert!(text.contains("their own"), "{text}");
    assert!(!text.contains("hers"), "{text}");
    assert_eq!(text.matches(r#""kind":"snapshot""#).count(), 1, "{text}");
}

/// What was edited or deleted since the export is not brought back by it.
#[tokio::test]
async fn what_is_there_stays_as_it_is() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&world(everything())).await;
    home.ok(&["export", "--out", "all.jsonl"]);
    let store = home.open_own().await;
    let (question, answer) = (MessageId::new(20_010), MessageId::new(20_021));
    store
        .edit_message(CHANNEL, question, "other words")
        .await
        .unwrap();
    let ids = vec![answer];
    let purge = Purge::Messages {
        channel: CHANNEL,
        ids,
    };
    assert_eq!(store.purge(&purge).await.unwrap().total(), 1);
    store.close().await.unwrap();
    let before = home.ok(&["export"]);
    assert!(before.contains("other words"));
    let told = home.ok(&["import", "all.jsonl"]);
    assert!(
        told.contains("were there already and stay as they are"),
        "{told}"
    );
    assert_eq!(home.ok(&["export"]), before);
}

/// A full disk breaks it off; the turns that it has stored are whole, and the rest follows.
#[tokio::test]
async fn an_import_that_broke_off_is_finished_by_another() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&world(everything())).await;
    home.ok(&["backup", "all"]);
    // The least blocks in which a database can be made leave room for some turns.
    let mut blocks = (5..).map(|hundreds| hundreds * 100);
    let empty = loop {
        let empty = Home::new("sqlite:var/clew.db");
        empty.bring(&home, "all");
        let blocks = blocks.next().unwrap();
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]);
        command.args([env!("CARGO_BIN_EXE_clew"), "store", "import", "all"]);
        let done = empty.with_settings(&mut command).output().unwrap();
        let errors = String::from_utf8(done.stderr).unwrap();
        if done.status.code() != Some(2) {
            assert_eq!(done.status.code(), Some(1), "{errors}");
            break empty;
        }
    };
    let begun = empty.lines().await;
    let messages = begun
        .iter()
        .filter(|line| line.contains(r#""kind":"message""#));
    assert!(
        (1..1_200).contains(&messages.count()),
        "it began: {}",
        begun.len()
    );
    let told = empty.ok(&["import", "all"]);
    assert!(told.contains(" were there already"), "{told}");
    assert_eq!(empty.lines().await, home.lines().await);
}

/// So that what was deleted since the backup is found out before it is shown.
#[tokio::test]
async fn the_bot_begins_a_new_session_after_an_import() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&world(plain())).await;
    home.ok(&["backup", "all"]);
    let session = home.path("var/session.json");
    fs::write(&session, "{}").unwrap();
    fs::write(home.path("bad"), "bad\n").unwrap();
    assert_eq!(home.run(&["import", "bad"]).0, 2);
    assert!(session.exists(), "nothing was imported");
    home.ok(&["import", "all"]);
    assert!(!session.exists());
}

#[tokio::test]
async fn what_a_store_cannot_hold_takes_consent_to_import() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&world(everything())).await;
    home.ok(&["backup", "all"]);
    let files = Home::new("files:context");
    files.bring(&home, "all");
    let (code, out, errors) = files.run(&["import", "all"]);
    assert_eq!((code, out.as_str()), (3, ""), "{errors}");
    assert!(
        errors.starts_with("The store cannot hold all of it:\n  messages: "),
        "{errors}"
    );
    let said = "Nothing was imported. Say --lossy to import without that.\n";
    assert!(errors.ends_with(said), "{errors}");
    assert_eq!(files.lines().await, Vec::<String>::new());
    let (code, out, _) = files.run(&["import", "all", "--lossy"]);
    assert_eq!(code, 0);
    assert!(
        out.ends_with("Files keep messages for 24 hours from now.\n"),
        "{out}"
    );
    // In a file are the newest turns, of which the last has lost its calls of tools.
    let kept = files.lines().await;
    assert_eq!(
        kept.iter()
            .filter(|line| line.contains(r#""kind":"message""#))
            .count(),
        26
    );
}

/// Every line is checked before the store is made.
#[tokio::test]
async fn a_line_that_cannot_be_read_is_named_and_nothing_is_imported() {
    let home = Home::new("sqlite:var/clew.db");
    let good = r#"{"kind":"opt_out","user":"7","since":"2026-01-02T10:00:00.000Z"}"#;
    let check = |text: &[u8], expected: &str| {
        fs::write(home.path("file"), text).unwrap();
        let (code, out, errors) = home.run(&["import", "--unchecked", "file"]);
        assert_eq!((code, out.as_str()), (2, ""));
        assert_eq!(errors, format!("clew: {expected}\n"));
        assert!(!home.path("var/clew.db").exists());
    };
    let line = |number: u64, why: &str| {
        format!(
            "line {number} of file cannot be imported: write the file again, or correct it, remove \
             the last line and say --unchecked\n  because: {why}"
        )
    };
    let text = |lines: &[&str]| format!("{}\n", lines.join("\n")).into_bytes();
    let bad = r#"{"kind":"opt_out","user":"hush","since":"2026-01-02T10:00:00.000Z"}"#;
    check(&text(&[good, bad]), &line(2, "`user` is not a Discord id"));
    check(
        &text(&[good, "", good]),
        &line(2, "no valid JSON at line 2 column 0"),
    );
    check(
        &text(&[r#"{"kind":"dream"}"#]),
        &line(1, "`kind` is not a kind of entry"),
    );
    check(
        &text(&[r#"{"kind":"direct_message_log"}"#]),
        &line(1, "`ts` is missing"),
    );
    check(b"\xff\n", &line(1, "it is not UTF-8"));
    let torn = "the file ends within it: what wrote the file was not finished, so write another";
    check(&good.as_bytes()[..40], &line(1, torn));
    let end = r#"{"kind":"end","entries":1}"#;
    let after = "the line before it ends the file: import one file at a time";
    check(&text(&[good, end, good]), &line(3, after));
    let short = "it says that 1 entries stand before it, and there are 0";
    check(&text(&[end]), &line(1, short));
    let (code, _, errors) = home.run(&["import", "none"]);
    assert_eq!(code, 2);
    assert!(
        errors.starts_with("clew: cannot read none\n  because: "),
        "{errors}"
    );
}

/// A backup that was cut anywhere, be it between two lines, or that was altered, changes
/// nothing: the opt-outs may have been in what is missing.
#[tokio::test]
async fn a_file_that_is_not_whole_is_refused() {
    let from = Home::new("sqlite:var/clew.db");
    from.fill(&plain()).await;
    from.ok(&["backup", "all"]);
    from.ok(&["export", "--out", "exported"]);
    let text = fs::read_to_string(from.path("all")).unwrap();
    assert_eq!(
        from.ok(&["export"]),
        fs::read_to_string(from.path("exported")).unwrap()
    );
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (end, entries) = lines.split_last().unwrap();
    let home = Home::new("sqlite:var/clew.db");
    let check = |text: &str, arguments: &[&str], why: &str| {
        fs::write(home.path("file"), text).unwrap();
        let (code, out, errors) = home.run(&[&["import", "file"], arguments].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{errors}");
        assert!(errors.contains(why), "{errors}");
        assert!(!home.path("var/clew.db").exists());
    };
    let cut = "nothing was imported: file ends without the line that tells that it is whole";
    check("", &[], cut);
    check(&entries[..1].concat(), &[], cut);
    check(&entries.concat(), &[], cut);
    check(
        &text[..text.len() - end.len() - 10],
        &[],
        "the file ends within it",
    );
    // Whoever says --unchecked has no last line, or a true one.
    let total = entries.len();
    for arguments in [&[][..], &["--unchecked"]] {
        let less = format!("it says that {total} entries stand before it, and there are 1");
        check(&format!("{}{end}", entries[0]), arguments, &less);
        check(
            &text.replace("Grace 2001", "Grace 2002"),
            arguments,
            "the file was altered",
        );
    }
    let old = format!("{{\"kind\":\"end\",\"entries\":{total}}}\n");
    let old = entries.concat() + &old;
    check(&old, &[], "it has no checksum");
    for text in ["", &entries[..1].concat(), &old] {
        let home = Home::new("sqlite:var/clew.db");
        fs::write(home.path("file"), text).unwrap();
        home.ok(&["import", "file", "--unchecked"]);
    }
    let digest = |text: String| {
        fs::write(home.path("file"), text).unwrap();
        let summed = Command::new("sha256sum")
            .arg(home.path("file"))
            .output()
            .unwrap();
        String::from_utf8(summed.stdout).unwrap()[..64].to_owned()
    };
    let read: serde_json::Value = serde_json::from_str(end).unwrap();
    assert_eq!(
        read["sha256"],
        digest(entries.concat()),
        "as anybody can check"
    );
}

/// Logs are restored only where there are any; results of tools never.
#[tokio::test]
async fn what_is_no_entry_of_a_store_is_told() {
    let home = super::sqlite_home().await;
    home.ok(&["export", "--out", "all.jsonl"]);
    let other = Home::new("sqlite:var/clew.db");
    other.bring(&home, "all.jsonl");
    let told = other.ok(&["import", "all.jsonl"]);
    assert!(
        told.contains(
            "\n3 are results of tools, which no bot would find again, and were left out."
        ),
        "{told}"
    );
    // Ada opted out, Grace did not.
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&[]).await;
    home.log(&logged(GRACE)).await;
    home.ok(&["export", "--out", "log.jsonl"]);
    other.bring(&home, "log.jsonl");
    let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
    command.args(["store", "import", "log.jsonl"]);
    let command = other.with_settings(&mut command).env_remove("DM_LOGS_DIR");
    let told = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let expected = "2 are logs of direct messages, and were left out: DM_LOGS_DIR is not set.\n";
    assert!(told.ends_with(expected), "{told}");
    other.ok(&["import", "log.jsonl"]);
    let log = |home: &Home| fs::read_to_string(home.path("logs/8.jsonl")).unwrap();
    assert_eq!(log(&other), log(&home));
}

/// Later turns have been logged since, up to the limit.
#[tokio::test]
async fn an_import_drops_no_line_of_a_log() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&[]).await;
    home.log(&logged(GRACE)).await;
    home.ok(&["backup", "all"]);
    let other = Home::new("sqlite:var/clew.db");
    for turn in [2_201, 2_301] {
        let later = [StoredRole::User, StoredRole::Assistant];
        other
            .log(&later.map(|role| row(Scope::Direct(GRACE), GRACE, turn, role)))
            .await;
    }
    other.bring(&home, "all");
    let log = || fs::read_to_string(other.path("logs/8.jsonl")).unwrap();
    let before = log();
    let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
    command.args(["store", "import", "all"]);
    let command = other.with_settings(&mut command);
    let limited = command.env("MAX_CONVERSATION_LOG_SIZE", before.len().to_string());
    let told = String::from_utf8(limited.output().unwrap().stdout).unwrap();
    assert!(told.contains("direct message log"), "{told}");
    let rotated = fs::read_to_string(other.path("logs/8.1.jsonl")).unwrap();
    assert_eq!(log(), before);
    assert_eq!(rotated.lines().count(), 2);
    // Now both files are full.
    fs::copy(other.path("logs/8.jsonl"), other.path("logs/8.1.jsonl")).unwrap();
    let told = String::from_utf8(limited.output().unwrap().stdout).unwrap();
    let expected = "2 are logs of direct messages, and were left out: MAX_CONVERSATION_LOG_SIZE \
                    has no room for them.\n";
    assert!(told.ends_with(expected), "{told}");
    assert_eq!(log(), before);
}
