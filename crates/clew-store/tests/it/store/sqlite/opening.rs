//! Which files are opened, and that a reopened one has everything.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;

use clew_context::model::{ApplicationId, fixed_clock};
use clew_store::model::StoreAddress;
use clew_store::{
    Backend, Checked, Error, Folders, Kind, Record, SnapshotFiles, Sqlite, SqliteSettings, Store,
};

use super::{Place, query, turn, turns};
use crate::store::build::{at, user};

#[track_caller]
fn refused(place: &Place) -> Error {
    match place.open_with(&SqliteSettings::default()) {
        Ok(_) => panic!("the file was taken"),
        Err(error) => error,
    }
}

fn look(place: &Place) -> Result<Sqlite, Error> {
    let snapshots = SnapshotFiles::new(place.folder.path().join("agents"));
    Sqlite::look(&place.file(), snapshots, &SqliteSettings::default())
}

#[tokio::test]
async fn a_reopened_store_has_everything() {
    let place = Place::new();
    let store = place.open();
    for at in 1..=3 {
        assert_eq!(store.append(&turn(1, at, "kept")).await.unwrap(), at);
    }
    store.close().await.unwrap();
    assert!(store.window(&query(1, 1)).await.is_err(), "it is closed");
    let files = fs::read_dir(place.file().parent().unwrap()).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["clew.db", "clew.db.lock"],
        "the log is removed with the last connection"
    );

    let store = place.open();
    assert_eq!(turns(&store, 1).await, [1, 2, 3]);
    assert_eq!(store.append(&turn(1, 9, "more")).await.unwrap(), 4);
}

#[tokio::test]
async fn reading_beside_another_process_changes_nothing() {
    let place = Place::new();
    let store = place.open();
    store.append(&turn(1, 1, "kept")).await.unwrap();
    // As if the other process were saving.
    let half = place.folder.path().join("agents/default/sessions");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join(".x.clew-tmp"), "{").unwrap();
    let looking = look(&place).unwrap();
    assert_eq!(turns(&looking, 1).await, [1]);
    assert!(half.join(".x.clew-tmp").exists());
    assert!(place.open_with(&SqliteSettings::default()).is_err());
    looking.close().await.unwrap();
    store.append(&turn(1, 2, "kept")).await.unwrap();
    // Migrating another version is up to the other process.
    place
        .beside()
        .pragma_update(None, "user_version", 1)
        .unwrap();
    let error = look(&place).err().unwrap().to_string();
    assert!(error.contains("clew store migrate"), "{error}");
}

/// A bot that starts while it is read is not refused.
#[tokio::test]
async fn reading_keeps_no_process_out() {
    let place = Place::new();
    assert!(look(&place).is_err());
    assert!(!place.file().exists(), "reading makes no store");
    let store = place.open();
    store.append(&turn(1, 1, "kept")).await.unwrap();
    store.close().await.unwrap();
    let looking = look(&place).unwrap();
    let store = place.open();
    store.append(&turn(1, 2, "kept")).await.unwrap();
    assert_eq!(turns(&looking, 1).await, [1, 2]);
    looking.close().await.unwrap();
    store.append(&turn(1, 3, "kept")).await.unwrap();
}

/// A backup before an update is made of what is there.
#[test]
fn reading_migrates_nothing() {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let older = place.beside();
    let schema = include_str!("../../../../src/sqlite/schema_1.sql");
    older.execute_batch(schema).unwrap();
    let ours = u32::from_be_bytes(*b"Clew");
    older.pragma_update(None, "application_id", ours).unwrap();
    older.pragma_update(None, "user_version", 1).unwrap();
    drop(older);
    let before = fs::read(place.file()).unwrap();
    let error = look(&place).map(drop).unwrap_err().to_string();
    assert!(error.contains("clew store migrate"), "{error}");
    assert_eq!(fs::read(place.file()).unwrap(), before);
    drop(place.open());
}

