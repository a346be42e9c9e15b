//! Statements, prepared once for a connection, and what is read of their rows.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::{Connection, Params, Row, params_from_iter};

use super::fault::{Fault, Outcome};
use super::row::{ReadOrder, SqliteRow};
use super::session::Session;
use super::{facts, records, saved, texts};
use crate::columns::Cell;
use crate::model::{ContextSnapshot, Fact, StoredMessage, StoredReceipt};
use crate::sql::{Database, Placed, See};
use crate::table::Table;
use crate::{Error, SnapshotFiles};

impl Database for Session {
    type Fault = Fault;
    type Row<'a> = SqliteRow<'a>;

    async fn all<T>(
        &self,
        _: See,
        table: &'static str,
        sql: &str,
        values: &[Cell<'_>],
        mut read: impl FnMut(&SqliteRow<'_>) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let values = params_from_iter(values);
        let order = ReadOrder::default();
        all(&self.connection, sql, values, |row| {
            read(&SqliteRow::of(table, row, &order))
        })
    }

    async fn run(&self, sql: &str, values: &[Cell<'_>]) -> Outcome<u64> {
        run(&self.connection, sql, params_from_iter(values))
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn readable(&self, row: Outcome<StoredMessage>) -> Outcome<Option<StoredMessage>> {
        match row {
            Ok(message) => Ok(Some(message)),
            Err(Fault::Row { key, column, .. }) => {
                tracing::error!(
                    store = %self.place, row = key, column,
                    "a row of table messages cannot be read and was left out"
                );
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    async fn remove_where(&self, table: &Table, which: &str, values: &[Cell<'_>]) -> Outcome<u64> {
        let key = params_from_iter(values);
        match table.name {
            "messages" => texts::remove_messages(self, which, key),
            "facts" => texts::FACTS.remove_where(self, which, key),
            "snapshots" => texts::SNAPSHOTS.remove_where(self, which, key),
            _ => run(&self.connection, &table.delete(which), key),
        }
    }

    async fn insert_rows(&self, placed: &[Placed<'_>]) -> Outcome<()> {
        let mut placed = placed.iter();
        placed.try_for_each(|placed| records::insert_row(self, *placed))
    }

    async fn put_fact(&self, fact: &Fact) -> Outcome<()> {
        facts::put(self, fact)
    }

    async fn put_receipt(&self, receipt: &StoredReceipt) -> Outcome<()> {
        records::put_receipt(&self.connection, receipt)
    }

    async fn put_snapshot(&self, snapshot: &ContextSnapshot) -> Outcome<()> {
        saved::put_row(self, snapshot)
    }

    async fn at_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SnapshotFiles) -> Result<T, Error> + Send + 'static,
    ) -> Outcome<T> {
        Ok(work(&self.snapshots)?)
    }
}

/// The outcome of work that both databases do alike: here nothing is waited for.
pub(super) fn at_once<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(Fault::Unfit("a statement was waited for")),
    }
}

/// Runs a statement. Returns how many rows it changed.
pub(super) fn run(connection: &Connection, sql: &str, values: impl Params) -> Outcome<u64> {
    Ok(connection.prepare_cached(sql)?.execute(values)? as u64)
}

/// Reads every row.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let mut select = connection.prepare_cached(sql)?;
    select.query_and_then(values, read)?.collect()
}

/// Reads the first row, if there is one.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> Outcome<T>,
) -> Outcome<Option<T>> {
    let mut select = connection.prepare_cached(sql)?;
    select.query(values)?.next()?.map(read).transpose()
}
