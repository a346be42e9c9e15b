//! Where a database keeps each kind, and the statements that follow from it.
//!
//! A back end describes its tables; pages, counts, purges and the small lists
//! are the same statements for both. Their parameters are written `?1`;
//! PostgreSQL makes `$1` of them.

use super::columns::RECEIPT;
use super::{Kind, Purge};

/// Where a database keeps a kind.
///
/// In the conditions of `of_guild` to `before` a bare `?` is the value; in
/// `of_message`, ?1 is the channel and ?2 the ids; in `of_edited`, ?2 is the message and ?3
/// when it was edited. Without a condition no such purge concerns the kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// What stands before every table's name.
    pub(crate) schema: &'static str,
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
}

/// The table of what the entries of another were made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources {
    /// Its name.
    pub(crate) table: &'static str,
    /// Its column with the key of the entry.
    pub(crate) entry: &'static str,
    /// How messages are found in it; `None` if it names only servers and people.
    pub(crate) messages: Option<SourceMessages>,
}

/// How messages are found among sources.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceMessages {
    /// Messages ?2 of the channel ?1.
    pub(crate) deleted: &'static str,
    /// The message ?2 of the channel ?1, in turns that began before ?3.
    pub(crate) edited: &'static str,
}

/// What is alike in both databases.
impl Table {
    /// A table of nothing yet, for `..Table::EMPTY`.
    pub(crate) const EMPTY: Self = Self {
        schema: "",
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
        of_user: Some("owner_id = ?"),
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
        before: Some("at < ?"),
        sources: Some(Sources {
            table: "receipt_people",
            entry: "turn_id",
            messages: None,
        }),
        ..Self::EMPTY
    };

    pub(crate) const FACTS: Self = Self {
        name: "facts",
        key: &["id"],
        bytes: "octet_length(text)",
        time: "at",
        of_channel: Some("link_channel = ?"),
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
    /// Entries from the key ?1 on, at most ?2; of the user ?3 if `is_owned`.
    /// The column `cursor` is the key. `None` if no entry is a user's.
    pub(crate) fn page(&self, is_owned: bool) -> Option<String> {
        let owned = if is_owned {
            format!(" AND ({})", self.of_user?.replace('?', "?3"))
        } else {
            String::new()
        };
        let key = self.key.join(" || ' ' || ");
        let Self {
            schema,
            name,
            only,
            columns,
            ..
        } = self;
        Some(format!(
            "SELECT {columns}, {key} AS cursor FROM {schema}{name}
             WHERE {only} AND {key} >= ?1{owned} ORDER BY {key} LIMIT ?2"
        ))
    }

    /// How many entries there are, the bytes of their texts, and the times of the
    /// oldest and the newest.
    pub(crate) fn count(&self) -> String {
        let Self {
            schema,
            name,
            only,
            bytes,
            time,
            ..
        } = self;
        format!(
            "SELECT count(*) AS entries, CAST(coalesce(sum({bytes}), 0) AS BIGINT) AS bytes,
                 min({time}) AS oldest, max({time}) AS newest
             FROM {schema}{name} WHERE {only}"
        )
    }

    /// Writes a list's entry: its key, then its value.
    pub(crate) fn put(&self) -> String {
        let Self {
            schema,
            name,
            value,
            ..
        } = self;
        let key = self.key.join(", ");
        let places: Vec<_> = (1..=self.key.len() + 1)
            .map(|at| format!("?{at}"))
            .collect();
        format!(
            "INSERT INTO {schema}{name} ({key}, {value}) VALUES ({})
             ON CONFLICT ({key}) DO UPDATE SET {value} = excluded.{value}",
            places.join(", ")
        )
    }

    /// Removes the entry with a key.
    pub(crate) fn remove(&self) -> String {
        let columns = (1..).zip(self.key);
        let each: Vec<_> = columns
            .map(|(at, column)| format!("{column} = ?{at}"))
            .collect();
        self.delete(&each.join(" AND "))
    }

    /// Removes the entries that fulfil a condition.
    pub(crate) fn delete(&self, which: &str) -> String {
        format!("DELETE FROM {}{} WHERE {which}", self.schema, self.name)
    }

    /// The condition of what a purge may concern by itself, with the values of
    /// [`Purge::cells`]; as for [`made_from`](Self::made_from), `None` if nothing.
    pub(crate) fn reached(&self, purge: &Purge) -> Option<String> {
        let first = |which: Option<&str>| Some(which?.replace('?', "?1"));
        match purge {
            Purge::Messages { .. } => self.of_message.map(str::to_owned),
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
            messages,
        } = self.sources?;
        let which = match (purge, messages) {
            (Purge::Guild(_), _) => "guild_id = ?1",
            (Purge::User(_), _) => "author_id = ?1",
            (Purge::Messages { .. }, Some(found)) => found.deleted,
            (Purge::Edited { .. }, Some(found)) => found.edited,
            (Purge::Channel(_), Some(_)) => "channel_id = ?1",
            (Purge::Member { .. }, Some(_)) => "guild_id = ?1 AND author_id = ?2",
            (Purge::Before(_), _) | (_, None) => return None,
        };
        let key = self.key.first()?;
        Some(format!(
            "{key} IN (SELECT {entry} FROM {}{table} WHERE {which})",
            self.schema
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
