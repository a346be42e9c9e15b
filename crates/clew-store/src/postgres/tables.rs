//! Where each kind is kept, and the statements that SQLite has otherwise.

use super::messages;
use super::session::Call;
use crate::sql::Dialect;
use crate::table::{Sources, Table};

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

/// A trigger takes its whole turn along, an answer or a tool call all of its turn's calls and
/// results.
const ROWS_OF_MESSAGES: &str = "id IN (
    WITH hits AS (
        SELECT row.id, row.scope, row.agent_name, row.turn_id, row.role
        FROM message_ids AS held JOIN messages AS row ON row.id = held.row_id
        WHERE held.channel_id = ?1 AND held.message_id = ANY (?2)
    )
    SELECT id FROM hits
    UNION
    SELECT turn.id FROM hits JOIN messages AS turn ON turn.scope = hits.scope
        AND turn.agent_name = hits.agent_name AND turn.turn_id = hits.turn_id
    WHERE hits.role = 'user' OR turn.role IN ('tool_use', 'tool_result'))";

/// See [`StoredMessage::began`](crate::model::StoredMessage::began).
const EDITED_ROWS: &str = "channel_id = ?1 AND message_id = ?2 AND EXISTS (
    SELECT FROM messages AS made JOIN messages AS of_turn
        ON of_turn.scope = made.scope AND of_turn.turn_id = made.turn_id
        AND of_turn.agent_name = made.agent_name
    WHERE made.id = row_id AND ?3 > CASE
        WHEN of_turn.restored_from IS NULL THEN of_turn.timestamp
        ELSE to_timestamp(((of_turn.discord_message_id >> 22) + 1420070400000) / 1000.0) END)";

/// A snapshot without a row from before the edit is not concerned.
const EDITED_SNAPSHOTS: &str = "channel_id = ?1 AND message_id = ?2 AND ?3 >
    (SELECT saved.oldest FROM snapshots AS saved
        WHERE saved.snapshot_id = snapshot_sources.snapshot_id)";

impl Dialect for Call<'_> {
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

    const FACTS: Table = Table {
        columns: FACT,
        of_guild: Some("server_id = ? OR origin_guild = ?"),
        of_user: Some("user_id = ? OR by_user = ?"),
        ..Table::FACTS
    };

    const COUNTERS: Table = Table {
        name: "conversations",
        of_guild: Some("guild_id = ?"),
        of_user: Some("owner_id = ?"),
        of_channel: Some("channel_id = ?"),
        ..Table::EMPTY
    };

    const SNAPSHOT_ID: &'static str = "snapshot_id";
    const READY: &'static str = "UPDATE snapshots SET ready = true WHERE snapshot_id = ?1";
    const FOR_UPDATE: &'static str = " FOR UPDATE";
    const FOR_SHARE: &'static str = " FOR SHARE";
    const OF_TURN: &'static str = messages::OF_TURN;
    const OF_USERS: [&'static str; 2] = ["user_id IS NOT NULL", "user_id"];
    const OF_SERVERS: [&'static str; 2] = ["user_id IS NULL", "server_id"];
    const IDS: &'static str = "= ANY (?2)";
    const COUNT: &'static str = "SELECT count(*) AS messages FROM messages WHERE scope = ?1";

    const GUILDS: &'static str = "
    SELECT guild_id AS id FROM messages WHERE guild_id IS NOT NULL
    UNION SELECT guild_id FROM early_messages WHERE guild_id IS NOT NULL
    UNION SELECT guild_id FROM markers WHERE guild_id <> 0
    UNION SELECT guild_id FROM receipt_people WHERE guild_id <> 0
    UNION SELECT guild_id FROM snapshots WHERE guild_id IS NOT NULL
    UNION SELECT guild_id FROM snapshot_messages WHERE guild_id IS NOT NULL
    UNION SELECT guild_id FROM message_sources WHERE guild_id IS NOT NULL
    UNION SELECT guild_id FROM snapshot_sources WHERE guild_id IS NOT NULL
    UNION SELECT origin_guild FROM facts WHERE origin_guild IS NOT NULL
    UNION SELECT server_id FROM facts WHERE server_id IS NOT NULL
    UNION SELECT guild_id FROM guild_settings
    ORDER BY 1";

    const MEMBERS: &'static str = "
    SELECT owner_id AS id FROM messages WHERE guild_id = ?1
    UNION SELECT owner_id FROM early_messages WHERE guild_id = ?1
    UNION SELECT user_id FROM markers WHERE guild_id = ?1 AND user_id <> 0
    UNION SELECT owner_id FROM receipts WHERE guild_id = ?1
    UNION SELECT owner_id FROM snapshots WHERE guild_id = ?1
    UNION SELECT owner_id FROM snapshots WHERE snapshot_id IN
        (SELECT snapshot_id FROM snapshot_messages WHERE guild_id = ?1)
    UNION SELECT author_id FROM message_sources WHERE guild_id = ?1 AND author_id IS NOT NULL
    UNION SELECT author_id FROM snapshot_sources WHERE guild_id = ?1 AND author_id IS NOT NULL
    UNION SELECT user_id FROM facts WHERE origin_guild = ?1 AND user_id IS NOT NULL
    UNION SELECT by_user FROM facts WHERE origin_guild = ?1 OR server_id = ?1
    ORDER BY 1";

    const HELD: &'static str = "
    SELECT message_id AS id FROM message_ids
        WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
    UNION SELECT message_id FROM snapshot_messages
        WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3 AND message_id <> 0
    UNION SELECT message_id FROM message_sources
        WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
    UNION SELECT message_id FROM snapshot_sources
        WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
    UNION SELECT message_id FROM receipt_ids
        WHERE channel_id = ?1 AND message_id BETWEEN ?2 AND ?3
    UNION SELECT link_message FROM facts
        WHERE link_channel = ?1 AND link_message BETWEEN ?2 AND ?3
    ORDER BY 1";

    const RECENT_DIRECT: &'static str = "
    SELECT thread_id AS id FROM
        ((SELECT thread_id, guild_id, timestamp FROM messages ORDER BY timestamp DESC LIMIT ?1)
        UNION ALL SELECT thread_id, guild_id, timestamp FROM early_messages) r
    WHERE guild_id IS NULL
    GROUP BY thread_id ORDER BY max(timestamp) DESC, thread_id DESC LIMIT ?2";

    const RECEIPTS_OF: &'static str =
        "(SELECT max(turn_id) FROM receipt_ids WHERE channel_id = ?1 AND message_id = ?2)";
    const RECEIPTS_IN: &'static str = "channel_id = ?1";
}
