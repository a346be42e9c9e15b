//! Small tables: whose store it is, markers, agents; and which servers and users
//! there are.

use super::fault::Outcome;
use super::row::{SqliteRow, number, time_text};
use super::session::Session;
use super::statement::{first, ids, run};
use crate::Error;
use crate::backend::RECENT_ROWS;
use crate::columns::{Columns, guild_key, user_key};
use crate::model::{AgentName, ClearKey};
use clew_context::model::{ApplicationId, ChannelId, GuildId, UnixMillis, UserId};

/// Stands for no server, or for everybody.
const NONE: i64 = 0;

/// See [`super::super::Backend::claim`].
pub(super) fn claim(session: &Session, application: ApplicationId) -> Outcome<()> {
    session.transact(|connection| {
        connection.execute(
            "INSERT INTO owner (application_id) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM owner)",
            [number(application.get())],
        )?;
        let sql = "SELECT application_id FROM owner";
        let owner: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        let owner = ApplicationId::new(owner.cast_unsigned());
        Ok(Error::unless_owned(&session.place, owner, application)?)
    })
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

/// Moves a marker forward.
pub(super) fn clear(session: &Session, key: &ClearKey, at: UnixMillis) -> Outcome<()> {
    let sql =
        "INSERT INTO markers (agent_name, guild_id, user_id, cleared_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET cleared_at = max(cleared_at, ?4)";
    let (guild, user) = (guild_key(key.guild), user_key(key.user));
    let values = (key.agent.as_str(), guild, user, time_text(at));
    run(&session.connection, sql, values).map(drop)
}

/// The latest marker that applies to a user.
pub(super) fn cleared_at(
    session: &Session,
    agent: &AgentName,
    guild: Option<GuildId>,
    user: UserId,
) -> Outcome<Option<UnixMillis>> {
    let sql = "SELECT agent_name, cleared_at FROM markers
         WHERE agent_name = ?1 AND guild_id = ?2 AND user_id IN (?3, ?4)
         ORDER BY cleared_at DESC LIMIT 1";
    let key = (agent.as_str(), guild_key(guild), number(user.get()), NONE);
    first(&session.connection, sql, key, |row| {
        SqliteRow::of("markers", row).time("cleared_at")
    })
}

/// When an agent was first seen, if it was.
pub(super) fn agent_seen(session: &Session, agent: &AgentName) -> Outcome<Option<UnixMillis>> {
    let sql = "SELECT name, created_at FROM agents WHERE name = ?1";
    first(&session.connection, sql, [agent.as_str()], |row| {
        SqliteRow::of("agents", row).time("created_at")
    })
}

/// The same; records `now` if it was not seen before.
pub(super) fn agent_created(
    session: &Session,
    agent: &AgentName,
    now: UnixMillis,
) -> Outcome<UnixMillis> {
    session.connection.execute(
        "INSERT OR IGNORE INTO agents (name, created_at) VALUES (?1, ?2)",
        (agent.as_str(), time_text(now)),
    )?;
    Ok(agent_seen(session, agent)?.unwrap_or(now))
}

/// Users with anything stored from a server: rows, markers, snapshots, facts.
pub(super) fn members(session: &Session, guild: GuildId) -> Outcome<Vec<UserId>> {
    let sql = "SELECT owner_id FROM message_rows WHERE guild_id = ?1 AND NOT gone
         UNION SELECT user_id FROM markers WHERE guild_id = ?1 AND user_id <> ?2
         UNION SELECT owner_id FROM receipts WHERE guild_id = ?1 AND turn_id IN
             (SELECT turn_id FROM receipt_keys WHERE kind = 1 AND id = ?1)
         UNION SELECT owner_id FROM snapshot_rows WHERE guild_id = ?1
         UNION SELECT s.owner_id FROM snapshot_rows s
             JOIN snapshot_messages m ON m.snapshot = s.seq WHERE m.guild_id = ?1
         UNION SELECT s.author_id FROM message_sources s
             JOIN message_rows r ON r.id = s.row_id
             WHERE s.guild_id = ?1 AND s.author_id IS NOT NULL AND NOT r.gone
         UNION SELECT author_id FROM snapshot_sources
             WHERE guild_id = ?1 AND author_id IS NOT NULL
         UNION SELECT subject_id FROM fact_rows WHERE subject = 'user' AND origin_guild = ?1
         UNION SELECT by_user FROM fact_rows WHERE origin_guild = ?1
         UNION SELECT by_user FROM fact_rows WHERE subject = 'server' AND subject_id = ?1";
    let key = (number(guild.get()), NONE);
    ids(&session.connection, sql, key, UserId::new)
}

/// See [`super::super::Backend::guilds`]. Steps from server to server along the
/// index, reading each one's rows only up to the first that is not deleted.
pub(super) fn guilds(session: &Session) -> Outcome<Vec<GuildId>> {
    let sql = "WITH RECURSIVE source(id) AS (
             SELECT min(guild_id) FROM message_sources
             UNION ALL
             SELECT (SELECT min(guild_id) FROM message_sources WHERE guild_id > source.id)
                 FROM source WHERE source.id IS NOT NULL
         ),
         named(id) AS (
             SELECT min(id) FROM receipt_keys WHERE kind = 1 AND id > ?1
             UNION ALL
             SELECT (SELECT min(id) FROM receipt_keys WHERE kind = 1 AND id > named.id)
                 FROM named WHERE named.id IS NOT NULL
         )
         SELECT id FROM message_guilds each WHERE EXISTS
             (SELECT 1 FROM message_rows WHERE guild_id = each.id AND NOT gone)
         UNION SELECT id FROM source WHERE EXISTS
             (SELECT 1 FROM message_sources s JOIN message_rows r ON r.id = s.row_id
                 WHERE s.guild_id = source.id AND NOT r.gone)
         UNION SELECT guild_id FROM snapshot_sources WHERE guild_id IS NOT NULL
         UNION SELECT id FROM named WHERE id IS NOT NULL
         UNION SELECT guild_id FROM markers WHERE guild_id <> ?1
         UNION SELECT guild_id FROM snapshot_rows WHERE guild_id IS NOT NULL
         UNION SELECT guild_id FROM snapshot_messages WHERE guild_id IS NOT NULL
         UNION SELECT origin_guild FROM fact_rows WHERE origin_guild IS NOT NULL
         UNION SELECT subject_id FROM fact_rows WHERE subject = 'server'
         UNION SELECT guild_id FROM guild_settings";
    ids(&session.connection, sql, [NONE], GuildId::new)
}

/// Channels of direct messages among the newest rows, newest first.
pub(super) fn recent_direct(session: &Session, limit: usize) -> Outcome<Vec<ChannelId>> {
    let sql = "SELECT thread_id FROM
             (SELECT thread_id, guild_id, gone, timestamp FROM message_rows
              ORDER BY id DESC LIMIT ?1)
         WHERE guild_id IS NULL AND NOT gone
         GROUP BY thread_id ORDER BY max(timestamp) DESC, thread_id DESC LIMIT ?2";
    let limits = [RECENT_ROWS, limit].map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    ids(&session.connection, sql, limits, ChannelId::new)
}
