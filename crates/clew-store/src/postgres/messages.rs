//! Rows of turns.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future;
use tokio_postgres::Row;

use super::super::{ConversationStats, ExchangeQuery, Exchanges, TurnKey, WindowQuery};
use super::session::{
    self, Call, Failure, Outcome, Parameters, ids, rows, scoped_rows, see_all, touched, write_all,
    write_scope,
};
use super::tables::MESSAGE;
use super::values::{Moment, PostgresRow, SourceIds, limit, maybe_text, text};
use super::{early, marks, snapshots};
use crate::append;
use crate::backend::RECENT_ROWS;
use crate::columns::{self, Columns as _, guild_key, user_key};
use crate::model::{AgentName, Scope, SnapshotId, StoredMessage};
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// Inserts sent together.
const INSERTS_AT_ONCE: usize = 16;

/// The columns of a row as it is inserted, and their values.
pub(super) const VALUES: &str = "(scope, agent_name, turn_id, ordinal, position, role, guild_id,
    thread_id, owner_id, author_name, content, tool_calls, tool_call_id, timestamp,
    discord_message_id, part_ids, target_id, restored_from, sources)
VALUES ($1, $2, $3, $4, $18, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $19)
RETURNING id";

/// Follows a row's insertion.
const HOLD_MESSAGES: &str = "held AS (
    INSERT INTO clew.message_ids (message_id, channel_id, row_id)
    SELECT DISTINCT held.message_id, $7::bigint, added.id
    FROM added, unnest($15::bigint[] || $14::bigint) AS held (message_id)
    WHERE held.message_id IS NOT NULL
)
SELECT id FROM added";

/// For the few rows that were made from something elsewhere.
const INSERT_SOURCES: &str = "
INSERT INTO clew.message_sources (row_id, position, guild_id, channel_id, message_id, author_id)
SELECT $1, source.position, source.guild, source.channel, source.message, source.author
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
    WITH ORDINALITY AS source (guild, channel, message, author, position)";

/// Locks a conversation's counter until the transaction ends, and raises it to at least $6.
const RAISE_COUNTER: &str = "
INSERT INTO clew.conversations AS held
    (scope, agent_name, guild_id, channel_id, owner_id, last_ordinal)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (scope, agent_name)
DO UPDATE SET last_ordinal = greatest(held.last_ordinal, excluded.last_ordinal)
RETURNING last_ordinal";

/// What bounds a new turn: its own ordinal if it exists, the newest row, and
/// the clear markers of its owner and of everybody.
const BEFORE_TURN: &str = "
SELECT
    (SELECT min(ordinal) FROM clew.messages
        WHERE scope = $1 AND agent_name = $2 AND turn_id = $3) AS ordinal,
    greatest(
        (SELECT max(timestamp) FROM clew.messages WHERE scope = $1 AND agent_name = $2),
        (SELECT max(timestamp) FROM clew.early_messages
            WHERE scope = $1 AND agent_name = $2)) AS newest,
    (SELECT max(at) FROM clew.markers
        WHERE agent_name = $2 AND guild_id = $4 AND user_id IN (0, $5)) AS cleared";

const WINDOW: &str = "
FROM clew.messages
WHERE scope = $1 AND agent_name = $2 AND timestamp > $3 AND ($5 OR role IN ('user', 'assistant'))
ORDER BY ordinal DESC, turn_id DESC, position DESC LIMIT $4";

const OWN: &str = "
FROM clew.messages
WHERE owner_id = $1 AND agent_name = $2 AND guild_id IS NOT DISTINCT FROM $3 AND timestamp > $4
ORDER BY timestamp, scope, ordinal, turn_id, position";

/// Deletes an earlier copy of a row, by what identifies a row in its turn.
const DELETE_SAME: &str = "
DELETE FROM clew.messages
WHERE scope = $1 AND turn_id = $2 AND agent_name = $3 AND role = $4
    AND tool_call_id IS NOT DISTINCT FROM $5 AND tool_calls IS NOT DISTINCT FROM $6
    AND discord_message_id IS NOT DISTINCT FROM $7";

