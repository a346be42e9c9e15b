//! Texts never move, so that deleting costs only a few pages; and what
//! deletions leave behind is swept.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UnixMillis, UserId};
use clew_store::model::{FactId, Subject};
use clew_store::{Backend, Kind, Purge, Record, Sqlite, SqliteSettings};
use futures_util::future::join_all;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::super::build::made_from;
use super::super::contract::everything;
use super::super::fixture::{self, fast_folder};
use super::super::world::world;
use super::erased::{fact, scattered, snapshot};
use super::{CHANNEL, GUILD, Place, found_in, query, turn, turns};

const MARKER: &str = "planted-marker-3d92";

/// Encloses the number of a text.
const OPENS: &[u8] = b"<~";
const CLOSES: &[u8] = b"~>";

fn numbered(number: u64, length: usize) -> String {
    format!("<~{number:08}~>{}", "x".repeat(length))
}

/// The numbers of all texts in a file, including copies.
fn numbers_in(file: &Path) -> Vec<u64> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let starts = bytes.windows(2).enumerate();
    let starts = starts
        .filter(|(_, two)| *two == OPENS)
        .map(|(at, _)| at + 2);
    let numbers = starts.filter_map(|at| {
        let (digits, rest) = bytes.get(at..)?.split_at_checked(8)?;
        let digits = rest.starts_with(CLOSES).then_some(digits)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    });
    numbers.collect()
}

fn of(ids: impl IntoIterator<Item = u64>) -> Purge {
    Purge::Messages {
        channel: CHANNEL,
        ids: ids.into_iter().map(MessageId::new).collect(),
    }
}

/// A turn's two texts are numbered like its messages: `turn * 10` and one more.
/// An edited text adds a million.
const EDITED: u64 = 1_000_000;

#[tokio::test]
async fn texts_never_move() {
    const TURNS: u64 = 5_000;
    let folder = fast_folder();
    let store = fixture::open_sqlite(folder.path(), SqliteSettings::default()).await;
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    // Most are short; some are longer than a page.
    let mut length = || match random.next_u32() % 10 {
        0 => random.next_u32() as usize % 9_000,
        1..=4 => random.next_u32() as usize % 900,
        _ => random.next_u32() as usize % 60,
    };
    let all: Vec<_> = (1..=TURNS)
        .map(|at| {
            let mut rows = turn(1 + at % 40, at, "");
            rows[0].content = numbered(at * 10, length());
            rows[0].author_name = Some(numbered(at * 10, 3));
            rows[1].content = numbered(at * 10 + 1, length());
            rows
        })
        .collect();
    for rows in all.chunks(100) {
        join_all(rows.iter().map(|turn| store.append(turn))).await;
    }
    let mut live: BTreeSet<u64> = (1..=TURNS).flat_map(|at| [at * 10, at * 10 + 1]).collect();
    let mut order: Vec<u64> = (1..=TURNS).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.next_u32() as usize % (at + 1));
    }
    // One in ten stays; half of the rest is edited, half deleted.
    for some in order[..order.len() * 9 / 10].chunks(50) {
        let calls = some.iter().map(|&at| {
            let store = &store;
            async move {
                if at % 2 == 0 {
                    store.purge(&of([at * 10])).await.unwrap();
                } else {
                    let answer = at * 10 + 1;
                    let length = usize::try_from(at % 700).unwrap();
                    let text = numbered(answer + EDITED, length);
                    let edited = store
                        .edit_message(CHANNEL, MessageId::new(answer), &text)
                        .await;
                    assert_eq!(edited.unwrap(), 1);
                }
            }
        });
        join_all(calls).await;
        for &at in some {
            live.remove(&(at * 10 + 1));
            if at % 2 == 0 {
                live.remove(&(at * 10));
            } else {
                live.insert(at * 10 + 1 + EDITED);
            }
        }
    }
    let log = numbers_in(&folder.path().join("clew.db-wal"));
    assert_eq!(log, [0; 0], "nothing stays in the log");
    let held: BTreeSet<u64> = numbers_in(&folder.path().join("clew.db"))
        .into_iter()
        .collect();
    let left: Vec<_> = held.difference(&live).collect();
    assert_eq!(left, [&0; 0], "of {TURNS} turns");
    assert_eq!(held, live, "all others are there");
}

/// Marks the folder of a process that counts the bytes it writes.
const COUNTED: &str = "counted";
/// Most bytes a deletion or an edit may write besides its text.
const MOST_WRITTEN: u64 = 64 << 10;

