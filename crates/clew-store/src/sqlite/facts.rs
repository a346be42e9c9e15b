//! Facts about users and servers, and the search among a server's.

use rusqlite::{Connection, Row, params};

use super::fault::Fault;
use super::row::{Columns, number, time_text};
use super::session::Session;
use crate::model::{Fact, FactId, Origin, Subject};
use crate::rank;
use clew_context::model::{ChannelId, GuildId, MessageId, UserId};

/// Most words that one search looks for: the first different ones. Each is
/// looked up by itself.
const MOST_WORDS: usize = 200;

/// What [`fact`] reads.
pub(super) const FACT: &str = "id, subject, subject_id, text, origin, origin_guild, by_user, at, \
     link_channel, link_message, pinned, seen, last_used";

/// All facts about a user or a server, oldest first.
pub(super) fn about(session: &Session, subject: Subject) -> Result<Vec<Fact>, Fault> {
    let mut select = session.connection.prepare_cached(&format!(
        "SELECT {FACT} FROM facts WHERE subject = ?1 AND subject_id = ?2 ORDER BY at, id"
    ))?;
    select.query_and_then(subject_key(subject), fact)?.collect()
}

/// A row of `facts` with the columns of [`FACT`].
pub(super) fn fact(row: &Row<'_>) -> Result<Fact, Fault> {
    let row = Columns::of("facts", row)?;
    let about = row.id_of("subject_id")?;
    let subject = row.read("subject", |word| match word {
        "user" => Some(Subject::User(UserId::new(about))),
        "server" => Some(Subject::Server(GuildId::new(about))),
        _ => None,
    })?;
    let guild = row.maybe_id("origin_guild")?.map(GuildId::new);
    let origin = row.read("origin", |word| match (word, guild) {
        ("direct", None) => Some(Origin::Direct),
        ("guild", Some(guild)) => Some(Origin::Guild(guild)),
        ("everywhere", None) => Some(Origin::Everywhere),
        _ => None,
    })?;
    let channel = row.maybe_id("link_channel")?.map(ChannelId::new);
    let message = row.maybe_id("link_message")?.map(MessageId::new);
    Ok(Fact {
        id: FactId(row.id().cast_unsigned()),
        subject,
        text: row.get("text")?,
        origin,
        by: UserId::new(row.id_of("by_user")?),
        at: row.time("at")?,
        link: channel.zip(message),
        pinned: row.get("pinned")?,
        seen: row.get("seen")?,
        last_used: row.time("last_used")?,
    })
}

/// Writes facts, replacing those with the same id.
pub(super) fn put(connection: &Connection, facts: &[Fact]) -> Result<(), Fault> {
    let mut put = connection.prepare_cached(
        "INSERT INTO facts (id, subject, subject_id, text, origin, origin_guild, by_user, at,
             link_channel, link_message, pinned, seen, last_used)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT DO UPDATE SET subject = ?2, subject_id = ?3, text = ?4, origin = ?5,
             origin_guild = ?6, by_user = ?7, at = ?8, link_channel = ?9, link_message = ?10,
             pinned = ?11, seen = ?12, last_used = ?13",
    )?;
    for fact in facts {
        let (subject, about) = subject_key(fact.subject);
        let (origin, guild) = match fact.origin {
            Origin::Direct => ("direct", None),
            Origin::Guild(guild) => ("guild", Some(number(guild.get()))),
            Origin::Everywhere => ("everywhere", None),
        };
        put.execute(params![
            number(fact.id.0),
            subject,
            about,
            fact.text,
            origin,
            guild,
            number(fact.by.get()),
            time_text(fact.at),
            fact.link.map(|(channel, _)| number(channel.get())),
            fact.link.map(|(_, message)| number(message.get())),
            fact.pinned,
            fact.seen,
            time_text(fact.last_used),
        ])?;
    }
    Ok(())
}

/// Removes facts. Says how many went.
pub(super) fn remove(session: &Session, facts: &[FactId]) -> Result<u64, Fault> {
    let sql = "DELETE FROM facts WHERE id = ?1";
    let mut remove = session.connection.prepare_cached(sql)?;
    let mut gone = 0;
    for id in facts {
        gone += remove.execute([number(id.0)])? as u64;
    }
    if gone > 0 {
        session.deleted();
    }
    Ok(gone)
}

/// A server's facts that match any of the words, best first by BM25.
pub(super) fn matching(
    session: &Session,
    guild: GuildId,
    words: &str,
    limit: usize,
) -> Result<Vec<FactId>, Fault> {
    let Some(terms) = rank::any_word(words, MOST_WORDS) else {
        return Ok(Vec::new());
    };
    // The server's own word counts nothing, and narrows all else.
    let mut select = session.connection.prepare_cached(
        "SELECT facts.id FROM facts_fts JOIN facts ON facts.id = facts_fts.rowid
         WHERE facts_fts MATCH ?1 AND facts.subject = 'server' AND facts.subject_id = ?2
         ORDER BY bm25(facts_fts, 0.0, 1.0), facts.id LIMIT ?3",
    )?;
    let guild = number(guild.get());
    let query = format!("(guild : \"{guild}\") AND (text : ({terms}))");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let ids = select.query_map((query, guild, limit), |row| row.get::<_, i64>(0))?;
    ids.map(|id| Ok(FactId(id?.cast_unsigned()))).collect()
}

fn subject_key(subject: Subject) -> (&'static str, i64) {
    match subject {
        Subject::User(user) => ("user", number(user.get())),
        Subject::Server(guild) => ("server", number(guild.get())),
    }
}
