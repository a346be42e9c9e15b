//! Dead rows hold what people deleted, and what edited messages said before.
//! The tables with texts are vacuumed within minutes: that locks nobody out and
//! takes a small part of the time, however many deletions there are.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::time::Instant;

use super::session::{Outcome, rows};

/// After a vacuum there is none for so many times as long.
const REST: u32 = 20;
/// ...but for no longer than this.
const LONGEST_REST: Duration = Duration::from_mins(10);
/// Tables with texts.
const TABLES: [&str; 3] = ["messages", "facts", "snapshots"];

const DIRTY: &str = "SELECT relname::text FROM pg_catalog.pg_stat_user_tables \
     WHERE schemaname = 'clew' AND n_dead_tup > 0";

/// When it was last done.
#[derive(Debug, Default)]
pub(super) struct Tidying(Mutex<Option<Instant>>);

impl Tidying {
    /// Enough time has passed.
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

/// Tables with texts in which there are dead rows, as far as the server knows.
pub(super) async fn dirty(transaction: &Transaction<'_>) -> Outcome<Vec<&'static str>> {
    let mut dirty = Vec::new();
    for row in rows(transaction, DIRTY, &[]).await? {
        let name: String = row.try_get(0)?;
        dirty.extend(TABLES.iter().filter(|table| **table == name));
    }
    Ok(dirty)
}

/// Index entries go as well: those of facts are words. Giving room back would
/// lock others out for a moment, and somebody else at a table is not waited
/// for: there is a next time.
pub(super) fn vacuum(table: &str) -> String {
    format!("VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF, SKIP_LOCKED) clew.{table}")
}
