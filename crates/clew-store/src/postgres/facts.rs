//! Facts about users and servers.

use super::session::{Call, Outcome};
use crate::columns::{self, Cell, FACT_REST};
use crate::model::{Fact, FactId, Subject};
use crate::sql::{Database as _, See, ids};
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
        SELECT lexeme FROM unnest(tsvector_to_array(to_tsvector('simple', ?2))) AS lexeme
        LIMIT ?4
    ) AS lexemes
)
SELECT id FROM facts, wanted
WHERE server_id = ?1 AND words @@ query
ORDER BY ts_rank(words, query, 1) DESC, last_used DESC, id
LIMIT ?3";

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
    let sql = upsert("facts", &["id"], &[&others[..], &FACT_REST].concat());
    call.run(&sql, &values).await?;
    Ok(())
}

/// See [`super::super::Backend::matching_facts`].
pub(super) async fn matching_facts(
    call: &Call<'_>,
    guild: GuildId,
    words: &str,
    most: usize,
) -> Outcome<Vec<FactId>> {
    let values = [
        Cell::id(guild.get()),
        Cell::text(&words[..words.floor_char_boundary(MOST_WORDS)]),
        Cell::limit(most),
        Cell::Number(MOST_LEXEMES),
    ];
    let see = See::About(Subject::Server(guild));
    ids(call, see, MATCHING, &values, FactId).await
}
