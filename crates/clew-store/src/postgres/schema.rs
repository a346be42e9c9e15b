//! The tables and their migrations.
//!
//! All are in the schema `clew`, so that a database can be shared. For a role
//! that may not create schemas, create one that it owns beforehand.
//!
//! Tables with people's texts are under row-level security, which also applies
//! to their owner: a transaction sees and writes one conversation, named by
//! `clew.scope`, the facts and snapshots of one user (`clew.user`) or the facts
//! of one server (`clew.server`), or everything if it sets `clew.all`. Backups:
//! as superuser, or with `PGOPTIONS='-c clew.all=on' pg_dump
//! --enable-row-security`.

use deadpool_postgres::Object;
use tokio_postgres::Transaction;

use super::super::Error;
use super::session::{Failure, Outcome};

/// Serialises starts: one process migrates, the others wait. An arbitrary
/// number that spells "schema".
const SCHEMA_LOCK: i64 = 0x7363_6865_6d61;

/// The newest version this program knows.
pub(super) const KNOWN: u32 = 8;
/// One entry per version, applied once and never changed after a release, each with the oldest version
/// whose programs may use the tables from then on: while machines are updated one after the other, the
/// programs before go on with them. What those cannot live with waits for the version after: a column
/// that goes or has no default, a table of people's texts, which they would not erase. What cannot
/// wait has its own version here, and they are refused.
const MIGRATIONS: [(&str, u32); KNOWN as usize] = [
    (include_str!("schema_1.sql"), 1),
    (include_str!("schema_2.sql"), 2),
    (include_str!("schema_3.sql"), 3),
    (include_str!("schema_4.sql"), 4),
    (include_str!("schema_5.sql"), 5),
    (include_str!("schema_6.sql"), 6),
    (include_str!("schema_7.sql"), 7),
    (include_str!("schema_8.sql"), 8),
];

/// Migrates the database to the newest version. `place` is for errors.
pub(super) async fn migrate(client: &mut Object, place: &str) -> Outcome<()> {
    loop {
        let transaction = client.build_transaction().start().await?;
        let applied = step(&transaction, place).await?;
        transaction.commit().await?;
        if !applied {
            return Ok(());
        }
    }
}

/// Waits until no other process changes the tables, and keeps them out until the transaction
/// ends. Makes the schema if need be.
pub(super) async fn alone(transaction: &Transaction<'_>) -> Outcome<()> {
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&SCHEMA_LOCK])
        .await?;
    make_schema(transaction).await
}

/// Applies the next migration, if any. Returns whether there was one.
async fn step(transaction: &Transaction<'_>, place: &str) -> Outcome<bool> {
    // Wait for another process, which may be in a long migration.
    transaction
        .batch_execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0")
        .await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&SCHEMA_LOCK])
        .await?;
    let found = version(transaction, place).await?;
    let Some((migration, serves)) = MIGRATIONS.get(found as usize) else {
        return Ok(false);
    };
    transaction.batch_execute(migration).await?;
    let number = |version: u32| i32::try_from(version).unwrap_or(i32::MAX);
    let (reached, serves) = (number(found + 1), number(*serves));
    let column = "ALTER TABLE clew.clew_schema ADD COLUMN IF NOT EXISTS serves INTEGER";
    transaction.batch_execute(column).await?;
    let noted = "UPDATE clew.clew_schema SET version = $1, serves = $2";
    transaction.execute(noted, &[&reached, &serves]).await?;
    Ok(true)
}

/// The database's version; 0 if it holds nothing of ours yet.
async fn version(transaction: &Transaction<'_>, place: &str) -> Outcome<u32> {
    make_schema(transaction).await?;
    let is_there = "SELECT to_regclass('clew.clew_schema') IS NOT NULL";
    let row = transaction.query_one(is_there, &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        let table = "CREATE TABLE clew.clew_schema (version INTEGER NOT NULL); \
                     INSERT INTO clew.clew_schema VALUES (0)";
        transaction.batch_execute(table).await?;
    }
    read_version(transaction, place).await
}

/// Makes the schema unless it is there: a role may have been given one that it may not make.
async fn make_schema(transaction: &Transaction<'_>) -> Outcome<()> {
    let is_there = "SELECT to_regnamespace('clew') IS NOT NULL";
    let row = transaction.query_one(is_there, &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        transaction.batch_execute("CREATE SCHEMA clew").await?;
    }
    Ok(())
}

/// The version of a database that must not be changed; `None` if it holds
/// nothing of ours. `place` is for errors.
pub(super) async fn found(client: &mut Object, place: &str) -> Outcome<Option<u32>> {
    let transaction = client.build_transaction().read_only(true).start().await?;
    let is_there = "SELECT to_regclass('clew.clew_schema') IS NOT NULL";
    let row = transaction.query_one(is_there, &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let found = read_version(&transaction, place).await?;
    Ok(Some(found).filter(|found| *found > 0))
}

/// The version, unless it is one that this program may not use.
async fn read_version(transaction: &Transaction<'_>, place: &str) -> Outcome<u32> {
    // The column came later than the table.
    let versions =
        "SELECT version, (to_jsonb(one) ->> 'serves')::integer FROM clew.clew_schema one";
    let versions = transaction.query(versions, &[]).await?;
    let unreadable = || Failure::Unreadable {
        place: "table clew_schema".to_owned(),
        source: "it does not hold one version".into(),
    };
    let [row] = versions.as_slice() else {
        return Err(unreadable());
    };
    let found = u32::try_from(row.try_get::<_, i32>(0)?).map_err(|_| unreadable())?;
    let serves = row.try_get::<_, Option<i32>>(1)?;
    let serves = serves.and_then(|serves| u32::try_from(serves).ok());
    if found <= KNOWN || serves.is_some_and(|serves| serves <= KNOWN) {
        Ok(found)
    } else {
        Err(Error::newer(place, found, KNOWN).into())
    }
}
