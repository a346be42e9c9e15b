//! Converts our values to columns and back.

use std::borrow::Cow;
use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::session::{Failure, Outcome};
use crate::model::{
    AgentName, ContextSnapshotInfo, Fact, FactId, Origin, SnapshotId, StoredMessage, StoredRole,
    Subject,
};
use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};

/// PostgreSQL counts microseconds from 1 January 2000.
const EPOCH_MS: i64 = 946_684_800_000;
/// First and last millisecond of a `timestamptz` (PostgreSQL, "Date/Time
/// Types": 4713 BC to 294276 AD), in Unix time.
const FIRST_MS: i64 = -210_866_803_200_000;
const LAST_MS: i64 = 9_224_318_015_999_999;
/// Replaces U+0000, which PostgreSQL refuses in texts.
const REPLACEMENT: &str = "\u{fffd}";

/// A time as `timestamptz`, exact to the millisecond; times outside of
/// PostgreSQL's range become its nearest bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment(pub(super) UnixMillis);

impl ToSql for Moment {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.put_i64((self.0.0.clamp(FIRST_MS, LAST_MS) - EPOCH_MS) * 1_000);
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(UnixMillis(
            micros.div_euclid(1_000).saturating_add(EPOCH_MS),
        )))
    }

    accepts!(TIMESTAMPTZ);
}

/// Replaces U+0000, which PostgreSQL refuses, by U+FFFD.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', REPLACEMENT))
    } else {
        Cow::Borrowed(text)
    }
}

/// As [`text`], if there is a text.
pub(super) fn maybe_text(maybe: Option<&String>) -> Option<Cow<'_, str>> {
    maybe.map(|value| text(value))
}

/// A row limit for SQL.
pub(super) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// A count from SQL.
pub(super) fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0)
}

/// A server's id in a key; 0, which no server has, for direct messages.
pub(super) fn guild_key(guild: Option<GuildId>) -> i64 {
    guild.map_or(0, |guild| guild.get().cast_signed())
}

/// A user's id in a key; 0, which no user has, for everybody.
pub(super) fn user_key(user: Option<UserId>) -> i64 {
    user.map_or(0, |user| user.get().cast_signed())
}

/// A row, read column by column; errors name its table and key.
pub(super) struct Columns<'a> {
    pub(super) table: &'static str,
    pub(super) key: String,
    pub(super) row: &'a Row,
}

impl<'a> Columns<'a> {
    /// A row whose first column is its integer key.
    pub(super) fn new(table: &'static str, row: &'a Row) -> Self {
        let key = row
            .try_get::<_, i64>(0)
            .map_or_else(|_| "?".to_owned(), |key| key.to_string());
        Self { table, key, row }
    }

    /// A row whose first column is its text key.
    pub(super) fn named(table: &'static str, row: &'a Row) -> Self {
        let key = row.try_get(0).unwrap_or_else(|_| "?".to_owned());
        Self { table, key, row }
    }

    pub(super) fn get<T: FromSql<'a>>(&self, column: &str) -> Outcome<T> {
        self.row.try_get(column).map_err(|error| self.bad(error))
    }

    pub(super) fn id(&self, column: &str) -> Outcome<u64> {
        Ok(self.get::<i64>(column)?.cast_unsigned())
    }

    pub(super) fn maybe_id(&self, column: &str) -> Outcome<Option<u64>> {
        Ok(self.get::<Option<i64>>(column)?.map(i64::cast_unsigned))
    }

    pub(super) fn time(&self, column: &str) -> Outcome<UnixMillis> {
        Ok(self.get::<Moment>(column)?.0)
    }

    pub(super) fn parsed<T>(&self, column: &str) -> Outcome<T>
    where
        T: std::str::FromStr<Err: StdError + Send + Sync + 'static>,
    {
        let text: &str = self.get(column)?;
        text.parse().map_err(|error: T::Err| self.bad(error))
    }

    /// The failure for a row that cannot be read.
    pub(super) fn bad(&self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Failure {
        Failure::Unreadable {
            place: format!("table {}, row {}", self.table, self.key),
            source: source.into(),
        }
    }
}