/// A message may be stored in rows and snapshots, as the source of those, and as
/// that of facts.
const HELD: &str = "
SELECT message_id FROM clew.message_ids
    WHERE channel_id = $1 AND message_id BETWEEN $2 AND $3
UNION SELECT message_id FROM clew.snapshot_messages
    WHERE channel_id = $1 AND message_id BETWEEN $2 AND $3 AND message_id <> 0
UNION SELECT message_id FROM clew.message_sources
    WHERE channel_id = $1 AND message_id BETWEEN $2 AND $3
UNION SELECT message_id FROM clew.snapshot_sources
    WHERE channel_id = $1 AND message_id BETWEEN $2 AND $3
UNION SELECT message_id FROM clew.receipt_ids
    WHERE channel_id = $1 AND message_id BETWEEN $2 AND $3
UNION SELECT link_message FROM clew.facts
    WHERE link_channel = $1 AND link_message BETWEEN $2 AND $3
ORDER BY 1";

const MEMBERS: &str = "
SELECT owner_id FROM clew.messages WHERE guild_id = $1
UNION SELECT owner_id FROM clew.early_messages WHERE guild_id = $1
UNION SELECT user_id FROM clew.markers WHERE guild_id = $1 AND user_id <> 0
UNION SELECT owner_id FROM clew.receipts WHERE guild_id = $1
UNION SELECT owner_id FROM clew.snapshots WHERE guild_id = $1
UNION SELECT owner_id FROM clew.snapshots WHERE snapshot_id IN
    (SELECT snapshot_id FROM clew.snapshot_messages WHERE guild_id = $1)
UNION SELECT author_id FROM clew.message_sources WHERE guild_id = $1 AND author_id IS NOT NULL
UNION SELECT author_id FROM clew.snapshot_sources WHERE guild_id = $1 AND author_id IS NOT NULL
UNION SELECT user_id FROM clew.facts WHERE origin_guild = $1 AND user_id IS NOT NULL
UNION SELECT by_user FROM clew.facts WHERE origin_guild = $1 OR server_id = $1
ORDER BY 1";

const GUILDS: &str = "
SELECT guild_id FROM clew.messages WHERE guild_id IS NOT NULL
UNION SELECT guild_id FROM clew.early_messages WHERE guild_id IS NOT NULL
UNION SELECT guild_id FROM clew.markers WHERE guild_id <> 0
UNION SELECT guild_id FROM clew.receipt_people WHERE guild_id <> 0
UNION SELECT guild_id FROM clew.snapshots WHERE guild_id IS NOT NULL
UNION SELECT guild_id FROM clew.snapshot_messages WHERE guild_id IS NOT NULL
UNION SELECT guild_id FROM clew.message_sources WHERE guild_id IS NOT NULL
UNION SELECT guild_id FROM clew.snapshot_sources WHERE guild_id IS NOT NULL
UNION SELECT origin_guild FROM clew.facts WHERE origin_guild IS NOT NULL
UNION SELECT server_id FROM clew.facts WHERE server_id IS NOT NULL
UNION SELECT guild_id FROM clew.guild_settings
ORDER BY 1";

const RECENT_DIRECT: &str = "
SELECT thread_id FROM
    ((SELECT thread_id, guild_id, timestamp FROM clew.messages ORDER BY timestamp DESC LIMIT $1)
    UNION ALL SELECT thread_id, guild_id, timestamp FROM clew.early_messages) r
WHERE guild_id IS NULL
GROUP BY thread_id ORDER BY max(timestamp) DESC, thread_id DESC LIMIT $2";

