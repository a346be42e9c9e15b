//! From one store to another: what the other cannot hold is known before
//! anything is written, and what was written is read again.
//!
//! Entries are read three times: to see what they lose, to write them, and
//! where they went, to compare. Only a few are in memory at a time.

mod fit;
mod sum;

use std::collections::BTreeMap;

use super::{Backend, Cursor, Error, Kind, Record, Store};
use fit::Fit;
use sum::Sum;

/// Entries read at once.
const PAGE: usize = 500;
/// Rows at a page's end whose turns may go on behind it: turns that are stored
/// at one moment may stand in each other.
const TAIL: usize = 64;

/// Entries of a kind that the other store cannot hold as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// Of what.
    pub kind: Kind,
    /// What they are or need: a phrase after kind and count.
    pub why: &'static str,
    /// How many.
    pub entries: u64,
}

/// What was copied, by kind. Logs of direct messages are files beside every
/// store and stay where they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied(BTreeMap<Kind, u64>);

impl Copied {
    /// Entries by kind, of every kind of which there were any.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.0.iter().map(|(kind, entries)| (*kind, *entries))
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyProgress {
    /// So many entries were looked at.
    Looking(u64),
    /// So many entries were written.
    Copying(u64),
    /// So many entries were compared.
    Comparing(u64),
}

/// Why nothing was copied, or not all.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The store to read from failed.
    #[error("the store to copy from")]
    From(#[source] Error),
    /// The store to write to failed.
    #[error("the store to copy to")]
    To(#[source] Error),
    /// There is something already.
    #[error("the store to copy to is not empty: it holds {entries} {kind}", kind = .kind.as_str())]
    NotEmpty {
        /// Of the first kind that there is.
        kind: Kind,
        /// So many.
        entries: u64,
    },
    /// What was read again is not what was written.
    #[error("the {kind} that were copied are not those that are read again ({found} of {expected} \
             entries): something writes to one of the stores", kind = .kind.as_str())]
    Differs {
        /// Of what.
        kind: Kind,
        /// Entries written.
        expected: u64,
        /// Entries found.
        found: u64,
    },
}

/// A look at two stores before anything is copied.
pub struct CopyPlan<'a> {
    from: &'a Store,
    to: &'a Store,
    fit: Fit,
    losses: BTreeMap<(Kind, &'static str), u64>,
}

impl<'a> CopyPlan<'a> {
    /// Looks at every entry. Writes nothing.
    ///
    /// # Errors
    /// A store fails, or the one to copy to is not empty.
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
            let mut pages = Pages::of(from, kind);
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

    /// What is lost; nothing, if it is empty.
    pub fn losses(&self) -> Vec<Loss> {
        let losses = self.losses.iter();
        losses
            .map(|(&(kind, why), &entries)| Loss { kind, why, entries })
            .collect()
    }

    /// Copies what the other store can hold, and reads it again.
    ///
    /// # Errors
    /// A store fails, or what is read again differs. What was written by then
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
        let mut pages = Pages::of(self.from, kind);
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
        // A snapshot is a file, too: one at a time, so that a kill in between
        // leaves one at most.
        let at_once = match records.first().map(Record::kind) {
            Some(Kind::Snapshots) => 1,
            Some(_) | None => records.len().max(1),
        };
        for some in records.chunks(at_once) {
            self.to.write(some).await.map_err(CopyError::To)?;
        }
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
        let mut pages = Pages::of(self.to, kind);
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

/// All entries of a kind, page by page.
struct Pages<'a> {
    store: &'a Store,
    kind: Kind,
    after: Option<Cursor>,
    ended: bool,
}

impl<'a> Pages<'a> {
    const fn of(store: &'a Store, kind: Kind) -> Self {
        Self {
            store,
            kind,
            after: None,
            ended: false,
        }
    }

    async fn next(&mut self) -> Result<Option<Vec<Record>>, Error> {
        if self.ended {
            return Ok(None);
        }
        let (kind, after) = (self.kind, self.after.as_ref());
        let page = self.store.records(kind, None, after, PAGE).await?;
        self.ended = page.next.is_none();
        self.after = page.next;
        Ok(Some(page.records))
    }
}

/// Entries that wait to be written: rows of one turn are written together, so
/// that two which look alike stay two.
#[derive(Default)]
struct Batch(Vec<Record>);

impl Batch {
    fn add(&mut self, records: impl Iterator<Item = Record>) {
        self.0.extend(records);
    }

    /// What is complete.
    fn ready(&mut self) -> Vec<Record> {
        let tail = self.0.len().saturating_sub(TAIL);
        let open: Vec<_> = self.0.iter().skip(tail).filter_map(turn_of).collect();
        let is_open = |record: &Record| turn_of(record).is_some_and(|turn| open.contains(&turn));
        let all = std::mem::take(&mut self.0);
        let (open, ready) = all.into_iter().partition(is_open);
        self.0 = open;
        ready
    }

    /// All.
    fn rest(self) -> Vec<Record> {
        self.0
    }
}

fn turn_of(record: &Record) -> Option<clew_context::model::TurnId> {
    match record {
        Record::Message(row) => Some(row.turn),
        _ => None,
    }
}
