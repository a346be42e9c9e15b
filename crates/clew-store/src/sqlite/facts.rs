//! Facts about users and servers, and searching those of a server.

use rusqlite::{Params, params_from_iter};

use super::fault::Outcome;
use super::row::{SqliteRow, number};
use super::session::Session;
use super::statement::{all, first, run};
use super::texts;
use crate::columns::{self, Cell, FACT_REST};
use crate::model::{Fact, FactId, MAX_FACT_BYTES, MAX_MATCHED, Subject};
use crate::table::upsert;
use clew_context::model::GuildId;

/// The columns of a fact, in the order they are read.
pub(super) const FACT: &str = "id, subject_id, origin_guild, link_channel, link_message, seen, \
     subject, text, origin, by_user, at, pinned, last_used";

/// See [`super::super::Backend::facts`].
pub(super) fn facts(session: &Session, subject: Subject, most: usize) -> Outcome<Vec<Fact>> {
    let sql = format!(
        "SELECT {FACT} FROM facts
         WHERE subject = ?1 AND subject_id = ?2 AND octet_length(text) <= {MAX_FACT_BYTES}
         ORDER BY pinned DESC, last_used DESC, seen DESC, at DESC, id DESC LIMIT ?3"
    );
    let (kind, id) = subject_key(subject);
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let found = all(&session.connection, &sql, (kind, id, limit), |row| {
        columns::fact(&SqliteRow::of("facts", row))
    });
    Ok(Fact::most_useful(found?, most))
}

/// Writes a fact, replacing the one with the same id.
pub(super) fn put(session: &Session, fact: &Fact) -> Outcome<()> {
    let (subject, about) = subject_key(fact.subject);
    let subject = [
        Cell::id(fact.id.0),
        Cell::text(subject),
        Cell::Number(about),
        Cell::Number(put_text(session, fact)?),
    ];
    let others = ["subject", "subject_id", "text_id"];
    let sql = upsert("fact_rows", &["id"], &[&others[..], &FACT_REST].concat());
    let values = subject.into_iter().chain(columns::fact_rest(fact));
    run(&session.connection, &sql, params_from_iter(values)).map(drop)
}

/// Keeps a fact's text if it is the same, else writes a new one.
fn put_text(session: &Session, fact: &Fact) -> Outcome<i64> {
    let connection = &session.connection;
    let sql = "SELECT t.id, t.text = ?2 FROM fact_rows r JOIN fact_texts t ON t.id = r.text_id
         WHERE r.id = ?1";
    let key = (number(fact.id.0), &fact.text);
    match first(connection, sql, key, |row| Ok((row.get(0)?, row.get(1)?)))? {
        Some((text, true)) => return Ok(text),
        Some((text, false)) => texts::FACTS.blank(session, text)?,
        None => {}
    }
    texts::FACTS.add(connection, [&fact.text])
}

/// Removes facts by a condition on `fact_rows`. Returns how many were removed.
pub(super) fn remove_where(session: &Session, which: &str, key: impl Params) -> Outcome<u64> {
    let sql = format!("DELETE FROM fact_rows WHERE {which} RETURNING text_id");
    // Read to the end, or rows would remain.
    let gone: Vec<i64> = all(&session.connection, &sql, key, |row| Ok(row.get(0)?))?;
    for text in &gone {
        texts::FACTS.blank(session, *text)?;
    }
    Ok(gone.len() as u64)
}

/// A server's facts that match any of the words, best first by BM25.
pub(super) fn matching_facts(
    session: &Session,
    guild: GuildId,
    words: &str,
    limit: usize,
) -> Outcome<Vec<FactId>> {
    let facts = facts(session, Subject::Server(guild), MAX_MATCHED)?;
    let facts: Vec<_> = facts
        .iter()
        .map(|fact| (fact.id, fact.text.as_str()))
        .collect();
    Ok(session.ranker.best(&facts, words, limit)?)
}

fn subject_key(subject: Subject) -> (&'static str, i64) {
    match subject {
        Subject::User(user) => ("user", number(user.get())),
        Subject::Server(guild) => ("server", number(guild.get())),
    }
}
