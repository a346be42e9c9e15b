//! Facts about users and servers.

use rusqlite::params_from_iter;

use super::fault::Outcome;
use super::row::number;
use super::session::Session;
use super::statement::{first, run};
use super::texts;
use crate::columns::{self, Cell, FACT_REST};
use crate::model::{Fact, Subject};
use crate::table::upsert;

/// The columns of a fact, in the order they are read.
pub(super) const FACT: &str = "id, subject_id, origin_guild, link_channel, link_message, seen, \
     subject, text, origin, by_user, at, pinned, last_used";

/// Writes a fact, replacing the one with the same id.
pub(super) fn put(session: &Session, fact: &Fact) -> Outcome<()> {
    let (subject, about) = match fact.subject {
        Subject::User(user) => ("user", user.get()),
        Subject::Server(guild) => ("server", guild.get()),
    };
    let subject = [
        Cell::id(fact.id.0),
        Cell::text(subject),
        Cell::id(about),
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
