//! Reads and writes all entries as values, and counts them.

use std::collections::HashSet;

use rusqlite::{Connection, params, params_from_iter};

use super::fault::{Fault, Outcome};
use super::messages::{OF_TURN, State};
use super::row::{self, SqliteRow, Stage, number};
use super::session::Session;
use super::statement::{all, first, run};
use super::tables::table;
use super::{facts, receipts, saved, texts};
use crate::columns;
use crate::model::StoredMessage;
use crate::{Cursor, Kind, KindStats, PartSize, Record, RecordKey, Records};
use clew_context::model::UserId;

/// Entries of a kind, continuing from a cursor.
pub(super) fn records(
    session: &Session,
    kind: Kind,
    owner: Option<UserId>,
    after: Option<&Cursor>,
    limit: usize,
) -> Outcome<Records> {
    let Some(table) = table(kind) else {
        return Ok(Records::default());
    };
    let page = table.page(owner, after, limit).map_err(Fault::Unfit)?;
    let Some((sql, values)) = page else {
        return Ok(Records::default());
    };
    let found = all(&session.connection, &sql, params_from_iter(values), |row| {
        columns::entry(kind, &table, &SqliteRow::of(table.name, row))
    });
    let mut page = Records::first(limit, found?);
    for snapshot in page.records.iter_mut().filter_map(Record::snapshot_mut) {
        *snapshot = saved::what_is_left(session, snapshot.info.clone())?;
    }
    Ok(page)
}

/// Writes entries unchanged, replacing those with the same key. In the caller's
/// transaction, unless there are snapshots among them.
pub(super) fn write(session: &Session, records: &[Record]) -> Outcome<()> {
    let snapshots: Vec<_> = records.iter().filter_map(Record::snapshot).collect();
    let write_rows = || {
        let mut written = HashSet::new();
        let mut rows = records.iter();
        rows.try_for_each(|record| write_one(session, record, &mut written))
    };
    if snapshots.is_empty() {
        return write_rows();
    }
    saved::save(session, &snapshots, write_rows)
}

fn write_one(session: &Session, record: &Record, written: &mut HashSet<i64>) -> Outcome<()> {
    match record {
        Record::Message(message) => write_message(session, message, written),
        // Its row is written together with its file.
        Record::Snapshot(_) => Ok(()),
        Record::Receipt(receipt) => receipts::put(&session.connection, receipt),
        Record::Fact(fact) => facts::put(session, fact),
        Record::Marker(..)
        | Record::OptOut(..)
        | Record::Settings(..)
        | Record::Agent(..)
        | Record::Departure(..) => put(session, record),
    }
}

/// Writes a list's entry.
fn put(session: &Session, record: &Record) -> Outcome<()> {
    if let (Some(table), Some(key)) = (table(record.kind()), record.key()) {
        let cells = key.cells().into_iter().chain(columns::list_value(record));
        run(&session.connection, &table.put(), params_from_iter(cells))?;
    }
    Ok(())
}

/// Removes entries by their keys. Returns how many there were.
pub(super) fn remove(session: &Session, keys: &[RecordKey]) -> Outcome<u64> {
    session.transact(|_| {
        let gone = keys.iter().map(|key| match key {
            RecordKey::Fact(fact) => facts::remove_where(session, "id = ?1", [number(fact.0)]),
            RecordKey::Marker(_)
            | RecordKey::Receipt(_)
            | RecordKey::OptOut(_)
            | RecordKey::Settings(_)
            | RecordKey::Agent(_)
            | RecordKey::Departure(_) => remove_entry(session, key),
        });
        gone.sum()
    })
}

fn remove_entry(session: &Session, key: &RecordKey) -> Outcome<u64> {
    let tables = key.kinds().iter().filter_map(|kind| table(*kind));
    let gone = tables.map(|table| {
        let cells = params_from_iter(key.cells());
        run(&session.connection, &table.remove(), cells)
    });
    gone.sum()
}

