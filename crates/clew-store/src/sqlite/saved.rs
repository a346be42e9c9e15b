//! Saving snapshots: a row about each, with its messages in a file.

use rusqlite::params_from_iter;

use super::fault::{Fault, Outcome};
use super::row::{self, number, time_text};
use super::session::Session;
use super::statement::{at_once, first, run};
use super::texts;
use crate::columns::{self, Cell};
use crate::model::ContextSnapshot;
use crate::snapshots::{held_messages, held_sources};
use crate::sql;

/// The columns of what is known of a snapshot, in the order they are read.
pub(super) const INFO: &str = "seq, message_count, id, agent_name, owner_id, guild_id, timestamp, \
     description, summary, window_start, window_end";

/// Saves snapshots, all or none; `finish` makes them ready in the transaction in which it does
/// the caller's other work. Old snapshots with the same ids are removed even if that fails.
pub(super) fn save(
    session: &Session,
    snapshots: &[&ContextSnapshot],
    finish: impl Fn() -> Outcome<()>,
) -> Outcome<()> {
    session.transact(|_| at_once(sql::announce(session, snapshots)))?;
    let mut files = snapshots.iter();
    let written = files.try_for_each(|snapshot| session.snapshots.write(snapshot));
    let saved = written.map_err(Fault::from);
    let saved = saved.and_then(|()| session.transact(|_| finish()));
    if saved.is_err() {
        // Report the first error; what stays is removed at the next start.
        drop(remove_pending(session));
    }
    saved
}

/// Removes what a kill left half saved.
pub(super) fn remove_pending(session: &Session) -> Outcome<()> {
    session.transact(|_| at_once(sql::take_back(session, None)))
}

/// Writes a snapshot's row, which messages and channels are in it, and what it was made from.
pub(super) fn put_row(session: &Session, snapshot: &ContextSnapshot) -> Outcome<()> {
    let connection = &session.connection;
    let ContextSnapshot { info, messages } = snapshot;
    let sql = "SELECT seq, text_id FROM snapshot_rows WHERE id = ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let old: Option<(i64, i64)> = first(connection, sql, [info.id.as_str()], read)?;
    let text = texts::SNAPSHOTS.add(connection, (&info.summary, &info.description))?;
    let seq = if let Some((seq, old_text)) = old {
        for table in ["snapshot_messages", "snapshot_sources"] {
            let sql = format!("DELETE FROM {table} WHERE snapshot = ?1");
            run(connection, &sql, [seq])?;
        }
        let sql = "UPDATE snapshot_rows SET text_id = ?2, message_count = ?3, oldest = ?4
             WHERE seq = ?1";
        let count = number(info.message_count as u64);
        let oldest = snapshot.oldest().map(time_text);
        run(connection, sql, (seq, text, count, oldest))?;
        texts::SNAPSHOTS.blank(session, old_text)?;
        seq
    } else {
        let mut insert = connection.prepare_cached(
            "INSERT INTO snapshot_rows (id, agent_name, owner_id, guild_id, timestamp,
                 message_count, window_start, window_end, oldest, text_id, ready)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)",
        )?;
        let values = columns::snapshot_cells(snapshot).into_iter();
        insert.insert(params_from_iter(values.chain([Cell::Number(text)])))?
    };
    let sql = "INSERT OR IGNORE INTO snapshot_messages (channel_id, message_id, guild_id, snapshot)
         SELECT value ->> 0, value ->> 1, value ->> 2, ?1 FROM json_each(?2)";
    let held = Cell::json(&held_messages(messages));
    run(connection, sql, (seq, held))?;
    row::insert_sources(connection, "snapshot_sources", seq, &held_sources(messages))
}
