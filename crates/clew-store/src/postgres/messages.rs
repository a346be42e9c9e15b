//! Rows of turns.

use futures_util::future;

use super::super::{TurnKey, WindowQuery};
use super::early;
use super::session::{Call, Outcome, write_all, write_scope};
use super::tables::MESSAGE;
use super::values::{PostgresRow, dollars};
use crate::append;
use crate::columns::{self, Cell, Columns as _, ROW, guild_key};
use crate::model::{Scope, StoredMessage};
use crate::sql::{self, Database as _, Placed, See, ids};
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UnixMillis, UserId};

/// Inserts sent together.
const INSERTS_AT_ONCE: usize = 16;

/// Follows a row's insertion.
const HOLD_MESSAGES: &str = "held AS (
    INSERT INTO message_ids (message_id, channel_id, row_id)
    SELECT DISTINCT held.message_id, ?8::bigint, added.id
    FROM added, unnest(?19::bigint[] || ?11::bigint) AS held (message_id)
    WHERE held.message_id IS NOT NULL
)
SELECT id FROM added";

/// Locks a conversation's counter until the transaction ends, and raises it to at least ?6.
const RAISE_COUNTER: &str = "
INSERT INTO conversations AS held
    (scope, agent_name, guild_id, channel_id, owner_id, last_ordinal)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (scope, agent_name)
DO UPDATE SET last_ordinal = greatest(held.last_ordinal, excluded.last_ordinal)
RETURNING last_ordinal AS id";

/// What bounds a new turn: its own ordinal if it exists, the newest row, and
/// the clear markers of its owner and of everybody.
const BEFORE_TURN: &str = "
SELECT
    (SELECT min(ordinal) FROM messages
        WHERE scope = ?1 AND agent_name = ?2 AND turn_id = ?3) AS ordinal,
    greatest(
        (SELECT max(timestamp) FROM messages WHERE scope = ?1 AND agent_name = ?2),
        (SELECT max(timestamp) FROM early_messages
            WHERE scope = ?1 AND agent_name = ?2)) AS newest,
    (SELECT max(at) FROM markers
        WHERE agent_name = ?2 AND guild_id = ?4 AND user_id IN (0, ?5)) AS cleared";

const WINDOW: &str = "
FROM messages
WHERE scope = ?1 AND agent_name = ?2 AND timestamp > ?3 AND (?5 OR role IN ('user', 'assistant'))
ORDER BY ordinal DESC, turn_id DESC, position DESC LIMIT ?4";

/// The rows of a turn, with the values of [`TurnKey::cells`].
pub(super) const OF_TURN: &str = "turn_id = ?1 AND scope = ?2 AND agent_name = ?3";

/// See [`super::super::Backend::append`].
pub(super) async fn append(call: &Call<'_>, turn: &[StoredMessage]) -> Outcome<u64> {
    let first = append::first_of(turn)?;
    let (place, early) = place(call, first).await?;
    let sql = format!("DELETE FROM messages WHERE {OF_TURN}");
    call.run(&sql, &TurnKey::of(first).cells()).await?;
    let rows = append::confirmed(&early, turn, place.cleared)
        .unwrap_or_else(|| append::placed(turn, place.ordinal, place.newest, place.cleared));
    insert(call, &rows.iter().zip(0..).collect::<Vec<_>>()).await?;
    Ok(place.ordinal)
}

/// Where a turn stands in its conversation.
#[derive(Default)]
pub(super) struct TurnPlace {
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
) -> Outcome<(TurnPlace, Vec<StoredMessage>)> {
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
async fn before(call: &Call<'_>, first: &StoredMessage) -> Outcome<(Option<u64>, TurnPlace)> {
    let values = [
        Cell::scope(first.scope),
        Cell::text(first.agent.as_str()),
        Cell::id(first.turn.0),
        Cell::Number(guild_key(first.guild)),
        Cell::id(first.owner.get()),
    ];
    let read = |row: &PostgresRow<'_>| {
        let place = TurnPlace {
            ordinal: 0,
            newest: row.maybe_time("newest")?,
            cleared: row.maybe_time("cleared")?,
        };
        Ok((row.maybe_id("ordinal", |ordinal| ordinal)?, place))
    };
    let found = call.all(See::Lists, "messages", BEFORE_TURN, &values, read);
    Ok(found.await?.pop().unwrap_or_default())
}

/// Returns the conversation's last ordinal, which is then at least this.
async fn raise_counter(call: &Call<'_>, row: &StoredMessage, ordinal: u64) -> Outcome<u64> {
    let values = [
        Cell::scope(row.scope),
        Cell::text(row.agent.as_str()),
        // So that purges find it.
        Cell::maybe_id(row.scope.guild().map(GuildId::get)),
        Cell::maybe_id(row.scope.channel().map(ChannelId::get)),
        Cell::maybe_id(row.scope.owner().map(UserId::get)),
        Cell::id(ordinal),
    ];
    let last = ids(call, See::Lists, RAISE_COUNTER, &values, |last| last);
    Ok(last.await?.pop().unwrap_or_default())
}

