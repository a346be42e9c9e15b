//! What PostgreSQL keeps of deleted texts: nothing in its statistics, and no
//! dead rows for long.

use std::time::Duration;

use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, Secret, UserId};
use clew_store::model::StoreAddress;
use clew_store::{Asked, Backend, Purge, cluster};
use tokio::time::{Instant, sleep};

use super::{Fresh, NOW, content, member, open, server, turn};
use crate::store::build::{made_from, receipt};

/// Must not be found.
const MARKER: &str = "zebrafinch";
/// The longest wait before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// Tables and columns whose statistics may hold texts.
const STATISTICS: &str = "SELECT tablename || '.' || attname FROM pg_stats WHERE schemaname = 'clew' \
     AND (attname IN ('content', 'tool_calls', 'tool_call_id', 'author_name', 'description', \
     'summary', 'text', 'words') OR pg_stats::text LIKE '%zebrafinch%')";
const DEAD: &str = "SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables \
     WHERE schemaname = 'clew' AND relname IN ('messages', 'facts', 'snapshots')";
/// Entries in every table with texts, as in version 1.
const TEXTS: &str = "
INSERT INTO clew.messages (agent_name, thread_id, role, content, timestamp, scope, turn_id,
    ordinal, position, owner_id, author_name, part_ids)
SELECT 'default', 7, 'user', 'zebrafinch ' || n % 3, now(), 'dm/1', n, n, 0, 1, 'zebrafinch', '{}'
FROM generate_series(1, 400) AS n;
INSERT INTO clew.facts (id, server_id, text, origin, by_user, at, pinned, seen, last_used)
SELECT n, 1, 'zebrafinch ' || n % 3, 'everywhere', 1, now(), true, 1, now()
FROM generate_series(1, 400) AS n;
INSERT INTO clew.snapshots (snapshot_id, ready, agent_name, owner_id, timestamp, description,
    summary, message_count, window_start, window_end, text_bytes)
SELECT 'zebra-' || n, true, 'default', 1, now(), 'zebrafinch', 'zebrafinch ' || n % 3, 0, now(),
    now(), 0
FROM generate_series(1, 400) AS n;
ANALYZE clew.messages;
ANALYZE clew.facts;
ANALYZE clew.snapshots;";

/// The tables with rows of people, each with its file and how often we vacuumed it: all but the
/// schema's version, the application, and what processes agree by, none of which holds an id of a
/// person.
const PEOPLES: &str = "SELECT c.relname, c.relfilenode, s.vacuum_count, s.n_dead_tup \
     FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid \
     WHERE s.schemaname = 'clew' AND c.relname NOT IN \
     ('clew_schema', 'owner', 'leases', 'nodes', 'claims') ORDER BY 1";
/// Of which something goes with a turn or a saved window.
const OF_TURNS: [&str; 9] = [
    "messages",
    "message_ids",
    "message_sources",
    "snapshots",
    "snapshot_messages",
    "snapshot_sources",
    "receipts",
    "receipt_ids",
    "receipt_people",
];
/// Otherwise it would come first.
const NO_AUTOVACUUM: &str = "DO $$ DECLARE one regclass; BEGIN \
     FOR one IN SELECT relid FROM pg_stat_user_tables WHERE schemaname = 'clew' LOOP \
     EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', one); END LOOP; END $$";

/// A table as [`PEOPLES`] has it.
#[derive(Debug)]
struct Table {
    name: String,
    file: String,
    vacuums: u64,
    dead: u64,
}

async fn peoples(fresh: &Fresh) -> Vec<Table> {
    let read = |row: Vec<Option<String>>| {
        let [name, file, vacuums, dead] = row.try_into().unwrap();
        Table {
            name: name.unwrap(),
            file: file.unwrap(),
            vacuums: vacuums.unwrap().parse().unwrap(),
            dead: dead.unwrap().parse().unwrap(),
        }
    };
    fresh.admin(PEOPLES).await.into_iter().map(read).collect()
}

/// A database that several processes have shared, so that it has every table.
async fn with_all_tables() -> Fresh {
    let database = server::Postgres::shared().fresh_database().await;
    let address = StoreAddress::Postgres(Secret::new(&database.url));
    let asked = cluster(&address, "a", "1").unwrap().ask().await.unwrap();
    let Asked::Ours(tenure) = asked else {
        panic!("the lease is free")
    };
    tenure.end().await;
    let folder = tempfile::tempdir().unwrap();
    let store = open(&database.url, &folder).await.unwrap();
    let fresh = Fresh {
        store,
        database,
        folder,
    };
    fresh.admin(NO_AUTOVACUUM).await;
    fresh
}

/// Turns that were made from something elsewhere, with their receipts, and a window of them.
async fn say(fresh: &Fresh) {
    let source = ContentSource {
        guild: Some(GuildId::new(1)),
        channel: ChannelId::new(8),
        message: Some(MessageId::new(9_000)),
        author: Some(UserId::new(4)),
    };
    for number in 1..=3 {
        let rows = made_from(turn(member(1, 3), number, MARKER), &[source]);
        let receipt = receipt(member(1, 3), number, NOW, &[source]);
        fresh.store.append_with(&rows, &receipt).await.unwrap();
        let saved = content::snapshot(rows);
        fresh.store.save_snapshot(&saved).await.unwrap();
    }
}