/// A row of `messages`.
pub(super) fn message(row: &Row) -> Outcome<StoredMessage> {
    let columns = Columns::new("messages", row);
    let role: &str = columns.get("role")?;
    let parts: Vec<i64> = columns.get("part_ids")?;
    let restored: Option<&str> = columns.get("restored_from")?;
    Ok(StoredMessage {
        scope: columns.parsed("scope")?,
        agent: columns.parsed("agent_name")?,
        turn: TurnId(columns.id("turn_id")?),
        ordinal: columns.id("ordinal")?,
        role: StoredRole::from_word(role).ok_or_else(|| columns.bad("unknown role"))?,
        guild: columns.maybe_id("guild_id")?.map(GuildId::new),
        channel: ChannelId::new(columns.id("thread_id")?),
        owner: UserId::new(columns.id("owner_id")?),
        author_name: columns.get("author_name")?,
        content: columns.get("content")?,
        tool_calls: columns.get("tool_calls")?,
        tool_call_id: columns.get("tool_call_id")?,
        timestamp: columns.time("timestamp")?,
        message: columns.maybe_id("discord_message_id")?.map(MessageId::new),
        parts: parts
            .into_iter()
            .map(|part| MessageId::new(part.cast_unsigned()))
            .collect(),
        target: columns.maybe_id("target_id")?.map(MessageId::new),
        restored_from: restored
            .map(str::parse::<SnapshotId>)
            .transpose()
            .map_err(|error| columns.bad(error))?,
    })
}

/// A row of `facts`.
pub(super) fn fact(row: &Row) -> Outcome<Fact> {
    let columns = Columns::new("facts", row);
    let subject = match (columns.maybe_id("user_id")?, columns.maybe_id("server_id")?) {
        (Some(user), None) => Subject::User(UserId::new(user)),
        (None, Some(server)) => Subject::Server(GuildId::new(server)),
        _ => return Err(columns.bad("about nobody, or about two")),
    };
    let origin = match (columns.get("origin")?, columns.maybe_id("origin_guild")?) {
        ("direct", None) => Origin::Direct,
        ("everywhere", None) => Origin::Everywhere,
        ("guild", Some(guild)) => Origin::Guild(GuildId::new(guild)),
        _ => return Err(columns.bad("unknown origin")),
    };
    let channel = columns.maybe_id("link_channel")?.map(ChannelId::new);
    let message = columns.maybe_id("link_message")?.map(MessageId::new);
    let seen: i64 = columns.get("seen")?;
    Ok(Fact {
        id: FactId(columns.id("id")?),
        subject,
        text: columns.get("text")?,
        origin,
        by: UserId::new(columns.id("by_user")?),
        at: columns.time("at")?,
        link: channel.zip(message),
        pinned: columns.get("pinned")?,
        seen: u32::try_from(seen).map_err(|error| columns.bad(error))?,
        last_used: columns.time("last_used")?,
    })
}

/// A row of `snapshots`.
pub(super) fn snapshot(row: &Row) -> Outcome<ContextSnapshotInfo> {
    let columns = Columns::named("snapshots", row);
    let messages: i64 = columns.get("message_count")?;
    Ok(ContextSnapshotInfo {
        id: columns.parsed("snapshot_id")?,
        agent: columns.parsed::<AgentName>("agent_name")?,
        owner: UserId::new(columns.id("owner_id")?),
        guild: columns.maybe_id("guild_id")?.map(GuildId::new),
        timestamp: columns.time("timestamp")?,
        description: columns.get("description")?,
        summary: columns.get("summary")?,
        message_count: usize::try_from(messages).map_err(|error| columns.bad(error))?,
        window_start: columns.time("window_start")?,
        window_end: columns.time("window_end")?,
    })
}