/// See [`super::super::Backend::append`].
pub(super) async fn append(call: &Call<'_>, turn: &[StoredMessage]) -> Outcome<u64> {
    let first = append::first_of(turn).map_err(Failure::Refused)?;
    let (place, early) = place(call, first).await?;
    delete_turn(call, &TurnKey::of(first)).await?;
    let rows = append::confirmed(&early, turn, place.cleared)
        .unwrap_or_else(|| append::placed(turn, place.ordinal, place.newest, place.cleared));
    insert(call, &rows.iter().zip(0..).collect::<Vec<_>>()).await?;
    Ok(place.ordinal)
}

/// Where a turn stands in its conversation.
#[derive(Default)]
pub(super) struct Place {
    pub(super) ordinal: u64,
    /// The time of the newest row.
    pub(super) newest: Option<UnixMillis>,
    /// The latest clear marker.
    pub(super) cleared: Option<UnixMillis>,
}

/// Locks a turn's conversation until the transaction ends, finds the turn's place, and removes its
/// early rows, which it returns.
pub(super) async fn place(
    call: &Call<'_>,
    first: &StoredMessage,
) -> Outcome<(Place, Vec<StoredMessage>)> {
    write_scope(call, first.scope).await?;
    let last = raise_counter(call, first, 0).await?;
    let (stored, mut place) = before(call, first).await?;
    let early = early::take(call, &TurnKey::of(first)).await?;
    match stored.or(append::early_ordinal(&early)) {
        Some(ordinal) => place.ordinal = ordinal,
        None => place.ordinal = raise_counter(call, first, last + 1).await?,
    }
    Ok((place, early))
}

/// What bounds a new turn, and its own ordinal, if it is stored.
async fn before(call: &Call<'_>, first: &StoredMessage) -> Outcome<(Option<u64>, Place)> {
    let (scope, agent) = (first.scope.to_string(), first.agent.as_str());
    let turn = first.turn.0.cast_signed();
    let (guild, owner) = (guild_key(first.guild), user_key(Some(first.owner)));
    let parameters: Parameters<'_> = &[&scope, &agent, &turn, &guild, &owner];
    let found = rows(call, BEFORE_TURN, parameters).await?;
    let Some(row) = found.first() else {
        return Ok((None, Place::default()));
    };
    let row = PostgresRow::of("messages", row);
    let place = Place {
        ordinal: 0,
        newest: row.maybe_time("newest")?,
        cleared: row.maybe_time("cleared")?,
    };
    Ok((row.maybe_id("ordinal", |ordinal| ordinal)?, place))
}

/// Returns the conversation's last ordinal, which is then at least this.
async fn raise_counter(call: &Call<'_>, row: &StoredMessage, ordinal: u64) -> Outcome<u64> {
    let signed = |id: u64| id.cast_signed();
    let (scope, agent) = (row.scope.to_string(), row.agent.as_str());
    // So that purges find it.
    let guild = row.scope.guild().map(|guild| signed(guild.get()));
    let channel = row.scope.channel().map(|channel| signed(channel.get()));
    let owner = row.scope.owner().map(|user| signed(user.get()));
    let parameters: Parameters<'_> = &[&scope, &agent, &guild, &channel, &owner, &signed(ordinal)];
    let last: Option<i64> = session::first(call, RAISE_COUNTER, parameters).await?;
    Ok(last.unwrap_or(0).cast_unsigned())
}

/// Removes a turn's rows.
async fn delete_turn(call: &Call<'_>, key: &TurnKey) -> Outcome<()> {
    let sql = "DELETE FROM clew.messages WHERE scope = $1 AND turn_id = $2 AND agent_name = $3";
    let (scope, turn) = (key.scope.to_string(), key.turn.0.cast_signed());
    touched(call, sql, &[&scope, &turn, &key.agent.as_str()])
        .await
        .map(drop)
}

/// A row, and its position within the turn.
pub(super) type Placed<'a> = (&'a StoredMessage, i64);

