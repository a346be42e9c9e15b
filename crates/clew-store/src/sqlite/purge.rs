//! What has to go, by kind, and edits, which are a way of going, too.

use std::collections::BTreeMap;

use rusqlite::{Connection, Params, params};

use super::fault::Fault;
use super::lists::{NONE, maybe_text};
use super::row::{number, time_text};
use super::saved::{self, Change};
use super::session::Session;
use crate::model::{ContextSnapshotInfo, Scope, StoredRole};
use crate::{Kind, Purge, Purged, Reach, snapshots};
use clew_context::model::{ChannelId, MessageId, UnixMillis};

/// Removes what has to go. A snapshot that was written again counts as one
/// that went.
pub(super) fn purge(session: &Session, purge: &Purge) -> Result<Purged, Fault> {
    let changes = snapshots_changed(session, purge)?;
    saved::change_files(session, &changes)?;
    let before = session.connection.total_changes();
    let purged = session.transact(|connection| {
        saved::change_rows(connection, &changes)?;
        let mut purged = Purged::default();
        purged.add(Kind::Snapshots, changes.len() as u64);
        for kind in Kind::ALL {
            purged.add(kind, rows_gone(connection, kind, purge)?);
        }
        counters_gone(connection, purge)?;
        Ok(purged)
    })?;
    if session.connection.total_changes() != before {
        session.deleted();
    }
    Ok(purged)
}

