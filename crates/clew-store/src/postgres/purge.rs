//! Purges, for every kind of entry.
//!
//! Dead rows stay in PostgreSQL's files until vacuumed: at once after a purge
//! of a user, a server or a time, within minutes after deletions of single
//! messages (see [`tidying`](super::tidying)).

use super::super::{Kind, Purge, Purged};
use super::session::{Call, Outcome, write_all};
use super::tables::COUNTERS;
use super::{early, snapshots};
use crate::snapshots::SnapshotRest;
use crate::sql::Database as _;

/// Purges all kinds, in the caller's transaction.
pub(super) async fn purge(call: &Call<'_>, purge: &Purge) -> Outcome<Purged> {
    write_all(call).await?;
    let mut purged = Purged::default();
    for kind in Kind::ALL {
        let Some(table) = Call::table(kind) else {
            continue;
        };
        if kind == Kind::Snapshots {
            purged.add(kind, purge_snapshots(call, purge).await?);
            continue;
        }
        for which in table.purged(kind, purge) {
            let sql = table.delete(&which);
            purged.add(kind, call.run(&sql, &purge.cells()).await?);
        }
    }
    purged.add(Kind::Messages, early::purge(call, purge).await?);
    if let Some(which) = COUNTERS.reached(purge) {
        call.run(&COUNTERS.delete(&which), &purge.cells()).await?;
    }
    Ok(purged)
}

/// Whether a vacuum follows at once.
pub(super) const fn is_thorough(purge: &Purge) -> bool {
    match purge {
        Purge::Messages { .. } | Purge::Edited { .. } | Purge::Channel(_) => false,
        Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) | Purge::Before(_) => true,
    }
}

/// Returns how many snapshots were removed or rewritten.
async fn purge_snapshots(call: &Call<'_>, purge: &Purge) -> Outcome<u64> {
    let Some(which) = Call::table(Kind::Snapshots).and_then(|table| table.concerned(purge)) else {
        return Ok(0);
    };
    let which = format!("WHERE {which} FOR UPDATE");
    let mut gone = 0;
    for info in snapshots::select(call, &which, &purge.cells()).await? {
        let rest = if purge.takes_whole(&info) {
            SnapshotRest::Gone
        } else {
            SnapshotRest::after(purge, snapshots::read(call, info.clone()).await?)?
        };
        match rest {
            SnapshotRest::Same => continue,
            SnapshotRest::Less(rest) => snapshots::rewrite(call, &rest).await?,
            SnapshotRest::Gone => snapshots::remove(call, info).await?,
        }
        gone += 1;
    }
    Ok(gone)
}