/// Inserts rows in this order.
async fn insert(call: &Call<'_>, placed: &[Placed<'_>]) -> Outcome<()> {
    let sql = format!("WITH added AS (INSERT INTO clew.messages {VALUES}), {HOLD_MESSAGES}");
    // Prepared first, so that the inserts are sent in order.
    call.transaction.prepare_cached(&sql).await?;
    for chunk in placed.chunks(INSERTS_AT_ONCE) {
        let inserts = chunk.iter().map(|placed| insert_one(call, &sql, *placed));
        future::try_join_all(inserts).await?;
    }
    Ok(())
}

async fn insert_one(call: &Call<'_>, sql: &str, placed: Placed<'_>) -> Outcome<()> {
    let added = insert_row(call, sql, placed).await?;
    let (row, _) = placed;
    if let (Some(added), false) = (added, row.sources.is_empty()) {
        let sources = SourceIds::of(&row.sources);
        touched(call, INSERT_SOURCES, &sources.after(&added)).await?;
    }
    Ok(())
}

/// Inserts a row by a statement that takes its columns in the order of [`VALUES`].
/// Returns its number.
pub(super) async fn insert_row(
    call: &Call<'_>,
    sql: &str,
    (row, position): Placed<'_>,
) -> Outcome<Option<i64>> {
    let signed = |id: u64| id.cast_signed();
    let parts = row.parts.iter().map(|part| signed(part.get()));
    let parameters: Parameters<'_> = &[
        &row.scope.to_string(),
        &row.agent.as_str(),
        &signed(row.turn.0),
        &signed(row.ordinal),
        &row.role.as_str(),
        &row.guild.map(|guild| signed(guild.get())),
        &signed(row.channel.get()),
        &signed(row.owner.get()),
        &maybe_text(row.author_name.as_ref()),
        &text(&row.content),
        &maybe_text(row.tool_calls.as_ref()),
        &maybe_text(row.tool_call_id.as_ref()),
        &Moment(row.timestamp),
        &row.message.map(|message| signed(message.get())),
        &parts.collect::<Vec<i64>>(),
        &row.target.map(|target| signed(target.get())),
        &row.restored_from.as_ref().map(SnapshotId::as_str),
        &position,
        &columns::sources(&row.sources),
    ];
    session::first(call, sql, parameters).await
}

/// Writes rows unchanged, replacing earlier copies of them. Rows of one call
/// stay separate, even if they look identical.
pub(super) async fn write(call: &Call<'_>, messages: &[&StoredMessage]) -> Outcome<()> {
    for row in messages {
        let parameters: Parameters<'_> = &[
            &row.scope.to_string(),
            &row.turn.0.cast_signed(),
            &row.agent.as_str(),
            &row.role.as_str(),
            &maybe_text(row.tool_call_id.as_ref()),
            &maybe_text(row.tool_calls.as_ref()),
            &row.message.map(|message| message.get().cast_signed()),
        ];
        touched(call, DELETE_SAME, parameters).await?;
        raise_counter(call, row, row.ordinal).await?;
    }
    let mut turns = BTreeMap::new();
    let mut placed = Vec::with_capacity(messages.len());
    for row in messages.iter().copied() {
        let turn = (row.scope, row.agent.clone(), row.turn);
        let position = match turns.entry(turn) {
            Entry::Occupied(next) => next.into_mut(),
            Entry::Vacant(next) => next.insert(next_position(call, row).await?),
        };
        placed.push((row, *position));
        *position += 1;
    }
    insert(call, &placed).await
}

/// The position after the existing rows of its turn.
async fn next_position(call: &Call<'_>, row: &StoredMessage) -> Outcome<i64> {
    let sql = "SELECT coalesce(max(position) + 1, 0) FROM clew.messages \
               WHERE scope = $1 AND turn_id = $2 AND agent_name = $3";
    let (scope, turn) = (row.scope.to_string(), row.turn.0.cast_signed());
    let parameters: Parameters<'_> = &[&scope, &turn, &row.agent.as_str()];
    let next = session::first(call, sql, parameters).await?;
    Ok(next.unwrap_or(0))
}

