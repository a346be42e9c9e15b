//! Where each kind is kept, and the statements that PostgreSQL has otherwise.

use super::facts::FACT;
use super::messages;
use super::row::MESSAGE;
use super::saved::INFO;
use super::session::Session;
use crate::sql::Dialect;
use crate::table::{Sources, Table};

/// A trigger takes its whole turn along, an answer or a tool call all of its turn's calls and
/// results. `+` as in [`OF_TURN`](super::messages::OF_TURN).
const ROWS_OF_MESSAGES: &str = "id IN (
    WITH hits AS MATERIALIZED (
        SELECT row.id, row.scope, row.agent_name, row.turn_id, row.role
        FROM (SELECT id FROM message_holders
                WHERE channel_id = ?1 AND message_id IN (SELECT value FROM json_each(?2))
                    AND kind = 0
            UNION ALL SELECT id FROM message_row_ids
                WHERE early = 1 AND channel_id = ?1
                    AND message_id IN (SELECT value FROM json_each(?2))
        ) held CROSS JOIN message_rows row ON row.id = held.id
        WHERE NOT row.gone
    )
    SELECT id FROM hits
    UNION
    SELECT turn.id FROM hits CROSS JOIN message_rows turn
        ON turn.early IN (0, 1) AND turn.turn_id = hits.turn_id
        AND +turn.scope = hits.scope AND +turn.agent_name = hits.agent_name
    WHERE hits.role = 'user' OR turn.role IN ('tool_use', 'tool_result'))";

/// Owner by owner, to use the index.
const OLD_ROWS: &str = "id IN (
    SELECT own.id FROM message_owners each CROSS JOIN message_rows own
        ON own.guild_id IS each.guild_id AND own.owner_id = each.owner_id
        AND own.agent_name = each.agent_name
    WHERE own.timestamp < ?)";

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