fn bytes_written() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.unwrap().parse().unwrap()
}

/// Runs in its own process, so that no other writes are counted.
#[tokio::test]
async fn a_deletion_and_an_edit_write_some_pages_of_a_large_file() {
    let name = "store::sqlite::texts::a_deletion_and_an_edit_write_some_pages_of_a_large_file";
    if fs::exists(COUNTED).unwrap() {
        return count().await;
    }
    let folder = fast_folder();
    fs::write(folder.path().join(COUNTED), "").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let text = fs::read_to_string(folder.path().join(COUNTED)).unwrap();
    assert_eq!(text.lines().count(), 120, "each call was counted");
    for line in text.lines() {
        let (what, bytes) = line.rsplit_once(' ').unwrap();
        let bytes: u64 = bytes.parse().unwrap();
        assert!((1..=MOST_WRITTEN).contains(&bytes), "{what}: {bytes} bytes");
    }
}

async fn count() {
    let store = fixture::open_sqlite(Path::new("."), SqliteSettings::default()).await;
    let text = "A text of middling length, as people write them. ".repeat(5);
    // Turns of 100 users, as by `turn`, but faster.
    let beside = rusqlite::Connection::open("clew.db").unwrap();
    beside
        .execute_batch(&format!(
            "BEGIN;
             WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
                 INSERT INTO message_texts (content) SELECT '{text}' FROM n;
             INSERT INTO message_rows (text_id, gone, agent_name, thread_id, role, timestamp,
                     discord_message_id, guild_id, owner_id, scope, turn_id, ordinal, position)
                 SELECT id, 0, 'default', {CHANNEL}, iif(id % 2, 'user', 'assistant'),
                     '2026-05-28T20:26:40.000Z', (id + 1) / 2 * 10 + (id + 1) % 2, {GUILD},
                     id / 2 % 100, 'member/{GUILD}/{CHANNEL}/' || (id / 2 % 100), (id + 1) / 2,
                     id / 200, (id + 1) % 2
                 FROM message_texts;
             COMMIT;"
        ))
        .unwrap();
    drop(beside);
    let server = Subject::Server(GUILD);
    let facts: Vec<_> = (1..=500)
        .map(|at| fact(scattered(at), server, 1, &text))
        .collect();
    store.put_facts(&facts).await.unwrap();
    // Empty the log first, so that older pages are not counted.
    store.purge(&of([10_000 * 10])).await.unwrap();
    let mut counted = String::new();
    for at in 1..=40 {
        let before = bytes_written();
        store.purge(&of([at * 2_400])).await.unwrap();
        let deleted = bytes_written();
        let edited = MessageId::new(at * 2_400 + 11);
        store
            .edit_message(CHANNEL, edited, &text.to_uppercase())
            .await
            .unwrap();
        let edit = bytes_written();
        store
            .remove_facts(&[FactId(scattered(at * 11))])
            .await
            .unwrap();
        let forgotten = bytes_written();
        for (what, bytes) in [
            ("a deletion", deleted - before),
            ("an edit", edit - deleted - text.len() as u64),
            ("a forgotten fact", forgotten - edit),
        ] {
            writeln!(counted, "{what} {bytes}").unwrap();
        }
    }
    fs::write(COUNTED, counted).unwrap();
}

/// The files at this moment, in another folder, as after a kill.
fn copied(place: &Place) -> Place {
    let copy = Place::new();
    fs::create_dir_all(copy.file().parent().unwrap()).unwrap();
    for end in ["", "-wal"] {
        let name = |place: &Place| format!("{}{end}", place.file().display());
        fs::copy(name(place), name(&copy)).unwrap();
    }
    copy
}

#[tokio::test]
async fn the_log_left_by_a_kill_is_emptied_when_the_store_is_opened() {
    let place = Place::new();
    let store = place.open();
    store.append(&turn(1, 1, MARKER)).await.unwrap();
    store.append(&turn(1, 2, "kept")).await.unwrap();
    // A reader keeps the log from being emptied.
    let beside = place.beside();
    beside
        .execute_batch("BEGIN; SELECT count(*) FROM messages")
        .unwrap();
    store.purge(&of([10])).await.unwrap();
    let copy = copied(&place);
    assert!(!found_in(copy.folder.path(), MARKER).is_empty());
    let opened = copy.open();
    assert_eq!(found_in(copy.folder.path(), MARKER), [""; 0]);
    assert_eq!(turns(&opened, 1).await, [2]);
    // Here too, the next call after the reader has ended empties it.
    beside.execute_batch("COMMIT").unwrap();
    store.append(&turn(1, 3, "kept")).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
}

