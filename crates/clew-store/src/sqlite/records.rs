//! Reads and writes all entries as values, and counts them.

use rusqlite::{Connection, params_from_iter};

use super::fault::Outcome;
use super::messages::State;
use super::row::{self, Stage, number};
use super::saved;
use super::session::Session;
use super::statement::{all, at_once, run};
use crate::columns::{self, RECEIPT};
use crate::model::{StoredMessage, StoredReceipt};
use crate::sql::{self, Placed};
use crate::table::Table;
use crate::{PartSize, Record};

/// Writes entries unchanged, replacing those with the same key. In the caller's
/// transaction, unless there are snapshots among them.
pub(super) fn write(session: &Session, records: &[Record]) -> Outcome<()> {
    let snapshots: Vec<_> = records.iter().filter_map(Record::snapshot).collect();
    let write_rows = || at_once(sql::write(session, records));
    if snapshots.is_empty() {
        return write_rows();
    }
    saved::save(session, &snapshots, write_rows)
}

/// Writes a receipt, replacing the one of its turn.
pub(super) fn put_receipt(connection: &Connection, receipt: &StoredReceipt) -> Outcome<()> {
    let turn = [number(receipt.turn.0)];
    let table = Table::RECEIPTS;
    run(connection, &table.delete(&table.of_key()), turn)?;
    let sql = format!(
        "INSERT INTO receipts ({RECEIPT}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    );
    let values = params_from_iter(columns::receipt_cells(receipt));
    run(connection, &sql, values).map(drop)
}

/// Inserts a row that has its ordinal.
pub(super) fn insert_row(session: &Session, (message, position): Placed<'_>) -> Outcome<()> {
    let connection = &session.connection;
    let mut state = State::of(connection, message.scope, &message.agent)?;
    let newest = state.newest()?;
    row::insert_message(connection, message, position, Stage::Confirmed)?;
    let is_next =
        newest.is_none_or(|(ordinal, time)| message.ordinal > ordinal && message.timestamp >= time);
    if is_next || is_last_turn(connection, message)? {
        return Ok(());
    }
    state.disorder()
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
