//! Reads and writes all entries as values, and counts them.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::lists::{self, NONE};
use super::messages::{OF_TURN, State};
use super::row::{self, Columns, MESSAGE, number};
use super::session::Session;
use super::{facts, saved, texts};
use crate::model::{AgentName, ClearKey, StoredMessage};
use crate::{Cursor, Kind, KindStats, Record, Records, json};
use clew_context::model::{GuildId, UserId};

/// An entry, and the cursor after it.
type Placed = (String, Record);

/// Entries of a kind, continuing from a cursor.
pub(super) fn page(
    session: &Session,
    kind: Kind,
    owner: Option<UserId>,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Records, Fault> {
    let after = after.map_or("", |cursor| cursor.0.as_str());
    let owner = owner.map(|owner| number(owner.get()));
    let most = i64::try_from(limit).unwrap_or(i64::MAX - 1);
    let of_nobody = owner.is_some();
    // One extra entry shows whether there are more.
    let mut found = match kind {
        Kind::Messages => messages(session, owner, after, most + 1)?,
        Kind::Markers => markers(session, owner, after, most + 1)?,
        Kind::Snapshots => snapshots(session, owner, after, most + 1)?,
        Kind::UserFacts => facts_about(session, "user", owner, after, most + 1)?,
        Kind::ServerFacts => facts_about(session, "server", owner, after, most + 1)?,
        Kind::OptOuts => opt_outs(session, owner, after, most + 1)?,
        Kind::Settings | Kind::Agents | Kind::Departures if of_nobody => Vec::new(),
        Kind::Settings => settings(session, after, most + 1)?,
        Kind::Agents => agents(session, after, most + 1)?,
        Kind::Departures => departures(session, after, most + 1)?,
        // Files outside of any store.
        Kind::Transcripts => Vec::new(),
    };
    let is_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| is_more);
    Ok(Records {
        next: last.map(|(place, _)| Cursor(place.clone())),
        records: found.into_iter().map(|(_, record)| record).collect(),
    })
}

/// The number in a cursor; the lowest if it holds none.
fn number_after(after: &str) -> i64 {
    after.parse().unwrap_or(i64::MIN)
}

/// Rows sorted by number, each read by `read`.
fn numbered(
    session: &Session,
    sql: &str,
    key: impl rusqlite::Params,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<Record, Fault>,
) -> Result<Vec<Placed>, Fault> {
    let mut select = session.connection.prepare_cached(sql)?;
    let rows = select.query_and_then(key, |row| {
        let place: i64 = row.get(0)?;
        Ok((place.to_string(), read(row)?))
    })?;
    rows.collect()
}

fn messages(
    session: &Session,
    owner: Option<i64>,
    after: &str,
    most: i64,
) -> Result<Vec<Placed>, Fault> {
    let sql = format!(
        "SELECT {MESSAGE} FROM messages WHERE id > ?1 AND (?2 IS NULL OR owner_id = ?2)
         ORDER BY id LIMIT ?3"
    );
    let key = (number_after(after), owner, most);
    numbered(session, &sql, key, |row| {
        Ok(Record::Message(row::message(row)?))
    })
}

fn markers(
    session: &Session,
    owner: Option<i64>,
    after: &str,
    most: i64,
) -> Result<Vec<Placed>, Fault> {
    let mut parts = after.splitn(3, ' ');
    let agent = parts.next().unwrap_or_default();
    let guild = number_after(parts.next().unwrap_or_default());
    let user = number_after(parts.next().unwrap_or_default());
    let mut select = session.connection.prepare_cached(
        "SELECT 0, agent_name, guild_id, user_id, cleared_at FROM markers
         WHERE (agent_name, guild_id, user_id) > (?1, ?2, ?3) AND (?4 IS NULL OR user_id = ?4)
         ORDER BY agent_name, guild_id, user_id LIMIT ?5",
    )?;
    let rows = select.query_and_then(params![agent, guild, user, owner, most], |row| {
        let row = Columns::of("markers", row)?;
        let (guild, user) = (row.id_of("guild_id")?, row.id_of("user_id")?);
        let key = ClearKey {
            agent: row.read("agent_name", |text| text.parse().ok())?,
            guild: (number(guild) != NONE).then(|| GuildId::new(guild)),
            user: (number(user) != NONE).then(|| UserId::new(user)),
        };
        let place = format!("{} {guild} {user}", key.agent);
        Ok((place, Record::Marker(key, row.time("cleared_at")?)))
    })?;
    rows.collect()
}

