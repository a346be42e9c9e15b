//! What PostgreSQL keeps of deleted texts: nothing in its statistics, and no
//! dead rows for long.

use std::time::Duration;

use clew_context::model::{ChannelId, ContentSource, MessageId};
use clew_store::{Backend, Purge};
use tokio::time::{Instant, sleep};

use super::{Fresh, member, open, server, turn};
use crate::store::build::made_from;

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
