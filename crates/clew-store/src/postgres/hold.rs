//! Ensures that one process uses a database at a time. Every connection of a
//! pool holds an advisory lock with its process's number, and none is made
//! while another process holds one. This needs no extra connection, and the
//! locks end however the process does.

use std::hash::{BuildHasher as _, RandomState};

use deadpool_postgres::{ClientWrapper, HookError, Pool, PoolError};

use super::super::Error;

/// First key of these locks: an arbitrary number that spells "clew". The second
/// is the process's number.
const HOLDS: i32 = 0x636c_6577;
/// Lock to check and lock one connection at a time: an arbitrary number that
/// spells "hold".
const ONE_BY_ONE: i64 = 0x686f_6c64;
/// Detects within a minute that a process's machine is gone.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; \
     SET tcp_keepalives_count = 3";
/// Finds another process's lock: its server process, and where it connects
/// from.
const OTHER: &str = "SELECT l.pid, coalesce(host(a.client_addr), 'this machine') \
     FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid \
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 \
         AND l.classid = $1::int4::oid AND l.objid <> $2::int4::oid \
         AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) \
     LIMIT 1";
/// Separates the parts of a refusal.
const PART: char = '\n';

/// A random number for this pool.
pub(super) fn number() -> i32 {
    let number = RandomState::new().hash_one(std::process::id());
    i32::try_from(number >> 33).unwrap_or(1)
}

/// Takes the lock for a new connection, or refuses the connection.
pub(super) async fn take(
    client: &ClientWrapper,
    number: i32,
    place: &str,
) -> Result<(), HookError> {
    match other(client, number).await.map_err(HookError::Backend)? {
        None => Ok(()),
        Some(holder) => Err(HookError::message(format!("{place}{PART}{holder}"))),
    }
}

/// Takes the lock, unless another process holds one, which it then names.
async fn other(
    client: &ClientWrapper,
    number: i32,
) -> Result<Option<String>, tokio_postgres::Error> {
    let began = format!("{KEEPALIVE}; BEGIN; SELECT pg_advisory_xact_lock({ONE_BY_ONE})");
    client.batch_execute(&began).await?;
    if let Some(other) = client.query_opt(OTHER, &[&HOLDS, &number]).await? {
        let (process, from): (i32, String) = (other.try_get(0)?, other.try_get(1)?);
        return Ok(Some(format!("from {from}, server process {process}")));
    }
    let taken = format!("SELECT pg_advisory_lock_shared({HOLDS}, {number}); COMMIT");
    client.batch_execute(&taken).await?;
    Ok(None)
}

/// Unlocks a database once nothing uses it, and closes the connections, so that
/// the next process need not wait for the server to notice.
pub(super) async fn release(pool: &Pool) {
    for client in pool.retain(|_, _| false).removed {
        if let Err(error) = client
            .batch_execute("SELECT pg_advisory_unlock_all()")
            .await
        {
            tracing::debug!(%error, "the end of the connection lets go of the database");
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
        holder: holder.to_owned(),
    })
}
