//! Reads and writes all entries of a kind, page by page, for exports, copies
//! and statistics.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::super::{Cursor, Kind, KindStats, Record, Records, SnapshotFiles};
use super::session::{Failure, Outcome, Parameters, rows, see_all, write_all};
use super::values::{self, Columns, count, limit};
use super::{facts, marks, messages, snapshots};
use crate::model::{AgentName, ClearKey, StoredMessage};
use clew_context::model::{GuildId, UserId};

/// $1: after this key, $2: of this user, $3: at most this many. The key is the
/// first column, or is built by [`key`].
const fn page(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Messages => Some(
            "SELECT * FROM clew.messages WHERE ($1::bigint IS NULL OR id > $1) \
             AND ($2::bigint IS NULL OR owner_id = $2) ORDER BY id LIMIT $3",
        ),
        Kind::UserFacts => Some(
            "SELECT * FROM clew.facts WHERE user_id IS NOT NULL \
             AND ($1::bigint IS NULL OR id > $1) \
             AND ($2::bigint IS NULL OR user_id = $2 OR by_user = $2) ORDER BY id LIMIT $3",
        ),
        Kind::ServerFacts => Some(
            "SELECT * FROM clew.facts WHERE user_id IS NULL \
             AND ($1::bigint IS NULL OR id > $1) \
             AND ($2::bigint IS NULL OR by_user = $2) ORDER BY id LIMIT $3",
        ),
        Kind::OptOuts => Some(
            "SELECT * FROM clew.opt_outs WHERE ($1::bigint IS NULL OR user_id > $1) \
             AND ($2::bigint IS NULL OR user_id = $2) ORDER BY user_id LIMIT $3",
        ),
        Kind::Settings => Some(
            "SELECT * FROM clew.guild_settings WHERE ($1::bigint IS NULL OR guild_id > $1) \
             AND $2::bigint IS NULL ORDER BY guild_id LIMIT $3",
        ),
        Kind::Departures => Some(
            "SELECT * FROM clew.departures WHERE ($1::bigint IS NULL OR guild_id > $1) \
             AND $2::bigint IS NULL ORDER BY guild_id LIMIT $3",
        ),
        Kind::Snapshots => Some(
            "SELECT * FROM clew.snapshots WHERE ready AND ($1::text IS NULL OR snapshot_id > $1) \
             AND ($2::bigint IS NULL OR owner_id = $2) ORDER BY snapshot_id LIMIT $3",
        ),
        Kind::Agents => Some(
            "SELECT * FROM clew.agents WHERE ($1::text IS NULL OR agent_name > $1) \
             AND $2::bigint IS NULL ORDER BY agent_name LIMIT $3",
        ),
        Kind::Markers => Some(
            "SELECT concat_ws('/', agent_name, guild_id, user_id) AS key, * FROM clew.markers \
             WHERE ($1::text IS NULL OR concat_ws('/', agent_name, guild_id, user_id) > $1) \
             AND ($2::bigint IS NULL OR user_id = $2) ORDER BY key LIMIT $3",
        ),
        Kind::Transcripts => None,
    }
}

/// Whether the first column is a text.
const fn is_named(kind: Kind) -> bool {
    match kind {
        Kind::Snapshots | Kind::Agents | Kind::Markers => true,
        Kind::Messages
        | Kind::UserFacts
        | Kind::ServerFacts
        | Kind::OptOuts
        | Kind::Settings
        | Kind::Departures
        | Kind::Transcripts => false,
    }
}

/// See [`super::super::Backend::records`].
pub(super) async fn records(
    transaction: &Transaction<'_>,
    files: &SnapshotFiles,
    kind: Kind,
    owner: Option<UserId>,
    after: Option<&Cursor>,
    most: usize,
) -> Outcome<Records> {
    let Some(sql) = page(kind).filter(|_| most > 0) else {
        return Ok(Records::default());
    };
    see_all(transaction).await?;
    // One extra row shows whether there are more.
    let owner = owner.map(|user| user.get().cast_signed());
    let found = if is_named(kind) {
        let after = after.map(|cursor| cursor.0.as_str());
        let parameters: Parameters<'_> = &[&after, &owner, &limit(most.saturating_add(1))];
        rows(transaction, sql, parameters).await?
    } else {
        let after = after.map(number).transpose()?;
        let parameters: Parameters<'_> = &[&after, &owner, &limit(most.saturating_add(1))];
        rows(transaction, sql, parameters).await?
    };
    let mut records = Vec::with_capacity(found.len().min(most));
    for row in found.iter().take(most) {
        records.push(record(files, kind, row).await?);
    }
    let last = found.get(most - 1).filter(|_| found.len() > most);
    let next = last.map(|row| key(kind, row)).transpose()?;
    Ok(Records { records, next })
}

fn number(cursor: &Cursor) -> Outcome<i64> {
    let number = cursor.0.parse();
    number.map_err(|_| Failure::Refused("the place to go on from is of another store"))
}

fn key(kind: Kind, row: &Row) -> Outcome<Cursor> {
    Ok(Cursor(if is_named(kind) {
        row.try_get(0)?
    } else {
        row.try_get::<_, i64>(0)?.to_string()
    }))
}

