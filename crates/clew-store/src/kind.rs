//! The kinds of stored data, and how they are purged.

use std::collections::BTreeMap;

use super::Record;
use crate::model::{ClearKey, ContextSnapshotInfo, Fact, StoredMessage, StoredReceipt};
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UnixMillis, UserId};

/// Defines [`Kind`] with its names; [`Kind::ALL`] comes from the same list, so
/// that it lacks none.
macro_rules! kinds {
    ($($(#[$docs:meta])+ $kind:ident = $name:literal,)+) => {
        /// The kinds of stored data. What is done with all of them goes through
        /// [`Kind::ALL`]; what differs by kind matches it without a wildcard.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$docs])+ $kind,)+
        }

        impl Kind {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// Its name in statistics, exports and answers.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }
    };
}

kinds! {
    /// Rows of turns.
    Messages = "messages",
    /// Where conversations start (`/context clear`).
    Markers = "clear markers",
    /// Saved conversation windows, with their files.
    Snapshots = "snapshots",
    /// What answers were made from.
    Receipts = "receipts",
    /// Facts about users.
    UserFacts = "facts about users",
    /// Facts about servers.
    ServerFacts = "facts about servers",
    /// Users who opted out. Survives an erasure, since it is the very wish that
    /// nothing be stored.
    OptOuts = "opt-outs",
    /// Servers' own settings.
    Settings = "server settings",
    /// When agents were first seen.
    Agents = "agents",
    /// When we left servers.
    Departures = "departures",
    /// Logs of direct messages (`DM_LOGS_DIR`), which are files outside of any
    /// store.
    Transcripts = "direct message logs",
    /// Results of tools (`TOOL_OUTPUT_DIR`), likewise.
    Outputs = "results of tools",
}

impl Kind {
    /// Whether its entries hold what people said; the others are short lists of
    /// ids, times and settings.
    pub const fn is_text(self) -> bool {
        match self {
            Self::Messages
            | Self::Snapshots
            | Self::UserFacts
            | Self::ServerFacts
            | Self::Transcripts
            | Self::Outputs => true,
            Self::Markers
            | Self::Receipts
            | Self::OptOuts
            | Self::Settings
            | Self::Agents
            | Self::Departures => false,
        }
    }
}

/// How much is stored of a kind, and how old it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindStats {
    /// The kind.
    pub kind: Kind,
    /// Entries.
    pub entries: u64,
    /// Approximate size of their texts.
    pub bytes: u64,
    /// When the oldest was said or noted; `None` without entries, and for settings,
    /// which have no time.
    pub oldest: Option<UnixMillis>,
    /// The same of the newest.
    pub newest: Option<UnixMillis>,
}

impl KindStats {
    /// Of a kind without entries.
    pub const fn none(kind: Kind) -> Self {
        Self {
            kind,
            entries: 0,
            bytes: 0,
            oldest: None,
            newest: None,
        }
    }

    /// Counts an entry.
    pub(crate) fn count(&mut self, bytes: usize, at: Option<UnixMillis>) {
        self.entries += 1;
        self.bytes += bytes as u64;
        self.oldest = [self.oldest, at].into_iter().flatten().min();
        self.newest = self.newest.max(at);
    }
}

/// Bytes that a part of a store takes on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSize {
    /// A file, a folder or a table.
    pub part: String,
    /// Its size.
    pub bytes: u64,
}

impl PartSize {
    pub(crate) fn new(part: impl Into<String>, bytes: u64) -> Self {
        let part = part.into();
        Self { part, bytes }
    }
}

/// What to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// Deleted messages and what was made from them: for a trigger its whole
    /// turn, for one of our messages the answer it is part of, for a source all
    /// rows of the turn except the question, facts learnt from them, and their
    /// copies in snapshots.
    Messages {
        /// The channel they were in.
        channel: ChannelId,
        /// The messages.
        ids: Vec<MessageId>,
    },
    /// What was made or learnt from a message before it was edited, since its words were
    /// withdrawn. The rows of the message itself stay; see
    /// [`Backend::edit_message`](super::Backend::edit_message).
    Edited {
        /// The channel that it is in.
        channel: ChannelId,
        /// The message.
        message: MessageId,
        /// When it was edited: turns that began later had its new words.
        at: UnixMillis,
    },
    /// A deleted channel or thread: its rows, in snapshots too, and facts that
    /// link into it.
    Channel(ChannelId),
    /// A server that we left: everything stored of it, of all kinds.
    Guild(GuildId),
    /// A user who left a server: everything of theirs from it.
    Member {
        /// The server.
        guild: GuildId,
        /// Who left.
        user: UserId,
    },
    /// Everything of a user: rows, markers, snapshots, facts about them and
    /// facts they stated, and what was made from their messages. The opt-out
    /// stays.
    User(UserId),
    /// `RETENTION_DAYS`: every text from before this time. Settings, opt-outs,
    /// agents and departures hold no text and stay.
    Before(UnixMillis),
}

impl Purge {
    /// Whether it covers this row itself: by its message, place, owner or time, or
    /// by what it was made from. More of its turn may be removed too; see
    /// [`Reach`](super::Reach).
    pub fn names(&self, row: &StoredMessage) -> bool {
        let began = row.began();
        self.names_itself(row) || began.is_some_and(|began| self.names_sources(row, began))
    }

    /// Whether it covers this row, of a turn that began at that time, by what it
    /// was made from.
    pub(crate) fn names_sources(&self, row: &StoredMessage, began: UnixMillis) -> bool {
        let mut sources = row.sources.iter();
        sources.any(|source| self.takes_source(source, began))
    }

