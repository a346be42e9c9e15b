//! Reads entries as values, for exports, copies and statistics.

use std::collections::BTreeMap;

use super::super::{Cursor, Error, Kind, KindStats, PartSize, Record, Records, disk};
use super::conversation::check;
use super::folder::{ConversationsIn, StoreFolder};
use crate::backend::{no_receipts, no_snapshots};
use crate::model::{Scope, StoredMessage};
use clew_context::model::UserId;

impl StoreFolder {
    pub(super) fn records(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Records, Error> {
        if limit == 0 {
            return Ok(Records::default());
        }
        let mut page = RecordPage::new(after, limit)?;
        if kind == Kind::Messages {
            self.message_page(owner, &mut page)?;
        } else {
            self.entry_page(kind, owner, &mut page)?;
        }
        Ok(page.records)
    }

    fn message_page(&self, owner: Option<UserId>, page: &mut RecordPage) -> Result<(), Error> {
        let now = (self.clock)();
        let from: Option<Scope> = page.key.as_deref().and_then(|key| key.parse().ok());
        self.conversations(ConversationsIn::Everywhere, owner, &mut |scope| {
            if page.is_full() || from.is_some_and(|from| scope < from) {
                return Ok(());
            }
            let found = self.rows_of(scope, now)?;
            let rows = found.into_iter().flat_map(|found| found.rows);
            page.take(&scope.to_string(), rows.map(Record::Message));
            Ok(())
        })
    }

    fn entry_page(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        page: &mut RecordPage,
    ) -> Result<(), Error> {
        let from: Option<usize> = page.key.as_deref().and_then(|key| key.parse().ok());
        let files = self.entry_files(kind)?.into_iter().enumerate();
        for (number, path) in files.skip(from.unwrap_or_default()) {
            if page.is_full() {
                break;
            }
            let entries = self.entries(&path)?.into_iter();
            let wanted = entries.filter(|entry| owner.is_none_or(|owner| entry.is_of(owner)));
            page.take(&number.to_string(), wanted);
        }
        Ok(())
    }

    pub(super) fn write(&self, records: &[Record]) -> Result<(), Error> {
        let mut rows: BTreeMap<Scope, Vec<&StoredMessage>> = BTreeMap::new();
        for record in records {
            match record {
                Record::Message(row) => {
                    check(row)?;
                    self.conversation_file(row.scope)?;
                    rows.entry(row.scope).or_default().push(row);
                }
                Record::Snapshot(_) => return Err(no_snapshots()),
                Record::Receipt(_) => return Err(no_receipts()),
                Record::Marker(key, _) => super::check_agent(&key.agent)?,
                Record::Agent(agent, _) => super::check_agent(agent)?,
                Record::Fact(_)
                | Record::OptOut(..)
                | Record::Settings(..)
                | Record::Departure(..) => {}
            }
        }
        for (scope, rows) in rows {
            self.put_rows(scope, &rows)?;
        }
        self.put(records)
    }

    pub(super) fn stats(&self) -> Result<Vec<KindStats>, Error> {
        let stats = Kind::ALL.into_iter().map(|kind| {
            let mut stats = KindStats::none(kind);
            let mut count = |record: &Record| stats.count(text_bytes(record), record.at());
            if kind == Kind::Messages {
                self.each_row(ConversationsIn::Everywhere, None, &mut |row| {
                    count(&Record::Message(row));
                })?;
            } else {
                self.each_of(kind, &mut count)?;
            }
            Ok(stats)
        });
        stats.collect()
    }

    pub(super) fn sizes(&self) -> Result<Vec<PartSize>, Error> {
        let parts = [
            ("context", &self.dir),
            ("profiles of users", &self.users),
            ("profiles of servers", &self.servers),
        ];
        let sizes = parts.into_iter().map(|(part, folder)| {
            let bytes = disk::size_below(folder)?;
            Ok(PartSize::new(part, bytes))
        });
        sizes.collect()
    }
}

/// A page being filled. Its cursor is `place#entries`: that many entries of
/// that place were already returned.
struct RecordPage {
    /// The place to continue from.
    key: Option<String>,
    skip: usize,
    limit: usize,
    records: Records,
}

impl RecordPage {
    fn new(after: Option<&Cursor>, limit: usize) -> Result<Self, Error> {
        let mut page = Self {
            key: None,
            skip: 0,
            limit,
            records: Records::default(),
        };
        if let Some(cursor) = after {
            let read = cursor.0.rsplit_once('#');
            let read = read.and_then(|(key, skip)| Some((key, skip.parse().ok()?)));
            let (key, skip) = read.ok_or_else(|| Error::Corrupt {
                operation: "go on reading",
                place: "a cursor of another store".to_owned(),
                source: None,
            })?;
            page.key = Some(key.to_owned());
            page.skip = skip;
        }
        Ok(page)
    }

    fn is_full(&self) -> bool {
        self.records.next.is_some()
    }

    /// Adds the entries of the next place.
    fn take(&mut self, key: &str, entries: impl Iterator<Item = Record>) {
        let begun = self.key.take().is_some_and(|begun| begun == key);
        let skip = if begun { self.skip } else { 0 };
        for (at, entry) in entries.enumerate().skip(skip) {
            if self.records.records.len() == self.limit {
                self.records.next = Some(Cursor(format!("{key}#{at}")));
                return;
            }
            self.records.records.push(entry);
        }
    }
}

fn text_bytes(record: &Record) -> usize {
    match record {
        Record::Message(row) => row.content.len(),
        Record::Fact(fact) => fact.text.len(),
        Record::Marker(..)
        | Record::Snapshot(_)
        | Record::Receipt(_)
        | Record::OptOut(..)
        | Record::Settings(..)
        | Record::Agent(..)
        | Record::Departure(..) => 0,
    }
}
