//! What is kept, and how it goes.

use std::collections::BTreeMap;

use crate::model::StoredMessage;
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// What is kept. Closed: everything that goes through all kinds matches it
/// without a wildcard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Rows of turns.
    Messages,
    /// Where conversations begin (`/context clear`).
    Markers,
    /// Saved windows of conversation, their files included.
    Snapshots,
    /// Facts about users.
    UserFacts,
    /// Facts about servers.
    ServerFacts,
    /// Who wants nothing to be stored. Outlives an erasure: it is the wish
    /// that nothing be kept.
    OptOuts,
    /// What the people of a server set for it.
    Settings,
    /// When agents were first seen.
    Agents,
    /// When we left servers.
    Departures,
    /// Logs of direct messages (`DM_LOGS_DIR`), which are files beside every
    /// store.
    Transcripts,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Messages,
        Self::Markers,
        Self::Snapshots,
        Self::UserFacts,
        Self::ServerFacts,
        Self::OptOuts,
        Self::Settings,
        Self::Agents,
        Self::Departures,
        Self::Transcripts,
    ];

    /// Its name in statistics, exports and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Markers => "clear markers",
            Self::Snapshots => "snapshots",
            Self::UserFacts => "facts about users",
            Self::ServerFacts => "facts about servers",
            Self::OptOuts => "opt-outs",
            Self::Settings => "server settings",
            Self::Agents => "agents",
            Self::Departures => "departures",
            Self::Transcripts => "direct message logs",
        }
    }
}

/// How much there is of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindStats {
    /// Of what.
    pub kind: Kind,
    /// Entries.
    pub entries: u64,
    /// Bytes of their texts, about.
    pub bytes: u64,
}

/// What has to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// Deleted messages, and what was made from them: with a trigger its whole
    /// turn, with one of our messages the answer it is part of, facts that
    /// were learnt from them, their copies in snapshots.
    Messages {
        /// Where they stood.
        channel: ChannelId,
        /// Which.
        ids: Vec<MessageId>,
    },
    /// A deleted channel or thread: its rows, facts that link into it, its
    /// rows in snapshots.
    Channel(ChannelId),
    /// A server that we left: everything of it, of all kinds.
    Guild(GuildId),
    /// A user who left a server: everything of theirs from that server.
    Member {
        /// The server.
        guild: GuildId,
        /// Who left.
        user: UserId,
    },
    /// Everything of a user: rows, markers, snapshots, facts about them and
    /// facts that they said. The opt-out stays.
    User(UserId),
    /// `RETENTION_DAYS`: every text from before that moment. Settings,
    /// opt-outs, agents and departures hold no text and stay.
    Before(UnixMillis),
}

impl Purge {
    /// Whether it is about this row itself. More of its turn may go along, see
    /// [`Reach`](super::Reach).
    pub fn names(&self, row: &StoredMessage) -> bool {
        match self {
            Self::Messages { channel, ids } => {
                let mut held = row.message.iter().chain(&row.parts);
                row.channel == *channel && held.any(|id| ids.contains(id))
            }
            Self::Channel(channel) => row.channel == *channel,
            Self::Guild(guild) => row.guild == Some(*guild),
            Self::Member { guild, user } => row.guild == Some(*guild) && row.owner == *user,
            Self::User(user) => row.owner == *user,
            Self::Before(time) => row.timestamp < *time,
        }
    }
}

/// What went, by kind. Kinds of which nothing went are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Purged(BTreeMap<Kind, u64>);

impl Purged {
    /// Notes that so many entries of a kind went.
    pub fn add(&mut self, kind: Kind, entries: u64) {
        if entries > 0 {
            *self.0.entry(kind).or_default() += entries;
        }
    }

    /// What another store lost, too.
    pub fn merge(&mut self, other: &Self) {
        for (kind, entries) in other.iter() {
            self.add(kind, entries);
        }
    }

    /// Entries by kind.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.0.iter().map(|(kind, entries)| (*kind, *entries))
    }

    /// Of all kinds.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
