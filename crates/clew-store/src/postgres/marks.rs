//! Markers and agents.

use super::session::{Call, Outcome, Parameters, first, rows, touched};
use super::values::{Moment, PostgresRow};
use crate::columns::{Columns, guild_key, user_key};
use crate::model::{AgentName, ClearKey};
use clew_context::model::{GuildId, UnixMillis, UserId};

const CLEAR: &str = "
INSERT INTO clew.markers AS held (agent_name, guild_id, user_id, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (agent_name, guild_id, user_id) DO UPDATE SET at = greatest(held.at, excluded.at)";

/// The update changes nothing, but makes the statement return the row.
const SEE_AGENT: &str = "
INSERT INTO clew.agents AS seen (agent_name, created_at) VALUES ($1, $2)
ON CONFLICT (agent_name) DO UPDATE SET created_at = seen.created_at
RETURNING agent_name, created_at";

/// See [`super::super::Backend::try_writing`].
pub(super) async fn try_writing(call: &Call<'_>) -> Outcome<()> {
    let sql = "UPDATE clew.owner SET application_id = application_id";
    call.transaction.execute(sql, &[]).await?;
    Ok(())
}

/// See [`super::super::Backend::clear`].
pub(super) async fn clear(call: &Call<'_>, key: &ClearKey, at: UnixMillis) -> Outcome<()> {
    let (guild, user) = (guild_key(key.guild), user_key(key.user));
    let parameters: Parameters<'_> = &[&key.agent.as_str(), &guild, &user, &Moment(at)];
    touched(call, CLEAR, parameters).await?;
    Ok(())
}

/// See [`super::super::Backend::cleared_at`].
pub(super) async fn cleared_at(
    call: &Call<'_>,
    agent: &AgentName,
    guild: Option<GuildId>,
    user: UserId,
) -> Outcome<Option<UnixMillis>> {
    let sql = "SELECT max(at) FROM clew.markers \
               WHERE agent_name = $1 AND guild_id = $2 AND user_id IN (0, $3)";
    let (guild, user) = (guild_key(guild), user_key(Some(user)));
    let key: Parameters<'_> = &[&agent.as_str(), &guild, &user];
    let at: Option<Option<Moment>> = first(call, sql, key).await?;
    Ok(at.flatten().map(|at| at.0))
}

/// See [`super::super::Backend::agent_created`].
pub(super) async fn agent_created(
    call: &Call<'_>,
    agent: &AgentName,
    now: UnixMillis,
) -> Outcome<UnixMillis> {
    let found = rows(call, SEE_AGENT, &[&agent.as_str(), &Moment(now)]).await?;
    found.first().map_or(Ok(now), |row| {
        PostgresRow::of("agents", row).time("created_at")
    })
}
