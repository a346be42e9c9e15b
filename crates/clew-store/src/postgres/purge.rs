//! Purges, for every kind of entry.
//!
//! Dead rows stay in PostgreSQL's files until vacuumed: at once after a purge
//! of a user, a server or a time, within minutes after deletions of single
//! messages (see [`tidying`](super::tidying)).

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::super::{Error, Kind, Purge, Purged, Reach, SnapshotFiles, without};
use super::session::{Failure, Outcome, rows, touched, write_all};
use super::snapshots;
use super::values::{self, Moment};

/// A trigger takes its whole turn along, a tool call all of its turn's calls
/// and results; an answer goes alone.
const ROWS_OF_MESSAGES: &str = "id IN (
    WITH hits AS (
        SELECT row.id, row.scope, row.agent_name, row.turn_id, row.role
        FROM clew.message_ids AS held JOIN clew.messages AS row ON row.id = held.row_id
        WHERE held.channel_id = $1 AND held.message_id = ANY ($2)
    )
    SELECT id FROM hits
    UNION
    SELECT turn.id FROM hits JOIN clew.messages AS turn ON turn.scope = hits.scope
        AND turn.agent_name = hits.agent_name AND turn.turn_id = hits.turn_id
    WHERE hits.role = 'user' OR (hits.role IN ('tool_use', 'tool_result')
        AND turn.role IN ('tool_use', 'tool_result')))";

type Parameter = Box<dyn ToSql + Sync + Send>;

/// Purges all kinds, in the caller's transaction.
pub(super) async fn purge(
    transaction: &Transaction<'_>,
    files: &SnapshotFiles,
    purge: &Purge,
) -> Outcome<Purged> {
    write_all(transaction).await?;
    let mut purged = Purged::default();
    for kind in Kind::ALL {
        let gone = if kind == Kind::Snapshots {
            purge_snapshots(transaction, files, purge).await?
        } else {
            purge_rows(transaction, kind, purge).await?
        };
        purged.add(kind, gone);
    }
    if let Some(condition) = counters(purge) {
        let sql = format!("DELETE FROM clew.conversations WHERE {condition}");
        execute(transaction, &sql, purge).await?;
    }
    Ok(purged)
}

/// Whether a vacuum follows at once.
pub(super) const fn is_thorough(purge: &Purge) -> bool {
    match purge {
        Purge::Messages { .. } | Purge::Channel(_) => false,
        Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) | Purge::Before(_) => true,
    }
}

async fn purge_rows(transaction: &Transaction<'_>, kind: Kind, purge: &Purge) -> Outcome<u64> {
    let Some((table, condition)) = condition(kind, purge) else {
        return Ok(0);
    };
    let sql = format!("DELETE FROM clew.{table} WHERE {condition}");
    execute(transaction, &sql, purge).await
}

async fn execute(transaction: &Transaction<'_>, sql: &str, purge: &Purge) -> Outcome<u64> {
    let parameters = parameters(purge);
    touched(transaction, sql, &borrowed(&parameters)).await
}

fn borrowed(parameters: &[Parameter]) -> Vec<&(dyn ToSql + Sync)> {
    parameters
        .iter()
        .map(|parameter| {
            let parameter: &(dyn ToSql + Sync) = parameter.as_ref();
            parameter
        })
        .collect()
}

/// The values of $1 and $2 in a purge's conditions.
fn parameters(purge: &Purge) -> Vec<Parameter> {
    let signed = |id: u64| -> Parameter { Box::new(id.cast_signed()) };
    match purge {
        Purge::Messages { channel, ids } => {
            let ids: Vec<i64> = ids.iter().map(|id| id.get().cast_signed()).collect();
            vec![signed(channel.get()), Box::new(ids)]
        }
        Purge::Channel(channel) => vec![signed(channel.get())],
        Purge::Guild(guild) => vec![signed(guild.get())],
        Purge::Member { guild, user } => vec![signed(guild.get()), signed(user.get())],
        Purge::User(user) => vec![signed(user.get())],
        Purge::Before(time) => vec![Box::new(Moment(*time))],
    }
}

/// The table and condition of the rows to delete; `None` for kinds that this
/// purge spares.
fn condition(kind: Kind, purge: &Purge) -> Option<(&'static str, String)> {
    let (table, condition) = match kind {
        Kind::Messages => ("messages", Some(rows_of(purge).to_owned())),
        Kind::Markers => ("markers", markers(purge).map(str::to_owned)),
        // Deleted together with their files, in `purge_snapshots`.
        Kind::Snapshots => ("snapshots", None),
        Kind::UserFacts => (
            "facts",
            Some(format!("({}) AND user_id IS NOT NULL", facts(purge))),
        ),
        Kind::ServerFacts => (
            "facts",
            Some(format!("({}) AND user_id IS NULL", facts(purge))),
        ),
        Kind::Settings => ("guild_settings", of_guild(purge)),
        Kind::Departures => ("departures", of_guild(purge)),
        // Opt-outs survive erasures; agents are the operator's; logs are files.
        Kind::OptOuts | Kind::Agents | Kind::Transcripts => ("", None),
    };
    Some((table, condition?))
}

