//! Small tables: markers, agents, opt-outs, settings, departures.

use deadpool_postgres::Transaction;

use super::super::json;
use super::session::{Outcome, Parameters, rows, touched};
use super::values::{Columns, Moment, guild_key, text, user_key};
use crate::model::{AgentName, ClearKey, GuildSettings};
use clew_context::model::{GuildId, UnixMillis, UserId};

const CLEAR: &str = "
INSERT INTO clew.markers AS held (agent_name, guild_id, user_id, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (agent_name, guild_id, user_id) DO UPDATE SET at = greatest(held.at, excluded.at)";

const SET_MARKER: &str = "
INSERT INTO clew.markers (agent_name, guild_id, user_id, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (agent_name, guild_id, user_id) DO UPDATE SET at = excluded.at";

const SET_AGENT: &str = "
INSERT INTO clew.agents (agent_name, created_at) VALUES ($1, $2)
ON CONFLICT (agent_name) DO UPDATE SET created_at = excluded.created_at";

/// The update changes nothing, but makes the statement return the row.
const SEE_AGENT: &str = "
INSERT INTO clew.agents AS seen (agent_name, created_at) VALUES ($1, $2)
ON CONFLICT (agent_name) DO UPDATE SET created_at = seen.created_at
RETURNING agent_name, created_at";

const SET_SETTINGS: &str = "
INSERT INTO clew.guild_settings (guild_id, settings) VALUES ($1, $2)
ON CONFLICT (guild_id) DO UPDATE SET settings = excluded.settings";

/// See [`super::super::Backend::clear`].
pub(super) async fn clear(
    transaction: &Transaction<'_>,
    key: &ClearKey,
    at: UnixMillis,
) -> Outcome<()> {
    marker(transaction, CLEAR, key, at).await
}

/// Writes a marker unchanged.
pub(super) async fn set_marker(
    transaction: &Transaction<'_>,
    key: &ClearKey,
    at: UnixMillis,
) -> Outcome<()> {
    marker(transaction, SET_MARKER, key, at).await
}

async fn marker(
    transaction: &Transaction<'_>,
    sql: &str,
    key: &ClearKey,
    at: UnixMillis,
) -> Outcome<()> {
    let (guild, user) = (guild_key(key.guild), user_key(key.user));
    let parameters: Parameters<'_> = &[&key.agent.as_str(), &guild, &user, &Moment(at)];
    touched(transaction, sql, parameters).await?;
    Ok(())
}

/// See [`super::super::Backend::cleared_at`].
pub(super) async fn cleared_at(
    transaction: &Transaction<'_>,
    agent: &AgentName,
    guild: Option<GuildId>,
    user: UserId,
) -> Outcome<Option<UnixMillis>> {
    let sql = "SELECT max(at) FROM clew.markers \
               WHERE agent_name = $1 AND guild_id = $2 AND user_id IN (0, $3)";
    let (guild, user) = (guild_key(guild), user_key(Some(user)));
    let found = rows(transaction, sql, &[&agent.as_str(), &guild, &user]).await?;
    let at = found.first().map(|row| row.try_get::<_, Option<Moment>>(0));
    Ok(at.transpose()?.flatten().map(|at| at.0))
}

/// See [`super::super::Backend::agent_created`].
pub(super) async fn agent_created(
    transaction: &Transaction<'_>,
    agent: &AgentName,
    now: UnixMillis,
) -> Outcome<UnixMillis> {
    let found = rows(transaction, SEE_AGENT, &[&agent.as_str(), &Moment(now)]).await?;
    found.first().map_or(Ok(now), |row| {
        Columns::named("agents", row).time("created_at")
    })
}

/// Writes an agent unchanged.
pub(super) async fn set_agent(
    transaction: &Transaction<'_>,
    agent: &AgentName,
    created: UnixMillis,
) -> Outcome<()> {
    touched(transaction, SET_AGENT, &[&agent.as_str(), &Moment(created)]).await?;
    Ok(())
}

/// A table of ids, each with a time: opt-outs or departures.
#[derive(Clone, Copy)]
pub(super) enum Dated {
    OptOuts,
    Departures,
}

impl Dated {
    const fn table(self) -> &'static str {
        match self {
            Self::OptOuts => "opt_outs",
            Self::Departures => "departures",
        }
    }

    const fn select(self) -> &'static str {
        match self {
            Self::OptOuts => "SELECT user_id, since AS at FROM clew.opt_outs ORDER BY 1",
            Self::Departures => "SELECT guild_id, at FROM clew.departures ORDER BY 1",
        }
    }

    const fn delete(self) -> &'static str {
        match self {
            Self::OptOuts => "DELETE FROM clew.opt_outs WHERE user_id = $1",
            Self::Departures => "DELETE FROM clew.departures WHERE guild_id = $1",
        }
    }

    const fn insert(self) -> &'static str {
        match self {
            Self::OptOuts => {
                "INSERT INTO clew.opt_outs (user_id, since) VALUES ($1, $2) \
                 ON CONFLICT (user_id) DO UPDATE SET since = excluded.since"
            }
            Self::Departures => {
                "INSERT INTO clew.departures (guild_id, at) VALUES ($1, $2) \
                 ON CONFLICT (guild_id) DO UPDATE SET at = excluded.at"
            }
        }
    }
}

/// All ids of such a table.
pub(super) async fn dated(
    transaction: &Transaction<'_>,
    what: Dated,
) -> Outcome<Vec<(u64, UnixMillis)>> {
    let found = rows(transaction, what.select(), &[]).await?;
    let read = found.iter().map(|row| {
        let columns = Columns::new(what.table(), row);
        let id: i64 = row.try_get(0)?;
        Ok((id.cast_unsigned(), columns.time("at")?))
    });
    read.collect()
}

/// Records an id with its time, or removes it.
pub(super) async fn set_dated(
    transaction: &Transaction<'_>,
    what: Dated,
    id: u64,
    at: Option<UnixMillis>,
) -> Outcome<()> {
    let id = id.cast_signed();
    match at {
        Some(at) => touched(transaction, what.insert(), &[&id, &Moment(at)]).await?,
        None => touched(transaction, what.delete(), &[&id]).await?,
    };
    Ok(())
}

/// See [`super::super::Backend::settings`].
pub(super) async fn settings(
    transaction: &Transaction<'_>,
) -> Outcome<Vec<(GuildId, GuildSettings)>> {
    let sql = "SELECT guild_id, settings FROM clew.guild_settings ORDER BY 1";
    let found = rows(transaction, sql, &[]).await?;
    found.iter().map(settings_row).collect()
}

/// A row of `guild_settings`.
pub(super) fn settings_row(row: &tokio_postgres::Row) -> Outcome<(GuildId, GuildSettings)> {
    let columns = Columns::new("guild_settings", row);
    let guild = GuildId::new(columns.id("guild_id")?);
    let settings = json::read_settings(columns.get("settings")?);
    Ok((guild, settings.map_err(|error| columns.bad(error))?))
}

/// See [`super::super::Backend::set_settings`].
pub(super) async fn set_settings(
    transaction: &Transaction<'_>,
    guild: GuildId,
    settings: &GuildSettings,
) -> Outcome<()> {
    let (guild, settings) = (guild_key(Some(guild)), json::write_settings(settings));
    touched(transaction, SET_SETTINGS, &[&guild, &text(&settings)]).await?;
    Ok(())
}