/// See [`super::super::Backend::window`].
pub(super) async fn read_window(
    call: &Call<'_>,
    query: &WindowQuery,
) -> Outcome<Vec<StoredMessage>> {
    let scope = query.scope.to_string();
    let cleared = match query.cleared {
        Some(asker) => marks::cleared_at(call, &query.agent, asker.guild, asker.user).await?,
        None => None,
    };
    let since = Moment(query.start(cleared));
    let (agent, limit) = (query.agent.as_str(), limit(query.limit));
    let parameters: Parameters<'_> = &[&scope, &agent, &since, &limit, &query.with_tools];
    let sql = format!("SELECT {MESSAGE} {WINDOW}");
    let found = scoped_rows(call, query.scope, &sql, parameters).await?;
    Ok(found.iter().rev().filter_map(readable).collect())
}

/// A row of a turn; `None` if it cannot be read.
pub(super) fn readable(row: &Row) -> Option<StoredMessage> {
    let message = message(row).map_err(|failure| {
        let error = failure.during("read a conversation");
        tracing::error!(%error, "a row cannot be read: left out");
    });
    message.ok()
}

/// See [`super::super::Backend::read_exchanges`].
pub(super) async fn read_exchanges(
    call: &Call<'_>,
    query: &ExchangeQuery,
) -> Outcome<Vec<StoredMessage>> {
    let (scope, agent) = (query.scope.to_string(), query.agent.as_str());
    let limit = limit(query.limit);
    let bound = |ordinal: u64| vec![i64::try_from(ordinal).unwrap_or(i64::MAX)];
    let (which, order, given) = match &query.which {
        Exchanges::Below(ordinal) => ("ordinal < ($3::bigint[])[1]", "DESC", bound(*ordinal)),
        Exchanges::Above(ordinal) => ("ordinal > ($3::bigint[])[1]", "ASC", bound(*ordinal)),
        Exchanges::Turns(turns) => {
            let turns = turns.iter().map(|turn| turn.0.cast_signed()).collect();
            ("turn_id = ANY ($3::bigint[])", "ASC", turns)
        }
    };
    let sql = format!(
        "SELECT {MESSAGE} FROM clew.messages
         WHERE scope = $1 AND agent_name = $2 AND {which} AND role IN ('user', 'assistant')
         ORDER BY ordinal {order}, turn_id {order}, position {order} LIMIT $4"
    );
    let parameters: Parameters<'_> = &[&scope, &agent, &given, &limit];
    let found = scoped_rows(call, query.scope, &sql, parameters).await?;
    let mut found: Vec<StoredMessage> = found.iter().filter_map(readable).collect();
    if order == "DESC" {
        found.reverse();
    }
    Ok(found)
}

/// See [`super::super::Backend::conversation`]. Nothing expires here.
pub(super) async fn conversation(
    call: &Call<'_>,
    scope: Scope,
    _now: UnixMillis,
) -> Outcome<ConversationStats> {
    let sql = "SELECT count(*) FROM clew.messages WHERE scope = $1";
    let found = scoped_rows(call, scope, sql, &[&scope.to_string()]).await?;
    let rows = found.first().map(|row| row.try_get(0)).transpose()?;
    let message_count = usize::try_from(rows.unwrap_or(0i64)).unwrap_or(0);
    Ok(ConversationStats {
        exists: message_count > 0,
        message_count,
        expires_in: None,
    })
}

/// See [`super::super::Backend::delete_conversation`].
pub(super) async fn delete_conversation(call: &Call<'_>, scope: Scope) -> Outcome<u64> {
    write_scope(call, scope).await?;
    let mut gone = 0;
    for table in ["messages", early::TABLE] {
        let sql = format!("DELETE FROM clew.{table} WHERE scope = $1");
        gone += touched(call, &sql, &[&scope.to_string()]).await?;
    }
    Ok(gone)
}

