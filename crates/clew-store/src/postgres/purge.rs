//! Purges, for every kind of entry.
//!
//! Dead rows stay in PostgreSQL's files until vacuumed: at once after a purge
//! of a user, a server or a time, within minutes after deletions of single
//! messages (see [`tidying`](super::tidying)).

use super::super::{Kind, Purge, Purged};
use super::early;
use super::session::{Call, Outcome, write_all};
use crate::sql;

/// Purges all kinds, in the caller's transaction.
pub(super) async fn purge(call: &Call<'_>, purge: &Purge) -> Outcome<Purged> {
    write_all(call).await?;
    let mut purged = sql::purge(call, purge).await?;
    purged.add(Kind::Messages, early::purge(call, purge).await?);
    Ok(purged)
}

/// Whether a vacuum follows at once.
pub(super) const fn is_thorough(purge: &Purge) -> bool {
    match purge {
        Purge::Messages { .. } | Purge::Edited { .. } | Purge::Channel(_) => false,
        Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) | Purge::Before(_) => true,
    }
}