#[tokio::test]
async fn old_copies_left_by_a_kill_are_gone_when_the_store_is_opened() {
    let place = Place::new();
    let store = place.open();
    for at in 1..=60 {
        let text = format!("{} {at}", if at % 3 == 0 { "kept" } else { MARKER });
        store.append(&turn(1, at, &text)).await.unwrap();
    }
    store.close().await.unwrap();
    // Simulate a sweep killed after its texts moved, without `secure_delete`,
    // so that there is something to find.
    let beside = place.beside();
    beside
        .execute_batch(
            "PRAGMA secure_delete = OFF;
             BEGIN;
             UPDATE upkeep SET rewrite_owed = 1;
             DELETE FROM message_rows WHERE turn_id % 3 <> 0;
             DELETE FROM message_texts WHERE id NOT IN (SELECT text_id FROM message_rows);
             COMMIT;",
        )
        .unwrap();
    drop(beside);
    assert!(!found_in(place.folder.path(), MARKER).is_empty());
    let store = place.open();
    assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
    assert_eq!(turns(&store, 1).await.len(), 20);
    let owed: i64 = place
        .beside()
        .query_row("SELECT rewrite_owed FROM upkeep", [], |row| row.get(0))
        .unwrap();
    assert_eq!(owed, 0);
}

#[tokio::test]
async fn a_replaced_turn_leaves_nothing_of_the_old_text() {
    let place = Place::new();
    let store = place.open();
    let server = Subject::Server(GUILD);
    store.append(&turn(1, 1, MARKER)).await.unwrap();
    store.append(&turn(1, 1, "new")).await.unwrap();
    store
        .put_facts(&[fact(1, server, 1, MARKER)])
        .await
        .unwrap();
    store.put_facts(&[fact(1, server, 1, "new")]).await.unwrap();
    store
        .save_snapshot(&snapshot(1, 1..=1, MARKER))
        .await
        .unwrap();
    store
        .save_snapshot(&snapshot(1, 1..=1, "new"))
        .await
        .unwrap();
    let rows = turn(2, 7, MARKER).into_iter().map(Record::Message);
    store.write(&rows.collect::<Vec<_>>()).await.unwrap();
    let rows = turn(2, 7, "new").into_iter().map(Record::Message);
    store.write(&rows.collect::<Vec<_>>()).await.unwrap();
    assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
}

fn count_of(place: &Place, sql: &str) -> i64 {
    let row = place.beside().query_row(sql, [], |row| row.get(0));
    row.unwrap()
}

const ROWS: &str = "SELECT count(*) FROM message_rows";
const HELD: &str = "SELECT count(*) FROM message_holders";

#[tokio::test]
async fn deleted_rows_are_never_returned_and_swept_when_they_are_many() {
    let place = Place::new();
    let store = place.open();
    let now = UnixMillis(0);
    for at in 1..=100 {
        store.append(&turn(at, at, "text")).await.unwrap();
    }
    // The first call after a start sweeps everything.
    store.sweep(now).await.unwrap();
    store.purge(&of([10])).await.unwrap();
    let user = UserId::new(1);
    assert_eq!(turns(&store, 1).await, [0; 0]);
    let scope = super::scope(user);
    assert!(!store.conversation(scope, now).await.unwrap().exists);
    assert!(!store.members(GUILD).await.unwrap().contains(&user));
    let all = (MessageId::new(1), MessageId::new(u64::MAX));
    let held = store.held_messages(CHANNEL, all.0, all.1).await.unwrap();
    assert_eq!(held.len(), 198);
    let messages = store
        .records(Kind::Messages, None, None, 999)
        .await
        .unwrap();
    assert_eq!(messages.records.len(), 198);
    let messages = store.stats().await.unwrap()[0];
    assert_eq!((messages.kind, messages.entries), (Kind::Messages, 198));
    let count = "SELECT count(*) FROM messages";
    assert_eq!(
        count_of(&place, count),
        198,
        "the view `messages`, as it is read"
    );

    store.sweep(now).await.unwrap();
    assert_eq!(count_of(&place, ROWS), 200, "one turn is not worth a sweep");
    store.purge(&of((2..=10).map(|at| at * 10))).await.unwrap();
    store.sweep(now).await.unwrap();
    assert_eq!(count_of(&place, ROWS), 180);
    assert_eq!(count_of(&place, HELD), 180);
    assert_eq!(turns(&store, 11).await, [11]);
    store.close().await.unwrap();

    let store = place.open();
    store.purge(&of([110])).await.unwrap();
    store.sweep(now).await.unwrap();
    assert_eq!(count_of(&place, ROWS), 178, "a start makes up for a kill");
    // For a whole user or server not even the rows stay.
    store.purge(&Purge::User(UserId::new(12))).await.unwrap();
    assert_eq!(count_of(&place, ROWS), 176);
    store.purge(&Purge::Guild(GuildId::new(11))).await.unwrap();
    assert_eq!(count_of(&place, ROWS), 0);
    assert_eq!(store.guilds().await.unwrap(), []);
}