fn snapshots(
    session: &Session,
    owner: Option<i64>,
    after: &str,
    most: i64,
) -> Result<Vec<Placed>, Fault> {
    let sql = format!(
        "SELECT {} FROM snapshots WHERE ready AND seq > ?1 AND (?2 IS NULL OR owner_id = ?2)
         ORDER BY seq LIMIT ?3",
        saved::INFO
    );
    numbered(session, &sql, (number_after(after), owner, most), |row| {
        let (_, info) = saved::info(row)?;
        Ok(Record::Snapshot(saved::what_is_left(session, info)?))
    })
}

/// For a user: facts about them, or stated by them.
fn facts_about(
    session: &Session,
    subject: &str,
    owner: Option<i64>,
    after: &str,
    most: i64,
) -> Result<Vec<Placed>, Fault> {
    let sql = format!(
        "SELECT {} FROM facts WHERE subject = ?1 AND id > ?2
             AND (?3 IS NULL OR by_user = ?3 OR (subject = 'user' AND subject_id = ?3))
         ORDER BY id LIMIT ?4",
        facts::FACT
    );
    let key = params![subject, number_after(after), owner, most];
    numbered(session, &sql, key, |row| {
        Ok(Record::Fact(facts::fact(row)?))
    })
}

fn opt_outs(
    session: &Session,
    owner: Option<i64>,
    after: &str,
    most: i64,
) -> Result<Vec<Placed>, Fault> {
    let sql = "SELECT user_id, since FROM opt_outs
         WHERE user_id > ?1 AND (?2 IS NULL OR user_id = ?2) ORDER BY user_id LIMIT ?3";
    numbered(session, sql, (number_after(after), owner, most), |row| {
        let row = Columns::of("opt_outs", row)?;
        let user = UserId::new(row.id().cast_unsigned());
        Ok(Record::OptOut(user, row.time("since")?))
    })
}

fn settings(session: &Session, after: &str, most: i64) -> Result<Vec<Placed>, Fault> {
    let sql = "SELECT guild_id, settings FROM guild_settings
         WHERE guild_id > ?1 ORDER BY guild_id LIMIT ?2";
    numbered(session, sql, (number_after(after), most), |row| {
        let row = Columns::of("guild_settings", row)?;
        let settings = row.read("settings", |text| json::read_settings(text).ok())?;
        Ok(Record::Settings(
            GuildId::new(row.id().cast_unsigned()),
            settings,
        ))
    })
}

fn departures(session: &Session, after: &str, most: i64) -> Result<Vec<Placed>, Fault> {
    let sql = "SELECT guild_id, at FROM departures WHERE guild_id > ?1 ORDER BY guild_id LIMIT ?2";
    numbered(session, sql, (number_after(after), most), |row| {
        let row = Columns::of("departures", row)?;
        let guild = GuildId::new(row.id().cast_unsigned());
        Ok(Record::Departure(guild, row.time("at")?))
    })
}

fn agents(session: &Session, after: &str, most: i64) -> Result<Vec<Placed>, Fault> {
    let mut select = session.connection.prepare_cached(
        "SELECT 0, name, created_at FROM agents WHERE name > ?1 ORDER BY name LIMIT ?2",
    )?;
    let rows = select.query_and_then((after, most), |row| {
        let row = Columns::of("agents", row)?;
        let name: AgentName = row.read("name", |text| text.parse().ok())?;
        let created = row.time("created_at")?;
        Ok((name.to_string(), Record::Agent(name, created)))
    })?;
    rows.collect()
}

/// Writes entries unchanged, replacing those with the same key.
pub(super) fn write(session: &Session, records: &[Record]) -> Result<(), Fault> {
    let snapshots = records.iter().filter_map(|record| match record {
        Record::Snapshot(snapshot) => Some(snapshot),
        _ => None,
    });
    let snapshots: Vec<_> = snapshots.collect();
    saved::save(session, &snapshots, || {
        let mut written = HashSet::new();
        for record in records {
            write_one(session, record, &mut written)?;
        }
        Ok(())
    })
}

fn write_one(session: &Session, record: &Record, written: &mut HashSet<i64>) -> Result<(), Fault> {
    let connection = &session.connection;
    match record {
        Record::Message(message) => write_message(session, message, written),
        Record::Marker(key, at) => lists::put_marker(connection, key, *at),
        // Its row is written together with its file.
        Record::Snapshot(_) => Ok(()),
        Record::Fact(fact) => facts::put(session, std::slice::from_ref(fact)),
        Record::OptOut(user, since) => lists::set_opt_out(connection, *user, Some(*since)),
        Record::Settings(guild, settings) => lists::set_settings(connection, *guild, settings),
        Record::Agent(agent, at) => lists::put_agent(connection, agent, *at),
        Record::Departure(guild, at) => lists::set_departure(connection, *guild, Some(*at)),
    }
}

