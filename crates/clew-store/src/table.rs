//! Where a database keeps each kind, and the statements that follow from it.
//!
//! A back end describes its tables; pages, counts, purges and the small lists
//! are the same statements for both. Their parameters are written `?1`;
//! PostgreSQL makes `$1` of them.

use super::columns::{Cell, RECEIPT};
use super::{Cursor, Kind, Purge};
use crate::model::ReceiptLimits;
use clew_context::model::UserId;

/// Where a database keeps a kind.
///
/// In the conditions of `of_guild` to `before` a bare `?` is the value; in
/// `of_message`, ?1 is the channel and ?2 the ids; in `of_edited`, ?2 is the message and ?3
/// when it was edited. `{ids}`, `{key}` and `{entry}` stand for the fields of these
/// names. Without a condition no such purge concerns the kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// The table, or the view it is read from.
    pub(crate) name: &'static str,
    /// Tells its entries from those of other kinds in the table.
    pub(crate) only: &'static str,
    /// What [`columns`](super::columns) reads, the key first.
    pub(crate) columns: &'static str,
    /// What identifies an entry.
    pub(crate) key: &'static [&'static str],
    /// Whether the key is text rather than a number.
    pub(crate) is_named: bool,
    /// For lists: the one column beside the key.
    pub(crate) value: &'static str,
    /// Bytes of an entry's texts.
    pub(crate) bytes: &'static str,
    /// When an entry was said, saved or noted.
    pub(crate) time: &'static str,
    /// A server's entries.
    pub(crate) of_guild: Option<&'static str>,
    /// A user's entries.
    pub(crate) of_user: Option<&'static str>,
    /// A channel's entries.
    pub(crate) of_channel: Option<&'static str>,
    /// Entries that messages led to.
    pub(crate) of_message: Option<&'static str>,
    /// Entries that a message led to before it was edited.
    pub(crate) of_edited: Option<&'static str>,
    /// Entries from before a time.
    pub(crate) before: Option<&'static str>,
    /// What its entries were made from.
    pub(crate) sources: Option<Sources>,
    /// Says of a column that it is one of the ids ?2.
    pub(crate) ids: &'static str,
}

/// The table of what the entries of another were made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources {
    /// Its name.
    pub(crate) table: &'static str,
    /// Its column with the key of the entry.
    pub(crate) entry: &'static str,
    /// The message ?2 of the channel ?1, in turns that began before ?3; `None` if it names
    /// only servers and people.
    pub(crate) edited: Option<&'static str>,
}

/// What is alike in both databases.
impl Table {
    /// A table of nothing yet, for `..Table::EMPTY`.
    pub(crate) const EMPTY: Self = Self {
        name: "",
        only: "TRUE",
        columns: "",
        key: &[],
        is_named: false,
        value: "",
        bytes: "0",
        time: "CAST(NULL AS TIMESTAMPTZ)",
        of_guild: None,
        of_user: None,
        of_channel: None,
        of_message: None,
        of_edited: None,
        before: None,
        sources: None,
        ids: "",
    };

    pub(crate) const MESSAGES: Self = Self {
        name: "messages",
        key: &["id"],
        bytes: "octet_length(content) + coalesce(octet_length(tool_calls), 0)",
        time: "timestamp",
        of_guild: Some("guild_id = ?"),
        of_user: Some("owner_id = ?"),
        of_channel: Some("thread_id = ?"),
        ..Self::EMPTY
    };

    pub(crate) const MARKERS: Self = Self {
        name: "markers",
        columns: "agent_name, guild_id, user_id, at",
        key: &["agent_name", "guild_id", "user_id"],
        is_named: true,
        value: "at",
        time: "at",
        of_guild: Some("guild_id = ?"),
        of_user: Some("user_id = ?"),
        ..Self::EMPTY
    };

