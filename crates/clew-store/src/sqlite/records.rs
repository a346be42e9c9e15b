//! Reads and writes all entries as values, and counts them.

use std::collections::HashSet;

use rusqlite::{Connection, params, params_from_iter};

use super::fault::Outcome;
use super::messages::{OF_TURN, State};
use super::row::{self, Stage, number};
use super::session::Session;
use super::statement::{all, at_once, run};
use super::{facts, saved, texts};
use crate::columns::{self, RECEIPT};
use crate::model::{StoredMessage, StoredReceipt};
use crate::sql;
use crate::table::Table;
use crate::{PartSize, Record, TurnKey};

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
        // `saved::save` has written its row and file.
        Record::Snapshot(snapshot) => at_once(sql::ready(session, &snapshot.info.id)),
        Record::Receipt(receipt) => put_receipt(&session.connection, receipt),
        Record::Fact(fact) => facts::put(session, fact),
        Record::Marker(..)
        | Record::OptOut(..)
        | Record::Settings(..)
        | Record::Agent(..)
        | Record::Departure(..) => at_once(sql::put(session, record)),
    }
}

/// Writes a receipt, replacing the one of its turn.
fn put_receipt(connection: &Connection, receipt: &StoredReceipt) -> Outcome<()> {
    let turn = [number(receipt.turn.0)];
    let table = Table::RECEIPTS;
    run(connection, &table.delete(&table.of_key()), turn)?;
    let sql = format!(
        "INSERT INTO receipts ({RECEIPT}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    );
    let values = params_from_iter(columns::receipt_cells(receipt));
    run(connection, &sql, values).map(drop)
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
            .query_row(params_from_iter(TurnKey::of(message).cells()), |row| {
                row.get(0)
            })?,
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

/// See [`super::super::Backend::try_writing`]: a row that is taken back writes its page.
pub(super) fn try_writing(session: &Session) -> Outcome<()> {
    let connection = &session.connection;
    connection.execute(
        "INSERT INTO markers (agent_name, guild_id, user_id, cleared_at) VALUES ('', 0, 0, '')",
        [],
    )?;
    connection.execute("DELETE FROM markers WHERE agent_name = ''", [])?;
    Ok(())
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