/// Writes a row, replacing one with the same key: turn, role, call and message.
/// Rows in `written` are not replaced, so that two with the same key stay
/// separate if written together.
fn write_message(
    session: &Session,
    message: &StoredMessage,
    written: &mut HashSet<i64>,
) -> Result<(), Fault> {
    let connection = &session.connection;
    let state = State::of(connection, message.scope, &message.agent)?;
    let newest = state.newest(connection, message.scope, &message.agent)?;
    let place = place_of(connection, message, written)?;
    let scope = message.scope.to_string();
    let turn = (
        number(message.turn.0),
        scope.as_str(),
        message.agent.as_str(),
    );
    let position = match place {
        Some((id, position)) => {
            texts::remove_messages(session, "id = ?1", [id])?;
            position
        }
        None => connection
            .prepare_cached(&format!(
                "SELECT coalesce(max(position) + 1, 0) FROM message_rows
                 WHERE NOT gone AND {OF_TURN}"
            ))?
            .query_row(turn, |row| row.get(0))?,
    };
    written.insert(row::insert_message(connection, message, position)?);
    let is_next =
        newest.is_none_or(|(ordinal, time)| message.ordinal > ordinal && message.timestamp >= time);
    State {
        last_ordinal: state.last_ordinal.max(message.ordinal),
        disordered: state.disordered || !(is_next || is_last_turn(connection, message)?),
    }
    .keep(connection, message.scope, &message.agent)
}

/// Whether this turn's rows are still the conversation's last, in order of
/// time.
fn is_last_turn(connection: &Connection, message: &StoredMessage) -> Result<bool, Fault> {
    let mut last = connection.prepare_cached(
        "SELECT turn_id, timestamp FROM message_rows
         WHERE scope = ?1 AND agent_name = ?2 AND NOT gone
         ORDER BY ordinal DESC, turn_id DESC, position DESC LIMIT 2",
    )?;
    let key = (message.scope.to_string(), message.agent.as_str());
    let rows = last.query_map(key, |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    let times = rows.iter().map(|(_, time)| time);
    let is_ours = rows
        .first()
        .is_some_and(|(turn, _)| *turn == number(message.turn.0));
    Ok(is_ours && times.is_sorted_by(|newer, older| newer >= older))
}

/// The row with the same key, unless it was just written, and its position.
fn place_of(
    connection: &Connection,
    message: &StoredMessage,
    written: &HashSet<i64>,
) -> Result<Option<(i64, i64)>, Fault> {
    let mut same = connection.prepare_cached(&format!(
        "SELECT id, position FROM messages
         WHERE {OF_TURN} AND role = ?4
             AND tool_calls IS ?5 AND tool_call_id IS ?6 AND discord_message_id IS ?7
         ORDER BY position"
    ))?;
    let rows = same.query_map(
        params![
            number(message.turn.0),
            message.scope.to_string(),
            message.agent.as_str(),
            message.role.as_str(),
            message.tool_calls,
            message.tool_call_id,
            message.message.map(|id| number(id.get())),
        ],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let rows: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    Ok(rows.into_iter().find(|(id, _)| !written.contains(id)))
}

/// How much is stored of each kind. Snapshots count their files' rows, but not
/// the bytes of those.
pub(super) fn stats(session: &Session) -> Result<Vec<KindStats>, Fault> {
    let of = |kind: Kind| {
        let sql = match kind {
            Kind::Messages => {
                "SELECT count(*), sum(octet_length(content)
                     + coalesce(octet_length(tool_calls), 0)) FROM messages"
            }
            Kind::Markers => "SELECT count(*), 0 FROM markers",
            Kind::Snapshots => {
                "SELECT count(*), sum(octet_length(summary)
                     + coalesce(octet_length(description), 0)) FROM snapshots WHERE ready"
            }
            Kind::UserFacts => {
                "SELECT count(*), sum(octet_length(text)) FROM facts WHERE subject = 'user'"
            }
            Kind::ServerFacts => {
                "SELECT count(*), sum(octet_length(text)) FROM facts WHERE subject = 'server'"
            }
            Kind::OptOuts => "SELECT count(*), 0 FROM opt_outs",
            Kind::Settings => "SELECT count(*), sum(octet_length(settings)) FROM guild_settings",
            Kind::Agents => "SELECT count(*), 0 FROM agents",
            Kind::Departures => "SELECT count(*), 0 FROM departures",
            Kind::Transcripts => "SELECT 0, 0",
        };
        let counted = session.connection.query_row(sql, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
        });
        let (entries, bytes) = counted.optional()?.unwrap_or_default();
        Ok(KindStats {
            kind,
            entries: entries.cast_unsigned(),
            bytes: bytes.unwrap_or_default().cast_unsigned(),
        })
    };
    Kind::ALL.into_iter().map(of).collect()
}
