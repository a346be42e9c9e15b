//! What an operator erases by hand, and a preview of its effect.

use super::{Cursor, Error, Kind, Purge, Purged, Record, Store};
use crate::model::{ContextSnapshot, Fact, Origin, StoredMessage, Subject};
use clew_context::model::{ChannelId, GuildId, UnixMillis, UserId};

/// Entries read at a time.
const PAGE: usize = 500;

/// What an operator may erase by hand. Each maps to a [`Purge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erasure {
    /// See [`Purge::User`].
    User(UserId),
    /// See [`Purge::Guild`].
    Guild(GuildId),
    /// See [`Purge::Channel`].
    Channel(ChannelId),
    /// See [`Purge::Before`].
    Before(UnixMillis),
}

impl Erasure {
    /// The purge that does it.
    pub const fn purge(self) -> Purge {
        match self {
            Self::User(user) => Purge::User(user),
            Self::Guild(guild) => Purge::Guild(guild),
            Self::Channel(channel) => Purge::Channel(channel),
            Self::Before(time) => Purge::Before(time),
        }
    }

    /// What a store would lose, by kind, without changing anything. Reads
    /// everything that might be affected.
    ///
    /// # Errors
    /// The store's error.
    pub async fn would_go(self, store: &Store) -> Result<Purged, Error> {
        let owner = match self {
            Self::User(user) => Some(user),
            Self::Guild(_) | Self::Channel(_) | Self::Before(_) => None,
        };
        let mut purged = Purged::default();
        for kind in Kind::ALL {
            let mut after: Option<Cursor> = None;
            loop {
                let page = store.records(kind, owner, after.as_ref(), PAGE).await?;
                let taken = page.records.iter().filter(|record| self.takes(record));
                purged.add(kind, taken.count() as u64);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(purged)
    }

    /// Whether it affects an entry; for a snapshot, any part of it.
    fn takes(self, record: &Record) -> bool {
        match record {
            Record::Message(row) => self.takes_row(row),
            Record::Marker(key, _) => match self {
                Self::User(user) => key.user == Some(user),
                Self::Guild(guild) => key.guild == Some(guild),
                // A marker holds no text and belongs to no single channel.
                Self::Channel(_) | Self::Before(_) => false,
            },
            Record::Snapshot(snapshot) => self.takes_of(snapshot),
            Record::Fact(fact) => self.takes_fact(fact),
            Record::Settings(of, _) | Record::Departure(of, _) => match self {
                Self::Guild(guild) => *of == guild,
                Self::User(_) | Self::Channel(_) | Self::Before(_) => false,
            },
            Record::OptOut(..) | Record::Agent(..) => false,
        }
    }

    fn takes_row(self, row: &StoredMessage) -> bool {
        match self {
            Self::User(user) => row.owner == user,
            Self::Guild(guild) => row.guild == Some(guild),
            Self::Channel(channel) => row.channel == channel,
            Self::Before(time) => row.timestamp < time,
        }
    }

    fn takes_of(self, ContextSnapshot { info, messages }: &ContextSnapshot) -> bool {
        let is_whole = match self {
            Self::User(user) => info.owner == user,
            Self::Guild(guild) => info.guild == Some(guild),
            Self::Before(time) => info.timestamp < time,
            Self::Channel(_) => false,
        };
        is_whole || messages.iter().any(|row| self.takes_row(row))
    }

    fn takes_fact(self, fact: &Fact) -> bool {
        match self {
            Self::User(user) => fact.by == user || fact.subject == Subject::User(user),
            Self::Guild(guild) => {
                fact.origin == Origin::Guild(guild) || fact.subject == Subject::Server(guild)
            }
            Self::Channel(channel) => fact.link.is_some_and(|(place, _)| place == channel),
            Self::Before(time) => fact.at < time,
        }
    }
}
