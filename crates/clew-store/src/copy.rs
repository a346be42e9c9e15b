//! Copies one store to another. What the target cannot hold is known before
//! anything is written, and what was written is read back.
//!
//! Entries are read three times: to find what would be lost, to write them, and
//! at the target, to compare. Only a few are in memory at a time.

pub(crate) mod fit;
mod sum;

use std::collections::{BTreeMap, HashSet};

use super::pages::Pages;
use super::{Error, Kind, Record, Store};
use fit::Fit;
use sum::Sum;

/// Rows at a page's end whose turns may continue on the next page: turns stored
/// at the same moment may be interleaved.
const TAIL: usize = 64;

/// Entries of a kind that the target cannot hold unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// Their kind.
    pub kind: Kind,
    /// Why: a phrase that follows the count and kind.
    pub why: &'static str,
    /// How many.
    pub entries: u64,
}

impl Loss {
    pub(crate) fn of(losses: &BTreeMap<(Kind, &'static str), u64>) -> Vec<Self> {
        let losses = losses.iter();
        losses
            .map(|(&(kind, why), &entries)| Self { kind, why, entries })
            .collect()
    }
}

/// Entries copied, by kind. Logs of direct messages are files outside of any
/// store and are not copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied(BTreeMap<Kind, u64>);

impl Copied {
    /// The kinds copied, with their number of entries.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.0.iter().map(|(kind, entries)| (*kind, *entries))
    }
}

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyProgress {
    /// Entries checked so far.
    Looking(u64),
    /// Entries written so far.
    Copying(u64),
    /// Entries compared so far.
    Comparing(u64),
}

/// Why nothing, or not everything, was copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Reading from the source failed.
    #[error("the store to copy from")]
    From(#[source] Error),
    /// Writing to or reading from the target failed.
    #[error("the store to copy to")]
    To(#[source] Error),
    /// The target already holds something.
    #[error("the store to copy to is not empty: it holds {entries} {kind}", kind = .kind.as_str())]
    NotEmpty {
        /// The first kind found there.
        kind: Kind,
        /// Entries of that kind.
        entries: u64,
    },
    /// What was read back differs from what was written.
    #[error("the {kind} that were copied are not those that are read again ({found} of {expected} \
             entries): something writes to one of the stores", kind = .kind.as_str())]
    Differs {
        /// The kind that differs.
        kind: Kind,
        /// Entries written.
        expected: u64,
        /// Entries found.
        found: u64,
    },
}

/// A copy that was checked but has not begun.
pub struct CopyPlan<'a> {
    from: &'a Store,
    to: &'a Store,
    fit: Fit,
    losses: BTreeMap<(Kind, &'static str), u64>,
}

impl<'a> CopyPlan<'a> {
    /// Checks every entry without writing anything.
    ///
    /// # Errors
    /// A store fails, or the target is not empty.
    pub async fn new(
        from: &'a Store,
        to: &'a Store,
        notice: &dyn Fn(CopyProgress),
    ) -> Result<Self, CopyError> {
        let held = to.stats().await.map_err(CopyError::To)?;
        if let Some(stats) = held.iter().find(|stats| stats.entries > 0) {
            return Err(CopyError::NotEmpty {
                kind: stats.kind,
                entries: stats.entries,
            });
        }
        let mut fit = Fit::into(to);
        let mut seen = 0;
        for kind in Kind::ALL {
            let mut pages = Pages::of(&**from, kind, None);
            while let Some(records) = pages.next().await.map_err(CopyError::From)? {
                seen += records.len() as u64;
                for record in &records {
                    fit.see(record);
                }
                notice(CopyProgress::Looking(seen));
            }
        }
        let losses = fit.losses();
        Ok(Self {
            from,
            to,
            fit,
            losses,
        })
    }

    /// What would be lost; empty if nothing would be.
    pub fn losses(&self) -> Vec<Loss> {
        Loss::of(&self.losses)
    }