const fn rows_of(purge: &Purge) -> &'static str {
    match purge {
        Purge::Messages { .. } => ROWS_OF_MESSAGES,
        Purge::Channel(_) => "thread_id = $1",
        Purge::Guild(_) => "guild_id = $1",
        Purge::Member { .. } => "guild_id = $1 AND owner_id = $2",
        Purge::User(_) => "owner_id = $1",
        Purge::Before(_) => "timestamp < $1",
    }
}

const fn markers(purge: &Purge) -> Option<&'static str> {
    match purge {
        // Markers hold no text.
        Purge::Messages { .. } | Purge::Channel(_) | Purge::Before(_) => None,
        Purge::Guild(_) => Some("guild_id = $1"),
        Purge::Member { .. } => Some("guild_id = $1 AND user_id = $2"),
        Purge::User(_) => Some("user_id = $1"),
    }
}

const fn facts(purge: &Purge) -> &'static str {
    match purge {
        Purge::Messages { .. } => "link_channel = $1 AND link_message = ANY ($2)",
        Purge::Channel(_) => "link_channel = $1",
        Purge::Guild(_) => "server_id = $1 OR origin_guild = $1",
        Purge::Member { .. } => {
            "(user_id = $2 AND origin_guild = $1) \
             OR (by_user = $2 AND (server_id = $1 OR origin_guild = $1))"
        }
        Purge::User(_) => "user_id = $1 OR by_user = $1",
        Purge::Before(_) => "at < $1",
    }
}

fn of_guild(purge: &Purge) -> Option<String> {
    match purge {
        Purge::Guild(_) => Some("guild_id = $1".to_owned()),
        Purge::Messages { .. }
        | Purge::Channel(_)
        | Purge::Member { .. }
        | Purge::User(_)
        | Purge::Before(_) => None,
    }
}

/// Counters of conversations that are removed whole.
const fn counters(purge: &Purge) -> Option<&'static str> {
    match purge {
        Purge::Messages { .. } | Purge::Before(_) => None,
        Purge::Channel(_) => Some("channel_id = $1"),
        Purge::Guild(_) => Some("guild_id = $1"),
        Purge::Member { .. } => Some("guild_id = $1 AND owner_id = $2"),
        Purge::User(_) => Some("owner_id = $1"),
    }
}

/// Snapshots that hold anything to be purged.
const fn touched_snapshots(purge: &Purge) -> &'static str {
    match purge {
        Purge::Messages { .. } => {
            "snapshot_id IN (SELECT snapshot_id FROM clew.snapshot_messages \
             WHERE channel_id = $1 AND message_id = ANY ($2))"
        }
        Purge::Channel(_) => {
            "snapshot_id IN (SELECT snapshot_id FROM clew.snapshot_messages \
             WHERE channel_id = $1)"
        }
        Purge::Guild(_) => "guild_id = $1",
        Purge::Member { .. } => "guild_id = $1 AND owner_id = $2",
        Purge::User(_) => "owner_id = $1",
        Purge::Before(_) => "timestamp < $1 OR oldest < $1",
    }
}

/// Returns how many snapshots were removed or rewritten.
async fn purge_snapshots(
    transaction: &Transaction<'_>,
    files: &SnapshotFiles,
    purge: &Purge,
) -> Outcome<u64> {
    let condition = touched_snapshots(purge);
    let sql = format!("SELECT * FROM clew.snapshots WHERE {condition} FOR UPDATE");
    let parameters = parameters(purge);
    let mut gone = 0;
    for row in rows(transaction, &sql, &borrowed(&parameters)).await? {
        let info = values::snapshot(&row)?;
        let goes_whole = match purge {
            Purge::Messages { .. } | Purge::Channel(_) => false,
            Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) => true,
            Purge::Before(time) => info.timestamp < *time,
        };
        let rest = if goes_whole {
            None
        } else {
            match snapshots::read(files, info.clone()).await {
                Ok(snapshot) => {
                    let reach = Reach::of(purge, &snapshot.messages);
                    without(&snapshot, |row| reach.holds(row))
                }
                // Unreadable, so it may hold anything: remove it.
                Err(Failure::Store(Error::Corrupt { .. })) => {
                    tracing::error!(id = %info.id, "a snapshot that cannot be read was removed");
                    None
                }
                Err(failure) => return Err(failure),
            }
        };
        if let Some(rest) = rest {
            if rest.info.message_count == info.message_count {
                continue;
            }
            snapshots::rewrite(transaction, files, &rest).await?;
        } else {
            snapshots::remove(transaction, files, info).await?;
        }
        gone += 1;
    }
    Ok(gone)
}
