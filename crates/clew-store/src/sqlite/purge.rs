//! Purges, by kind, and edits, which also remove text.

use rusqlite::{Connection, params_from_iter};

use super::fault::Fault;
use super::messages::OF_TURN;
use super::row::{number, time_text};
use super::saved::{self, SnapshotChange};
use super::session::Session;
use super::statement::{all, first, ids, run};
use super::tables::table;
use super::{facts, texts};
use crate::model::{Scope, StoredRole};
use crate::snapshots::SnapshotRest;
use crate::{Kind, Purge, Purged, snapshots};
use clew_context::model::{ChannelId, MessageId, UnixMillis};

/// Purges all kinds. Rewritten snapshots count as removed.
pub(super) fn purge(session: &Session, purge: &Purge) -> Result<Purged, Fault> {
    let changes = snapshots_changed(session, purge)?;
    saved::change_files(session, &changes)?;
    session.transact(|connection| {
        saved::change_rows(session, &changes)?;
        let mut purged = Purged::default();
        purged.add(Kind::Snapshots, changes.len() as u64);
        for kind in Kind::ALL {
            purged.add(kind, rows_gone(session, kind, purge)?);
        }
        counters_gone(connection, purge)?;
        Ok(purged)
    })
}

/// Removes some of the rows of turns that a purge reaches, so that other calls get a turn
/// before the next, and a process that ends need not wait for the last. Returns how many.
pub(super) fn some_messages(session: &Session, purge: &Purge, most: u64) -> Result<u64, Fault> {
    session.transact(|_| messages_gone(session, purge, most))
}

/// Removes a kind's rows. Returns how many were removed.
fn rows_gone(session: &Session, kind: Kind, purge: &Purge) -> Result<u64, Fault> {
    let Some(table) = table(kind) else {
        return Ok(0);
    };
    let which = if kind == Kind::Receipts {
        table.concerned(purge)
    } else {
        table.purged(kind, purge)
    };
    let key = params_from_iter(purge.cells());
    match (kind, which) {
        (Kind::Messages, _) => messages_gone(session, purge, u64::MAX),
        // Snapshots are removed with their files.
        (Kind::Snapshots, _) | (_, None) => Ok(0),
        (Kind::UserFacts | Kind::ServerFacts, Some(which)) => {
            facts::remove_where(session, &which, key)
        }
        (
            Kind::Markers
            | Kind::Receipts
            | Kind::OptOuts
            | Kind::Settings
            | Kind::Agents
            | Kind::Departures
            | Kind::Transcripts
            | Kind::Outputs,
            Some(which),
        ) => run(&session.connection, &table.delete(&which), key),
    }
}

/// At most `most`, unless single messages are purged.
fn messages_gone(session: &Session, purge: &Purge, most: u64) -> Result<u64, Fault> {
    let table = table(Kind::Messages);
    let remove = |which: Option<String>, most| {
        let key = params_from_iter(purge.cells());
        which.map_or(Ok(0), |which| {
            texts::remove_some_messages(session, &which, key, most)
        })
    };
    let mut gone = match purge {
        Purge::Messages { channel, ids } => {
            let mut gone = 0;
            for id in ids {
                gone += message_gone(session, *channel, *id)?;
            }
            gone
        }
        Purge::Before(time) => old_messages_gone(session, *time, most)?,
        Purge::Edited { .. }
        | Purge::Channel(_)
        | Purge::Guild(_)
        | Purge::Member { .. }
        | Purge::User(_) => remove(table.and_then(|table| table.reached(purge)), most)?,
    };
    let left = most.saturating_sub(gone);
    gone += remove(table.and_then(|table| table.made_from(purge)), left)?;
    Ok(gone)
}

