//! Ensures that one process uses a database at a time. Every connection of a
//! pool holds an advisory lock with its process's number, and none is made
//! while another process holds one. This needs no extra connection, and the
//! locks end however the process does.
//!
//! In a cluster the number is the tenure's epoch, below zero. Whoever takes the
//! lease ends the connections of earlier epochs, and none is made for a tenure
//! that is not the last.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, HookError, Pool, PoolError};
use tokio::time::timeout;
use tokio_postgres::Transaction;

use super::super::Error;
use super::session::Outcome;

/// First key of these locks: an arbitrary number that spells "clew". The second
/// is the process's number.
const HOLDS: i32 = 0x636c_6577;
/// Lock to check and lock one connection at a time: an arbitrary number that
/// spells "hold".
const ONE_BY_ONE: i64 = 0x686f_6c64;
/// Detects within a minute that a process's machine is gone.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; \
     SET tcp_keepalives_count = 3";
/// The same for what the server has sent, and within seconds for a process that ended while a
/// statement runs. Older servers and some systems lack these.
const NOTICE_ENDS: &str =
    "SET tcp_user_timeout = '60s'; SET client_connection_check_interval = '5s'";
/// Finds another process's lock: its server process, and where it connects
/// from.
const OTHER: &str = "SELECT l.pid, coalesce(host(a.client_addr), 'this machine') \
     FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid \
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 \
         AND l.classid = $1::int4::oid AND l.objid <> $2::int4::oid \
         AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) \
     LIMIT 1";
/// Ends the connections of earlier tenures, which have the numbers below zero, and waits for each
/// at most this many milliseconds.
const END_EARLIER: &str = "SELECT pg_catalog.pg_terminate_backend(l.pid, $3) \
     FROM pg_catalog.pg_locks l \
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 \
         AND l.classid = $1::int4::oid AND l.objid <> $2::int4::oid \
         AND l.objid::bigint > 2147483647 \
         AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())";
/// Whose the lease is, unless it is this tenure's.
/// After a failover that lost it, an epoch may be given twice: hence the process's name.
const SUCCESSOR: &str = "SELECT node FROM clew.leases \
     WHERE name = 'bot' AND (epoch <> $1 OR node <> $2)";
/// How long a server may take to unlock.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);
/// Which process of a cluster has the lease, if there is one.
const HAVE_LEASE: &str = "SELECT to_regclass('clew.leases') IS NOT NULL";
const LEASED: &str = "SELECT node FROM clew.leases WHERE until > clock_timestamp()";
/// Separates the parts of a refusal; one for a lease ends with it.
const PART: char = '\n';

/// As whom a pool's connections hold the database.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    number: i32,
    /// The epoch, and the process's name.
    tenure: Option<(i64, Arc<str>)>,
}

impl Hold {
    /// As a process of no cluster: a random number for this pool.
    pub(super) fn alone() -> Self {
        let number = RandomState::new().hash_one(std::process::id());
        Self {
            number: i32::try_from(number >> 33).unwrap_or(1),
            tenure: None,
        }
    }

    /// As the process of a cluster that has the lease.
    pub(super) fn tenure(epoch: i64, node: &str) -> Self {
        Self {
            number: number(epoch),
            tenure: Some((epoch, node.into())),
        }
    }
}

/// The number of an epoch: below zero, where no process's of its own is.
fn number(epoch: i64) -> i32 {
    let low = epoch.rem_euclid(i64::from(i32::MAX));
    -1 - i32::try_from(low).unwrap_or_default()
}

/// Takes the lock for a new connection, or refuses the connection.
pub(super) async fn take(
    client: &ClientWrapper,
    hold: &Hold,
    place: &str,
) -> Result<(), HookError> {
    match other(client, hold).await.map_err(HookError::Backend)? {
        None => Ok(()),
        Some(holder) => Err(HookError::message(format!("{place}{PART}{holder}"))),
    }
}

/// Takes the lock, unless another process holds one, which it then names.
async fn other(
    client: &ClientWrapper,
    hold: &Hold,
) -> Result<Option<String>, tokio_postgres::Error> {
    let began = format!("{KEEPALIVE}; BEGIN; SELECT pg_advisory_xact_lock({ONE_BY_ONE})");
    // Without them the lock may outlast the process.
    let _ = client.batch_execute(NOTICE_ENDS).await;
    client.batch_execute(&began).await?;
    if let Some((epoch, node)) = &hold.tenure
        && let Some(successor) = client
            .query_opt(SUCCESSOR, &[epoch, &node.as_ref()])
            .await?
    {
        return Ok(Some(successor.try_get(0)?));
    }
    // The locks of a cluster's process are gone while the server starts, its lease is not.
    if hold.tenure.is_none()
        && client.query_one(HAVE_LEASE, &[]).await?.try_get(0)?
        && let Some(leased) = client.query_opt(LEASED, &[]).await?
    {
        let holder: String = leased.try_get(0)?;
        return Ok(Some(format!("{holder}{PART}")));
    }
    let number = hold.number;
    if let Some(other) = client.query_opt(OTHER, &[&HOLDS, &number]).await? {
        return Ok(Some(named(&other)?));
    }
    let taken = format!("SELECT pg_advisory_lock_shared({HOLDS}, {number}); COMMIT");
    client.batch_execute(&taken).await?;
    Ok(None)
}

fn named(other: &tokio_postgres::Row) -> Result<String, tokio_postgres::Error> {
    let (process, from): (i32, String) = (other.try_get(0)?, other.try_get(1)?);
    Ok(format!("from {from}, server process {process}"))
}

/// Until the transaction ends no connection is locked for anybody, and no lease taken.
pub(super) async fn one_by_one(transaction: &Transaction<'_>) -> Outcome<()> {
    let lock = format!("SELECT pg_advisory_xact_lock({ONE_BY_ONE})");
    Ok(transaction.batch_execute(&lock).await?)
}

/// Ends the connections of tenures before this one. Returns who has the database all the same: a
/// process of no cluster, or a connection that does not end.
pub(super) async fn end_earlier(
    transaction: &Transaction<'_>,
    epoch: i64,
    patience_ms: i64,
) -> Outcome<Option<String>> {
    let number = number(epoch);
    transaction
        .query(END_EARLIER, &[&HOLDS, &number, &patience_ms])
        .await?;
    let other = transaction.query_opt(OTHER, &[&HOLDS, &number]).await?;
    Ok(other.as_ref().map(named).transpose()?)
}

/// Unlocks a database once nothing uses it, and closes the connections, so that
/// the next process need not wait for the server to notice.
pub(super) async fn release(pool: &Pool) {
    for client in pool.retain(|_, _| false).removed {
        let unlocking = client.batch_execute("SELECT pg_advisory_unlock_all()");
        let unlocked = timeout(RELEASE_PATIENCE, unlocking).await;
        if !unlocked.is_ok_and(|unlocked| unlocked.is_ok()) {
            tracing::debug!("the end of the connection lets go of the database");
        }
    }
}

/// The error for a refusal by [`take`].
pub(super) fn refusal(error: &PoolError) -> Option<Error> {
    let PoolError::PostCreateHook(HookError::Message(text)) = error else {
        return None;
    };
    let (place, holder) = text.split_once(PART)?;
    Some(Error::Held {
        place: place.to_owned(),
        holder: holder.trim_end_matches(PART).to_owned(),
    })
}

/// Whether it is for a lease, which runs out soon if its process has ended.
pub(super) fn is_for_lease(error: &PoolError) -> bool {
    matches!(error, PoolError::PostCreateHook(HookError::Message(text)) if text.ends_with(PART))
}
