//! Small tables with one entry per key: markers, agents, opt-outs, settings,
//! departures.

use rusqlite::{Connection, OptionalExtension};

use super::fault::Fault;
use super::row::{Columns, number, time_text};
use super::session::Session;
use crate::model::{AgentName, ClearKey, GuildSettings};
use crate::{Error, json};
use clew_context::model::{ApplicationId, GuildId, UnixMillis, UserId};

/// Stands for no server, or for everybody.
pub(super) const NONE: i64 = 0;

/// See [`super::super::Backend::claim`].
pub(super) fn claim(session: &Session, application: ApplicationId) -> Result<(), Fault> {
    let connection = &session.connection;
    connection.execute(
        "INSERT INTO owner (application_id) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM owner)",
        [number(application.get())],
    )?;
    let sql = "SELECT application_id FROM owner";
    let owner: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    if owner == number(application.get()) {
        return Ok(());
    }
    Err(Fault::Store(Error::Owned {
        place: session.place.to_string(),
        owner: ApplicationId::new(owner.cast_unsigned()),
        asked: application,
    }))
}

/// Moves a marker forward.
pub(super) fn clear(connection: &Connection, key: &ClearKey, at: UnixMillis) -> Result<(), Fault> {
    let mut clear = connection.prepare_cached(
        "INSERT INTO markers (agent_name, guild_id, user_id, cleared_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET cleared_at = max(cleared_at, ?4)",
    )?;
    clear.execute(marker(key, at))?;
    Ok(())
}

/// Sets a marker, even to an earlier time.
pub(super) fn put_marker(
    connection: &Connection,
    key: &ClearKey,
    at: UnixMillis,
) -> Result<(), Fault> {
    let mut put = connection.prepare_cached(
        "INSERT OR REPLACE INTO markers (agent_name, guild_id, user_id, cleared_at)
         VALUES (?1, ?2, ?3, ?4)",
    )?;
    put.execute(marker(key, at))?;
    Ok(())
}

fn marker(key: &ClearKey, at: UnixMillis) -> (&str, i64, i64, String) {
    let guild = key.guild.map_or(NONE, |guild| number(guild.get()));
    let user = key.user.map_or(NONE, |user| number(user.get()));
    (key.agent.as_str(), guild, user, time_text(at))
}

/// The latest marker that applies to a user.
pub(super) fn cleared_at(
    connection: &Connection,
    agent: &AgentName,
    guild: Option<GuildId>,
    user: UserId,
) -> Result<Option<UnixMillis>, Fault> {
    let mut latest = connection.prepare_cached(
        "SELECT 0, cleared_at FROM markers
         WHERE agent_name = ?1 AND guild_id = ?2 AND user_id IN (?3, ?4)
         ORDER BY cleared_at DESC LIMIT 1",
    )?;
    let guild = guild.map_or(NONE, |guild| number(guild.get()));
    let mut rows = latest.query((agent.as_str(), guild, number(user.get()), NONE))?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Columns::of("markers", row)?.time("cleared_at").map(Some)
}

