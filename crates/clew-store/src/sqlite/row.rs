//! Converts values to columns and back.

use std::cell::Cell;

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, Row};

use super::fault::Fault;
use super::texts;
use crate::model::{Scope, SnapshotId, StoredMessage, StoredRole};
use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};

/// Times whose texts sort by their fixed width: years 0 to 9999, in
/// milliseconds.
const TIMES: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_207_199_999;

/// The columns [`message`] reads, in this order.
pub(super) const MESSAGE: &str = "id, scope, agent_name, turn_id, ordinal, role, guild_id, \
     thread_id, owner_id, author_name, content, tool_calls, tool_call_id, timestamp, \
     discord_message_id, parts, target_id, restored_from";

/// A time as stored: of fixed width, so that it sorts.
pub(super) fn time_text(time: UnixMillis) -> String {
    UnixMillis(time.0.clamp(*TIMES.start(), *TIMES.end())).rfc3339()
}

/// An id as stored.
pub(super) const fn number(id: u64) -> i64 {
    id.cast_signed()
}

/// A server as stored; `None` for direct messages.
pub(super) fn guild_number(guild: Option<GuildId>) -> Option<i64> {
    guild.map(|guild| number(guild.get()))
}

/// A row being read, which can name its place in errors.
pub(super) struct Columns<'row> {
    table: &'static str,
    id: i64,
    row: &'row Row<'row>,
    /// Index after the last column read.
    next: Cell<usize>,
}

impl<'row> Columns<'row> {
    /// A row whose first column is its number.
    pub(super) fn of(table: &'static str, row: &'row Row<'row>) -> Result<Self, Fault> {
        let id = row.get(0)?;
        Ok(Self {
            table,
            id,
            row,
            next: Cell::new(1),
        })
    }

    /// The row's number.
    pub(super) const fn id(&self) -> i64 {
        self.id
    }

    /// A column's raw value.
    pub(super) fn get<T: FromSql>(&self, column: &'static str) -> Result<T, Fault> {
        T::column_result(self.value(column)?).map_err(|_| self.unread(column))
    }

    fn value(&self, column: &'static str) -> Result<ValueRef<'row>, Fault> {
        let index = self.index(column).ok_or_else(|| self.unread(column))?;
        self.next.set(index + 1);
        self.row.get_ref(index).map_err(|_| self.unread(column))
    }

    /// The index of a column. Columns are nearly always read in order, and
    /// searching all names each time would cost more than the reading.
    fn index(&self, column: &str) -> Option<usize> {
        let statement = self.row.as_ref();
        let next = self.next.get();
        if statement.column_name(next).is_ok_and(|name| name == column) {
            return Some(next);
        }
        statement.column_index(column).ok()
    }

    /// A text that is parsed.
    pub(super) fn read<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Fault> {
        let text = self.text(column)?.and_then(read);
        text.ok_or_else(|| self.unread(column))
    }

    /// The same for a column that may be null.
    pub(super) fn maybe<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(column)? else {
            return Ok(None);
        };
        read(text).map(Some).ok_or_else(|| self.unread(column))
    }

    /// A text, borrowed from the row.
    fn text(&self, column: &'static str) -> Result<Option<&'row str>, Fault> {
        let text = self.value(column)?.as_str_or_null();
        text.map_err(|_| self.unread(column))
    }

    /// A time.
    pub(super) fn time(&self, column: &'static str) -> Result<UnixMillis, Fault> {
        self.read(column, UnixMillis::parse)
    }

    /// An id.
    pub(super) fn id_of(&self, column: &'static str) -> Result<u64, Fault> {
        Ok(self.get::<i64>(column)?.cast_unsigned())
    }

    /// An id, unless null.
    pub(super) fn maybe_id(&self, column: &'static str) -> Result<Option<u64>, Fault> {
        Ok(self.get::<Option<i64>>(column)?.map(i64::cast_unsigned))
    }

    /// The error for a column that does not hold what we write.
    pub(super) const fn unread(&self, column: &'static str) -> Fault {
        Fault::Row {
            table: self.table,
            id: self.id,
            column,
        }
    }
}

/// Reads a row of `messages` with the columns of [`MESSAGE`].
pub(super) fn message(row: &Row<'_>) -> Result<StoredMessage, Fault> {
    let row = Columns::of("messages", row)?;
    Ok(StoredMessage {
        scope: row.read("scope", |text| text.parse::<Scope>().ok())?,
        agent: row.read("agent_name", |text| text.parse().ok())?,
        turn: TurnId(row.id_of("turn_id")?),
        ordinal: row.id_of("ordinal")?,
        role: row.read("role", StoredRole::from_word)?,
        guild: row.maybe_id("guild_id")?.map(GuildId::new),
        channel: ChannelId::new(row.id_of("thread_id")?),
        owner: UserId::new(row.id_of("owner_id")?),
        author_name: row.get("author_name")?,
        content: row.get("content")?,
        tool_calls: row.get("tool_calls")?,
        tool_call_id: row.get("tool_call_id")?,
        timestamp: row.time("timestamp")?,
        message: row.maybe_id("discord_message_id")?.map(MessageId::new),
        parts: row.maybe("parts", read_parts)?.unwrap_or_default(),
        target: row.maybe_id("target_id")?.map(MessageId::new),
        restored_from: row.maybe("restored_from", |text| text.parse().ok())?,
    })
}

/// Inserts a row with its ordinal and its position in the turn. Returns its
/// number.
pub(super) fn insert_message(
    connection: &Connection,
    message: &StoredMessage,
    position: i64,
) -> Result<i64, Fault> {
    let text = texts::add_message(connection, message)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO message_rows (text_id, gone, scope, agent_name, turn_id, ordinal, position,
             role, guild_id, thread_id, owner_id, timestamp, discord_message_id, target_id,
             restored_from)
         VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let row = insert.insert(rusqlite::params![
        text,
        message.scope.to_string(),
        message.agent.as_str(),
        number(message.turn.0),
        number(message.ordinal),
        position,
        message.role.as_str(),
        guild_number(message.guild),
        number(message.channel.get()),
        number(message.owner.get()),
        time_text(message.timestamp),
        message.message.map(|id| number(id.get())),
        message.target.map(|id| number(id.get())),
        message.restored_from.as_ref().map(SnapshotId::as_str),
    ])?;
    let mut held = connection.prepare_cached(
        "INSERT OR IGNORE INTO message_ids (channel_id, message_id, row_id) VALUES (?1, ?2, ?3)",
    )?;
    for id in message.message.iter().chain(&message.parts) {
        held.execute((number(message.channel.get()), number(id.get()), row))?;
    }
    Ok(row)
}

/// Ids separated by spaces.
pub(super) fn write_parts(parts: &[MessageId]) -> Option<String> {
    let ids: Vec<String> = parts.iter().map(ToString::to_string).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}

fn read_parts(text: &str) -> Option<Vec<MessageId>> {
    text.split(' ').map(|id| id.parse().ok()).collect()
}