#[tokio::test]
async fn a_file_that_is_mostly_overwritten_texts_is_rewritten() {
    let place = Place::new();
    let store = place.open();
    let text = |at: u64| format!("{MARKER} {at} {}", "x".repeat(4_000));
    for at in 1..=400 {
        store
            .append(&turn(1 + at % 2, at, &text(at)))
            .await
            .unwrap();
    }
    let size = || fs::metadata(place.file()).unwrap().len();
    let sweep = async |store: &Sqlite| store.sweep(UnixMillis(0)).await.unwrap();
    let (small, large) = (1 << 20, 3 << 20);
    store.purge(&of((1..=150).map(|at| at * 10))).await.unwrap();
    sweep(&store).await;
    assert!(size() > large, "less than half: {}", size());
    store
        .purge(&of((151..=350).map(|at| at * 10)))
        .await
        .unwrap();
    sweep(&store).await;
    assert!(size() < small, "{}", size());
    assert_eq!(
        turns(&store, 1).await.len() + turns(&store, 2).await.len(),
        50
    );
    // Texts that had moved can be deleted like any other.
    store
        .purge(&of((351..=399).map(|at| at * 10)))
        .await
        .unwrap();
    assert_eq!(turns(&store, 1).await, [400]);
    let left = found_in(place.folder.path(), MARKER);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with(" x2"), "{left:?}");
    store.append(&turn(1, 401, "more")).await.unwrap();
    assert_eq!(store.window(&query(1, 9)).await.unwrap().len(), 4);
}

const SOURCE: ContentSource = ContentSource {
    guild: None,
    channel: ChannelId::new(7_000),
    message: None,
    author: None,
};

/// Copies tables' columns from the attached newest file into an older schema's.
fn copy_from_newest(old: &rusqlite::Connection, tables: &[&str]) {
    for table in tables {
        let sql = "SELECT group_concat(name) FROM pragma_table_info(?1, 'main')";
        let columns: String = old.query_row(sql, [table], |row| row.get(0)).unwrap();
        let sql =
            format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newest.{table}");
        old.execute(&sql, []).unwrap();
    }
}

/// The schema as first released.
const VERSION_1: &str = include_str!("../../../../src/sqlite/schema_1.sql");

#[tokio::test]
async fn a_migrated_file_of_version_1_has_everything_and_no_deleted_byte() {
    let place = Place::new();
    let newest = Place::new();
    let store = newest.open();
    let mut all = world::<fixture::Sqlite>("");
    // Version 1 knew neither receipts nor what rows were made from.
    all.retain(|record| !matches!(record.kind(), Kind::Snapshots | Kind::Receipts));
    for record in &mut all {
        if let Record::Message(row) = record {
            row.sources.clear();
        }
    }
    store.write(&all).await.unwrap();
    store
        .save_snapshot(&snapshot(1, 1..=2, "saved"))
        .await
        .unwrap();
    let expected = everything(&store).await;
    store.close().await.unwrap();
    // The same data in version 1's tables, read through the newest schema.
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let agents = |place: &Place| place.folder.path().join("agents/default/sessions");
    fs::create_dir_all(agents(&place)).unwrap();
    for entry in fs::read_dir(agents(&newest)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), agents(&place).join(entry.file_name())).unwrap();
    }
    let old = place.beside();
    old.execute_batch(VERSION_1).unwrap();
    old.execute("ATTACH ?1 AS newest", [newest.file().to_str().unwrap()])
        .unwrap();
    let tables = [
        "messages",
        "conversations",
        "agents",
        "markers",
        "snapshots",
        "snapshot_messages",
        "facts",
        "opt_outs",
        "guild_settings",
        "departures",
    ];
    copy_from_newest(&old, &tables);
    // Add data and delete it insecurely, to be found unless the file is
    // rewritten.
    old.execute_batch(&format!(
        "INSERT INTO main.message_ids
             SELECT channel_id, message_id, id FROM newest.message_holders WHERE kind = 0;
         DETACH newest;
         PRAGMA secure_delete = OFF;
         CREATE TABLE passing (text TEXT);
         WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 200)
             INSERT INTO passing SELECT '{MARKER}' FROM n;
         DROP TABLE passing;
         PRAGMA application_id = {};
         PRAGMA user_version = 1;",
        u32::from_be_bytes(*b"Clew")
    ))
    .unwrap();
    drop(old);
    assert!(!found_in(place.folder.path(), MARKER).is_empty());
    let store = place.open();
    assert_eq!(everything(&store).await, expected);
    assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
    let new = made_from(turn(77, 7, "new"), &[SOURCE]);
    assert_eq!(store.append(&new).await.unwrap(), 1);
    let gone = store.purge(&Purge::Channel(SOURCE.channel)).await.unwrap();
    assert_eq!(gone.total(), 1);
    store.close().await.unwrap();
}

