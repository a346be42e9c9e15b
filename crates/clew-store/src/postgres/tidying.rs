//! Dead rows hold what people deleted, ids too, and the old text of edited messages.
//! All tables that have any are vacuumed within minutes, which locks nobody out and
//! takes a small share of the time, however many deletions there are.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::session::{Call, Outcome};
use super::values::PostgresRow;
use crate::columns::Columns as _;
use crate::sql::{Database as _, See};

/// After a vacuum, pause for this many times its duration.
const REST: u32 = 20;
/// Longest pause.
const LONGEST_REST: Duration = Duration::from_mins(10);
/// All tables with rows of people; those of [`cluster`](super::cluster) apart.
const TABLES: [&str; 17] = [
    "messages",
    "early_messages",
    "message_ids",
    "message_sources",
    "conversations",
    "facts",
    "snapshots",
    "snapshot_messages",
    "snapshot_sources",
    "receipts",
    "receipt_ids",
    "receipt_people",
    "markers",
    "guild_settings",
    "opt_outs",
    "departures",
    "agents",
];
/// Those that are there once several processes have shared the database.
const SHARED: [&str; 2] = ["snapshot_texts", "state_files"];

const DIRTY: &str = "SELECT relname::text FROM pg_catalog.pg_stat_user_tables \
     WHERE schemaname = 'clew' AND n_dead_tup > 0";

/// When the next vacuum may run.
#[derive(Debug, Default)]
pub(super) struct Tidying(Mutex<Option<Instant>>);

impl Tidying {
    /// Whether the pause is over.
    pub(super) fn is_due(&self) -> bool {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        next.is_none_or(|next| Instant::now() >= next)
    }

    pub(super) fn took(&self, time: Duration) {
        let rest = time.saturating_mul(REST).min(LONGEST_REST);
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *next = Instant::now().checked_add(rest);
    }
}

/// Names all tables, as a statement has them.
pub(super) fn all(is_shared: bool) -> String {
    let shared: &[&str] = if is_shared { &SHARED } else { &[] };
    [&TABLES, shared].concat().join(", ")
}

/// Tables that have dead rows, as far as the server knows.
pub(super) async fn dirty(call: &Call<'_>) -> Outcome<Vec<&'static str>> {
    let read = |row: &PostgresRow<'_>| row.whole("relname");
    let dirty = call.all(See::Lists, "", DIRTY, &[], read).await?;
    let is_dirty = |table: &&str| dirty.iter().any(|name| name == table);
    Ok(TABLES.into_iter().chain(SHARED).filter(is_dirty).collect())
}

/// Cleans indexes too, since they hold ids. Does not truncate,
/// which would briefly lock others out, and skips locked tables until next
/// time.
pub(super) fn vacuum(table: &str) -> String {
    format!("VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF, SKIP_LOCKED) {table}")
}