/// Writes a row, replacing one with the same key: turn, role, call and message.
/// Rows in `written` are not replaced, so that two with the same key stay
/// separate if written together.
fn write_message(
    session: &Session,
    message: &StoredMessage,
    written: &mut HashSet<i64>,
) -> Outcome<()> {
    let connection = &session.connection;
    let mut state = State::of(connection, message.scope, &message.agent)?;
    let newest = state.newest()?;
    let place = place_of(connection, message, written)?;
    let scope = message.scope.to_string();
    let turn = (
        number(message.turn.0),
        scope.as_str(),
        message.agent.as_str(),
    );
    let position = match place {
        Some((id, position)) => {
            texts::remove_messages(session, "id = ?1", [id])?;
            position
        }
        None => connection
            .prepare_cached(&format!(
                "SELECT coalesce(max(position) + 1, 0) FROM message_rows
                 WHERE NOT gone AND {OF_TURN}"
            ))?
            .query_row(turn, |row| row.get(0))?,
    };
    written.insert(row::insert_message(
        connection,
        message,
        position,
        Stage::Confirmed,
    )?);
    let is_next =
        newest.is_none_or(|(ordinal, time)| message.ordinal > ordinal && message.timestamp >= time);
    state.last_ordinal = state.last_ordinal.max(message.ordinal);
    state.disordered = state.disordered || !(is_next || is_last_turn(connection, message)?);
    state.keep()
}

/// Whether this turn's rows are still the conversation's last, in order of
/// time.
fn is_last_turn(connection: &Connection, message: &StoredMessage) -> Outcome<bool> {
    let sql = "SELECT turn_id, timestamp FROM message_rows
         WHERE scope = ?1 AND agent_name = ?2 AND NOT gone
         ORDER BY ordinal DESC, turn_id DESC, position DESC LIMIT 2";
    let key = (message.scope.to_string(), message.agent.as_str());
    let rows: Vec<(i64, String)> = all(connection, sql, key, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let times = rows.iter().map(|(_, time)| time);
    let is_ours = rows
        .first()
        .is_some_and(|(turn, _)| *turn == number(message.turn.0));
    Ok(is_ours && times.is_sorted_by(|newer, older| newer >= older))
}

/// The row with the same key, unless it was just written, and its position.
fn place_of(
    connection: &Connection,
    message: &StoredMessage,
    written: &HashSet<i64>,
) -> Outcome<Option<(i64, i64)>> {
    let sql = format!(
        "SELECT id, position FROM messages
         WHERE {OF_TURN} AND role = ?4
             AND tool_calls IS ?5 AND tool_call_id IS ?6 AND discord_message_id IS ?7
         ORDER BY position"
    );
    let key = params![
        number(message.turn.0),
        message.scope.to_string(),
        message.agent.as_str(),
        message.role.as_str(),
        message.tool_calls,
        message.tool_call_id,
        message.message.map(|id| number(id.get())),
    ];
    let rows: Vec<(i64, i64)> = all(connection, &sql, key, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.into_iter().find(|(id, _)| !written.contains(id)))
}

/// How much is stored of each kind. The bytes of snapshots' files are not counted.
pub(super) fn stats(session: &Session) -> Outcome<Vec<KindStats>> {
    let tables = Kind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, table(kind)?)));
    let counted = tables.map(|(kind, table)| {
        let found = first(&session.connection, &table.count(), [], |row| {
            columns::stats(kind, &SqliteRow::of(table.name, row))
        });
        Ok(found?.unwrap_or(KindStats::none(kind)))
    });
    counted.collect()
}

/// What the database and the files of snapshots take on disk.
pub(super) fn sizes(session: &Session) -> Outcome<Vec<PartSize>> {
    let pragma = |name| {
        let value = session
            .connection
            .pragma_query_value(None, name, |row| row.get(0));
        value.map(i64::cast_unsigned)
    };
    let page_bytes = pragma("page_size")?;
    let log = session.connection.path().map(|path| format!("{path}-wal"));
    let log = log.and_then(|path| std::fs::metadata(path).ok());
    let mut sizes = vec![
        PartSize::new("database", pragma("page_count")? * page_bytes),
        PartSize::new(
            "unused part of the database",
            pragma("freelist_count")? * page_bytes,
        ),
        PartSize::new("write-ahead log", log.map_or(0, |about| about.len())),
    ];
    sizes.extend(session.snapshots.size()?);
    Ok(sizes)
}
