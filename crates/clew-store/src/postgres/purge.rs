//! What has to go, in every kind of entry.
//!
//! Dead rows stay in PostgreSQL's files until they are vacuumed: after a purge
//! of a user, a server or a time it is done at once, after deletions of single
//! messages within minutes (see [`tidying`](super::tidying)).

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::super::{Error, Kind, Purge, Purged, Reach, SnapshotFiles, without};
use super::session::{Failure, Outcome, rows, touched, write_all};
use super::snapshots;
use super::values::{self, Moment};

/// With a trigger its whole turn, with a call of a tool all of the turn's
/// calls and results, with an answer itself.
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

/// Purges one transaction's worth: everything.
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

/// Whether a purge is followed by a vacuum at once.
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

/// What $1 and $2 are in the conditions on a purge.
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

/// Which rows of which table go; nothing of the kinds that a purge spares.
fn condition(kind: Kind, purge: &Purge) -> Option<(&'static str, String)> {
    let (table, condition) = match kind {
        Kind::Messages => ("messages", Some(rows_of(purge).to_owned())),
        Kind::Markers => ("markers", markers(purge).map(str::to_owned)),
        // Their files go with them: see `purge_snapshots`.
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
        // The wish outlives; agents are the operator's; logs are files.
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
        // A marker is no text.
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

/// Counters of conversations that cannot come back as they were.
const fn counters(purge: &Purge) -> Option<&'static str> {
    match purge {
        Purge::Messages { .. } | Purge::Before(_) => None,
        Purge::Channel(_) => Some("channel_id = $1"),
        Purge::Guild(_) => Some("guild_id = $1"),
        Purge::Member { .. } => Some("guild_id = $1 AND owner_id = $2"),
        Purge::User(_) => Some("owner_id = $1"),
    }
}

/// Snapshots that hold what has to go, wholly or in part.
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

/// Says how many snapshots went or lost a part.
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
                // Nobody can say what it holds.
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
