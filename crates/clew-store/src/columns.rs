//! Records as rows of a database: read by the names of their columns, written
//! as cells.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::Serialize;

use super::table::Table;
use super::{Cursor, Kind, KindStats, Purge, Record, RecordKey, TurnKey, json, packed};
use crate::model::{
    ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, Origin, ReceiptPerson, Scope,
    SnapshotId, StoredMessage, StoredReceipt, StoredRole, Subject,
};
use clew_context::model::{
    ChannelId, ContentSource, GuildId, MessageId, TurnId, UnixMillis, UserId,
};

/// Stands for no server or no user in a key, which cannot be null. No Discord
/// id is 0.
const NOBODY: u64 = 0;

/// A row of a database.
pub(crate) trait Columns {
    /// Why a column cannot be read.
    type Fault;

    /// A number, unless null.
    fn number(&self, column: &'static str) -> Result<Option<i64>, Self::Fault>;

    /// A text, unless null.
    fn text(&self, column: &'static str) -> Result<Option<&str>, Self::Fault>;

    /// Something packed.
    fn bytes(&self, column: &'static str) -> Result<&[u8], Self::Fault>;

    /// A time, unless null.
    fn maybe_time(&self, column: &'static str) -> Result<Option<UnixMillis>, Self::Fault>;

    /// A boolean.
    fn flag(&self, column: &'static str) -> Result<bool, Self::Fault>;

    /// The fault for a column that does not hold what we write.
    fn unfit(&self, column: &'static str) -> Self::Fault;

    /// An id, unless null.
    fn maybe_id<T>(
        &self,
        column: &'static str,
        make: impl FnOnce(u64) -> T,
    ) -> Result<Option<T>, Self::Fault> {
        Ok(self.number(column)?.map(|id| make(id.cast_unsigned())))
    }

    fn id<T>(&self, column: &'static str, make: impl FnOnce(u64) -> T) -> Result<T, Self::Fault> {
        let found = self.maybe_id(column, make)?;
        found.ok_or_else(|| self.unfit(column))
    }

    fn time(&self, column: &'static str) -> Result<UnixMillis, Self::Fault> {
        let found = self.maybe_time(column)?;
        found.ok_or_else(|| self.unfit(column))
    }

    /// A text that is parsed further, unless null.
    fn maybe_read<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Self::Fault> {
        let Some(text) = self.text(column)? else {
            return Ok(None);
        };
        read(text).map(Some).ok_or_else(|| self.unfit(column))
    }

    /// A text that is parsed further.
    fn read<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Self::Fault> {
        let found = self.maybe_read(column, read)?;
        found.ok_or_else(|| self.unfit(column))
    }

    /// A text.
    fn whole(&self, column: &'static str) -> Result<String, Self::Fault> {
        self.read(column, |text| Some(text.to_owned()))
    }

    /// A text, unless null.
    fn maybe_whole(&self, column: &'static str) -> Result<Option<String>, Self::Fault> {
        Ok(self.text(column)?.map(str::to_owned))
    }
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// A row of a turn.
pub(crate) fn message<C: Columns>(row: &C) -> Result<StoredMessage, C::Fault> {
    Ok(StoredMessage {
        scope: row.read("scope", parsed)?,
        agent: row.read("agent_name", parsed)?,
        turn: row.id("turn_id", TurnId)?,
        ordinal: row.id("ordinal", |ordinal| ordinal)?,
        role: row.read("role", StoredRole::from_word)?,
        guild: row.maybe_id("guild_id", GuildId::new)?,
        channel: row.id("thread_id", ChannelId::new)?,
        owner: row.id("owner_id", UserId::new)?,
        author_name: row.maybe_whole("author_name")?,
        content: row.whole("content")?,
        tool_calls: row.maybe_whole("tool_calls")?,
        tool_call_id: row.maybe_whole("tool_call_id")?,
        timestamp: row.time("timestamp")?,
        message: row.maybe_id("discord_message_id", MessageId::new)?,
        parts: row.maybe_read("parts", read_ids)?.unwrap_or_default(),
        target: row.maybe_id("target_id", MessageId::new)?,
        restored_from: row.maybe_read("restored_from", parsed)?,
        sources: row.maybe_read("sources", read_sources)?.unwrap_or_default(),
    })
}

fn read_sources(text: &str) -> Option<Vec<ContentSource>> {
    serde_json::from_str(text).ok()
}

/// The column of what a row was made from; null if of nothing.
pub(crate) fn sources(sources: &[ContentSource]) -> Option<String> {
    let text = || serde_json::to_string(sources).ok();
    (!sources.is_empty()).then(text).flatten()
}

/// What a database finds sources by, as a JSON list of lists: server, channel, message and
/// author.
pub(crate) fn source_ids<'a>(
    sources: impl IntoIterator<Item = &'a ContentSource>,
) -> Cell<'static> {
    let signed = |id: u64| id.cast_signed();
    let ids = sources.into_iter().map(|source| {
        (
            source.guild.map(|guild| signed(guild.get())),
            signed(source.channel.get()),
            source.message.map(|message| signed(message.get())),
            source.author.map(|author| signed(author.get())),
        )
    });
    Cell::json(&ids.collect::<Vec<_>>())
}

/// The columns of a row of a turn that are alike in both databases.
pub(crate) const ROW: &str = "scope, agent_name, turn_id, ordinal, position, role, guild_id, \
     thread_id, owner_id, timestamp, discord_message_id, target_id, restored_from, sources";

/// The values of [`ROW`].
pub(crate) fn row_cells(row: &StoredMessage, position: i64) -> [Cell<'_>; 14] {
    [
        Cell::scope(row.scope),
        Cell::text(row.agent.as_str()),
        Cell::id(row.turn.0),
        Cell::id(row.ordinal),
        Cell::Number(position),
        Cell::text(row.role.as_str()),
        Cell::maybe_id(row.guild.map(GuildId::get)),
        Cell::id(row.channel.get()),
        Cell::id(row.owner.get()),
        Cell::Time(row.timestamp),
        Cell::maybe_id(row.message.map(MessageId::get)),
        Cell::maybe_id(row.target.map(MessageId::get)),
        Cell::maybe(row.restored_from.as_ref().map(SnapshotId::as_str)),
        Cell::maybe_text(sources(&row.sources)),
    ]
}

/// Ids separated by spaces; null for none.
pub(crate) fn write_ids(ids: &[MessageId]) -> Option<String> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}

fn read_ids(text: &str) -> Option<Vec<MessageId>> {
    text.split_whitespace().map(parsed).collect()
}

/// The columns of a receipt.
pub(crate) const RECEIPT: &str = "turn_id, scope, guild_id, channel_id, owner_id, is_private, \
     trigger_id, messages, at, people, body";

pub(crate) fn receipt<C: Columns>(row: &C) -> Result<StoredReceipt, C::Fault> {
    Ok(StoredReceipt {
        turn: row.id("turn_id", TurnId)?,
        scope: row.read("scope", parsed)?,
        guild: row.maybe_id("guild_id", GuildId::new)?,
        channel: row.id("channel_id", ChannelId::new)?,
        owner: row.id("owner_id", UserId::new)?,
        is_private: row.flag("is_private")?,
        trigger: row.maybe_id("trigger_id", MessageId::new)?,
        messages: row.maybe_read("messages", read_ids)?.unwrap_or_default(),
        at: row.time("at")?,
        people: row.read("people", read_people)?,
        body: packed::unpack(row.bytes("body")?).ok_or_else(|| row.unfit("body"))?,
    })
}

/// The values of [`RECEIPT`].
pub(crate) fn receipt_cells(receipt: &StoredReceipt) -> [Cell<'_>; 11] {
    [
        Cell::id(receipt.turn.0),
        Cell::scope(receipt.scope),
        Cell::maybe_id(receipt.guild.map(GuildId::get)),
        Cell::id(receipt.channel.get()),
        Cell::id(receipt.owner.get()),
        Cell::Flag(receipt.is_private),
        Cell::maybe_id(receipt.trigger.map(MessageId::get)),
        Cell::maybe_text(write_ids(&receipt.messages)),
        Cell::Time(receipt.at),
        Cell::json(&people_lists(&receipt.everybody())),
        Cell::Bytes(packed::pack(&receipt.body)),
    ]
}

/// Lists of ids: a server's and those of its people, 0 for none.
fn people_lists(people: &BTreeSet<ReceiptPerson>) -> Vec<Vec<i64>> {
    let mut lists = BTreeMap::<i64, Vec<i64>>::new();
    for one in people {
        let guild = guild_key(one.guild);
        let list = lists.entry(guild).or_insert_with(|| vec![guild]);
        list.push(user_key(one.author));
    }
    lists.into_values().collect()
}

fn read_people(text: &str) -> Option<BTreeSet<ReceiptPerson>> {
    let lists: Vec<Vec<i64>> = serde_json::from_str(text).ok()?;
    let mut people = BTreeSet::new();
    for list in &lists {
        let (guild, authors) = list.split_first()?;
        people.extend(authors.iter().map(|author| ReceiptPerson {
            guild: somebody(guild.cast_unsigned()).map(GuildId::new),
            author: somebody(author.cast_unsigned()).map(UserId::new),
        }));
    }
    Some(people)
}

/// The columns of a fact besides its id, its subject and its text.
pub(crate) const FACT_REST: [&str; 9] = [
    "origin",
    "origin_guild",
    "by_user",
    "at",
    "link_channel",
    "link_message",
    "pinned",
    "seen",
    "last_used",
];

/// The values of [`FACT_REST`].
pub(crate) fn fact_rest(fact: &Fact) -> [Cell<'static>; 9] {
    [
        Cell::text(fact.origin.as_str()),
        Cell::maybe_id(fact.origin.guild().map(GuildId::get)),
        Cell::id(fact.by.get()),
        Cell::Time(fact.at),
        Cell::maybe_id(fact.link.map(|(channel, _)| channel.get())),
        Cell::maybe_id(fact.link.map(|(_, message)| message.get())),
        Cell::Flag(fact.pinned),
        Cell::Number(fact.seen.into()),
        Cell::Time(fact.last_used),
    ]
}

pub(crate) fn fact<C: Columns>(row: &C) -> Result<Fact, C::Fault> {
    let about = row.id("subject_id", |id| id)?;
    let guild = row.maybe_id("origin_guild", GuildId::new)?;
    let channel = row.maybe_id("link_channel", ChannelId::new)?;
    let message = row.maybe_id("link_message", MessageId::new)?;
    let seen = row.id("seen", u32::try_from)?;
    Ok(Fact {
        id: row.id("id", FactId)?,
        subject: row.read("subject", |word| match word {
            "user" => Some(Subject::User(UserId::new(about))),
            "server" => Some(Subject::Server(GuildId::new(about))),
            _ => None,
        })?,
        text: row.whole("text")?,
        origin: row.read("origin", |word| match (word, guild) {
            ("direct", None) => Some(Origin::Direct),
            ("guild", Some(guild)) => Some(Origin::Guild(guild)),
            ("everywhere", None) => Some(Origin::Everywhere),
            _ => None,
        })?,
        by: row.id("by_user", UserId::new)?,
        at: row.time("at")?,
        link: channel.zip(message),
        pinned: row.flag("pinned")?,
        seen: seen.map_err(|_| row.unfit("seen"))?,
        last_used: row.time("last_used")?,
    })
}

/// What is known of a snapshot besides its messages.
pub(crate) fn snapshot<C: Columns>(row: &C) -> Result<ContextSnapshotInfo, C::Fault> {
    let count = row.id("message_count", usize::try_from)?;
    Ok(ContextSnapshotInfo {
        id: row.read("id", parsed)?,
        agent: row.read("agent_name", parsed)?,
        owner: row.id("owner_id", UserId::new)?,
        guild: row.maybe_id("guild_id", GuildId::new)?,
        timestamp: row.time("timestamp")?,
        description: row.maybe_whole("description")?,
        summary: row.whole("summary")?,
        message_count: count.map_err(|_| row.unfit("message_count"))?,
        window_start: row.time("window_start")?,
        window_end: row.time("window_end")?,
    })
}

/// What a snapshot's row holds alike in both databases: its id, agent, owner, server and time, how
/// many messages, from when to when, and the oldest of them.
pub(crate) fn snapshot_cells(snapshot: &ContextSnapshot) -> [Cell<'_>; 9] {
    let info = &snapshot.info;
    [
        Cell::text(info.id.as_str()),
        Cell::text(info.agent.as_str()),
        Cell::id(info.owner.get()),
        Cell::maybe_id(info.guild.map(GuildId::get)),
        Cell::Time(info.timestamp),
        Cell::limit(info.message_count),
        Cell::Time(info.window_start),
        Cell::Time(info.window_end),
        snapshot.oldest().map_or(Cell::Null, Cell::Time),
    ]
}

/// An entry of a kind; a snapshot without its messages. `None` for kinds that
/// no database holds.
pub(crate) fn record<C: Columns>(kind: Kind, row: &C) -> Result<Option<Record>, C::Fault> {
    Ok(Some(match kind {
        Kind::Messages => Record::Message(message(row)?),
        Kind::Markers => {
            let key = ClearKey {
                agent: row.read("agent_name", parsed)?,
                guild: row.id("guild_id", somebody)?.map(GuildId::new),
                user: row.id("user_id", somebody)?.map(UserId::new),
            };
            Record::Marker(key, row.time("at")?)
        }
        Kind::Snapshots => Record::Snapshot(ContextSnapshot {
            info: snapshot(row)?,
            messages: Vec::new(),
        }),
        Kind::Receipts => Record::Receipt(receipt(row)?),
        Kind::UserFacts | Kind::ServerFacts => Record::Fact(fact(row)?),
        Kind::OptOuts => Record::OptOut(row.id("user_id", UserId::new)?, row.time("since")?),
        Kind::Settings => Record::Settings(
            row.id("guild_id", GuildId::new)?,
            row.read("settings", |text| json::read_settings(text).ok())?,
        ),
        Kind::Agents => Record::Agent(row.read("agent_name", parsed)?, row.time("created_at")?),
        Kind::Departures => Record::Departure(row.id("guild_id", GuildId::new)?, row.time("at")?),
        Kind::Transcripts | Kind::Outputs => return Ok(None),
    }))
}

/// An entry of a page of its table, and the key by which the page may be gone on from.
pub(crate) fn entry<C: Columns>(
    kind: Kind,
    table: &Table,
    row: &C,
) -> Result<(Option<Record>, Cursor), C::Fault> {
    let cursor = if table.is_named {
        row.whole("cursor")?
    } else {
        row.id("cursor", |key| key.cast_signed().to_string())?
    };
    Ok((record(kind, row)?, Cursor(cursor)))
}

/// How much there is of a kind, as [`Table::count`] counts it.
pub(crate) fn stats<C: Columns>(kind: Kind, row: &C) -> Result<KindStats, C::Fault> {
    Ok(KindStats {
        kind,
        entries: row.id("entries", |entries| entries)?,
        bytes: row.id("bytes", |bytes| bytes)?,
        oldest: row.maybe_time("oldest")?,
        newest: row.maybe_time("newest")?,
    })
}

/// A value in a statement.
#[derive(Debug, Clone)]
pub(crate) enum Cell<'a> {
    /// No value.
    Null,
    /// A boolean.
    Flag(bool),
    /// An id or another number.
    Number(i64),
    /// Ids to choose from.
    Numbers(Vec<i64>),
    /// A text.
    Text(Cow<'a, str>),
    /// Something packed.
    Bytes(Vec<u8>),
    /// A time.
    Time(UnixMillis),
}

impl<'a> Cell<'a> {
    pub(crate) const fn id(id: u64) -> Self {
        Self::Number(id.cast_signed())
    }

    /// An id, if there is one.
    pub(crate) fn maybe_id(id: Option<u64>) -> Self {
        id.map_or(Self::Null, Self::id)
    }

    /// A number of rows.
    pub(crate) fn limit(rows: usize) -> Self {
        Self::Number(i64::try_from(rows).unwrap_or(i64::MAX))
    }

    /// A text of its own, if there is one.
    pub(crate) fn maybe_text(text: Option<String>) -> Self {
        text.map_or(Self::Null, |text| Self::Text(text.into()))
    }

    /// A text, if there is one.
    pub(crate) fn maybe(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::text)
    }

    /// A conversation.
    pub(crate) fn scope(scope: Scope) -> Self {
        Self::Text(scope.to_string().into())
    }

    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::Text(serde_json::to_string(value).unwrap_or_default().into())
    }

    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

/// A server's id in a key.
pub(crate) fn guild_key(guild: Option<GuildId>) -> i64 {
    guild.map_or(NOBODY, GuildId::get).cast_signed()
}

/// The id that a key has, unless it stands for none.
fn somebody(id: u64) -> Option<u64> {
    (id != NOBODY).then_some(id)
}

pub(crate) fn user_key(user: Option<UserId>) -> i64 {
    user.map_or(NOBODY, UserId::get).cast_signed()
}

impl TurnKey {
    /// Its turn, scope and agent.
    pub(crate) fn cells(&self) -> [Cell<'_>; 3] {
        [
            Cell::id(self.turn.0),
            Cell::scope(self.scope),
            Cell::text(self.agent.as_str()),
        ]
    }
}

impl RecordKey {
    /// The values of its table's key.
    pub(crate) fn cells(&self) -> Vec<Cell<'_>> {
        match self {
            Self::Marker(key) => vec![
                Cell::Text(key.agent.as_str().into()),
                Cell::Number(guild_key(key.guild)),
                Cell::Number(user_key(key.user)),
            ],
            Self::Receipt(turn) => vec![Cell::id(turn.0)],
            Self::Fact(fact) => vec![Cell::id(fact.0)],
            Self::OptOut(user) => vec![Cell::id(user.get())],
            Self::Settings(guild) | Self::Departure(guild) => vec![Cell::id(guild.get())],
            Self::Agent(agent) => vec![Cell::Text(agent.as_str().into())],
        }
    }
}

/// The value beside a list entry's key; `None` for what is no list.
pub(crate) fn list_value(record: &Record) -> Option<Cell<'_>> {
    match record {
        Record::Marker(_, at)
        | Record::OptOut(_, at)
        | Record::Agent(_, at)
        | Record::Departure(_, at) => Some(Cell::Time(*at)),
        Record::Settings(_, settings) => Some(Cell::Text(json::write_settings(settings).into())),
        Record::Message(_) | Record::Snapshot(_) | Record::Receipt(_) | Record::Fact(_) => None,
    }
}

impl Purge {
    /// The values of ?1, ?2 and ?3 in its conditions.
    pub(crate) fn cells(&self) -> Vec<Cell<'static>> {
        match self {
            Self::Messages { channel, ids } => {
                let ids = ids.iter().map(|id| id.get().cast_signed());
                vec![Cell::id(channel.get()), Cell::Numbers(ids.collect())]
            }
            Self::Edited {
                channel,
                message,
                at,
            } => vec![
                Cell::id(channel.get()),
                Cell::id(message.get()),
                Cell::Time(*at),
            ],
            Self::Channel(channel) => vec![Cell::id(channel.get())],
            Self::Guild(guild) => vec![Cell::id(guild.get())],
            Self::Member { guild, user } => vec![Cell::id(guild.get()), Cell::id(user.get())],
            Self::User(user) => vec![Cell::id(user.get())],
            Self::Before(time) => vec![Cell::Time(*time)],
        }
    }
}
