//! Row-level security: the server itself shows only one conversation at a time.

use clew_store::{Backend, Kind};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::{Fresh, direct, turn};

const COUNT: &str = "SELECT count(*) FROM clew.messages";
const INSERT: &str = "INSERT INTO clew.messages (agent_name, thread_id, role, content, timestamp, \
     scope, turn_id, ordinal, position, owner_id, part_ids) \
     VALUES ('default', 1, 'user', 'x', now(), 'dm/2', 9, 9, 0, 2, '{}')";

/// A connection as the tables' owner, bypassing the store.
async fn owner(fresh: &Fresh) -> Client {
    let connected = tokio_postgres::connect(&fresh.database.url, NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    client
}

async fn count(client: &Client) -> i64 {
    client.query_one(COUNT, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn without_a_scope_no_row_is_visible_and_with_one_only_its_own() {
    let fresh = Fresh::new().await;
    for user in [1, 2] {
        let one = turn(direct(user), user, "text");
        fresh.store.append(&one).await.unwrap();
    }
    let client = owner(&fresh).await;
    let above = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user";
    let is_above: bool = client.query_one(above, &[]).await.unwrap().get(0);
    assert!(!is_above, "the role would see everything anyway");
    assert_eq!(count(&client).await, 0);
    let set =
        |name: &str, value: &str| format!("SELECT set_config('clew.{name}', '{value}', false)");
    client.batch_execute(&set("scope", "dm/1")).await.unwrap();
    assert_eq!(count(&client).await, 2);
    let scopes = "SELECT DISTINCT scope FROM clew.messages";
    let seen: String = client.query_one(scopes, &[]).await.unwrap().get(0);
    assert_eq!(seen, "dm/1");

    let refused = client.batch_execute(INSERT).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    let moved = client
        .batch_execute("UPDATE clew.messages SET scope = 'dm/2'")
        .await;
    let refused = moved.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));

    client.batch_execute(&set("scope", "")).await.unwrap();
    assert_eq!(count(&client).await, 0);
    client.batch_execute(&set("all", "on")).await.unwrap();
    assert_eq!(count(&client).await, 4);
}

#[tokio::test]
async fn a_calls_rights_do_not_stay_with_its_connection() {
    let fresh = Fresh::new().await;
    fresh
        .store
        .append(&turn(direct(1), 1, "text"))
        .await
        .unwrap();
    for _ in 0..8 {
        fresh.store.stats().await.unwrap();
        fresh.texts(direct(1)).await;
    }
    // From here on the list of opt-outs is empty, unless a connection kept
    // rights it was given for one call.
    let probe = "ALTER TABLE clew.opt_outs RENAME TO opt_outs_before; \
                 CREATE VIEW clew.opt_outs AS SELECT 1::bigint AS user_id, now() AS since \
                 WHERE current_setting('clew.all', true) = 'on' \
                 OR current_setting('clew.scope', true) <> ''; \
                 GRANT SELECT ON clew.opt_outs TO PUBLIC";
    fresh.admin(probe).await;
    for _ in 0..8 {
        assert_eq!(fresh.store.opt_outs().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_window_reads_one_conversation_and_records_read_all() {
    let fresh = Fresh::new().await;
    fresh
        .store
        .append(&turn(direct(1), 1, "one"))
        .await
        .unwrap();
    fresh
        .store
        .append(&turn(direct(2), 2, "two"))
        .await
        .unwrap();
    assert_eq!(fresh.texts(direct(1)).await, ["one", "re: one"]);
    assert_eq!(fresh.texts(direct(3)).await, [""; 0]);
    let first = fresh
        .store
        .records(Kind::Messages, None, None, 3)
        .await
        .unwrap();
    assert_eq!(first.records.len(), 3);
    let rest = fresh
        .store
        .records(Kind::Messages, None, first.next.as_ref(), 3);
    let rest = rest.await.unwrap();
    assert_eq!((rest.records.len(), rest.next), (1, None));
}

/// Facts and snapshots are as isolated as conversations. Without a name set, no
/// row is visible.
#[tokio::test]
async fn facts_and_snapshots_are_isolated_from_the_tables_owner_too() {
    let fresh = Fresh::new().await;
    let texts = "
INSERT INTO clew.facts (id, user_id, server_id, text, origin, by_user, at, pinned, seen, last_used)
VALUES (1, 3, NULL, 'of a user', 'direct', 3, now(), true, 1, now()),
    (2, 4, NULL, 'of another', 'direct', 4, now(), true, 1, now()),
    (3, NULL, 4, 'of a server', 'everywhere', 3, now(), true, 1, now());
INSERT INTO clew.snapshots (snapshot_id, ready, agent_name, owner_id, timestamp, summary,
    message_count, window_start, window_end, text_bytes)
VALUES ('a', true, 'default', 3, now(), 'of a user', 0, now(), now(), 0),
    ('b', true, 'default', 4, now(), 'of another', 0, now(), now(), 0)";
    fresh.admin(texts).await;
    let client = owner(&fresh).await;
    for (name, value, expected) in [
        ("user", "", [""; 0].as_slice()),
        ("user", "3", &["fact 1", "snapshot a"]),
        ("user", "4", &["fact 2", "snapshot b"]),
        ("user", "", &[]),
        ("server", "4", &["fact 3"]),
        ("server", "", &[]),
        (
            "all",
            "on",
            &["fact 1", "fact 2", "fact 3", "snapshot a", "snapshot b"],
        ),
    ] {
        let set = format!("SELECT set_config('clew.{name}', '{value}', false)");
        client.batch_execute(&set).await.unwrap();
        let all = "SELECT 'fact ' || id FROM clew.facts \
                   UNION SELECT 'snapshot ' || snapshot_id FROM clew.snapshots ORDER BY 1";
        let rows = client.query(all, &[]).await.unwrap();
        let seen: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(seen, expected, "{name}={value}");
    }
    client
        .batch_execute("SELECT set_config('clew.all', '', false)")
        .await
        .unwrap();
    client
        .batch_execute("SELECT set_config('clew.user', '3', false)")
        .await
        .unwrap();
    let stolen = "UPDATE clew.facts SET user_id = 4 WHERE id = 1";
    let refused = client.batch_execute(stolen).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
}

/// Every table with a text column is under row-level security, except those
/// without people's texts: server settings, agent names, ids, keys.
#[tokio::test]
async fn every_table_with_texts_of_people_is_under_row_level_security() {
    let fresh = Fresh::new().await;
    let open = "SELECT DISTINCT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid \
                JOIN pg_namespace ON relnamespace = pg_namespace.oid WHERE nspname = 'clew' \
                AND relkind = 'r' AND attnum > 0 AND NOT attisdropped AND NOT relforcerowsecurity \
                AND atttypid IN ('text'::regtype, 'varchar'::regtype, 'tsvector'::regtype, \
                    'json'::regtype, 'jsonb'::regtype, 'bytea'::regtype) ORDER BY 1";
    let found = fresh.admin(open).await;
    let found: Vec<_> = found
        .into_iter()
        .map(|row| row[0].clone().unwrap())
        .collect();
    let expected = [
        "agents",
        "conversations",
        "guild_settings",
        "markers",
        "receipts",
        "snapshot_messages",
        "snapshot_sources",
    ];
    assert_eq!(found, expected);
}
