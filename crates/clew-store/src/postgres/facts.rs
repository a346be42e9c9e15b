//! Facts about users and servers.

use super::session::{Call, Outcome, Parameters, ids, rows, see, touched};
use super::tables::FACT;
use super::values::{PostgresRow, borrowed, dollars, limit, text};
use crate::columns::{self, Cell, FACT_REST, guild_key};
use crate::model::{Fact, FactId, MAX_FACT_BYTES, Subject};
use crate::table::upsert;
use clew_context::model::GuildId;

/// Most bytes of a conversation that are matched against facts: a block of the
/// largest default size, in any script.
const MOST_WORDS: usize = 32 << 10;
/// Most distinct words; a query of thousands helps nobody.
const MOST_LEXEMES: i64 = 512;

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
pub(super) async fn facts(call: &Call<'_>, subject: Subject, most: usize) -> Outcome<Vec<Fact>> {
    let (column, id) = match subject {
        Subject::User(user) => ("user_id", user.get()),
        Subject::Server(guild) => ("server_id", guild.get()),
    };
    see(call, subject).await?;
    let sql = format!(
        "SELECT {FACT} FROM clew.facts
         WHERE {column} = $1 AND octet_length(text) <= {MAX_FACT_BYTES}
         ORDER BY pinned DESC, last_used DESC, seen DESC, at DESC, id DESC LIMIT $2"
    );
    let found = rows(call, &sql, &[&id.cast_signed(), &limit(most)]).await?;
    let found = found.iter().map(|row| PostgresRow::of("facts", row));
    let found: Outcome<_> = found.map(|row| columns::fact(&row)).collect();
    Ok(Fact::most_useful(found?, most))
}

/// Writes a fact, which the transaction must see.
pub(super) async fn put(call: &Call<'_>, fact: &Fact) -> Outcome<()> {
    let (user, server) = match fact.subject {
        Subject::User(user) => (Some(user.get()), None),
        Subject::Server(guild) => (None, Some(guild.get())),
    };
    let mut values = vec![
        Cell::id(fact.id.0),
        Cell::maybe_id(user),
        Cell::maybe_id(server),
        Cell::text(&fact.text),
    ];
    values.extend(columns::fact_rest(fact));
    let others = ["user_id", "server_id", "text"];
    let sql = upsert("clew.facts", &["id"], &[&others[..], &FACT_REST].concat());
    touched(call, &dollars(&sql), &borrowed(&values)).await?;
    Ok(())
}

/// See [`super::super::Backend::matching_facts`].
pub(super) async fn matching_facts(
    call: &Call<'_>,
    guild: GuildId,
    words: &str,
    most: usize,
) -> Outcome<Vec<FactId>> {
    see(call, Subject::Server(guild)).await?;
    let words = text(&words[..words.floor_char_boundary(MOST_WORDS)]);
    let (guild, most) = (guild_key(Some(guild)), limit(most));
    let parameters: Parameters<'_> = &[&guild, &words, &most, &MOST_LEXEMES];
    ids(call, MATCHING, parameters, FactId).await
}
