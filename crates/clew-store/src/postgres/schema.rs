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
/// One entry per version, applied once and never changed after a release.
const MIGRATIONS: [&str; KNOWN as usize] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
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
    let found = version(transaction).await?;
    refuse_newer(found, place)?;
    let Some(migration) = MIGRATIONS.get(found as usize) else {
        return Ok(false);
    };
    transaction.batch_execute(migration).await?;
    let reached = i32::try_from(found + 1).unwrap_or(i32::MAX);
    transaction
        .execute("UPDATE clew.clew_schema SET version = $1", &[&reached])
        .await?;
    Ok(true)
}

/// The database's version; 0 if it holds nothing of ours yet.
async fn version(transaction: &Transaction<'_>) -> Outcome<u32> {
    make_schema(transaction).await?;
    let is_there = "SELECT to_regclass('clew.clew_schema') IS NOT NULL";
    let row = transaction.query_one(is_there, &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        let table = "CREATE TABLE clew.clew_schema (version INTEGER NOT NULL); \
                     INSERT INTO clew.clew_schema VALUES (0)";
        transaction.batch_execute(table).await?;
    }
    read_version(transaction).await
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
    let found = read_version(&transaction).await?;
    refuse_newer(found, place)?;
    Ok(Some(found).filter(|found| *found > 0))
}

fn refuse_newer(found: u32, place: &str) -> Outcome<()> {
    if found <= KNOWN {
        return Ok(());
    }
    Err(Error::newer(place, found, KNOWN).into())
}

async fn read_version(transaction: &Transaction<'_>) -> Outcome<u32> {
    let versions = transaction
        .query("SELECT version FROM clew.clew_schema", &[])
        .await?;
    let unreadable = || Failure::Unreadable {
        place: "table clew_schema".to_owned(),
        source: "it does not hold one version".into(),
    };
    let [row] = versions.as_slice() else {
        return Err(unreadable());
    };
    u32::try_from(row.try_get::<_, i32>(0)?).map_err(|_| unreadable())
}
