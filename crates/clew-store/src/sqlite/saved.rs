//! Snapshots: a row about each, with its messages in a file.
//!
//! To save one, its row is written first, marked as not ready, then the file,
//! then the mark is cleared: after a kill in between, the row tells which file
//! to remove. Removals change the file first: after a kill in between, a file
//! holds less than its row says, never more.

use rusqlite::{Connection, Row, params_from_iter};

use super::fault::{Fault, Outcome};
use super::row::{self, SqliteRow, number, time_text};
use super::session::Session;
use super::statement::{all, first, run};
use super::texts;
use crate::Error;
use crate::columns::{self, Cell, Columns};
use crate::model::{ContextSnapshot, ContextSnapshotInfo, SnapshotId, StoredMessage};
use crate::snapshots::{held_messages, held_sources};
use clew_context::model::UserId;

/// The columns [`info`] reads.
pub(super) const INFO: &str = "seq, message_count, id, agent_name, owner_id, guild_id, timestamp, \
     description, summary, window_start, window_end";

/// Reads a row of `snapshots` with the columns of [`INFO`], and its number.
fn info(row: &Row<'_>) -> Outcome<(i64, ContextSnapshotInfo)> {
    let row = SqliteRow::of("snapshots", row);
    let seq = row.id("seq", u64::cast_signed)?;
    Ok((seq, columns::snapshot(&row)?))
}

/// Saves snapshots, all or none; their rows become ready in the same
/// transaction in which `finish` does the caller's other work. Old snapshots
/// with the same ids are removed in any case.
pub(super) fn save(
    session: &Session,
    snapshots: &[&ContextSnapshot],
    finish: impl Fn() -> Outcome<()>,
) -> Outcome<()> {
    if !snapshots.is_empty() {
        forget(session, snapshots)?;
        session.transact(|connection| {
            let mut rows = snapshots.iter();
            rows.try_for_each(|snapshot| insert_pending(connection, snapshot))
        })?;
    }
    let mut rest = snapshots.iter();
    let written = rest.try_for_each(|snapshot| session.snapshots.write(snapshot));
    let saved = written.map_err(Fault::from).and_then(|()| {
        session.transact(|connection| {
            finish()?;
            let mut ready =
                connection.prepare_cached("UPDATE snapshot_rows SET ready = 1 WHERE id = ?1")?;
            for snapshot in snapshots {
                ready.execute([snapshot.info.id.as_str()])?;
            }
            Ok(())
        })
    });
    if saved.is_err() && !snapshots.is_empty() {
        // Report the first error; what stays is removed at the next start.
        drop(remove_pending(session));
    }
    saved
}

/// Removes snapshots with these ids, files first.
fn forget(session: &Session, snapshots: &[&ContextSnapshot]) -> Outcome<()> {
    for snapshot in snapshots {
        let old = select(session, "id = ?1", [snapshot.info.id.as_str()])?;
        for (seq, info) in old {
            session.snapshots.remove(&info)?;
            session.transact(|_| remove_row(session, seq))?;
        }
    }
    Ok(())
}

/// Removes what a kill left half saved.
pub(super) fn remove_pending(session: &Session) -> Outcome<()> {
    for (seq, info) in select(session, "ready = 0", [])? {
        session.snapshots.remove(&info)?;
        session.transact(|_| remove_row(session, seq))?;
    }
    Ok(())
}

fn remove_row(session: &Session, seq: i64) -> Outcome<()> {
    let sql = "DELETE FROM snapshot_rows WHERE seq = ?1 RETURNING text_id";
    let text = first(&session.connection, sql, [seq], |row| Ok(row.get(0)?))?;
    text.map_or(Ok(()), |text| texts::SNAPSHOTS.blank(session, text))
}

fn insert_pending(connection: &Connection, snapshot: &ContextSnapshot) -> Outcome<()> {
    let info = &snapshot.info;
    let mut insert = connection.prepare_cached(
        "INSERT INTO snapshot_rows (id, agent_name, owner_id, guild_id, timestamp, message_count,
             window_start, window_end, oldest, text_id, ready)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)",
    )?;
    let text = texts::SNAPSHOTS.add(connection, (&info.summary, &info.description))?;
    let values = columns::snapshot_cells(snapshot).into_iter();
    let seq = insert.insert(params_from_iter(values.chain([Cell::Number(text)])))?;
    insert_contents(connection, seq, &snapshot.messages)
}