/// Removes the rows of a kind and says how many went.
fn rows_gone(connection: &Connection, kind: Kind, purge: &Purge) -> Result<u64, Fault> {
    match kind {
        Kind::Messages => messages_gone(connection, purge),
        Kind::Markers => markers_gone(connection, purge),
        Kind::UserFacts => facts_gone(connection, "user", purge),
        Kind::ServerFacts => facts_gone(connection, "server", purge),
        Kind::Settings => of_guild(connection, "DELETE FROM guild_settings", purge),
        Kind::Departures => of_guild(connection, "DELETE FROM departures", purge),
        // Snapshots went with their files. An opt-out is the wish that nothing
        // be kept, and outlives it; agents are nobody's; transcripts are
        // files beside every store.
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

fn messages_gone(connection: &Connection, purge: &Purge) -> Result<u64, Fault> {
    let delete = |which: &str, id: u64| {
        let sql = format!("DELETE FROM messages WHERE {which} = ?1");
        run(connection, &sql, [number(id)])
    };
    match purge {
        Purge::Messages { channel, ids } => {
            let mut gone = 0;
            for id in ids {
                gone += message_gone(connection, *channel, *id)?;
            }
            Ok(gone)
        }
        Purge::Channel(channel) => delete("thread_id", channel.get()),
        Purge::Guild(guild) => delete("guild_id", guild.get()),
        Purge::User(user) => delete("owner_id", user.get()),
        Purge::Member { guild, user } => run(
            connection,
            "DELETE FROM messages WHERE guild_id = ?1 AND owner_id = ?2",
            (number(guild.get()), number(user.get())),
        ),
        Purge::Before(time) => old_messages_gone(connection, *time),
    }
}

/// With a trigger its turn, with an answer itself, with a call of a tool all
/// of the turn's calls and their results.
fn message_gone(
    connection: &Connection,
    channel: ChannelId,
    message: MessageId,
) -> Result<u64, Fault> {
    let mut held = connection.prepare_cached(
        "SELECT m.id, m.role, m.turn_id, m.scope, m.agent_name
         FROM message_ids h JOIN messages m ON m.id = h.row_id
         WHERE h.channel_id = ?1 AND h.message_id = ?2",
    )?;
    let rows = held.query_map((number(channel.get()), number(message.get())), |row| {
        let (id, role): (i64, String) = (row.get(0)?, row.get(1)?);
        let turn: (i64, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
        Ok((id, role, turn))
    })?;
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    let mut gone = 0;
    for (id, role, (turn, scope, agent)) in rows {
        let of_turn = "DELETE FROM messages INDEXED BY messages_turn WHERE turn_id = ?1 AND scope = ?2 AND agent_name = ?3";
        gone += match StoredRole::from_word(&role) {
            Some(StoredRole::User) => run(connection, of_turn, (turn, scope, agent))?,
            Some(StoredRole::ToolUse | StoredRole::ToolResult) => {
                let tools = format!("{of_turn} AND role IN ('tool_use', 'tool_result')");
                run(connection, &tools, (turn, scope, agent))?
            }
            Some(StoredRole::Assistant) | None => {
                run(connection, "DELETE FROM messages WHERE id = ?1", [id])?
            }
        };
    }
    Ok(gone)
}

/// Agent by agent, as the seed's index is built.
fn old_messages_gone(connection: &Connection, time: UnixMillis) -> Result<u64, Fault> {
    let time = time_text(time);
    let next = "SELECT agent_name FROM messages WHERE agent_name > ?1 ORDER BY agent_name LIMIT 1";
    let delete = "DELETE FROM messages WHERE agent_name = ?1 AND timestamp < ?2";
    let (mut gone, mut agent) = (0, String::new());
    while let Some(found) = maybe_text(connection, next, [&agent])? {
        gone += run(connection, delete, (&found, &time))?;
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
        // A marker is no text.
        Purge::Messages { .. } | Purge::Channel(_) | Purge::Before(_) => Ok(0),
    }
}

fn facts_gone(connection: &Connection, about: &str, purge: &Purge) -> Result<u64, Fault> {
    let delete = |which: &str, one: i64, other: i64| {
        let sql = format!(
            "DELETE FROM facts WHERE subject = ?1 AND ?2 IS NOT NULL AND ?3 IS NOT NULL
             AND ({which})"
        );
        run(connection, &sql, params![about, one, other])
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
            let sql = "DELETE FROM facts WHERE subject = ?1 AND at < ?2";
            run(connection, sql, (about, time_text(*time)))
        }
    }
}

/// Ordinals of conversations that nobody can go on with: their keys name
/// whom or what has to go.
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
            // `_` stands for itself, too.
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

/// What becomes of each snapshot that a purge reaches.
fn snapshots_changed(session: &Session, purge: &Purge) -> Result<Vec<Change>, Fault> {
    let mut changes = Vec::new();
    for (seq, info) in snapshots_reached(session, purge)? {
        if is_whole(&info, purge) {
            changes.push(Change::Removed(seq, info));
            continue;
        }
        let Ok(snapshot) = saved::whole(session, info.clone()) else {
            // What has to go may be in it, and nobody can take it out.
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

/// Those that may hold anything of it.
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

/// It goes with everything in it.
fn is_whole(info: &ContextSnapshotInfo, purge: &Purge) -> bool {
    match purge {
        Purge::Messages { .. } | Purge::Channel(_) => false,
        Purge::Guild(guild) => info.guild == Some(*guild),
        Purge::Member { guild, user } => info.guild == Some(*guild) && info.owner == *user,
        Purge::User(user) => info.owner == *user,
        Purge::Before(time) => info.timestamp < *time,
    }
}

/// Gives the rows of a message, and their copies in snapshots, a new text. An
/// answer of several messages keeps its own: one of them is not all of it.
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
    let before = session.connection.total_changes();
    let rows = session.transact(|connection| {
        saved::change_rows(connection, &changes)?;
        let is_it = "thread_id = ?1 AND discord_message_id = ?2
             AND id IN (SELECT row_id FROM message_ids WHERE channel_id = ?1 AND message_id = ?2)
             AND (parts IS NULL OR role = 'user')";
        let update = format!("UPDATE messages SET content = ?3 WHERE {is_it} AND content <> ?3");
        run(connection, &update, (key.0, key.1, text))?;
        let count = format!("SELECT count(*) FROM messages WHERE {is_it}");
        let mut count = connection.prepare_cached(&count)?;
        Ok(count
            .query_row(key, |row| row.get::<_, i64>(0))?
            .cast_unsigned())
    })?;
    if session.connection.total_changes() != before {
        session.deleted();
    }
    Ok(rows)
}

/// Which messages of a channel are held by rows, snapshots or facts, within a
/// range of ids, both ends included.
pub(super) fn held(
    session: &Session,
    channel: ChannelId,
    from: MessageId,
    to: MessageId,
) -> Result<Vec<MessageId>, Fault> {
    let mut held = session.connection.prepare_cached(
        "SELECT message_id FROM message_ids WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
         UNION SELECT message_id FROM snapshot_messages
             WHERE channel_id = ?1 AND message_id BETWEEN max(?2, 1) AND ?3
         UNION SELECT link_message FROM facts
             WHERE link_channel = ?1 AND link_message BETWEEN ?2 AND ?3
         ORDER BY 1",
    )?;
    // No id of Discord's reaches the sign; a range may.
    let bound = |id: MessageId| i64::try_from(id.get()).unwrap_or(i64::MAX);
    let key = (number(channel.get()), bound(from), bound(to));
    let ids = held.query_map(key, |row| row.get::<_, i64>(0))?;
    ids.map(|id| Ok(MessageId::new(id?.cast_unsigned())))
        .collect()
}