/// A trigger takes its whole turn along, a tool call all of its turn's calls
/// and results; an answer goes alone.
fn message_gone(session: &Session, channel: ChannelId, message: MessageId) -> Result<u64, Fault> {
    let sql = "SELECT m.id, m.role, m.turn_id, m.scope, m.agent_name
         FROM message_ids h JOIN message_rows m ON m.id = h.row_id
         WHERE h.channel_id = ?1 AND h.message_id = ?2 AND NOT m.gone";
    let key = (number(channel.get()), number(message.get()));
    let rows = all(&session.connection, sql, key, |row| {
        let (id, role): (i64, String) = (row.get(0)?, row.get(1)?);
        let turn: (i64, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
        Ok((id, role, turn))
    })?;
    let mut gone = 0;
    for (id, role, (turn, scope, agent)) in rows {
        gone += match StoredRole::from_word(&role) {
            Some(StoredRole::User) => {
                texts::remove_messages(session, OF_TURN, (turn, scope, agent))?
            }
            Some(StoredRole::ToolUse | StoredRole::ToolResult) => {
                let tools = format!("{OF_TURN} AND role IN ('tool_use', 'tool_result')");
                texts::remove_messages(session, &tools, (turn, scope, agent))?
            }
            Some(StoredRole::Assistant) | None => texts::remove_messages(session, "id = ?1", [id])?,
        };
    }
    Ok(gone)
}

/// Agent by agent, to use the index.
fn old_messages_gone(session: &Session, time: UnixMillis, most: u64) -> Result<u64, Fault> {
    let time = time_text(time);
    let next =
        "SELECT agent_name FROM message_rows WHERE agent_name > ?1 ORDER BY agent_name LIMIT 1";
    let old = "agent_name = ?1 AND timestamp < ?2";
    let (mut gone, mut agent) = (0, String::new());
    while let Some(found) = first(&session.connection, next, [&agent], |row| Ok(row.get(0)?))? {
        let left = most.saturating_sub(gone);
        gone += texts::remove_some_messages(session, old, (&found, &time), left)?;
        agent = found;
    }
    Ok(gone)
}

/// Removes ordinals of conversations that cannot continue: their keys name what
/// is purged.
fn counters_gone(connection: &Connection, purge: &Purge) -> Result<(), Fault> {
    let patterns = match purge {
        Purge::Channel(channel) => {
            vec![
                format!("member/%/{channel}/%"),
                format!("thread/%/{channel}"),
            ]
        }
        Purge::Guild(guild) => vec![format!("member/{guild}/%"), format!("thread/{guild}/%")],
        Purge::Member { guild, user } => vec![format!("member/{guild}/%/{user}")],
        Purge::User(user) => vec![
            format!("member/%/{user}"),
            Scope::Direct(*user).to_string(),
            // `_` in the key matches itself as well.
            Scope::User(*user).to_string(),
        ],
        Purge::Messages { .. } | Purge::Edited { .. } | Purge::Before(_) => vec![],
    };
    for pattern in patterns {
        run(
            connection,
            "DELETE FROM conversations WHERE scope LIKE ?1",
            [pattern],
        )?;
    }
    Ok(())
}

/// What to do with each snapshot that a purge affects.
fn snapshots_changed(session: &Session, purge: &Purge) -> Result<Vec<SnapshotChange>, Fault> {
    let Some(which) = table(Kind::Snapshots).and_then(|table| table.concerned(purge)) else {
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
) -> Result<u64, Fault> {
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
                 AND (coalesce(r.parts, t.parts) IS NULL OR r.role = 'user')
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
) -> Result<Vec<MessageId>, Fault> {
    let sql = "SELECT h.message_id FROM message_ids h CROSS JOIN message_rows r ON r.id = h.row_id
             WHERE h.channel_id = ?1 AND h.message_id BETWEEN ?2 AND ?3 AND NOT r.gone
         UNION SELECT message_id FROM snapshot_messages
             WHERE channel_id = ?1 AND message_id BETWEEN max(?2, 1) AND ?3
         UNION SELECT s.message_id FROM message_sources s
                 CROSS JOIN message_rows r ON r.id = s.row_id
             WHERE s.channel_id = ?1 AND s.message_id BETWEEN ?2 AND ?3 AND NOT r.gone
         UNION SELECT message_id FROM snapshot_sources
             WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
         UNION SELECT message_id FROM receipt_ids
             WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
         UNION SELECT link_message FROM fact_rows
             WHERE link_channel = ?1 AND link_message BETWEEN ?2 AND ?3
         ORDER BY 1";
    // No Discord id uses the highest bit, but a range may.
    let bound = |id: MessageId| i64::try_from(id.get()).unwrap_or(i64::MAX);
    let key = (number(channel.get()), bound(from), bound(to));
    ids(&session.connection, sql, key, MessageId::new)
}
