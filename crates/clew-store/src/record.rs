//! Entries of any kind as values, for exports and copies between stores.

use super::Kind;
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, Fact, GuildSettings, StoredMessage, Subject,
};
use clew_context::model::{GuildId, UnixMillis, UserId};

/// One entry of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A row of a turn, with its ordinal.
    Message(StoredMessage),
    /// Where a conversation starts.
    Marker(ClearKey, UnixMillis),
    /// A saved conversation window.
    Snapshot(ContextSnapshot),
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
