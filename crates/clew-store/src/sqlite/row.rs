//! Converts values to columns and back.

use std::cell::{Cell, RefCell};
use std::ptr;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::fault::{Fault, Outcome};
use super::statement::run;
use super::texts;
use crate::columns::{self, Columns, ROW};
use crate::model::StoredMessage;
use clew_context::model::{ContentSource, UnixMillis};

/// Times whose texts sort by their fixed width: years 0 to 9999, in
/// milliseconds.
const TIMES: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_207_199_999;

/// The columns of a row of a turn, in the order they are read.
pub(super) const MESSAGE: &str = "id, scope, agent_name, turn_id, ordinal, role, guild_id, \
     thread_id, owner_id, author_name, content, tool_calls, tool_call_id, timestamp, \
     discord_message_id, parts, target_id, restored_from, sources";

/// A time as stored: of fixed width, so that it sorts.
pub(super) fn time_text(time: UnixMillis) -> String {
    UnixMillis(time.0.clamp(*TIMES.start(), *TIMES.end())).rfc3339()
}

/// An id as stored.
pub(super) const fn number(id: u64) -> i64 {
    id.cast_signed()
}

/// The columns that were read of a query's first row, in order, each with its index: searching the names for
/// each row would cost more than the reading.
#[derive(Default)]
pub(super) struct ReadOrder(RefCell<Vec<(&'static str, usize)>>);

/// A row being read, which can name its place in errors.
pub(super) struct SqliteRow<'row> {
    table: &'static str,
    row: &'row Row<'row>,
    order: &'row ReadOrder,
    /// How many columns were read.
    read: Cell<usize>,
}

impl<'row> SqliteRow<'row> {
    /// A row whose first column is its key.
    pub(super) const fn of(
        table: &'static str,
        row: &'row Row<'row>,
        order: &'row ReadOrder,
    ) -> Self {
        Self {
            table,
            row,
            order,
            read: Cell::new(0),
        }
    }

    fn value(&self, column: &'static str) -> Outcome<ValueRef<'row>> {
        let index = self.index(column).ok_or_else(|| self.unfit(column))?;
        self.row.get_ref(index).map_err(|_| self.unfit(column))
    }

    fn index(&self, column: &'static str) -> Option<usize> {
        let read = self.read.replace(self.read.get() + 1);
        let mut order = self.order.0.borrow_mut();
        match order.get(read) {
            Some((name, index)) if ptr::eq(*name, column) => return Some(*index),
            _ => order.truncate(read),
        }
        let index = self.row.as_ref().column_index(column).ok()?;
        order.push((column, index));
        Some(index)
    }
}

impl Columns for SqliteRow<'_> {
    type Fault = Fault;

    fn number(&self, column: &'static str) -> Outcome<Option<i64>> {
        let number = self.value(column)?.as_i64_or_null();
        number.map_err(|_| self.unfit(column))
    }

    fn text(&self, column: &'static str) -> Outcome<Option<&str>> {
        let text = self.value(column)?.as_str_or_null();
        text.map_err(|_| self.unfit(column))
    }

    fn bytes(&self, column: &'static str) -> Outcome<&[u8]> {
        let bytes = self.value(column)?.as_blob();
        bytes.map_err(|_| self.unfit(column))
    }

    fn maybe_time(&self, column: &'static str) -> Outcome<Option<UnixMillis>> {
        self.maybe_read(column, UnixMillis::parse)
    }

    fn flag(&self, column: &'static str) -> Outcome<bool> {
        self.id(column, |flag| flag != 0)
    }

    fn unfit(&self, column: &'static str) -> Fault {
        let key = match self.row.get_ref(0) {
            Ok(ValueRef::Integer(key)) => key.to_string(),
            Ok(ValueRef::Text(key)) => String::from_utf8_lossy(key).into_owned(),
            _ => "?".to_owned(),
        };
        Fault::Row {
            table: self.table,
            key,
            column,
        }
    }
}

/// Values as the tables hold them.
impl ToSql for columns::Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => Ok(rusqlite::types::Null.into()),
            Self::Flag(flag) => flag.to_sql(),
            Self::Number(number) => number.to_sql(),
            Self::Numbers(numbers) => {
                let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                Ok(format!("[{}]", texts.join(",")).into())
            }
            Self::Text(text) => text.as_ref().to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
            Self::Time(time) => Ok(time_text(*time).into()),
        }
    }
}

/// Whether a row's answer is known to be posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is not, or not wholly.
    Early,
    /// It is.
    Confirmed,
}

/// Inserts a row with its ordinal and its position in the turn. Returns its
/// number.
pub(super) fn insert_message(
    connection: &Connection,
    message: &StoredMessage,
    position: i64,
    stage: Stage,
) -> Outcome<i64> {
    let text = texts::add_message(connection, message)?;
    let mut insert = connection.prepare_cached(&format!(
        "INSERT INTO message_rows ({ROW}, text_id, parts, early, gone)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, 0)"
    ))?;
    let values = columns::row_cells(message, position).into_iter().chain([
        columns::Cell::Number(text),
        columns::Cell::maybe_text(columns::write_ids(&message.parts)),
        columns::Cell::Flag(stage == Stage::Early),
    ]);
    let row = insert.insert(params_from_iter(values))?;
    insert_sources(connection, "message_sources", row, &message.sources)?;
    Ok(row)
}

/// Confirms an early row with the ids that its messages have by now.
pub(super) fn confirm_message(
    connection: &Connection,
    row: i64,
    message: &StoredMessage,
) -> Outcome<()> {
    let sql = "UPDATE message_rows SET early = 0, discord_message_id = ?2, parts = ?3,
         target_id = ?4 WHERE id = ?1";
    let first = message.message.map(|id| number(id.get()));
    let target = message.target.map(|id| number(id.get()));
    let values = (row, first, columns::write_ids(&message.parts), target);
    run(connection, sql, values).map(drop)
}

/// Inserts what an entry was made from.
pub(super) fn insert_sources<'a>(
    connection: &Connection,
    table: &str,
    entry: i64,
    sources: impl IntoIterator<Item = &'a ContentSource>,
) -> Outcome<()> {
    let mut sources = sources.into_iter().peekable();
    if sources.peek().is_some() {
        let sql = format!(
            "INSERT INTO {table} SELECT ?1, key, value ->> 0, value ->> 1, value ->> 2, value ->> 3
             FROM json_each(?2)"
        );
        run(connection, &sql, (entry, columns::source_ids(sources)))?;
    }
    Ok(())
}
