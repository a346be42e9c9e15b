//! Purges, by kind, and edits, which also remove text.

use std::collections::BTreeMap;

use rusqlite::{Connection, Params, params};

use super::fault::Fault;
use super::lists::{NONE, maybe_text};
use super::messages::OF_TURN;
use super::row::{number, time_text};
use super::saved::{self, Change};
use super::session::Session;
use super::{facts, texts};
use crate::model::{ContextSnapshotInfo, Scope, StoredRole};
use crate::{Kind, Purge, Purged, Reach, snapshots};
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

/// Removes a kind's rows. Returns how many were removed.
fn rows_gone(session: &Session, kind: Kind, purge: &Purge) -> Result<u64, Fault> {
    let connection = &session.connection;
    match kind {
        Kind::Messages => messages_gone(session, purge),
        Kind::Markers => markers_gone(connection, purge),
        Kind::UserFacts => facts_gone(session, "user", purge),
        Kind::ServerFacts => facts_gone(session, "server", purge),
        Kind::Settings => of_guild(connection, "DELETE FROM guild_settings", purge),
        Kind::Departures => of_guild(connection, "DELETE FROM departures", purge),
        // Snapshots were removed with their files. Opt-outs survive erasures;
        // agents belong to nobody; transcripts are files outside of any store.
        Kind::Snapshots | Kind::OptOuts | Kind::Agents | Kind::Transcripts => Ok(0),
    }
}

fn run(connection: &Connection, sql: &str, key: impl Params) -> Result<u64, Fault> {
    Ok(connection.prepare_cached(sql)?.execute(key)? as u64)
}

fn of_guild(connection: &Connection, delete: &str, purge: &Purge) -> Result<u64, Fault> {
    match purge {
        Purge::Guild(guild) => {
            let sql = format!("{delete} WHERE guild_id = ?1");
            run(connection, &sql, [number(guild.get())])
        }
        Purge::Messages { .. }
        | Purge::Channel(_)
        | Purge::Member { .. }
        | Purge::User(_)
        | Purge::Before(_) => Ok(0),
    }
}

fn messages_gone(session: &Session, purge: &Purge) -> Result<u64, Fault> {
    let remove = |which: &str, id: u64| texts::remove_messages(session, which, [number(id)]);
    match purge {
        Purge::Messages { channel, ids } => {
            let mut gone = 0;
            for id in ids {
                gone += message_gone(session, *channel, *id)?;
            }
            Ok(gone)
        }
        Purge::Channel(channel) => remove("thread_id = ?1", channel.get()),
        Purge::Guild(guild) => remove("guild_id = ?1", guild.get()),
        Purge::User(user) => remove("owner_id = ?1", user.get()),
        Purge::Member { guild, user } => {
            let key = (number(guild.get()), number(user.get()));
            texts::remove_messages(session, "guild_id = ?1 AND owner_id = ?2", key)
        }
        Purge::Before(time) => old_messages_gone(session, *time),
    }
}

