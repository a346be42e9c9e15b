//! What an operator erases by hand, and what that would take.

use super::{Backend, Cursor, Error, Kind, Purge, Purged, Record};
use crate::model::{ChannelId, Fact, GuildId, Origin, Subject, UnixMillis, UserId};

/// Entries read at once.
const PAGE: usize = 500;

/// What an operator may erase by hand. Each is a [`Purge`].
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
    /// What takes it.
    pub const fn purge(self) -> Purge {
        match self {
            Self::User(user) => Purge::User(user),
            Self::Guild(guild) => Purge::Guild(guild),
            Self::Channel(channel) => Purge::Channel(channel),
            Self::Before(time) => Purge::Before(time),
        }
    }

    /// What a store would lose, by kind; nothing is changed. Reads all that it
    /// may reach.
    ///
    /// # Errors
    /// What the store says.
    pub async fn would_go(self, store: &impl Backend) -> Result<Purged, Error> {
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

    /// Whether it takes an entry, of a snapshot any part.
    fn takes(self, record: &Record) -> bool {
        match (self, record) {
            (_, Record::OptOut(..) | Record::Agent(..)) => false,
            (Self::User(user), Record::Message(row)) => row.owner == user,
            (Self::User(user), Record::Marker(key, _)) => key.user == Some(user),
            (Self::User(user), Record::Snapshot(snapshot)) => snapshot.info.owner == user,
            (Self::User(user), Record::Fact(fact)) => {
                fact.by == user || fact.subject == Subject::User(user)
            }
            (Self::Guild(guild), Record::Message(row)) => row.guild == Some(guild),
            (Self::Guild(guild), Record::Marker(key, _)) => key.guild == Some(guild),
            (Self::Guild(guild), Record::Snapshot(snapshot)) => snapshot.info.guild == Some(guild),
            (Self::Guild(guild), Record::Fact(fact)) => is_from(fact, guild),
            (Self::Guild(guild), Record::Settings(of, _) | Record::Departure(of, _)) => {
                *of == guild
            }
            (Self::Channel(channel), Record::Message(row)) => row.channel == channel,
            (Self::Channel(channel), Record::Snapshot(snapshot)) => {
                let mut rows = snapshot.messages.iter();
                rows.any(|row| row.channel == channel)
            }
            (Self::Channel(channel), Record::Fact(fact)) => {
                fact.link.is_some_and(|(place, _)| place == channel)
            }
            (Self::Before(time), Record::Message(row)) => row.timestamp < time,
            (Self::Before(time), Record::Snapshot(snapshot)) => {
                let mut rows = snapshot.messages.iter();
                snapshot.info.timestamp < time || rows.any(|row| row.timestamp < time)
            }
            (Self::Before(time), Record::Fact(fact)) => fact.at < time,
            // No text, and of no one channel.
            (Self::User(_), Record::Settings(..) | Record::Departure(..))
            | (
                Self::Channel(_) | Self::Before(_),
                Record::Marker(..) | Record::Settings(..) | Record::Departure(..),
            ) => false,
        }
    }
}

fn is_from(fact: &Fact, guild: GuildId) -> bool {
    fact.origin == Origin::Guild(guild) || fact.subject == Subject::Server(guild)
}