/// When an agent was first seen, if it was.
pub(super) fn agent_seen(
    session: &Session,
    agent: &AgentName,
) -> Result<Option<UnixMillis>, Fault> {
    let mut seen = session
        .connection
        .prepare_cached("SELECT 0, created_at FROM agents WHERE name = ?1")?;
    let mut rows = seen.query([agent.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Columns::of("agents", row)?.time("created_at").map(Some)
}

/// The same; records `now` if it was not seen before.
pub(super) fn agent_created(
    session: &Session,
    agent: &AgentName,
    now: UnixMillis,
) -> Result<UnixMillis, Fault> {
    session.connection.execute(
        "INSERT OR IGNORE INTO agents (name, created_at) VALUES (?1, ?2)",
        (agent.as_str(), time_text(now)),
    )?;
    Ok(agent_seen(session, agent)?.unwrap_or(now))
}

/// Records when an agent was first seen.
pub(super) fn put_agent(
    connection: &Connection,
    agent: &AgentName,
    at: UnixMillis,
) -> Result<(), Fault> {
    connection.execute(
        "INSERT OR REPLACE INTO agents (name, created_at) VALUES (?1, ?2)",
        (agent.as_str(), time_text(at)),
    )?;
    Ok(())
}

/// Who opted out, and when.
pub(super) fn opt_outs(session: &Session) -> Result<Vec<(UserId, UnixMillis)>, Fault> {
    let sql = "SELECT user_id, since FROM opt_outs ORDER BY user_id";
    let mut select = session.connection.prepare_cached(sql)?;
    let rows = select.query_and_then([], |row| {
        let row = Columns::of("opt_outs", row)?;
        Ok((UserId::new(row.id().cast_unsigned()), row.time("since")?))
    })?;
    rows.collect()
}

/// Records an opt-out, or removes it.
pub(super) fn set_opt_out(
    connection: &Connection,
    user: UserId,
    since: Option<UnixMillis>,
) -> Result<(), Fault> {
    let user = number(user.get());
    match since {
        Some(since) => connection.execute(
            "INSERT OR REPLACE INTO opt_outs (user_id, since) VALUES (?1, ?2)",
            (user, time_text(since)),
        )?,
        None => connection.execute("DELETE FROM opt_outs WHERE user_id = ?1", [user])?,
    };
    Ok(())
}

/// The settings of all servers.
pub(super) fn settings(session: &Session) -> Result<Vec<(GuildId, GuildSettings)>, Fault> {
    let sql = "SELECT guild_id, settings FROM guild_settings ORDER BY guild_id";
    let mut select = session.connection.prepare_cached(sql)?;
    let rows = select.query_and_then([], |row| {
        let row = Columns::of("guild_settings", row)?;
        let settings = row.read("settings", |text| json::read_settings(text).ok())?;
        Ok((GuildId::new(row.id().cast_unsigned()), settings))
    })?;
    rows.collect()
}

/// Replaces a server's settings.
pub(super) fn set_settings(
    connection: &Connection,
    guild: GuildId,
    settings: &GuildSettings,
) -> Result<(), Fault> {
    connection.execute(
        "INSERT OR REPLACE INTO guild_settings (guild_id, settings) VALUES (?1, ?2)",
        (number(guild.get()), json::write_settings(settings)),
    )?;
    Ok(())
}

/// Servers that we left, and when.
pub(super) fn departures(session: &Session) -> Result<Vec<(GuildId, UnixMillis)>, Fault> {
    let sql = "SELECT guild_id, at FROM departures ORDER BY guild_id";
    let mut select = session.connection.prepare_cached(sql)?;
    let rows = select.query_and_then([], |row| {
        let row = Columns::of("departures", row)?;
        Ok((GuildId::new(row.id().cast_unsigned()), row.time("at")?))
    })?;
    rows.collect()
}

/// Records that we left a server, or that we are back.
pub(super) fn set_departure(
    connection: &Connection,
    guild: GuildId,
    at: Option<UnixMillis>,
) -> Result<(), Fault> {
    let guild = number(guild.get());
    match at {
        Some(at) => connection.execute(
            "INSERT OR REPLACE INTO departures (guild_id, at) VALUES (?1, ?2)",
            (guild, time_text(at)),
        )?,
        None => connection.execute("DELETE FROM departures WHERE guild_id = ?1", [guild])?,
    };
    Ok(())
}

/// Users with anything stored from a server: rows, markers, snapshots, facts.
pub(super) fn members(session: &Session, guild: GuildId) -> Result<Vec<UserId>, Fault> {
    let mut select = session.connection.prepare_cached(
        "SELECT owner_id FROM message_rows WHERE guild_id = ?1 AND NOT gone
         UNION SELECT user_id FROM markers WHERE guild_id = ?1 AND user_id <> ?2
         UNION SELECT owner_id FROM snapshot_rows WHERE guild_id = ?1
         UNION SELECT s.owner_id FROM snapshot_rows s
             JOIN snapshot_messages m ON m.snapshot = s.seq WHERE m.guild_id = ?1
         UNION SELECT subject_id FROM fact_rows WHERE subject = 'user' AND origin_guild = ?1
         UNION SELECT by_user FROM fact_rows WHERE origin_guild = ?1
         UNION SELECT by_user FROM fact_rows WHERE subject = 'server' AND subject_id = ?1",
    )?;
    let users = select.query_map((number(guild.get()), NONE), |row| row.get::<_, i64>(0))?;
    users
        .map(|user| Ok(UserId::new(user?.cast_unsigned())))
        .collect()
}

/// See [`super::super::Backend::guilds`]. Steps from server to server along the
/// index, reading each one's rows only up to the first that is not deleted.
pub(super) fn guilds(session: &Session) -> Result<Vec<GuildId>, Fault> {
    let mut select = session.connection.prepare_cached(
        "WITH RECURSIVE each(id) AS (
             SELECT min(guild_id) FROM message_rows
             UNION ALL
             SELECT (SELECT min(guild_id) FROM message_rows WHERE guild_id > each.id)
                 FROM each WHERE each.id IS NOT NULL
         )
         SELECT id FROM each WHERE EXISTS
             (SELECT 1 FROM message_rows WHERE guild_id = each.id AND NOT gone)
         UNION SELECT guild_id FROM markers WHERE guild_id <> ?1
         UNION SELECT guild_id FROM snapshot_rows WHERE guild_id IS NOT NULL
         UNION SELECT origin_guild FROM fact_rows WHERE origin_guild IS NOT NULL
         UNION SELECT subject_id FROM fact_rows WHERE subject = 'server'
         UNION SELECT guild_id FROM guild_settings",
    )?;
    let guilds = select.query_map([NONE], |row| row.get::<_, i64>(0))?;
    guilds
        .map(|guild| Ok(GuildId::new(guild?.cast_unsigned())))
        .collect()
}

/// The text in a query's result, if any.
pub(super) fn maybe_text(
    connection: &Connection,
    sql: &str,
    key: impl rusqlite::Params,
) -> Result<Option<String>, Fault> {
    let mut select = connection.prepare_cached(sql)?;
    Ok(select.query_row(key, |row| row.get(0)).optional()?)
}
