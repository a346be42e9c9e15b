//! Where each kind is kept.

use crate::Kind;
use crate::table::{Sources, Table};

/// What stands before every table's name.
pub(super) const SCHEMA: &str = "clew.";
/// The columns of a row of a turn.
pub(super) const MESSAGE: &str = "id, scope, agent_name, turn_id, ordinal, role, guild_id, \
     thread_id, owner_id, author_name, content, tool_calls, tool_call_id, timestamp, \
     discord_message_id, array_to_string(part_ids, ' ') AS parts, target_id, restored_from, sources";
/// The columns of a fact, which is about a user or a server.
pub(super) const FACT: &str = "id, coalesce(user_id, server_id) AS subject_id, \
     CASE WHEN server_id IS NULL THEN 'user' WHEN user_id IS NULL THEN 'server' END AS subject, \
     text, origin, origin_guild, by_user, at, link_channel, link_message, pinned, seen, last_used";
/// The columns of what is known of a snapshot.
pub(super) const SNAPSHOT: &str = "snapshot_id AS id, agent_name, owner_id, guild_id, timestamp, \
     description, summary, message_count, window_start, window_end";

const FACTS: Table = Table {
    columns: FACT,
    of_guild: Some("server_id = ? OR origin_guild = ?"),
    of_user: Some("user_id = ? OR by_user = ?"),
    ..Table::FACTS
};

/// A trigger takes its whole turn along, a tool call all of its turn's calls
/// and results; an answer goes alone.
const ROWS_OF_MESSAGES: &str = "id IN (
    WITH hits AS (
        SELECT row.id, row.scope, row.agent_name, row.turn_id, row.role
        FROM clew.message_ids AS held JOIN clew.messages AS row ON row.id = held.row_id
        WHERE held.channel_id = ?1 AND held.message_id = ANY (?2)
    )
    SELECT id FROM hits
    UNION
    SELECT turn.id FROM hits JOIN clew.messages AS turn ON turn.scope = hits.scope
        AND turn.agent_name = hits.agent_name AND turn.turn_id = hits.turn_id
    WHERE hits.role = 'user' OR (hits.role IN ('tool_use', 'tool_result')
        AND turn.role IN ('tool_use', 'tool_result')))";

/// See [`StoredMessage::began`](crate::model::StoredMessage::began).
const EDITED_ROWS: &str = "channel_id = ?1 AND message_id = ?2 AND EXISTS (
    SELECT FROM clew.messages AS made JOIN clew.messages AS of_turn
        ON of_turn.scope = made.scope AND of_turn.turn_id = made.turn_id
        AND of_turn.agent_name = made.agent_name
    WHERE made.id = row_id AND ?3 > CASE
        WHEN of_turn.restored_from IS NULL THEN of_turn.timestamp
        ELSE to_timestamp(((of_turn.discord_message_id >> 22) + 1420070400000) / 1000.0) END)";

/// A snapshot without a row from before the edit is not concerned.
const EDITED_SNAPSHOTS: &str = "channel_id = ?1 AND message_id = ?2 AND ?3 >
    (SELECT saved.oldest FROM clew.snapshots AS saved
        WHERE saved.snapshot_id = snapshot_sources.snapshot_id)";

/// Counters of conversations, which go when all of the conversation goes.
pub(super) const COUNTERS: Table = Table {
    schema: SCHEMA,
    name: "conversations",
    of_guild: Some("guild_id = ?"),
    of_user: Some("owner_id = ?"),
    of_channel: Some("channel_id = ?"),
    ..Table::EMPTY
};

const MESSAGES: Table = Table {
    columns: MESSAGE,
    of_message: Some(ROWS_OF_MESSAGES),
    before: Some("timestamp < ?"),
    sources: Some(Sources {
        table: "message_sources",
        entry: "row_id",
        edited: Some(EDITED_ROWS),
    }),
    ..Table::MESSAGES
};

const SNAPSHOTS: Table = Table {
    columns: SNAPSHOT,
    key: &["snapshot_id"],
    is_named: true,
    bytes: "text_bytes + octet_length(summary) + coalesce(octet_length(description), 0)",
    sources: Some(Sources {
        table: "snapshot_sources",
        entry: "snapshot_id",
        edited: Some(EDITED_SNAPSHOTS),
    }),
    ..Table::SNAPSHOTS
};

/// The table of a kind; `None` for logs, which are files.
pub(super) const fn table(kind: Kind) -> Option<Table> {
    let table = match kind {
        Kind::Messages => MESSAGES,
        Kind::Markers => Table::MARKERS,
        Kind::Snapshots => SNAPSHOTS,
        Kind::Receipts => Table::RECEIPTS,
        Kind::UserFacts => Table {
            only: "user_id IS NOT NULL",
            ..FACTS
        },
        Kind::ServerFacts => Table {
            only: "user_id IS NULL",
            ..FACTS
        },
        Kind::OptOuts => Table::OPT_OUTS,
        Kind::Settings => Table::SETTINGS,
        Kind::Agents => Table::AGENTS,
        Kind::Departures => Table::DEPARTURES,
        Kind::Transcripts | Kind::Outputs => return None,
    };
    Some(Table {
        schema: SCHEMA,
        ids: "= ANY (?2)",
        ..table
    })
}