    fn names_itself(&self, row: &StoredMessage) -> bool {
        match self {
            Self::Messages { channel, ids } => {
                let mut held = row.message.iter().chain(&row.parts);
                row.channel == *channel && held.any(|id| ids.contains(id))
            }
            Self::Edited { .. } => false,
            Self::Channel(channel) => row.channel == *channel,
            Self::Guild(guild) => row.guild == Some(*guild),
            Self::Member { guild, user } => row.guild == Some(*guild) && row.owner == *user,
            Self::User(user) => row.owner == *user,
            Self::Before(time) => row.timestamp < *time,
        }
    }

    /// Whether it removes what was made from this source from that time on.
    pub fn takes_source(&self, source: &ContentSource, began: UnixMillis) -> bool {
        match self {
            Self::Messages { channel, ids } => {
                let message = source.message;
                source.channel == *channel && message.is_some_and(|id| ids.contains(&id))
            }
            Self::Edited {
                channel,
                message,
                at,
            } => {
                let is_it = (source.channel, source.message) == (*channel, Some(*message));
                is_it && began < *at
            }
            Self::Channel(channel) => source.channel == *channel,
            Self::Guild(guild) => source.guild == Some(*guild),
            Self::Member { guild, user } => {
                source.guild == Some(*guild) && source.author == Some(*user)
            }
            Self::User(user) => source.author == Some(*user),
            Self::Before(_) => false,
        }
    }

    /// Whether it removes an entry, or any part of a snapshot.
    ///
    /// Judges each entry by itself. This is all of a purge except for deleted and
    /// edited messages, with which other rows of their turns go: see
    /// [`Reach`](super::Reach).
    pub fn takes(&self, record: &Record) -> bool {
        match record {
            Record::Message(row) => self.names(row),
            Record::Marker(key, _) => self.takes_marker(key),
            Record::Snapshot(snapshot) => {
                self.takes_whole(&snapshot.info)
                    || snapshot.messages.iter().any(|row| self.names(row))
            }
            Record::Receipt(receipt) => self.takes_receipt(receipt),
            Record::Fact(fact) => self.takes_fact(fact),
            Record::Settings(of, _) | Record::Departure(of, _) => *self == Self::Guild(*of),
            // An opt-out is the very wish that nothing be stored; agents are
            // nobody's.
            Record::OptOut(..) | Record::Agent(..) => false,
        }
    }

    /// Whether it removes a snapshot whole.
    pub fn takes_whole(&self, info: &ContextSnapshotInfo) -> bool {
        self.takes_held(info.guild, info.owner, info.timestamp)
    }

    /// Whether it removes whatever this user had in that place at that time.
    pub(crate) fn takes_held(&self, guild: Option<GuildId>, owner: UserId, at: UnixMillis) -> bool {
        match self {
            Self::Messages { .. } | Self::Edited { .. } | Self::Channel(_) => false,
            Self::Guild(of) => guild == Some(*of),
            Self::Member { guild: of, user } => guild == Some(*of) && owner == *user,
            Self::User(user) => owner == *user,
            Self::Before(time) => at < *time,
        }
    }

    fn takes_marker(&self, key: &ClearKey) -> bool {
        match self {
            Self::Guild(guild) => key.guild == Some(*guild),
            Self::Member { guild, user } => key.guild == Some(*guild) && key.user == Some(*user),
            Self::User(user) => key.user == Some(*user),
            // A marker holds no text and belongs to no single channel.
            Self::Messages { .. } | Self::Edited { .. } | Self::Channel(_) | Self::Before(_) => {
                false
            }
        }
    }

    /// What a receipt names elsewhere is only ids: a deletion or an edit there leaves
    /// it, the erasure of a person or a server does not.
    pub fn takes_receipt(&self, receipt: &StoredReceipt) -> bool {
        match self {
            Self::Messages { channel, ids } => {
                receipt.channel == *channel && receipt.message_ids().any(|id| ids.contains(&id))
            }
            Self::Edited { .. } => false,
            Self::Channel(channel) => receipt.channel == *channel,
            Self::Guild(of) => {
                let mut people = receipt.everybody().into_iter();
                people.any(|one| one.guild == Some(*of))
            }
            Self::User(user) => {
                let mut people = receipt.everybody().into_iter();
                people.any(|one| one.author == Some(*user))
            }
            Self::Member { .. } | Self::Before(_) => {
                self.takes_held(receipt.guild, receipt.owner, receipt.at)
            }
        }
    }

    fn takes_fact(&self, fact: &Fact) -> bool {
        match self {
            Self::Messages { channel, ids } => fact
                .link
                .is_some_and(|(place, message)| place == *channel && ids.contains(&message)),
            Self::Edited {
                channel,
                message,
                at,
            } => fact.link == Some((*channel, *message)) && fact.at < *at,
            Self::Channel(channel) => fact.link.is_some_and(|(place, _)| place == *channel),
            Self::Guild(guild) => fact.is_from(*guild),
            Self::Member { guild, user } => fact.is_from(*guild) && fact.is_of(*user),
            Self::User(user) => fact.is_of(*user),
            Self::Before(time) => fact.at < *time,
        }
    }
}

/// Entries removed, by kind; kinds with none are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Purged(BTreeMap<Kind, u64>);

impl Purged {
    /// Adds removed entries of a kind.
    pub fn add(&mut self, kind: Kind, entries: u64) {
        if entries > 0 {
            *self.0.entry(kind).or_default() += entries;
        }
    }

    /// Adds what another store removed.
    pub fn merge(&mut self, other: &Self) {
        for (kind, entries) in other.iter() {
            self.add(kind, entries);
        }
    }

    /// Entries removed, by kind.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.0.iter().map(|(kind, entries)| (*kind, *entries))
    }

    /// Entries removed, of all kinds.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