impl Dialect for Session {
    const MESSAGES: Table = Table {
        columns: MESSAGE,
        of_user: Some(
            "id IN (SELECT id FROM message_rows WHERE guild_id IS NULL AND owner_id = ?
                 UNION ALL SELECT own.id FROM message_guilds each CROSS JOIN message_rows own
                     ON own.guild_id = each.id AND own.owner_id = ?)",
        ),
        of_channel: Some(
            "id IN (SELECT id FROM message_holders WHERE channel_id = ? AND kind = 0
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

    const MARKERS: Table = Table {
        columns: "agent_name, guild_id, user_id, cleared_at AS at",
        value: "cleared_at",
        time: "cleared_at",
        ..Table::MARKERS
    };

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
            "guild_id = ? AND turn_id IN (SELECT turn_id FROM receipt_guilds WHERE guild_id = ?)",
        ),
        of_user: Some(
            "owner_id = ? AND turn_id IN (SELECT turn_id FROM receipt_people WHERE author_id = ?)",
        ),
        of_channel: Some(
            "turn_id IN (SELECT id FROM message_holders WHERE channel_id = ? AND kind = 1)",
        ),
        of_message: Some(
            "turn_id IN (SELECT id FROM message_holders
                 WHERE channel_id = ?1 AND message_id {ids} AND kind = 1)",
        ),
        ..Table::RECEIPTS
    };

    const FACTS: Table = Table {
        columns: FACT,
        of_guild: Some("origin_guild = ? OR (subject = 'server' AND subject_id = ?)"),
        of_user: Some("by_user = ? OR (subject = 'user' AND subject_id = ?)"),
        ..Table::FACTS
    };

    const AGENTS: Table = Table {
        columns: "name AS agent_name, created_at",
        key: &["name"],
        ..Table::AGENTS
    };

    // Their keys name what is purged. `_` in `discord_conv` is no pattern here.
    const COUNTERS: Table = Table {
        name: "conversations",
        of_guild: Some("scope LIKE 'member/' || ? || '/%' OR scope LIKE 'thread/' || ? || '/%'"),
        of_user: Some("scope LIKE 'member/%/' || ? OR scope IN ('dm/' || ?, 'discord_conv:' || ?)"),
        of_channel: Some("scope LIKE 'member/%/' || ? || '/%' OR scope LIKE 'thread/%/' || ?"),
        ..Table::EMPTY
    };

    const SNAPSHOT_ID: &'static str = "id";
    const READY: &'static str = "UPDATE snapshot_rows SET ready = 1 WHERE id = ?1";
    const OF_TURN: &'static str = messages::OF_TURN;
    const OF_USERS: [&'static str; 2] = ["subject = 'user'", "subject_id"];
    const OF_SERVERS: [&'static str; 2] = ["subject = 'server'", "subject_id"];
    const IDS: &'static str = "IN (SELECT value FROM json_each(?2))";
    const UNINDEXED: &'static str = "+";

    const COUNT: &'static str = "SELECT count(*) AS messages FROM message_rows
        WHERE scope = ?1 AND NOT gone AND NOT early";

    // Steps from server to server along the index, reading each one's rows only up to the first
    // that is not deleted.
    const GUILDS: &'static str = "WITH RECURSIVE source(id) AS (
            SELECT min(guild_id) FROM message_sources
            UNION ALL
            SELECT (SELECT min(guild_id) FROM message_sources WHERE guild_id > source.id)
                FROM source WHERE source.id IS NOT NULL
        ),
        named(id) AS (
            SELECT min(guild_id) FROM receipt_guilds WHERE guild_id > 0
            UNION ALL
            SELECT (SELECT min(guild_id) FROM receipt_guilds WHERE guild_id > named.id)
                FROM named WHERE named.id IS NOT NULL
        )
        SELECT id FROM message_guilds each WHERE EXISTS
            (SELECT 1 FROM message_rows WHERE guild_id = each.id AND NOT gone)
        UNION SELECT id FROM source WHERE EXISTS
            (SELECT 1 FROM message_sources s JOIN message_rows r ON r.id = s.row_id
                WHERE s.guild_id = source.id AND NOT r.gone)
        UNION SELECT guild_id FROM snapshot_sources WHERE guild_id IS NOT NULL
        UNION SELECT id FROM named WHERE id IS NOT NULL
        UNION SELECT guild_id FROM markers WHERE guild_id <> 0
        UNION SELECT guild_id FROM snapshot_rows WHERE guild_id IS NOT NULL
        UNION SELECT guild_id FROM snapshot_messages WHERE guild_id IS NOT NULL
        UNION SELECT origin_guild FROM fact_rows WHERE origin_guild IS NOT NULL
        UNION SELECT subject_id FROM fact_rows WHERE subject = 'server'
        UNION SELECT guild_id FROM guild_settings";

    const MEMBERS: &'static str =
        "SELECT owner_id AS id FROM message_rows WHERE guild_id = ?1 AND NOT gone
        UNION SELECT user_id FROM markers WHERE guild_id = ?1 AND user_id <> 0
        UNION SELECT owner_id FROM receipts WHERE guild_id = ?1 AND turn_id IN
            (SELECT turn_id FROM receipt_guilds WHERE guild_id = ?1)
        UNION SELECT owner_id FROM snapshot_rows WHERE guild_id = ?1
        UNION SELECT s.owner_id FROM snapshot_rows s
            JOIN snapshot_messages m ON m.snapshot = s.seq WHERE m.guild_id = ?1
        UNION SELECT s.author_id FROM message_sources s
            JOIN message_rows r ON r.id = s.row_id
            WHERE s.guild_id = ?1 AND s.author_id IS NOT NULL AND NOT r.gone
        UNION SELECT author_id FROM snapshot_sources
            WHERE guild_id = ?1 AND author_id IS NOT NULL
        UNION SELECT subject_id FROM fact_rows WHERE subject = 'user' AND origin_guild = ?1
        UNION SELECT by_user FROM fact_rows WHERE origin_guild = ?1
        UNION SELECT by_user FROM fact_rows WHERE subject = 'server' AND subject_id = ?1";

    const HELD: &'static str = "SELECT h.message_id AS id
            FROM message_holders h LEFT JOIN message_rows r ON h.kind = 0 AND r.id = h.id
            WHERE h.channel_id = ?1 AND h.message_id BETWEEN max(?2, 1) AND ?3
                AND (h.kind = 1 OR NOT r.gone)
        UNION SELECT message_id FROM snapshot_messages
            WHERE channel_id = ?1 AND message_id BETWEEN max(?2, 1) AND ?3
        UNION SELECT s.message_id FROM message_sources s
                CROSS JOIN message_rows r ON r.id = s.row_id
            WHERE s.channel_id = ?1 AND s.message_id BETWEEN ?2 AND ?3 AND NOT r.gone
        UNION SELECT message_id FROM snapshot_sources
            WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
        UNION SELECT link_message FROM fact_rows
            WHERE link_channel = ?1 AND link_message BETWEEN ?2 AND ?3
        ORDER BY 1";

    const RECENT_DIRECT: &'static str = "SELECT thread_id AS id FROM
            (SELECT thread_id, guild_id, gone, timestamp FROM message_rows
             ORDER BY id DESC LIMIT ?1)
        WHERE guild_id IS NULL AND NOT gone
        GROUP BY thread_id ORDER BY max(timestamp) DESC, thread_id DESC LIMIT ?2";

    const RECEIPTS_OF: &'static str = "(SELECT max(id) FROM message_holders WHERE channel_id = ?1 AND message_id = ?2 AND kind = 1)";

    const RECEIPTS_IN: &'static str =
        "turn_id IN (SELECT id FROM message_holders WHERE channel_id = ?1 AND kind = 1)";
}
