//! Entries of any kind as values, for exports and copies between stores.

use super::Kind;
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, Fact, FactId, GuildSettings, StoredMessage,
    StoredReceipt, Subject,
};
use clew_context::model::{GuildId, TurnId, UnixMillis, UserId};

/// One entry of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A row of a turn, with its ordinal.
    Message(StoredMessage),
    /// Where a conversation starts.
    Marker(ClearKey, UnixMillis),
    /// A saved conversation window.
    Snapshot(ContextSnapshot),
    /// What an answer was made from.
    Receipt(StoredReceipt),
    /// A fact about a user or a server.
    Fact(Fact),
    /// Who opted out, and when.
    OptOut(UserId, UnixMillis),
    /// A server's settings.
    Settings(GuildId, GuildSettings),
    /// An agent and when it was first seen.
    Agent(AgentName, UnixMillis),
    /// A server we left, and when.
    Departure(GuildId, UnixMillis),
}

impl Record {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Message(_) => Kind::Messages,
            Self::Marker(..) => Kind::Markers,
            Self::Snapshot(_) => Kind::Snapshots,
            Self::Receipt(_) => Kind::Receipts,
            Self::Fact(Fact {
                subject: Subject::User(_),
                ..
            }) => Kind::UserFacts,
            Self::Fact(_) => Kind::ServerFacts,
            Self::OptOut(..) => Kind::OptOuts,
            Self::Settings(..) => Kind::Settings,
            Self::Agent(..) => Kind::Agents,
            Self::Departure(..) => Kind::Departures,
        }
    }

    /// What identifies it; `None` for rows of turns and snapshots, which are not
    /// removed one by one.
    pub fn key(&self) -> Option<RecordKey> {
        Some(match self {
            Self::Message(_) | Self::Snapshot(_) => return None,
            Self::Marker(key, _) => RecordKey::Marker(key.clone()),
            Self::Receipt(receipt) => RecordKey::Receipt(receipt.turn),
            Self::Fact(fact) => RecordKey::Fact(fact.id),
            Self::OptOut(user, _) => RecordKey::OptOut(*user),
            Self::Settings(guild, _) => RecordKey::Settings(*guild),
            Self::Agent(agent, _) => RecordKey::Agent(agent.clone()),
            Self::Departure(guild, _) => RecordKey::Departure(*guild),
        })
    }

    /// When it was said, saved or noted; settings have no time.
    pub const fn at(&self) -> Option<UnixMillis> {
        match self {
            Self::Message(row) => Some(row.timestamp),
            Self::Snapshot(snapshot) => Some(snapshot.info.timestamp),
            Self::Receipt(receipt) => Some(receipt.at),
            Self::Fact(fact) => Some(fact.at),
            Self::Marker(_, at)
            | Self::OptOut(_, at)
            | Self::Agent(_, at)
            | Self::Departure(_, at) => Some(*at),
            Self::Settings(..) => None,
        }
    }

    /// Whether it is a user's: theirs, about them, or stated by them.
    pub fn is_of(&self, user: UserId) -> bool {
        match self {
            Self::Message(row) => row.owner == user,
            Self::Marker(key, _) => key.user == Some(user),
            Self::Snapshot(snapshot) => snapshot.info.owner == user,
            Self::Receipt(receipt) => receipt.owner == user,
            Self::Fact(fact) => fact.is_of(user),
            Self::OptOut(who, _) => *who == user,
            Self::Settings(..) | Self::Agent(..) | Self::Departure(..) => false,
        }
    }

    /// The servers that it is of. A departure is of none that we are in.
    pub(crate) fn guilds(&self) -> Vec<GuildId> {
        match self {
            Self::Message(row) => row.guild.into_iter().collect(),
            Self::Marker(key, _) => key.guild.into_iter().collect(),
            Self::Snapshot(snapshot) => snapshot.info.guild.into_iter().collect(),
            Self::Receipt(receipt) => receipt.guild.into_iter().collect(),
            Self::Fact(fact) => fact.guilds().collect(),
            Self::Settings(guild, _) => vec![*guild],
            Self::OptOut(..) | Self::Agent(..) | Self::Departure(..) => Vec::new(),
        }
    }

    /// Whose it is, and who is named in it; the authors of a row's sources are not among them.
    pub(crate) fn people(&self) -> Vec<UserId> {
        match self {
            Self::Message(row) => vec![row.owner],
            Self::Marker(key, _) => key.user.into_iter().collect(),
            Self::Snapshot(snapshot) => vec![snapshot.info.owner],
            Self::Receipt(receipt) => {
                let people = receipt.everybody().into_iter();
                people.filter_map(|one| one.author).collect()
            }
            Self::Fact(fact) => match fact.subject {
                Subject::User(user) => vec![user, fact.by],
                Subject::Server(_) => vec![fact.by],
            },
            Self::OptOut(user, _) => vec![*user],
            Self::Settings(..) | Self::Agent(..) | Self::Departure(..) => Vec::new(),
        }
    }

    /// The row, if it is one.
    pub(crate) const fn message(&self) -> Option<&StoredMessage> {
        match self {
            Self::Message(row) => Some(row),
            _ => None,
        }
    }

    /// The saved window, if it is one.
    pub(crate) const fn snapshot(&self) -> Option<&ContextSnapshot> {
        match self {
            Self::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        }
    }
}

/// What identifies a record; a record replaces the one with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordKey {
    /// See [`Record::Marker`].
    Marker(ClearKey),
    /// See [`Record::Receipt`].
    Receipt(TurnId),
    /// See [`Record::Fact`].
    Fact(FactId),
    /// See [`Record::OptOut`].
    OptOut(UserId),
    /// See [`Record::Settings`].
    Settings(GuildId),
    /// See [`Record::Agent`].
    Agent(AgentName),
    /// See [`Record::Departure`].
    Departure(GuildId),
}

impl RecordKey {
    /// The kinds that such a record may be of.
    pub const fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Marker(_) => &[Kind::Markers],
            Self::Receipt(_) => &[Kind::Receipts],
            Self::Fact(_) => &[Kind::UserFacts, Kind::ServerFacts],
            Self::OptOut(_) => &[Kind::OptOuts],
            Self::Settings(_) => &[Kind::Settings],
            Self::Agent(_) => &[Kind::Agents],
            Self::Departure(_) => &[Kind::Departures],
        }
    }
}

/// Where to continue reading. Only the store that issued it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// Some entries of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    /// In a stable order while nothing is written.
    pub records: Vec<Record>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<Cursor>,
}

impl Records {
    /// The first of what was found; the cursor of the next entry is where the next page starts.
    pub(crate) fn first(limit: usize, mut found: Vec<(Option<Record>, Cursor)>) -> Self {
        let rest = found.split_off(limit.min(found.len()));
        Self {
            records: found.into_iter().filter_map(|(record, _)| record).collect(),
            next: rest.into_iter().next().map(|(_, cursor)| cursor),
        }
    }
}