    pub(crate) const SNAPSHOTS: Self = Self {
        name: "snapshots",
        only: "ready",
        time: "timestamp",
        of_guild: Some(
            "guild_id = ? OR {key} IN
                 (SELECT {entry} FROM snapshot_messages WHERE guild_id = ?)",
        ),
        of_user: Some("owner_id = ?"),
        of_channel: Some("{key} IN (SELECT {entry} FROM snapshot_messages WHERE channel_id = ?)"),
        of_message: Some(
            "{key} IN (SELECT {entry} FROM snapshot_messages
                 WHERE channel_id = ?1 AND message_id {ids})",
        ),
        before: Some("timestamp < ? OR oldest < ?"),
        ..Self::EMPTY
    };

    pub(crate) const RECEIPTS: Self = Self {
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
                 WHERE channel_id = ?1 AND message_id {ids})",
        ),
        before: Some("at < ?"),
        sources: Some(Sources {
            table: "receipt_people",
            entry: "turn_id",
            edited: None,
        }),
        ..Self::EMPTY
    };

    pub(crate) const FACTS: Self = Self {
        name: "facts",
        key: &["id"],
        bytes: "octet_length(text)",
        time: "at",
        of_channel: Some("link_channel = ?"),
        of_message: Some("link_channel = ?1 AND link_message {ids}"),
        of_edited: Some("link_channel = ?1 AND link_message = ?2 AND at < ?3"),
        before: Some("at < ?"),
        ..Self::EMPTY
    };

    pub(crate) const OPT_OUTS: Self = Self {
        name: "opt_outs",
        columns: "user_id, since",
        key: &["user_id"],
        value: "since",
        time: "since",
        of_user: Some("user_id = ?"),
        ..Self::EMPTY
    };

    pub(crate) const SETTINGS: Self = Self {
        name: "guild_settings",
        columns: "guild_id, settings",
        key: &["guild_id"],
        value: "settings",
        bytes: "octet_length(settings)",
        of_guild: Some("guild_id = ?"),
        ..Self::EMPTY
    };

    pub(crate) const AGENTS: Self = Self {
        name: "agents",
        columns: "agent_name, created_at",
        key: &["agent_name"],
        is_named: true,
        value: "created_at",
        time: "created_at",
        ..Self::EMPTY
    };

    pub(crate) const DEPARTURES: Self = Self {
        name: "departures",
        columns: "guild_id, at",
        key: &["guild_id"],
        value: "at",
        time: "at",
        of_guild: Some("guild_id = ?"),
        ..Self::EMPTY
    };
}