/// A trigger takes its whole turn along, a tool call all of its turn's calls
/// and results; an answer goes alone.
fn message_gone(session: &Session, channel: ChannelId, message: MessageId) -> Result<u64, Fault> {
    let mut held = session.connection.prepare_cached(
        "SELECT m.id, m.role, m.turn_id, m.scope, m.agent_name
         FROM message_ids h JOIN message_rows m ON m.id = h.row_id
         WHERE h.channel_id = ?1 AND h.message_id = ?2 AND NOT m.gone",
    )?;
    let rows = held.query_map((number(channel.get()), number(message.get())), |row| {
        let (id, role): (i64, String) = (row.get(0)?, row.get(1)?);
        let turn: (i64, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
        Ok((id, role, turn))
    })?;
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
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
fn old_messages_gone(session: &Session, time: UnixMillis) -> Result<u64, Fault> {
    let time = time_text(time);
    let next =
        "SELECT agent_name FROM message_rows WHERE agent_name > ?1 ORDER BY agent_name LIMIT 1";
    let old = "agent_name = ?1 AND timestamp < ?2";
    let (mut gone, mut agent) = (0, String::new());
    while let Some(found) = maybe_text(&session.connection, next, [&agent])? {
        gone += texts::remove_messages(session, old, (&found, &time))?;
        agent = found;
    }
    Ok(gone)
}

fn markers_gone(connection: &Connection, purge: &Purge) -> Result<u64, Fault> {
    match purge {
        Purge::Guild(guild) => {
            let sql = "DELETE FROM markers WHERE guild_id = ?1";
            run(connection, sql, [number(guild.get())])
        }
        Purge::Member { guild, user } => {
            let sql = "DELETE FROM markers WHERE guild_id = ?1 AND user_id = ?2";
            run(connection, sql, (number(guild.get()), number(user.get())))
        }
        Purge::User(user) => {
            let sql = "DELETE FROM markers WHERE user_id = ?1 AND user_id <> ?2";
            run(connection, sql, (number(user.get()), NONE))
        }
        // Markers hold no text.
        Purge::Messages { .. } | Purge::Channel(_) | Purge::Before(_) => Ok(0),
    }
}

fn facts_gone(session: &Session, about: &str, purge: &Purge) -> Result<u64, Fault> {
    let delete = |which: &str, one: i64, other: i64| {
        let which = format!("subject = ?1 AND ?2 IS NOT NULL AND ?3 IS NOT NULL AND ({which})");
        facts::remove_where(session, &which, params![about, one, other])
    };
    match purge {
        Purge::Messages { channel, ids } => {
            let channel = number(channel.get());
            let mut gone = 0;
            for id in ids {
                let which = "link_channel = ?2 AND link_message = ?3";
                gone += delete(which, channel, number(id.get()))?;
            }
            Ok(gone)
        }
        Purge::Channel(channel) => delete("link_channel = ?2", number(channel.get()), 0),
        Purge::Guild(guild) => delete(
            "origin_guild = ?2 OR (subject = 'server' AND subject_id = ?2)",
            number(guild.get()),
            0,
        ),
        Purge::Member { guild, user } => delete(
            "(origin_guild = ?2 OR (subject = 'server' AND subject_id = ?2))
             AND (by_user = ?3 OR (subject = 'user' AND subject_id = ?3))",
            number(guild.get()),
            number(user.get()),
        ),
        Purge::User(user) => delete(
            "by_user = ?2 OR (subject = 'user' AND subject_id = ?2)",
            number(user.get()),
            0,
        ),
        Purge::Before(time) => {
            let old = "subject = ?1 AND at < ?2";
            facts::remove_where(session, old, (about, time_text(*time)))
        }
    }
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
        Purge::Messages { .. } | Purge::Before(_) => vec![],
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
fn snapshots_changed(session: &Session, purge: &Purge) -> Result<Vec<Change>, Fault> {
    let mut changes = Vec::new();
    for (seq, info) in snapshots_reached(session, purge)? {
        if is_whole(&info, purge) {
            changes.push(Change::Removed(seq, info));
            continue;
        }
        let Ok(snapshot) = saved::whole(session, info.clone()) else {
            // It may hold purged data, which cannot be taken out.
            tracing::error!(snapshot = %info.id, "a snapshot that cannot be read was removed");
            changes.push(Change::Removed(seq, info));
            continue;
        };
        let reach = Reach::of(purge, &snapshot.messages);
        match snapshots::without(&snapshot, |row| reach.holds(row)) {
            None => changes.push(Change::Removed(seq, info)),
            Some(rest) if rest == snapshot => {}
            Some(rest) => changes.push(Change::Rewritten(seq, rest)),
        }
    }
    Ok(changes)
}

/// Snapshots that may hold purged data.
fn snapshots_reached(
    session: &Session,
    purge: &Purge,
) -> Result<BTreeMap<i64, ContextSnapshotInfo>, Fault> {
    let contents =
        |which: &str| format!("seq IN (SELECT snapshot FROM snapshot_messages WHERE {which})");
    let found = match purge {
        Purge::Messages { channel, ids } => {
            let which = contents("channel_id = ?1 AND message_id = ?2");
            let mut found = Vec::new();
            for id in ids {
                let key = (number(channel.get()), number(id.get()));
                found.extend(saved::select(session, &which, key)?);
            }
            found
        }
        Purge::Channel(channel) => {
            let which = contents("channel_id = ?1");
            saved::select(session, &which, [number(channel.get())])?
        }
        Purge::Guild(guild) => {
            let which = format!("guild_id = ?1 OR {}", contents("guild_id = ?1"));
            saved::select(session, &which, [number(guild.get())])?
        }
        Purge::Member { guild, user } => {
            let rows = contents("guild_id = ?1");
            let which = format!("owner_id = ?2 AND (guild_id = ?1 OR {rows})");
            saved::select(session, &which, (number(guild.get()), number(user.get())))?
        }
        Purge::User(user) => saved::select(session, "owner_id = ?1", [number(user.get())])?,
        Purge::Before(time) => {
            let which = "timestamp < ?1 OR oldest < ?1";
            saved::select(session, which, [time_text(*time)])?
        }
    };
    Ok(found.into_iter().collect())
}

/// Whether the whole snapshot is removed.
fn is_whole(info: &ContextSnapshotInfo, purge: &Purge) -> bool {
    match purge {
        Purge::Messages { .. } | Purge::Channel(_) => false,
        Purge::Guild(guild) => info.guild == Some(*guild),
        Purge::Member { guild, user } => info.guild == Some(*guild) && info.owner == *user,
        Purge::User(user) => info.owner == *user,
        Purge::Before(time) => info.timestamp < *time,
    }
}

/// Gives a message's rows, and their copies in snapshots, a new text. An answer
/// of several messages keeps its text, since one message is only part of it.
pub(super) fn edit(
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
            changes.push(Change::Rewritten(seq, edited));
        }
    }
    saved::change_files(session, &changes)?;
    session.transact(|connection| {
        saved::change_rows(session, &changes)?;
        let mut select = connection.prepare_cached(
            "SELECT r.id, t.content = ?3
             FROM message_ids h
                 CROSS JOIN message_rows r ON r.id = h.row_id
                 CROSS JOIN message_texts t ON t.id = r.text_id
             WHERE h.channel_id = ?1 AND h.message_id = ?2 AND NOT r.gone
                 AND r.discord_message_id = ?2 AND (t.parts IS NULL OR r.role = 'user')",
        )?;
        let rows = select.query_map((key.0, key.1, text), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(i64, bool)> = rows.collect::<Result<_, _>>()?;
        for (id, _) in rows.iter().filter(|(_, is_same)| !is_same) {
            texts::edit_message(session, *id, text)?;
        }
        Ok(rows.len() as u64)
    })
}

/// Which messages of a channel are stored in rows, snapshots or facts, within
/// an inclusive range of ids.
pub(super) fn held(
    session: &Session,
    channel: ChannelId,
    from: MessageId,
    to: MessageId,
) -> Result<Vec<MessageId>, Fault> {
    let mut held = session.connection.prepare_cached(
        "SELECT h.message_id FROM message_ids h CROSS JOIN message_rows r ON r.id = h.row_id
             WHERE h.channel_id = ?1 AND h.message_id BETWEEN ?2 AND ?3 AND NOT r.gone
         UNION SELECT message_id FROM snapshot_messages
             WHERE channel_id = ?1 AND message_id BETWEEN max(?2, 1) AND ?3
         UNION SELECT link_message FROM fact_rows
             WHERE link_channel = ?1 AND link_message BETWEEN ?2 AND ?3
         ORDER BY 1",
    )?;
    // No Discord id uses the highest bit, but a range may.
    let bound = |id: MessageId| i64::try_from(id.get()).unwrap_or(i64::MAX);
    let key = (number(channel.get()), bound(from), bound(to));
    let ids = held.query_map(key, |row| row.get::<_, i64>(0))?;
    ids.map(|id| Ok(MessageId::new(id?.cast_unsigned())))
        .collect()
}