/// See [`super::super::Backend::own_messages`].
pub(super) async fn own_messages(
    call: &Call<'_>,
    owner: UserId,
    agent: &AgentName,
    guild: Option<GuildId>,
    since: UnixMillis,
) -> Outcome<Vec<StoredMessage>> {
    see_all(call).await?;
    let (owner, agent) = (owner.get().cast_signed(), agent.as_str());
    let guild = guild.map(|guild| guild.get().cast_signed());
    let parameters: Parameters<'_> = &[&owner, &agent, &guild, &Moment(since)];
    let sql = format!("SELECT {MESSAGE} {OWN}");
    let found = rows(call, &sql, parameters).await?;
    found.iter().map(message).collect()
}

fn message(row: &Row) -> Outcome<StoredMessage> {
    columns::message(&PostgresRow::of("messages", row))
}

/// Gives an edited message's rows the new text, early ones and those of snapshots too. An
/// answer of several messages keeps its text, since one message is only part of it.
pub(super) async fn edit_message(
    call: &Call<'_>,
    channel: ChannelId,
    message: MessageId,
    new_text: &str,
) -> Outcome<u64> {
    write_all(call).await?;
    let ids = (channel.get().cast_signed(), message.get().cast_signed());
    let found = "id IN \
        (SELECT row_id FROM clew.message_ids WHERE channel_id = $1 AND message_id = $2)";
    let mut edited = 0;
    for (table, which) in [("messages", found), (early::TABLE, "thread_id = $1")] {
        let sql = format!(
            "UPDATE clew.{table} SET content = $3 WHERE content <> $3 AND discord_message_id = $2
             AND (part_ids = '{{}}' OR role = 'user') AND {which}"
        );
        edited += touched(call, &sql, &[&ids.0, &ids.1, &text(new_text)]).await?;
    }
    snapshots::edit(call, channel, message, new_text).await?;
    Ok(edited)
}

/// See [`super::super::Backend::held_messages`].
pub(super) async fn held_messages(
    call: &Call<'_>,
    channel: ChannelId,
    from: MessageId,
    to: MessageId,
) -> Outcome<Vec<MessageId>> {
    see_all(call).await?;
    // No Discord id uses the highest bit, so a higher bound means no bound.
    let bound = |id: MessageId| i64::try_from(id.get()).unwrap_or(i64::MAX);
    let parameters: Parameters<'_> = &[&channel.get().cast_signed(), &bound(from), &bound(to)];
    let held = ids(call, HELD, parameters, MessageId::new).await?;
    let mut held = BTreeSet::from_iter(held);
    let early = early::held(call, channel).await?;
    held.extend(early.into_iter().filter(|id| (from..=to).contains(id)));
    Ok(held.into_iter().collect())
}

/// See [`super::super::Backend::guilds`].
pub(super) async fn guilds(call: &Call<'_>) -> Outcome<Vec<GuildId>> {
    see_all(call).await?;
    ids(call, GUILDS, &[], GuildId::new).await
}

/// See [`super::super::Backend::recent_direct`].
pub(super) async fn recent_direct(call: &Call<'_>, limit: usize) -> Outcome<Vec<ChannelId>> {
    see_all(call).await?;
    let limits = [RECENT_ROWS, limit].map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let parameters: Parameters<'_> = &[&limits[0], &limits[1]];
    ids(call, RECENT_DIRECT, parameters, ChannelId::new).await
}

/// See [`super::super::Backend::members`].
pub(super) async fn members(call: &Call<'_>, guild: GuildId) -> Outcome<Vec<UserId>> {
    see_all(call).await?;
    let guild = guild_key(Some(guild));
    ids(call, MEMBERS, &[&guild], UserId::new).await
}