/// Inserts rows that have their ordinals, in this order.
pub(super) async fn insert_rows(call: &Call<'_>, placed: &[Placed<'_>]) -> Outcome<()> {
    for (row, _) in placed {
        raise_counter(call, row, row.ordinal).await?;
    }
    insert(call, placed).await
}

async fn insert(call: &Call<'_>, placed: &[Placed<'_>]) -> Outcome<()> {
    let sql = insertion("messages");
    let sql = format!("WITH added AS ({sql}), {HOLD_MESSAGES}");
    // Prepared first, so that the inserts are sent in order.
    call.transaction.prepare_cached(&dollars(&sql)).await?;
    for chunk in placed.chunks(INSERTS_AT_ONCE) {
        let inserts = chunk.iter().map(|placed| insert_one(call, &sql, *placed));
        future::try_join_all(inserts).await?;
    }
    Ok(())
}

async fn insert_one(call: &Call<'_>, sql: &str, placed: Placed<'_>) -> Outcome<()> {
    let added = insert_row(call, sql, placed).await?;
    let (row, _) = placed;
    if let Some(added) = added {
        put_sources(call, "message_sources", "row_id", added, &row.sources).await?;
    }
    Ok(())
}

/// Inserts what an entry was made from; few were made from something elsewhere.
pub(super) async fn put_sources<'a>(
    call: &Call<'_>,
    table: &str,
    key: &str,
    entry: Cell<'_>,
    sources: impl IntoIterator<Item = &'a ContentSource>,
) -> Outcome<()> {
    let mut sources = sources.into_iter().peekable();
    if sources.peek().is_none() {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO {table} ({key}, position, guild_id, channel_id, message_id, author_id)
         SELECT ?1, nth, (ids->>0)::bigint, (ids->>1)::bigint, (ids->>2)::bigint,
             (ids->>3)::bigint
         FROM jsonb_array_elements(?2::text::jsonb) WITH ORDINALITY AS source (ids, nth)"
    );
    call.run(&sql, &[entry, columns::source_ids(sources)])
        .await?;
    Ok(())
}

/// The statement that inserts a row into a table, and returns its number.
pub(super) fn insertion(table: &str) -> String {
    format!(
        "INSERT INTO {table}
             ({ROW}, author_name, content, tool_calls, tool_call_id, part_ids)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
             ?19)
         RETURNING id"
    )
}

/// Inserts a row by a statement with the parameters of [`insertion`]. Returns its number.
pub(super) async fn insert_row(
    call: &Call<'_>,
    sql: &str,
    (row, position): Placed<'_>,
) -> Outcome<Option<Cell<'static>>> {
    let mut values = columns::row_cells(row, position).to_vec();
    values.extend([
        Cell::maybe(row.author_name.as_deref()),
        Cell::text(&row.content),
        Cell::maybe(row.tool_calls.as_deref()),
        Cell::maybe(row.tool_call_id.as_deref()),
        Cell::Numbers(row.parts.iter().map(|id| id.get().cast_signed()).collect()),
    ]);
    let added = ids(call, See::Lists, sql, &values, Cell::id).await?;
    Ok(added.into_iter().next())
}

/// See [`super::super::Backend::window`].
pub(super) async fn read_window(
    call: &Call<'_>,
    query: &WindowQuery,
) -> Outcome<Vec<StoredMessage>> {
    let cleared = match query.cleared {
        Some(asker) => sql::cleared_at(call, &query.agent, asker.guild, asker.user).await?,
        None => None,
    };
    let values = [
        Cell::scope(query.scope),
        Cell::text(query.agent.as_str()),
        Cell::Time(query.start(cleared)),
        Cell::limit(query.limit),
        Cell::Flag(query.with_tools),
    ];
    let sql = format!("SELECT {MESSAGE} {WINDOW}");
    let read = |row: &PostgresRow<'_>| call.readable(columns::message(row));
    let see = See::Scope(query.scope);
    let found = call.all(see, "messages", &sql, &values, read).await?;
    Ok(found.into_iter().rev().flatten().collect())
}

/// See [`super::super::Backend::delete_conversation`].
pub(super) async fn delete_conversation(call: &Call<'_>, scope: Scope) -> Outcome<u64> {
    write_scope(call, scope).await?;
    let mut gone = 0;
    for table in ["messages", early::TABLE] {
        let sql = format!("DELETE FROM {table} WHERE scope = ?1");
        gone += call.run(&sql, &[Cell::scope(scope)]).await?;
    }
    Ok(gone)
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
    let values = [
        Cell::id(channel.get()),
        Cell::id(message.get()),
        Cell::text(new_text),
    ];
    let found = "id IN \
        (SELECT row_id FROM message_ids WHERE channel_id = ?1 AND message_id = ?2)";
    let mut edited = 0;
    for (table, which) in [("messages", found), (early::TABLE, "thread_id = ?1")] {
        let sql = format!(
            "UPDATE {table} SET content = ?3 WHERE content <> ?3 AND discord_message_id = ?2
             AND (part_ids = '{{}}' OR role = 'user') AND {which}"
        );
        edited += call.run(&sql, &values).await?;
    }
    sql::edit_snapshots(call, channel, message, new_text).await?;
    Ok(edited)
}
