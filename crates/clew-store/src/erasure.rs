//! What an operator erases by hand, and a preview of its effect.

use super::pages::Pages;
use super::{Error, Kind, Purge, Purged, Store};
use clew_context::model::{ChannelId, GuildId, UnixMillis, UserId};

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
        let purge = self.purge();
        let mut purged = Purged::default();
        for kind in Kind::ALL {
            let mut pages = Pages::of(&**store, kind, None);
            while let Some(records) = pages.next().await? {
                let taken = records.iter().filter(|record| purge.takes(record));
                purged.add(kind, taken.count() as u64);
            }
        }
        Ok(purged)
    }
}
