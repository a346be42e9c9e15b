//! Facts about users and servers.

use deadpool_postgres::Transaction;

use super::session::{Outcome, Parameters, ids, rows, see, touched};
use super::tables::FACT;
use super::values::{Moment, PostgresRow, limit, text};
use crate::columns::{self, guild_key};
use crate::model::{Fact, FactId, MAX_FACT_BYTES, Subject};
use clew_context::model::GuildId;

/// Most bytes of a conversation that are matched against facts: a block of the
/// largest default size, in any script.
const MOST_WORDS: usize = 32 << 10;
/// Most distinct words; a query of thousands helps nobody.
const MOST_LEXEMES: i64 = 512;

const PUT: &str = "
INSERT INTO clew.facts (id, user_id, server_id, text, origin, origin_guild, by_user, at,
    link_channel, link_message, pinned, seen, last_used)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (id) DO UPDATE SET
    user_id = excluded.user_id, server_id = excluded.server_id, text = excluded.text,
    origin = excluded.origin, origin_guild = excluded.origin_guild,
    by_user = excluded.by_user, at = excluded.at, link_channel = excluded.link_channel,
    link_message = excluded.link_message, pinned = excluded.pinned, seen = excluded.seen,
    last_used = excluded.last_used";

/// PostgreSQL's parser splits both texts, so that words match. Those of the
/// conversation are quoted (PostgreSQL, "tsquery") and any of them may match.
/// Long facts do not win by their length (normalisation 1).
const MATCHING: &str = r"
WITH wanted AS (
    SELECT string_agg(
        '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | '
    )::tsquery AS query
    FROM (
        SELECT lexeme FROM unnest(tsvector_to_array(to_tsvector('simple', $2))) AS lexeme
        LIMIT $4
    ) AS lexemes
)
SELECT id FROM clew.facts, wanted
WHERE server_id = $1 AND words @@ query
ORDER BY ts_rank(words, query, 1) DESC, last_used DESC, id
LIMIT $3";

/// See [`super::super::Backend::facts`].
pub(super) async fn facts(
    transaction: &Transaction<'_>,
    subject: Subject,
    most: usize,
) -> Outcome<Vec<Fact>> {
    let (column, id) = match subject {
        Subject::User(user) => ("user_id", user.get()),
        Subject::Server(guild) => ("server_id", guild.get()),
    };
    see(transaction, subject).await?;
    let sql = format!(
        "SELECT {FACT} FROM clew.facts
         WHERE {column} = $1 AND octet_length(text) <= {MAX_FACT_BYTES}
         ORDER BY pinned DESC, last_used DESC, seen DESC, at DESC, id DESC LIMIT $2"
    );
    let found = rows(transaction, &sql, &[&id.cast_signed(), &limit(most)]).await?;
    let found = found.iter().map(|row| PostgresRow::of("facts", row));
    let found: Outcome<_> = found.map(|row| columns::fact(&row)).collect();
    Ok(Fact::most_useful(found?, most))
}

/// Writes a fact, which the transaction must see.
pub(super) async fn put(transaction: &Transaction<'_>, fact: &Fact) -> Outcome<()> {
    let signed = |id: u64| id.cast_signed();
    let (user, server) = match fact.subject {
        Subject::User(user) => (Some(signed(user.get())), None),
        Subject::Server(guild) => (None, Some(signed(guild.get()))),
    };
    let (origin, origin_guild) = columns::origin(fact.origin);
    let parameters: Parameters<'_> = &[
        &signed(fact.id.0),
        &user,
        &server,
        &text(&fact.text),
        &origin,
        &origin_guild,
        &signed(fact.by.get()),
        &Moment(fact.at),
        &fact.link.map(|(channel, _)| signed(channel.get())),
        &fact.link.map(|(_, message)| signed(message.get())),
        &fact.pinned,
        &i64::from(fact.seen),
        &Moment(fact.last_used),
    ];
    touched(transaction, PUT, parameters).await?;
    Ok(())
}

/// See [`super::super::Backend::matching_facts`].
pub(super) async fn matching_facts(
    transaction: &Transaction<'_>,
    guild: GuildId,
    words: &str,
    most: usize,
) -> Outcome<Vec<FactId>> {
    see(transaction, Subject::Server(guild)).await?;
    let words = text(&words[..words.floor_char_boundary(MOST_WORDS)]);
    let (guild, most) = (guild_key(Some(guild)), limit(most));
    let parameters: Parameters<'_> = &[&guild, &words, &most, &MOST_LEXEMES];
    ids(transaction, MATCHING, parameters, FactId).await
}
