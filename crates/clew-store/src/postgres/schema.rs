//! The tables, and how they came to be.
//!
//! All are in the schema `clew`, so that a database can be shared. A role that
//! may not create schemas finds one that it owns.
//!
//! What holds people's texts is under row-level security, for its owner too: a
//! transaction sees and writes one conversation, named by `clew.scope`, the
//! facts and snapshots of one user (`clew.user`) or the facts of one server
//! (`clew.server`), or all, when it says `clew.all`. Backups: as superuser, or with
//! `PGOPTIONS='-c clew.all=on' pg_dump --enable-row-security`.

use deadpool_postgres::Object;
use tokio_postgres::Transaction;

use super::super::Error;
use super::session::{Failure, Outcome};

/// Serialises starts: one program migrates, the others wait for it. Any
/// number; this one spells "schema".
const SCHEMA_LOCK: i64 = 0x7363_6865_6d61;

/// The newest version that this program knows.
pub(super) const KNOWN: u32 = 3;
/// Step by step, each applied once and never changed after a release.
const MIGRATIONS: [&str; KNOWN as usize] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
];

/// Brings the database up to the newest version. `place` is for errors.
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

/// Applies the next migration; says whether there was one.
async fn step(transaction: &Transaction<'_>, place: &str) -> Outcome<bool> {
    // Another start may be at a long migration: wait for it.
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

/// The database's version; 0 when there is nothing of ours in it yet.
async fn version(transaction: &Transaction<'_>) -> Outcome<u32> {
    let is_there = "SELECT to_regnamespace('clew') IS NOT NULL, \
                    to_regclass('clew.clew_schema') IS NOT NULL";
    let row = transaction.query_one(is_there, &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        transaction.batch_execute("CREATE SCHEMA clew").await?;
    }
    if !row.try_get::<_, bool>(1)? {
        let table = "CREATE TABLE clew.clew_schema (version INTEGER NOT NULL); \
                     INSERT INTO clew.clew_schema VALUES (0)";
        transaction.batch_execute(table).await?;
    }
    read_version(transaction).await
}

/// The version of a database that is not to be changed; none when there is
/// nothing of ours in it. `place` is for errors.
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
    Err(Error::Newer {
        place: place.to_owned(),
        found,
        known: KNOWN,
    }
    .into())
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
