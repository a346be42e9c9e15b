//! Purges, by kind, and edits, which also remove text.

use rusqlite::params_from_iter;

use super::fault::Outcome;
use super::row::number;
use super::saved::{self, SnapshotChange};
use super::session::Session;
use super::statement::{all, at_once, run};
use super::tables::COUNTERS;
use super::{facts, texts};
use crate::columns::Cell;
use crate::snapshots::SnapshotRest;
use crate::sql::{Database as _, See, ids};
use crate::{Kind, Purge, Purged, snapshots};
use clew_context::model::{ChannelId, MessageId};

/// Purges all kinds. Rewritten snapshots count as removed.
pub(super) fn purge(session: &Session, purge: &Purge) -> Outcome<Purged> {
    let changes = snapshots_changed(session, purge)?;
    saved::change_files(session, &changes)?;
    session.transact(|connection| {
        saved::change_rows(session, &changes)?;
        let mut purged = Purged::default();
        purged.add(Kind::Snapshots, changes.len() as u64);
        for kind in Kind::ALL {
            purged.add(kind, rows_gone(session, kind, purge, u64::MAX)?);
        }
        if let Some(which) = COUNTERS.reached(purge) {
            let key = params_from_iter(purge.cells());
            run(connection, &COUNTERS.delete(&which), key)?;
        }
        Ok(purged)
    })
}

/// Removes some of the rows of turns that a purge reaches, so that other calls get a turn
/// before the next, and a process that ends need not wait for the last. Returns how many.
pub(super) fn some_messages(session: &Session, purge: &Purge, most: u64) -> Outcome<u64> {
    session.transact(|_| rows_gone(session, Kind::Messages, purge, most))
}

/// Removes a kind's rows, of turns at most `most`. Returns how many were removed.
fn rows_gone(session: &Session, kind: Kind, purge: &Purge, most: u64) -> Outcome<u64> {
    let Some(table) = Session::table(kind) else {
        return Ok(0);
    };
    let mut gone = 0;
    for which in table.purged(kind, purge) {
        let key = params_from_iter(purge.cells());
        gone += match kind {
            Kind::Messages => {
                let left = most.saturating_sub(gone);
                texts::remove_some_messages(session, &which, key, left)?
            }
            // They are removed with their files.
            Kind::Snapshots => 0,
            Kind::UserFacts | Kind::ServerFacts => facts::remove_where(session, &which, key)?,
            Kind::Markers
            | Kind::Receipts
            | Kind::OptOuts
            | Kind::Settings
            | Kind::Agents
            | Kind::Departures
            | Kind::Transcripts
            | Kind::Outputs => run(&session.connection, &table.delete(&which), key)?,
        };
    }
    Ok(gone)
}

/// What to do with each snapshot that a purge affects.
fn snapshots_changed(session: &Session, purge: &Purge) -> Outcome<Vec<SnapshotChange>> {
    let Some(which) = Session::table(Kind::Snapshots).and_then(|table| table.concerned(purge))
    else {
        return Ok(Vec::new());
    };
    let mut changes = Vec::new();
    for (seq, info) in saved::select(session, &which, params_from_iter(purge.cells()))? {
        if purge.takes_whole(&info) {
            changes.push(SnapshotChange::Removed(seq, info));
            continue;
        }
        match SnapshotRest::after(purge, saved::whole(session, info.clone()))? {
            SnapshotRest::Same => {}
            SnapshotRest::Less(rest) => changes.push(SnapshotChange::Rewritten(seq, rest)),
            SnapshotRest::Gone => changes.push(SnapshotChange::Removed(seq, info)),
        }
    }
    Ok(changes)
}

/// Gives a message's rows, and their copies in snapshots, a new text. An answer
/// of several messages keeps its text, since one message is only part of it.
pub(super) fn edit_message(
    session: &Session,
    channel: ChannelId,
    message: MessageId,
    text: &str,
) -> Outcome<u64> {
    let key = (number(channel.get()), number(message.get()));
    let mut changes = Vec::new();
    let which = "seq IN (SELECT snapshot FROM snapshot_messages
         WHERE channel_id = ?1 AND message_id = ?2)";
    for (seq, info) in saved::select(session, which, key)? {
        let snapshot = saved::whole(session, info)?;
        let edited = snapshots::with_edit(&snapshot, channel, message, text);
        if let Some(edited) = edited.filter(|edited| *edited != snapshot) {
            changes.push(SnapshotChange::Rewritten(seq, edited));
        }
    }
    saved::change_files(session, &changes)?;
    session.transact(|connection| {
        saved::change_rows(session, &changes)?;
        let sql = "SELECT r.id
             FROM message_ids h
                 CROSS JOIN message_rows r ON r.id = h.row_id
                 CROSS JOIN message_texts t ON t.id = r.text_id
             WHERE h.channel_id = ?1 AND h.message_id = ?2 AND NOT r.gone
                 AND r.discord_message_id = ?2
                 AND (r.parts IS NULL OR r.role = 'user')
                 AND t.content <> ?3";
        let values = (key.0, key.1, text);
        let rows: Vec<i64> = all(connection, sql, values, |row| Ok(row.get(0)?))?;
        for id in &rows {
            texts::edit_message(session, *id, text)?;
        }
        Ok(rows.len() as u64)
    })
}

/// See [`super::super::Backend::held_messages`].
pub(super) fn held_messages(
    session: &Session,
    channel: ChannelId,
    from: MessageId,
    to: MessageId,
) -> Outcome<Vec<MessageId>> {
    let sql =
        "SELECT h.message_id AS id FROM message_ids h CROSS JOIN message_rows r ON r.id = h.row_id
             WHERE h.channel_id = ?1 AND h.message_id BETWEEN max(?2, 1) AND ?3 AND NOT r.gone
         UNION SELECT message_id FROM snapshot_messages
             WHERE channel_id = ?1 AND message_id BETWEEN max(?2, 1) AND ?3
         UNION SELECT s.message_id FROM message_sources s
                 CROSS JOIN message_rows r ON r.id = s.row_id
             WHERE s.channel_id = ?1 AND s.message_id BETWEEN ?2 AND ?3 AND NOT r.gone
         UNION SELECT message_id FROM snapshot_sources
             WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
         UNION SELECT other FROM receipt_keys
             WHERE kind = 0 AND id = ?1 AND other BETWEEN max(?2, 1) AND ?3
         UNION SELECT link_message FROM fact_rows
             WHERE link_channel = ?1 AND link_message BETWEEN ?2 AND ?3
         ORDER BY 1";
    // No Discord id uses the highest bit, but a range may.
    let bound = |id: MessageId| Cell::Number(i64::try_from(id.get()).unwrap_or(i64::MAX));
    let values = [Cell::id(channel.get()), bound(from), bound(to)];
    at_once(ids(session, See::All, sql, &values, MessageId::new))
}
