//! Puts entries of an export into a store.
//!
//! What the store has already stays as it is: it may have been edited, or shortened
//! by a deletion, since the export. Nothing enters of who opted out, be it in the
//! store or in the export. So importing twice is importing once.
//!
//! The entries are gone through twice: to see what the store cannot hold, and to
//! write. In memory are a few of them, and a number for each turn that the store had.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use super::copy::fit::Fit;
use super::copy::{Batch, Loss, write};
use super::pages::each_paged;
use super::{Error, Kind, Record, Store, without};
use crate::model::{ContextSnapshot, StoredMessage};
use clew_context::model::UserId;

/// Entries, or bytes of their lines, that are written at a time.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 8 << 20;
/// A turn's rows are written together, unless there are more than this.
const LONGEST_BATCH: usize = 20_000;

/// Entries by what became of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Written, by kind.
    pub added: BTreeMap<Kind, u64>,
    /// Left as they are, since the store has them.
    pub present: u64,
    /// Left out, since they are of who opted out. A snapshot that lost rows so
    /// counts as written.
    pub opted_out: u64,
}

/// An import under way.
pub struct Import<'a> {
    to: &'a Store,
    hasher: RandomState,
    /// What the store had, as [`Self::number`].
    present: HashSet<u64>,
    opted_out: HashSet<UserId>,
    fit: Fit,
    batch: Batch,
    batch_bytes: usize,
    imported: Imported,
}

/// Why an entry is left out.
enum LeftOut {
    Present,
    OptedOut,
}

impl<'a> Import<'a> {
    /// Reads what the store has. `opted_out`: those of whom the export says so.
    ///
    /// # Errors
    /// The store fails.
    pub async fn into(to: &'a Store, opted_out: HashSet<UserId>) -> Result<Self, Error> {
        let mut import = Self {
            to,
            hasher: RandomState::new(),
            present: HashSet::new(),
            opted_out,
            fit: Fit::into(to),
            batch: Batch::default(),
            batch_bytes: 0,
            imported: Imported::default(),
        };
        each_paged(&**to, &mut |record| {
            import.present.insert(import.number(&record));
            if let Record::OptOut(user, _) = record {
                import.opted_out.insert(user);
            }
            Ok(())
        })
        .await?;
        Ok(import)
    }

    /// First reading: notes what the store cannot hold.
    pub fn see(&mut self, record: Record) {
        if let Ok(record) = self.wanted(record) {
            self.fit.see(&record);
        }
    }

    /// What would be lost, after the first reading; empty if nothing.
    pub fn losses(&self) -> Vec<Loss> {
        Loss::of(&self.fit.losses())
    }

    /// Whether nothing of this person may enter.
    pub fn is_out(&self, user: UserId) -> bool {
        self.opted_out.contains(&user)
    }

    /// Second reading: writes what the store lacks and can hold, soon after. `bytes`:
    /// the length of its line.
    ///
    /// # Errors
    /// The store fails. What was written stays; the import may be run again.
    pub async fn put(&mut self, record: Record, bytes: usize) -> Result<(), Error> {
        match self.wanted(record) {
            Err(LeftOut::Present) => self.imported.present += 1,
            Err(LeftOut::OptedOut) => self.imported.opted_out += 1,
            Ok(record) => {
                self.batch.add(self.fit.fit(record));
                self.batch_bytes += bytes;
            }
        }
        if self.batch.len() >= LONGEST_BATCH {
            self.flush(Batch::rest).await
        } else if self.batch.len() >= BATCH || self.batch_bytes >= BATCH_BYTES {
            self.flush(Batch::ready).await
        } else {
            Ok(())
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn finish(mut self) -> Result<Imported, Error> {
        self.flush(Batch::rest).await?;
        Ok(self.imported)
    }

    async fn flush(&mut self, take: fn(&mut Batch) -> Vec<Record>) -> Result<(), Error> {
        let records = take(&mut self.batch);
        self.batch_bytes = 0;
        write(self.to, &records).await?;
        for record in &records {
            *self.imported.added.entry(record.kind()).or_default() += 1;
        }
        Ok(())
    }

    fn wanted(&self, record: Record) -> Result<Record, LeftOut> {
        if self.present.contains(&self.number(&record)) {
            return Err(LeftOut::Present);
        }
        match record {
            Record::OptOut(..) => Ok(record),
            Record::Snapshot(snapshot) => self.wanted_of(&snapshot),
            Record::Message(row) if self.is_row_out(&row) => Err(LeftOut::OptedOut),
            record if self.is_any_out(record.people()) => Err(LeftOut::OptedOut),
            record => Ok(record),
        }
    }

    /// A snapshot without the rows of who opted out.
    fn wanted_of(&self, snapshot: &ContextSnapshot) -> Result<Record, LeftOut> {
        if self.is_out(snapshot.info.owner) {
            return Err(LeftOut::OptedOut);
        }
        let rest = without(snapshot, |row| self.is_row_out(row));
        rest.map(Record::Snapshot).ok_or(LeftOut::OptedOut)
    }

    /// Whether anybody is whose row it is or whose words it was made from: with an erasure of
    /// any of them it goes.
    fn is_row_out(&self, row: &StoredMessage) -> bool {
        let authors = row.sources.iter().filter_map(|source| source.author);
        self.is_any_out(authors.chain([row.owner]))
    }

    fn is_any_out(&self, people: impl IntoIterator<Item = UserId>) -> bool {
        people.into_iter().any(|user| self.is_out(user))
    }

    /// Stands for what a store has once: a turn with all its rows, a snapshot, or a
    /// record's key.
    fn number(&self, record: &Record) -> u64 {
        match record {
            Record::Message(row) => {
                let scope = row.scope.to_string();
                self.hasher
                    .hash_one((scope, row.agent.as_str(), row.turn.0))
            }
            Record::Snapshot(snapshot) => self.hasher.hash_one(snapshot.info.id.as_str()),
            record => self.hasher.hash_one(format!("{:?}", record.key())),
        }
    }
}