async fn record(files: &SnapshotFiles, kind: Kind, row: &Row) -> Outcome<Record> {
    Ok(match kind {
        Kind::Messages => Record::Message(values::message(row)?),
        Kind::Markers => marker(row)?,
        Kind::Snapshots => {
            Record::Snapshot(snapshots::what_is_left(files, values::snapshot(row)?).await?)
        }
        Kind::UserFacts | Kind::ServerFacts => Record::Fact(values::fact(row)?),
        Kind::OptOuts => {
            let columns = Columns::new("opt_outs", row);
            Record::OptOut(UserId::new(columns.id("user_id")?), columns.time("since")?)
        }
        Kind::Settings => {
            let (guild, settings) = marks::settings_row(row)?;
            Record::Settings(guild, settings)
        }
        Kind::Agents => {
            let columns = Columns::named("agents", row);
            let name: AgentName = columns.parsed("agent_name")?;
            Record::Agent(name, columns.time("created_at")?)
        }
        Kind::Departures => {
            let columns = Columns::new("departures", row);
            Record::Departure(GuildId::new(columns.id("guild_id")?), columns.time("at")?)
        }
        Kind::Transcripts => return Err(Failure::Refused("logs are no rows")),
    })
}

fn marker(row: &Row) -> Outcome<Record> {
    let columns = Columns::named("markers", row);
    let present = |id: u64| (id != 0).then_some(id);
    let key = ClearKey {
        agent: columns.parsed("agent_name")?,
        guild: present(columns.id("guild_id")?).map(GuildId::new),
        user: present(columns.id("user_id")?).map(UserId::new),
    };
    Ok(Record::Marker(key, columns.time("at")?))
}

/// See [`super::super::Backend::write`].
pub(super) async fn write(transaction: &Transaction<'_>, records: &[Record]) -> Outcome<()> {
    write_all(transaction).await?;
    let of_turns = records.iter().filter_map(|record| match record {
        Record::Message(message) => Some(message),
        _ => None,
    });
    let of_turns: Vec<&StoredMessage> = of_turns.collect();
    messages::write(transaction, &of_turns).await?;
    for record in records {
        write_one(transaction, record).await?;
    }
    Ok(())
}

async fn write_one(transaction: &Transaction<'_>, record: &Record) -> Outcome<()> {
    match record {
        // Already written, all together.
        Record::Message(_) => Ok(()),
        Record::Marker(key, at) => marks::set_marker(transaction, key, *at).await,
        // `Postgres::write` has written its row and file.
        Record::Snapshot(snapshot) => snapshots::ready(transaction, &snapshot.info.id).await,
        Record::Fact(fact) => facts::put_one(transaction, fact).await,
        Record::OptOut(user, since) => {
            marks::set_dated(transaction, marks::Dated::OptOuts, user.get(), Some(*since)).await
        }
        Record::Settings(guild, settings) => {
            marks::set_settings(transaction, *guild, settings).await
        }
        Record::Agent(agent, created) => marks::set_agent(transaction, agent, *created).await,
        Record::Departure(guild, at) => {
            marks::set_dated(
                transaction,
                marks::Dated::Departures,
                guild.get(),
                Some(*at),
            )
            .await
        }
    }
}

/// Counts a kind's entries and the bytes of their texts.
const fn measure(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Messages => Some(
            "SELECT count(*), coalesce(sum(octet_length(content) \
             + coalesce(octet_length(tool_calls), 0)), 0)::bigint FROM clew.messages",
        ),
        Kind::Snapshots => Some(
            "SELECT count(*), coalesce(sum(text_bytes + octet_length(summary) \
             + coalesce(octet_length(description), 0)), 0)::bigint FROM clew.snapshots",
        ),
        Kind::UserFacts => Some(
            "SELECT count(*), coalesce(sum(octet_length(text)), 0)::bigint \
             FROM clew.facts WHERE user_id IS NOT NULL",
        ),
        Kind::ServerFacts => Some(
            "SELECT count(*), coalesce(sum(octet_length(text)), 0)::bigint \
             FROM clew.facts WHERE user_id IS NULL",
        ),
        Kind::Settings => Some(
            "SELECT count(*), coalesce(sum(octet_length(settings)), 0)::bigint \
             FROM clew.guild_settings",
        ),
        Kind::Markers => Some("SELECT count(*), 0::bigint FROM clew.markers"),
        Kind::OptOuts => Some("SELECT count(*), 0::bigint FROM clew.opt_outs"),
        Kind::Agents => Some("SELECT count(*), 0::bigint FROM clew.agents"),
        Kind::Departures => Some("SELECT count(*), 0::bigint FROM clew.departures"),
        Kind::Transcripts => None,
    }
}

/// See [`super::super::Backend::stats`]. Logs of direct messages are counted
/// elsewhere.
pub(super) async fn stats(transaction: &Transaction<'_>) -> Outcome<Vec<KindStats>> {
    see_all(transaction).await?;
    let mut stats = Vec::with_capacity(Kind::ALL.len());
    for kind in Kind::ALL {
        let Some(sql) = measure(kind) else { continue };
        if let Some(row) = rows(transaction, sql, &[]).await?.first() {
            stats.push(KindStats {
                kind,
                entries: count(row.try_get(0)?),
                bytes: count(row.try_get(1)?),
            });
        }
    }
    Ok(stats)
}