/// What a killed process has left in the log is seen, and left to the next.
#[tokio::test]
async fn peeking_sees_the_log_of_a_killed_process() {
    let place = Place::new();
    let store = place.open();
    store.set_opt_out(user(3), Some(at(1))).await.unwrap();
    // As a kill leaves them: the files without their locks.
    let killed = Place::new();
    let folder = killed.file().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    for end in ["", "-wal"] {
        let [from, to] = [&place, &killed].map(|place| format!("{}{end}", place.file().display()));
        fs::copy(from, to).unwrap();
    }
    let log = fs::read(format!("{}-wal", killed.file().display())).unwrap();
    let folders = Folders {
        agents: folder.join("agents"),
        users: folder.join("users"),
        servers: folder.join("servers"),
    };
    let address = StoreAddress::Sqlite(killed.file());
    let (us, clock) = (ApplicationId::new(9), fixed_clock(at(0)));
    let peek = async || Store::peek(&address, &folders, Arc::clone(&clock), us, None).await;
    assert_eq!(peek().await.unwrap(), [Record::OptOut(user(3), at(1))]);
    let left = fs::read(format!("{}-wal", killed.file().display())).unwrap();
    assert!(left == log && !log.is_empty());
    // An older one is not migrated, nor a newer one read.
    for (version, says) in [(6, "start the bot"), (1_000, "update the program")] {
        let beside = killed.beside();
        beside.pragma_update(None, "user_version", version).unwrap();
        drop(beside);
        let error = peek().await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test]
async fn a_new_file_is_private_and_of_the_newest_version() {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    fs::write(place.file(), "").unwrap();
    place.open().close().await.unwrap();
    let file = place.beside();
    let pragma = |name: &str| {
        file.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(
        pragma("application_id"),
        i64::from(u32::from_be_bytes(*b"Clew"))
    );
    assert_eq!(pragma("user_version"), 7);
    #[cfg(unix)]
    {
        let fresh = Place::new();
        let _store = fresh.open();
        let mode = fs::metadata(fresh.file()).unwrap().permissions().mode();
        assert_eq!(
            mode & 0o777,
            0o600,
            "only the owner may read what people said"
        );
    }
}

/// However it is named: through a link of the file or of a folder, or under a second name.
#[tokio::test]
async fn a_file_in_use_is_refused_under_every_name() {
    let place = Place::new();
    let store = place.open();
    let folder = place.folder.path();
    let open = |path: &Path| {
        let snapshots = SnapshotFiles::new(folder.join("agents"));
        let opened = Sqlite::open(path, snapshots, &SqliteSettings::default());
        opened.map(|_| ()).unwrap_err()
    };
    let link = folder.join("link.db");
    symlink(place.file(), &link).unwrap();
    assert!(matches!(open(&link), Error::Held { .. }));
    let of_folder = folder.join("linked");
    symlink(place.file().parent().unwrap(), &of_folder).unwrap();
    let through = of_folder.join(place.file().file_name().unwrap());
    assert!(matches!(open(&through), Error::Held { .. }));
    let second = folder.join("second.db");
    fs::hard_link(place.file(), &second).unwrap();
    let error = open(&second).to_string();
    assert!(error.contains("second name"), "{error}");
    store.close().await.unwrap();
    let error = refused(&place).to_string();
    assert!(error.contains("ln -s"), "{error}");
    fs::remove_file(&second).unwrap();
    place.open().close().await.unwrap();
}

/// What others could read until now they can read no longer; the group is the operator's.
#[tokio::test]
async fn a_file_that_others_can_open_is_closed_to_them() {
    let place = Place::new();
    place.open().close().await.unwrap();
    for (mode, closed) in [(0o644, 0o640), (0o666, 0o660), (0o640, 0o640)] {
        fs::set_permissions(place.file(), Permissions::from_mode(mode)).unwrap();
        place.open().close().await.unwrap();
        let found = fs::metadata(place.file()).unwrap().permissions().mode();
        assert_eq!(found & 0o777, closed, "{mode:o}");
    }
}

/// A page that the disk zeroed or changed.
fn damage(place: &Place, table: &str) {
    let sql = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'");
    let beside = place.beside();
    beside
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .unwrap();
    let page: u32 = beside.query_row(&sql, [], |row| row.get(0)).unwrap();
    drop(beside);
    let mut bytes = fs::read(place.file()).unwrap();
    let start = usize::try_from((page - 1) * 4096).unwrap();
    bytes[start..start + 4096].fill(0);
    fs::write(place.file(), bytes).unwrap();
}

/// All files of the database, by name.
fn files(place: &Place) -> Vec<(String, Vec<u8>)> {
    ["", "-wal"]
        .map(|end| {
            let name = format!("{}{end}", place.file().display());
            let bytes = fs::read(&name).unwrap();
            (name, bytes)
        })
        .into()
}

/// After a kill the database is checked before anything is written; one that is damaged stays
/// as it is, with its log, however often it is tried.
#[tokio::test]
async fn a_damaged_file_is_found_after_a_kill_and_left_as_it_is() {
    for table in [
        "message_texts",
        "message_rows",
        "messages_gone",
        "fact_rows",
    ] {
        let place = Place::new();
        let store = place.open();
        for at in 1..=300 {
            store.append(&turn(1, at, "kept")).await.unwrap();
        }
        store.close().await.unwrap();
        // What a killed process leaves: a log beside the file.
        let left = place.beside();
        left.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        left.execute_batch("BEGIN; UPDATE upkeep SET blank_bytes = 0; COMMIT")
            .unwrap();
        drop(left);
        place.open().close().await.unwrap();
        let left = place.beside();
        left.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        left.execute_batch("BEGIN; UPDATE upkeep SET blank_bytes = 0; COMMIT")
            .unwrap();
        drop(left);
        damage(&place, table);
        let before = files(&place);
        for _ in 0..2 {
            let error = refused(&place);
            assert!(matches!(error, Error::Damaged { .. }), "{table}: {error}");
            assert!(
                error.to_string().contains("clew store import FILE"),
                "{error}"
            );
            assert_eq!(files(&place), before, "{table}");
        }
    }
}

/// Whatever is there, looking ends.
#[tokio::test]
async fn looking_for_damage_is_bounded_and_finds_it() {
    let place = Place::new();
    let store = place.open();
    // So many that looking at all of them takes longer than no time.
    let rows = (1..=8_000).flat_map(|at| turn(1, at, &"kept ".repeat(400)));
    let rows: Vec<Record> = rows.map(Record::Message).collect();
    store.write(&rows).await.unwrap();
    let whole = store.check(Duration::from_mins(1)).await.unwrap();
    assert_eq!(whole, Checked::Whole);
    let part = store.check(Duration::ZERO).await.unwrap();
    assert_eq!(part, Checked::InPart);
    let again = store.check(Duration::from_mins(1)).await.unwrap();
    assert_eq!(again, Checked::Whole);
    store.close().await.unwrap();
    damage(&place, "messages_gone");
    // As after an orderly end, so that the start does not look.
    fs::remove_file(format!("{}-wal", place.file().display())).unwrap();
    let store = place.open();
    let error = store.check(Duration::from_mins(1)).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

/// A disk that is full when the bot starts may have room later.
#[test]
fn a_full_disk_or_a_lock_at_the_start_may_pass() {
    let place = Place::new();
    let full = SqliteSettings {
        max_pages: Some(3),
        ..SqliteSettings::default()
    };
    let error = place.open_with(&full).map(drop).unwrap_err();
    assert!(error.is_passing(), "{error}");
    drop(place.open());
    let other = place.beside();
    other
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        .unwrap();
    let patience = SqliteSettings {
        busy_timeout: Duration::ZERO,
        ..SqliteSettings::default()
    };
    let error = place.open_with(&patience).map(drop).unwrap_err();
    assert!(error.is_passing(), "{error}");
    drop(other);
    drop(place.open());
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_unchanged() {
    let place = Place::new();
    place.open().close().await.unwrap();
    place
        .beside()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let before = fs::read(place.file()).unwrap();
    let error = refused(&place);
    assert!(
        matches!(
            error,
            Error::Newer {
                found: 99,
                known: 7,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn another_programs_database_is_refused_and_left_unchanged() {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    place
        .beside()
        .execute_batch("CREATE TABLE theirs (id)")
        .unwrap();
    let before = fs::read(place.file()).unwrap();
    let error = refused(&place);
    assert!(matches!(error, Error::Open { .. }));
    assert!(error.to_string().contains("another program"), "{error}");
    assert!(error.to_string().contains("clew.db"), "{error}");
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn a_file_that_is_not_a_database_is_refused() {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    for text in ["short", &"not a database ".repeat(999)] {
        fs::write(place.file(), text).unwrap();
        let error = refused(&place);
        assert!(
            error.to_string().contains("not an SQLite database"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(place.file()).unwrap(), text);
    }
    fs::remove_file(place.file()).unwrap();
    fs::create_dir(place.file()).unwrap();
    let error = refused(&place);
    assert!(
        error.to_string().contains("a folder stands in its place"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unreadable_row_costs_only_itself() {
    let place = Place::new();
    let store = place.open();
    for at in 1..=3 {
        store.append(&turn(1, at, "text")).await.unwrap();
    }
    let ruined = "UPDATE message_rows SET role = 'robot' WHERE turn_id = 2 RETURNING id";
    let id: i64 = place
        .beside()
        .query_row(ruined, [], |row| row.get(0))
        .unwrap();
    assert_eq!(turns(&store, 1).await, [1, 3]);
    let error = store
        .records(Kind::Messages, None, None, 100)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Corrupt { .. }), "{text}");
    assert!(
        text.contains(&format!("row {id} of table messages")),
        "{text}"
    );
}

#[tokio::test]
async fn in_memory_everything_works_and_nothing_is_written() {
    let store = Sqlite::in_memory().unwrap();
    for at in 1..=3 {
        store.append(&turn(1, at, "text")).await.unwrap();
    }
    assert_eq!(turns(&store, 1).await, [1, 2, 3]);
    store.close().await.unwrap();
}