/// Stores which messages and channels are in a snapshot, and what it was made
/// from.
fn insert_contents(connection: &Connection, seq: i64, messages: &[StoredMessage]) -> Outcome<()> {
    let sql = "INSERT OR IGNORE INTO snapshot_messages (channel_id, message_id, guild_id, snapshot)
         SELECT value ->> 0, value ->> 1, value ->> 2, ?1 FROM json_each(?2)";
    let held = Cell::json(&held_messages(messages));
    run(connection, sql, (seq, held))?;
    row::insert_sources(connection, "snapshot_sources", seq, &held_sources(messages))
}

/// Rows of snapshots, including those not ready.
pub(super) fn select(
    session: &Session,
    which: &str,
    key: impl rusqlite::Params,
) -> Outcome<Vec<(i64, ContextSnapshotInfo)>> {
    let order = "ORDER BY timestamp DESC, seq DESC";
    let sql = format!("SELECT {INFO} FROM snapshots WHERE {which} {order}");
    all(&session.connection, &sql, key, info)
}

/// One of a user's snapshots.
pub(super) fn snapshot(
    session: &Session,
    owner: UserId,
    id: &SnapshotId,
) -> Outcome<Option<ContextSnapshot>> {
    let which = "ready AND id = ?1 AND owner_id = ?2";
    let find = || select(session, which, (id.as_str(), number(owner.get())));
    let Some((_, info)) = find()?.pop() else {
        return Ok(None);
    };
    match session.snapshots.read(&info) {
        Ok(snapshot) => {
            let messages = snapshot.messages;
            Ok(Some(ContextSnapshot { info, messages }))
        }
        // It was removed after its row was found.
        Err(_) if find()?.is_empty() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A whole snapshot, given its row.
pub(super) fn whole(
    session: &Session,
    info: ContextSnapshotInfo,
) -> Result<ContextSnapshot, Error> {
    let messages = session.snapshots.read(&info)?.messages;
    Ok(ContextSnapshot { info, messages })
}

/// What to do with a snapshot.
pub(super) enum SnapshotChange {
    /// Remove it.
    Removed(i64, ContextSnapshotInfo),
    /// Rewrite it, with fewer rows or other text.
    Rewritten(i64, ContextSnapshot),
}

/// Changes files first (see above), then rows by [`change_rows`].
pub(super) fn change_files(session: &Session, changes: &[SnapshotChange]) -> Outcome<()> {
    for change in changes {
        match change {
            SnapshotChange::Removed(_, info) => drop(session.snapshots.remove(info)?),
            SnapshotChange::Rewritten(_, snapshot) => session.snapshots.write(snapshot)?,
        }
    }
    Ok(())
}

/// Updates the rows of what [`change_files`] changed.
pub(super) fn change_rows(session: &Session, changes: &[SnapshotChange]) -> Outcome<()> {
    let connection = &session.connection;
    for change in changes {
        match change {
            SnapshotChange::Removed(seq, _) => remove_row(session, *seq)?,
            SnapshotChange::Rewritten(seq, snapshot) => {
                for table in ["snapshot_messages", "snapshot_sources"] {
                    let sql = format!("DELETE FROM {table} WHERE snapshot = ?1");
                    run(connection, &sql, [seq])?;
                }
                insert_contents(connection, *seq, &snapshot.messages)?;
                let sql = "UPDATE snapshot_rows SET text_id = ?2, message_count = ?3, oldest = ?4
                     WHERE seq = ?1";
                let text = replace_text(session, *seq, &snapshot.info)?;
                let count = i64::try_from(snapshot.info.message_count).unwrap_or(i64::MAX);
                let oldest = snapshot.oldest().map(time_text);
                run(connection, sql, (seq, text, count, oldest))?;
            }
        }
    }
    Ok(())
}

/// Replaces a snapshot's summary and description.
fn replace_text(session: &Session, seq: i64, info: &ContextSnapshotInfo) -> Outcome<i64> {
    let connection = &session.connection;
    let mut old = connection.prepare_cached("SELECT text_id FROM snapshot_rows WHERE seq = ?1")?;
    let old: i64 = old.query_row([seq], |row| row.get(0))?;
    texts::SNAPSHOTS.blank(session, old)?;
    texts::SNAPSHOTS.add(connection, (&info.summary, &info.description))
}
