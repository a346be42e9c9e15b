//! Where each kind is kept.

use super::facts::FACT;
use super::row::MESSAGE;
use super::saved::INFO;
use crate::Kind;
use crate::table::{Sources, Table};

const FACTS: Table = Table {
    columns: FACT,
    of_guild: Some("origin_guild = ? OR (subject = 'server' AND subject_id = ?)"),
    of_user: Some("by_user = ? OR (subject = 'user' AND subject_id = ?)"),
    ..Table::FACTS
};

/// A trigger takes its whole turn along, a tool call all of its turn's calls
/// and results; an answer goes alone. `+` as in [`OF_TURN`](super::messages::OF_TURN).
const ROWS_OF_MESSAGES: &str = "id IN (
    WITH hits AS MATERIALIZED (
        SELECT row.id, row.scope, row.agent_name, row.turn_id, row.role
        FROM message_ids held CROSS JOIN message_rows row ON row.id = held.row_id
        WHERE held.channel_id = ?1 AND NOT row.gone
            AND held.message_id IN (SELECT value FROM json_each(?2))
    )
    SELECT id FROM hits
    UNION
    SELECT turn.id FROM hits CROSS JOIN message_rows turn
        ON turn.early IN (0, 1) AND turn.turn_id = hits.turn_id
        AND +turn.scope = hits.scope AND +turn.agent_name = hits.agent_name
    WHERE hits.role = 'user' OR (hits.role IN ('tool_use', 'tool_result')
        AND turn.role IN ('tool_use', 'tool_result')))";

/// Agent by agent, to use the index.
const OLD_ROWS: &str = "timestamp < ? AND agent_name IN (
    WITH RECURSIVE agent(name) AS (
        SELECT min(agent_name) FROM message_rows
        UNION ALL
        SELECT (SELECT min(agent_name) FROM message_rows WHERE agent_name > agent.name)
            FROM agent WHERE agent.name IS NOT NULL
    )
    SELECT name FROM agent)";

/// Counters of conversations that cannot go on: their keys name what is purged. `_` in
/// `discord_conv` is no pattern here.
pub(super) const COUNTERS: Table = Table {
    name: "conversations",
    of_guild: Some("scope LIKE 'member/' || ? || '/%' OR scope LIKE 'thread/' || ? || '/%'"),
    of_user: Some("scope LIKE 'member/%/' || ? OR scope IN ('dm/' || ?, 'discord_conv:' || ?)"),
    of_channel: Some("scope LIKE 'member/%/' || ? || '/%' OR scope LIKE 'thread/%/' || ?"),
    ..Table::EMPTY
};

const MESSAGES: Table = Table {
    columns: MESSAGE,
    of_user: Some(
        "id IN (SELECT id FROM message_rows WHERE guild_id IS NULL AND owner_id = ?
             UNION ALL SELECT own.id FROM message_guilds each CROSS JOIN message_rows own
                 ON own.guild_id = each.id AND own.owner_id = ?)",
    ),
    of_channel: Some(
        "id IN (SELECT row_id FROM message_ids WHERE channel_id = ?
             UNION ALL SELECT id FROM message_rows WHERE early = 1 AND thread_id = ?)",
    ),
    of_message: Some(ROWS_OF_MESSAGES),
    before: Some(OLD_ROWS),
    sources: Some(Sources {
        table: "message_sources",
        entry: "row_id",
        edited: Some(EDITED_ROWS),
    }),
    ..Table::MESSAGES
};

/// See [`StoredMessage::began`](crate::model::StoredMessage::began).
const EDITED_ROWS: &str = "channel_id = ?1 AND message_id = ?2 AND EXISTS (
    SELECT 1 FROM message_rows made JOIN message_rows of_turn
        ON of_turn.early IN (0, 1) AND of_turn.turn_id = made.turn_id
        AND +of_turn.scope = made.scope AND +of_turn.agent_name = made.agent_name
    WHERE made.id = row_id AND NOT of_turn.gone AND ?3 > CASE
        WHEN of_turn.restored_from IS NULL THEN of_turn.timestamp
        ELSE strftime('%Y-%m-%dT%H:%M:%fZ',
            ((of_turn.discord_message_id >> 22) + 1420070400000) / 1000.0, 'unixepoch') END)";

/// A snapshot without a row from before the edit is not concerned.
const EDITED_SNAPSHOTS: &str = "channel_id = ?1 AND message_id = ?2 AND ?3 >
    (SELECT saved.oldest FROM snapshot_rows saved WHERE saved.seq = snapshot_sources.snapshot)";

const SNAPSHOTS: Table = Table {
    columns: INFO,
    key: &["seq"],
    bytes: "octet_length(summary) + coalesce(octet_length(description), 0)",
    sources: Some(Sources {
        table: "snapshot_sources",
        entry: "snapshot",
        edited: Some(EDITED_SNAPSHOTS),
    }),
    ..Table::SNAPSHOTS
};

const RECEIPTS: Table = Table {
    of_guild: Some(
        "guild_id = ? AND turn_id IN
             (SELECT turn_id FROM receipt_keys WHERE kind = 1 AND id = ?)",
    ),
    of_user: Some(
        "owner_id = ? AND turn_id IN (SELECT turn_id FROM receipt_people WHERE author_id = ?)",
    ),
    of_channel: Some("turn_id IN (SELECT turn_id FROM receipt_keys WHERE kind = 0 AND id = ?)"),
    of_message: Some(
        "turn_id IN (SELECT turn_id FROM receipt_keys WHERE kind = 0 AND id = ?1 AND other {ids})",
    ),
    ..Table::RECEIPTS
};

/// The table of a kind; `None` for logs, which are files.
pub(super) const fn table(kind: Kind) -> Option<Table> {
    let table = match kind {
        Kind::Messages => MESSAGES,
        Kind::Markers => Table {
            columns: "agent_name, guild_id, user_id, cleared_at AS at",
            value: "cleared_at",
            time: "cleared_at",
            ..Table::MARKERS
        },
        Kind::Snapshots => SNAPSHOTS,
        Kind::Receipts => RECEIPTS,
        Kind::UserFacts => Table {
            only: "subject = 'user'",
            ..FACTS
        },
        Kind::ServerFacts => Table {
            only: "subject = 'server'",
            ..FACTS
        },
        Kind::OptOuts => Table::OPT_OUTS,
        Kind::Settings => Table::SETTINGS,
        Kind::Agents => Table {
            columns: "name AS agent_name, created_at",
            key: &["name"],
            ..Table::AGENTS
        },
        Kind::Departures => Table::DEPARTURES,
        Kind::Transcripts | Kind::Outputs => return None,
    };
    Some(Table {
        ids: "IN (SELECT value FROM json_each(?2))",
        ..table
    })
}
