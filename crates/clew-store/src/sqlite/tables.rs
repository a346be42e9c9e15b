//! Where each kind is kept.

use super::facts::FACT;
use super::row::MESSAGE;
use super::saved::INFO;
use crate::Kind;
use crate::columns::RECEIPT;
use crate::table::{SourceMessages, Sources, Table};

const FACTS: Table = Table {
    name: "facts",
    columns: FACT,
    key: &["id"],
    bytes: "octet_length(text)",
    time: "at",
    of_guild: Some("origin_guild = ? OR (subject = 'server' AND subject_id = ?)"),
    of_user: Some("by_user = ? OR (subject = 'user' AND subject_id = ?)"),
    of_channel: Some("link_channel = ?"),
    of_message: Some("link_channel = ?1 AND link_message IN (SELECT value FROM json_each(?2))"),
    before: Some("at < ?"),
    ..Table::EMPTY
};

const MESSAGES: Table = Table {
    name: "messages",
    columns: MESSAGE,
    key: &["id"],
    bytes: "octet_length(content) + coalesce(octet_length(tool_calls), 0)",
    time: "timestamp",
    of_guild: Some("guild_id = ?"),
    of_user: Some("owner_id = ?"),
    of_channel: Some("thread_id = ?"),
    sources: Some(Sources {
        table: "message_sources",
        entry: "row_id",
        messages: Some(SourceMessages {
            deleted: OF_IDS,
            edited: EDITED_ROWS,
        }),
    }),
    ..Table::EMPTY
};

/// Sources that are these messages.
const OF_IDS: &str = "channel_id = ?1 AND message_id IN (SELECT value FROM json_each(?2))";

/// See [`StoredMessage::began`](crate::model::StoredMessage::began).
const EDITED_ROWS: &str = "channel_id = ?1 AND message_id = ?2 AND EXISTS (
    SELECT 1 FROM message_rows made JOIN message_rows of_turn ON of_turn.turn_id = made.turn_id
        AND +of_turn.scope = made.scope AND +of_turn.agent_name = made.agent_name
    WHERE made.id = row_id AND NOT of_turn.gone AND ?3 > CASE
        WHEN of_turn.restored_from IS NULL THEN of_turn.timestamp
        ELSE strftime('%Y-%m-%dT%H:%M:%fZ',
            ((of_turn.discord_message_id >> 22) + 1420070400000) / 1000.0, 'unixepoch') END)";

/// A snapshot without a row from before the edit is not concerned.
const EDITED_SNAPSHOTS: &str = "channel_id = ?1 AND message_id = ?2 AND ?3 >
    (SELECT saved.oldest FROM snapshot_rows saved WHERE saved.seq = snapshot_sources.snapshot)";

const SNAPSHOTS: Table = Table {
    name: "snapshots",
    only: "ready",
    columns: INFO,
    key: &["seq"],
    bytes: "octet_length(summary) + coalesce(octet_length(description), 0)",
    time: "timestamp",
    of_guild: Some(
        "guild_id = ? OR seq IN
             (SELECT snapshot FROM snapshot_messages WHERE guild_id = ?)",
    ),
    of_user: Some("owner_id = ?"),
    of_channel: Some("seq IN (SELECT snapshot FROM snapshot_messages WHERE channel_id = ?)"),
    of_message: Some(
        "seq IN (SELECT snapshot FROM snapshot_messages WHERE channel_id = ?1
             AND message_id IN (SELECT value FROM json_each(?2)))",
    ),
    before: Some("timestamp < ? OR oldest < ?"),
    sources: Some(Sources {
        table: "snapshot_sources",
        entry: "snapshot",
        messages: Some(SourceMessages {
            deleted: OF_IDS,
            edited: EDITED_SNAPSHOTS,
        }),
    }),
    ..Table::EMPTY
};

const RECEIPTS: Table = Table {
    name: "receipts",
    columns: RECEIPT,
    key: &["turn_id"],
    bytes: "octet_length(body)",
    time: "at",
    of_guild: Some("guild_id = ?"),
    of_user: Some("owner_id = ?"),
    of_channel: Some("channel_id = ?"),
    of_message: Some(
        "turn_id IN (SELECT turn_id FROM receipt_ids
             WHERE channel_id = ?1 AND message_id IN (SELECT value FROM json_each(?2)))",
    ),
    before: Some("at < ?"),
    sources: Some(Sources {
        table: "receipt_people",
        entry: "turn_id",
        messages: None,
    }),
    ..Table::EMPTY
};

/// The table of a kind; `None` for logs, which are files.
pub(super) const fn table(kind: Kind) -> Option<Table> {
    Some(match kind {
        Kind::Messages => MESSAGES,
        Kind::Markers => Table {
            name: "markers",
            columns: "agent_name, guild_id, user_id, cleared_at AS at",
            key: &["agent_name", "guild_id", "user_id"],
            is_named: true,
            value: "cleared_at",
            time: "cleared_at",
            of_guild: Some("guild_id = ?"),
            of_user: Some("user_id = ?"),
            ..Table::EMPTY
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
        Kind::OptOuts => Table {
            name: "opt_outs",
            columns: "user_id, since",
            key: &["user_id"],
            value: "since",
            time: "since",
            of_user: Some("user_id = ?"),
            ..Table::EMPTY
        },
        Kind::Settings => Table {
            name: "guild_settings",
            columns: "guild_id, settings",
            key: &["guild_id"],
            value: "settings",
            bytes: "octet_length(settings)",
            of_guild: Some("guild_id = ?"),
            ..Table::EMPTY
        },
        Kind::Agents => Table {
            name: "agents",
            columns: "name AS agent_name, created_at",
            key: &["name"],
            is_named: true,
            value: "created_at",
            time: "created_at",
            ..Table::EMPTY
        },
        Kind::Departures => Table {
            name: "departures",
            columns: "guild_id, at",
            key: &["guild_id"],
            value: "at",
            time: "at",
            of_guild: Some("guild_id = ?"),
            ..Table::EMPTY
        },
        Kind::Transcripts | Kind::Outputs => return None,
    })
}