/// The schema before ids were kept by triggers.
const VERSION_5: [&str; 5] = [
    VERSION_1,
    include_str!("../../../../src/sqlite/schema_2.sql"),
    include_str!("../../../../src/sqlite/schema_3.sql"),
    include_str!("../../../../src/sqlite/schema_4.sql"),
    include_str!("../../../../src/sqlite/schema_5.sql"),
];

#[tokio::test]
async fn a_migrated_file_of_version_5_is_found_by_all_that_it_was_found_by() {
    let place = Place::new();
    let newest = Place::new();
    let store = newest.open();
    let mut all = world::<fixture::Sqlite>("");
    all.retain(|record| record.kind() != Kind::Snapshots);
    store.write(&all).await.unwrap();
    store.append_early(&turn(3, 9_000, "early")).await.unwrap();
    let expected = everything(&store).await;
    store.close().await.unwrap();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let old = place.beside();
    for step in VERSION_5 {
        old.execute_batch(step).unwrap();
    }
    old.execute("ATTACH ?1 AS newest", [newest.file().to_str().unwrap()])
        .unwrap();
    let tables = [
        "message_texts",
        "message_rows",
        "message_sources",
        "conversations",
        "agents",
        "markers",
        "fact_rows",
        "fact_texts",
        "opt_outs",
        "guild_settings",
        "departures",
    ];
    copy_from_newest(&old, &tables);
    old.execute_batch(&format!(
        "INSERT INTO main.message_ids SELECT channel_id, message_id, id
             FROM newest.message_holders WHERE kind = 0 AND message_id <> 0;
         INSERT INTO main.receipts
             SELECT turn_id, scope, guild_id, channel_id, owner_id, is_private, trigger_id,
                 messages, at,
                 (SELECT json_group_array(json_object(
                         'guild', CAST(nullif(guild_id, 0) AS TEXT), 'channel', '1',
                         'author', CAST(nullif(author_id, 0) AS TEXT)))
                     FROM newest.receipt_people named WHERE named.turn_id = r.turn_id),
                 format('{{\"number\":%d}}', turn_id)
             FROM newest.receipts r;
         INSERT INTO receipt_ids
             SELECT channel_id, message_id, id
             FROM newest.message_holders WHERE kind = 1 AND message_id <> 0;
         INSERT INTO receipt_people SELECT * FROM newest.receipt_people;
         DETACH newest;
         UPDATE message_texts SET parts =
             (SELECT parts FROM message_rows r WHERE r.text_id = message_texts.id);
         UPDATE message_rows SET parts = NULL;
         PRAGMA application_id = {};
         PRAGMA user_version = 5;",
        u32::from_be_bytes(*b"Clew")
    ))
    .unwrap();
    drop(old);
    let store = place.open();
    assert_eq!(everything(&store).await, expected);
    for table in ["message_holders", "receipt_guilds", "message_sources"] {
        let [new, old] = [&newest, &place].map(|place| {
            let beside = place.beside();
            let mut rows = beside.prepare(&format!("SELECT * FROM {table}")).unwrap();
            let columns = rows.column_count();
            let mut rows = rows.query([]).unwrap();
            let mut all = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                let each = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at).unwrap());
                all.push(each.collect::<Vec<_>>());
            }
            all
        });
        assert!(!new.is_empty(), "{table}");
        assert_eq!(new, old, "{table}");
    }
    store.close().await.unwrap();
}