impl Table {
    /// The statement for a page, and its values: of one user or of all, from a cursor on, one
    /// entry more than the page has, which is where the next one starts. The column `cursor`
    /// is the key. `None` if no entry is a user's.
    pub(crate) fn page<'a>(
        &self,
        owner: Option<UserId>,
        after: Option<&'a Cursor>,
        limit: usize,
    ) -> Result<Option<(String, Vec<Cell<'a>>)>, &'static str> {
        let of_user = self.of_user.unwrap_or("FALSE").replace('?', "?3");
        let owned = owner.map_or(String::new(), |_| format!(" AND ({of_user})"));
        let key = self.key.join(" || ' ' || ");
        let Self {
            name,
            only,
            columns,
            ..
        } = self;
        let sql = format!(
            "SELECT {columns}, {key} AS cursor FROM {name}
             WHERE {only} AND {key} >= ?1{owned} ORDER BY {key} LIMIT ?2"
        );
        let first = match after {
            None if self.is_named => Cell::Text("".into()),
            None => Cell::Number(i64::MIN),
            Some(cursor) if self.is_named => Cell::Text(cursor.0.as_str().into()),
            Some(cursor) => Cell::Number(
                cursor
                    .0
                    .parse()
                    .map_err(|_| "the place to go on from is of another store")?,
            ),
        };
        let mut values = vec![first, Cell::limit(limit.saturating_add(1))];
        values.extend(owner.map(|owner| Cell::id(owner.get())));
        let is_anybodys = owner.is_some() && self.of_user.is_none();
        Ok((limit > 0 && !is_anybodys).then_some((sql, values)))
    }

    /// How many entries there are, the bytes of their texts, and the times of the
    /// oldest and the newest.
    pub(crate) fn count(&self) -> String {
        let Self {
            name,
            only,
            bytes,
            time,
            ..
        } = self;
        format!(
            "SELECT count(*) AS entries, CAST(coalesce(sum({bytes}), 0) AS BIGINT) AS bytes,
                 min({time}) AS oldest, max({time}) AS newest
             FROM {name} WHERE {only}"
        )
    }

    /// Writes a list's entry: its key, then its value.
    pub(crate) fn put(&self) -> String {
        upsert(self.name, self.key, &[self.value])
    }

    /// The condition of the entry with a key.
    pub(crate) fn of_key(&self) -> String {
        let columns = (1..).zip(self.key);
        let each: Vec<_> = columns
            .map(|(at, column)| format!("{column} = ?{at}"))
            .collect();
        each.join(" AND ")
    }

    /// Removes the entries that fulfil a condition.
    pub(crate) fn delete(&self, which: &str) -> String {
        format!("DELETE FROM {} WHERE {which}", self.name)
    }

    /// The condition of what a purge may concern by itself, with the values of
    /// [`Purge::cells`]; as for [`made_from`](Self::made_from), `None` if nothing.
    pub(crate) fn reached(&self, purge: &Purge) -> Option<String> {
        let filled = |which: &str| {
            let key = self.key.first().copied().unwrap_or_default();
            let entry = self.sources.map_or("", |sources| sources.entry);
            let which = which.replace("{ids}", self.ids);
            which.replace("{key}", key).replace("{entry}", entry)
        };
        let first = |which: Option<&str>| Some(filled(&which?.replace('?', "?1")));
        match purge {
            Purge::Messages { .. } => self.of_message.map(filled),
            Purge::Edited { .. } => self.of_edited.map(str::to_owned),
            Purge::Channel(_) => first(self.of_channel),
            Purge::Guild(_) => first(self.of_guild),
            Purge::Member { .. } => Some(format!(
                "({}) AND ({})",
                first(self.of_guild)?,
                self.of_user?.replace('?', "?2")
            )),
            Purge::User(_) => first(self.of_user),
            Purge::Before(_) => first(self.before),
        }
    }

    /// The condition of what a purge concerns by what it was made from.
    pub(crate) fn made_from(&self, purge: &Purge) -> Option<String> {
        let Sources {
            table,
            entry,
            edited,
        } = self.sources?;
        let ids = self.ids;
        let which = match (purge, edited) {
            (Purge::Guild(_), _) => "guild_id = ?1",
            (Purge::User(_), _) => "author_id = ?1",
            (Purge::Messages { .. }, Some(_)) => &format!("channel_id = ?1 AND message_id {ids}"),
            (Purge::Edited { .. }, Some(edited)) => edited,
            (Purge::Channel(_), Some(_)) => "channel_id = ?1",
            (Purge::Member { .. }, Some(_)) => "guild_id = ?1 AND author_id = ?2",
            (Purge::Before(_), _) | (_, None) => return None,
        };
        let key = self.key.first()?;
        Some(format!(
            "{key} IN (SELECT {entry} FROM {table} WHERE {which})"
        ))
    }

    /// The condition of what a purge may concern in either way.
    pub(crate) fn concerned(&self, purge: &Purge) -> Option<String> {
        let ways = [self.reached(purge), self.made_from(purge)];
        let ways: Vec<String> = ways.into_iter().flatten().collect();
        (!ways.is_empty()).then(|| ways.join(" OR "))
    }

    /// The conditions of the entries that a purge removes: by themselves, and by what they
    /// were made from. Apart, so that both use their index.
    pub(crate) fn purged(&self, kind: Kind, purge: &Purge) -> Vec<String> {
        if kind == Kind::OptOuts {
            // The very wish that nothing be stored.
            return Vec::new();
        }
        let reached = self.reached(purge);
        let reached = reached.map(|which| format!("{} AND ({which})", self.only));
        reached.into_iter().chain(self.made_from(purge)).collect()
    }
}

/// Inserts a row of these columns, the key first, or gives the row with its key the others.
pub(crate) fn upsert(table: &str, key: &[&str], others: &[&str]) -> String {
    let columns: Vec<&str> = key.iter().chain(others).copied().collect();
    let places: Vec<_> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
    let changes = others
        .iter()
        .map(|column| format!("{column} = excluded.{column}"));
    let changes: Vec<_> = changes.collect();
    format!(
        "INSERT INTO {table} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}",
        columns.join(", "),
        places.join(", "),
        key.join(", "),
        changes.join(", ")
    )
}

/// The conditions of receipts that are too many or too old, each with its value ?1.
pub(crate) fn receipts_beyond(limits: ReceiptLimits) -> [(String, Cell<'static>); 3] {
    let beyond = |of: &str, which: &str| {
        format!(
            "turn_id IN (SELECT turn_id FROM (SELECT turn_id, row_number() OVER (
                 PARTITION BY {of} ORDER BY at DESC, turn_id DESC) AS nth
                 FROM receipts WHERE {which}) AS numbered WHERE nth > ?1)"
        )
    };
    [
        ("at < ?1".to_owned(), Cell::Time(limits.since)),
        (
            beyond("guild_id, owner_id", "TRUE"),
            Cell::Number(limits.of_person.into()),
        ),
        (
            beyond("guild_id", "guild_id IS NOT NULL"),
            Cell::Number(limits.of_guild.into()),
        ),
    ]
}