    /// Copies what the target can hold, and reads it back.
    ///
    /// # Errors
    /// A store fails, or what is read back differs. What was written so far
    /// stays.
    pub async fn copy(mut self, notice: &dyn Fn(CopyProgress)) -> Result<Copied, CopyError> {
        let mut copied = Copied::default();
        let mut written = Vec::new();
        let mut done = 0;
        for kind in Kind::ALL {
            let sum = self.copy_kind(kind, &mut done, notice).await?;
            if sum.entries > 0 {
                copied.0.insert(kind, sum.entries);
            }
            written.push((kind, sum));
        }
        done = 0;
        for (kind, expected) in written {
            self.compare(kind, &expected, &mut done, notice).await?;
        }
        Ok(copied)
    }

    async fn copy_kind(
        &mut self,
        kind: Kind,
        done: &mut u64,
        notice: &dyn Fn(CopyProgress),
    ) -> Result<Sum, CopyError> {
        let mut sum = Sum::default();
        let mut pages = Pages::of(&**self.from, kind, None);
        let mut batch = Batch::default();
        while let Some(records) = pages.next().await.map_err(CopyError::From)? {
            let kept = records
                .into_iter()
                .filter_map(|record| self.fit.fit(record));
            batch.add(kept);
            self.write(batch.ready(), &mut sum).await?;
            notice(CopyProgress::Copying(*done + sum.entries));
        }
        self.write(batch.rest(), &mut sum).await?;
        *done += sum.entries;
        Ok(sum)
    }

    async fn write(&self, records: Vec<Record>, sum: &mut Sum) -> Result<(), CopyError> {
        write(self.to, &records).await.map_err(CopyError::To)?;
        for record in &records {
            sum.add(record);
        }
        Ok(())
    }

    async fn compare(
        &self,
        kind: Kind,
        expected: &Sum,
        done: &mut u64,
        notice: &dyn Fn(CopyProgress),
    ) -> Result<(), CopyError> {
        let mut found = Sum::default();
        let mut pages = Pages::of(&**self.to, kind, None);
        while let Some(records) = pages.next().await.map_err(CopyError::To)? {
            for record in &records {
                found.add(record);
            }
            notice(CopyProgress::Comparing(*done + found.entries));
        }
        *done += found.entries;
        if found == *expected {
            return Ok(());
        }
        Err(CopyError::Differs {
            kind,
            expected: expected.entries,
            found: found.entries,
        })
    }
}

/// Writes entries, each snapshot by itself: it is also a file, and a kill then leaves
/// at most one behind.
pub(crate) async fn write(to: &Store, records: &[Record]) -> Result<(), Error> {
    let is_together = |one: &Record, next: &Record| {
        one.kind() != Kind::Snapshots && next.kind() != Kind::Snapshots
    };
    for some in records.chunk_by(is_together) {
        to.write(some).await?;
    }
    Ok(())
}

/// Entries waiting to be written. Rows of one turn are written together, so
/// that identical-looking rows stay separate.
#[derive(Default)]
pub(crate) struct Batch(Vec<Record>);

impl Batch {
    pub(crate) fn add(&mut self, records: impl IntoIterator<Item = Record>) {
        self.0.extend(records);
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The entries before the first whose turn may not be complete.
    pub(crate) fn ready(&mut self) -> Vec<Record> {
        let tail = self.0.len().saturating_sub(TAIL);
        let open: HashSet<_> = self.0.iter().skip(tail).filter_map(turn_of).collect();
        let is_open = |record: &Record| turn_of(record).is_some_and(|turn| open.contains(&turn));
        let first_open = self.0.iter().position(is_open);
        let rest = self.0.split_off(first_open.unwrap_or(self.0.len()));
        std::mem::replace(&mut self.0, rest)
    }

    /// All remaining entries.
    pub(crate) fn rest(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.0)
    }
}

fn turn_of(record: &Record) -> Option<clew_context::model::TurnId> {
    record.message().map(|row| row.turn)
}