async fn dead(fresh: &Fresh) -> u64 {
    fresh.admin(DEAD).await[0][0]
        .clone()
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn statistics_hold_no_texts() {
    let fresh = Fresh::new().await;
    fresh.admin(TEXTS).await;
    let found = fresh.admin(STATISTICS).await;
    assert!(found.is_empty(), "{found:?}");
    let ids = "SELECT 1 FROM pg_stats WHERE schemaname = 'clew' AND attname = 'scope'";
    assert!(
        !fresh.admin(ids).await.is_empty(),
        "there are statistics of other columns"
    );
}

/// Texts are gone from the statistics, and all rows are still there.
#[tokio::test]
async fn a_database_of_the_first_version_is_migrated() {
    let database = server::Postgres::shared().fresh_database().await;
    let first = include_str!("../../../../src/postgres/schema_1.sql");
    let make = format!(
        "CREATE SCHEMA clew; CREATE TABLE clew.clew_schema (version INTEGER NOT NULL); \
         INSERT INTO clew.clew_schema VALUES (1); {first}"
    );
    server::query(&database.url, &make).await;
    // Not even the owner sees all rows, because of row-level security.
    server::query(&database.admin_url, TEXTS).await;
    let before = server::query(&database.admin_url, STATISTICS).await;
    assert!(before.len() >= 5, "the test sees what there is: {before:?}");
    let folder = tempfile::tempdir().unwrap();
    let store = open(&database.url, &folder).await.unwrap();
    let found = server::query(&database.admin_url, STATISTICS).await;
    assert!(found.is_empty(), "{found:?}");
    let stats = store.stats().await.unwrap();
    let entries: Vec<u64> = stats
        .iter()
        .map(|one| one.entries)
        .filter(|n| *n > 0)
        .collect();
    assert_eq!(entries, [400, 400, 400]);
    let elsewhere = ChannelId::new(7_000);
    let source = ContentSource {
        guild: None,
        channel: elsewhere,
        message: None,
        author: None,
    };
    let new = made_from(turn(member(1, 3), 900, "new"), &[source]);
    store.append(&new).await.unwrap();
    let gone = store.purge(&Purge::Channel(elsewhere)).await.unwrap();
    assert_eq!(gone.total(), 1);
}

#[tokio::test]
async fn dead_rows_are_vacuumed_when_it_is_time() {
    let fresh = Fresh::new().await;
    fresh
        .admin("ALTER TABLE clew.messages SET (autovacuum_enabled = false)")
        .await;
    for number in 1..=20 {
        let rows = turn(member(1, 3), number, MARKER);
        fresh.store.append(&rows).await.unwrap();
    }
    let channel = ChannelId::new(7);
    let ids = (1..=10).map(|number| MessageId::new(number * 10)).collect();
    fresh
        .store
        .purge(&Purge::Messages { channel, ids })
        .await
        .unwrap();
    let edited = fresh
        .store
        .edit_message(channel, MessageId::new(150), "edited");
    assert_eq!(edited.await.unwrap(), 1);
    // The server updates its counts with a delay.
    let deadline = Instant::now() + PATIENCE;
    while dead(&fresh).await < 20 {
        assert!(Instant::now() < deadline, "nothing is dead");
        sleep(Duration::from_millis(50)).await;
    }
    fresh.store.tidy().await.unwrap();
    assert_eq!(dead(&fresh).await, 0);
    assert_eq!(fresh.texts(member(1, 3)).await.len(), 20);
}

#[tokio::test]
async fn what_belongs_to_turns_is_vacuumed_too() {
    let fresh = with_all_tables().await;
    say(&fresh).await;
    let gone = Purge::Channel(ChannelId::new(7));
    fresh.store.purge(&gone).await.unwrap();
    let is_clean = |table: &Table| table.vacuums > 0 && table.dead == 0;
    let of_turns = |table: &&Table| OF_TURNS.contains(&&*table.name);
    let deadline = Instant::now() + PATIENCE;
    loop {
        fresh.store.tidy().await.unwrap();
        let tables = peoples(&fresh).await;
        if tables.iter().filter(of_turns).all(is_clean) {
            break;
        }
        assert!(Instant::now() < deadline, "{tables:#?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// A table that is new here has to be among those that are vacuumed.
#[tokio::test]
async fn every_table_of_people_is_vacuumed_after_an_erasure_and_rewritten_by_hand() {
    let fresh = with_all_tables().await;
    say(&fresh).await;
    let before = peoples(&fresh).await;
    let names: Vec<&str> = before.iter().map(|table| &*table.name).collect();
    assert!(OF_TURNS.iter().all(|name| names.contains(name)));
    fresh
        .store
        .purge(&Purge::User(UserId::new(3)))
        .await
        .unwrap();
    let after = peoples(&fresh).await;
    let missed: Vec<&Table> = after.iter().filter(|table| table.vacuums == 0).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    fresh.store.vacuum().await.unwrap();
    let after = peoples(&fresh).await;
    let both = before.iter().zip(&after);
    let kept: Vec<_> = both
        .filter(|(before, after)| before.file == after.file)
        .collect();
    assert!(kept.is_empty(), "{kept:#?}");
}

/// Tidying does not wait for somebody who locks a table, and turns do not wait
/// for tidying.
#[tokio::test]
async fn vacuuming_neither_waits_nor_makes_others_wait() {
    let fresh = Fresh::new().await;
    fresh
        .store
        .append(&turn(member(1, 3), 1, MARKER))
        .await
        .unwrap();
    let connected = tokio_postgres::connect(&fresh.database.admin_url, tokio_postgres::NoTls);
    let (client, connection) = connected.await.unwrap();
    tokio::spawn(connection);
    let mode = "BEGIN; LOCK TABLE clew.messages IN SHARE ROW EXCLUSIVE MODE";
    client
        .batch_execute("UPDATE clew.messages SET content = 'again'")
        .await
        .unwrap();
    client.batch_execute(mode).await.unwrap();
    fresh.store.tidy().await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
}
