//! The store that `CONTEXT_STORE` names, of any back end.

use std::fmt;
use std::path::PathBuf;

#[cfg(feature = "postgres")]
use super::Postgres;
use super::{
    Backend, ConversationStats, Cursor, Error, Files, Kind, KindStats, Purge, Purged, Record,
    Records, SnapshotFiles, Sqlite, SqliteSettings, WindowQuery,
};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, GuildSettings, Scope,
    SnapshotId, StoreAddress, StoredMessage, Subject,
};
use clew_context::model::{
    ApplicationId, ChannelId, Clock, GuildId, MessageId, UnixMillis, UserId,
};

/// Folders that stores use besides the one in `CONTEXT_STORE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// `AGENTS_DIR`: snapshots are in their agent's folder.
    pub agents: PathBuf,
    /// `USER_PROFILE_DIR`, used by the file store.
    pub users: PathBuf,
    /// `SERVER_PROFILE_DIR`, used by the file store.
    pub servers: PathBuf,
}

/// One of the back ends. An enum, so that callers need not be generic.
pub enum Store {
    /// `sqlite:PATH`, or in memory.
    Sqlite(Sqlite),
    /// `postgres://...`
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
    /// `files:DIR`
    Files(Files),
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite(_) => "Sqlite",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "Postgres",
            Self::Files(_) => "Files",
        })
    }
}

impl Store {
    /// Opens the store at an address for this process alone, creating or
    /// migrating it to this version's schema as needed.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Held`], [`Error::Newer`] or
    /// [`Error::Corrupt`], each naming the place.
    pub async fn open(
        address: &StoreAddress,
        folders: &Folders,
        clock: Clock,
    ) -> Result<Self, Error> {
        let snapshots = SnapshotFiles::new(folders.agents.clone());
        Self::open_with(address, Use::Alone, snapshots, folders, clock).await
    }

    /// As [`Store::open`], but read-only: it may run beside another process
    /// that uses the store, and then changes nothing. Files always need
    /// exclusive use.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Open`] if another process uses it and its
    /// schema is of another version.
    pub async fn look(
        address: &StoreAddress,
        folders: &Folders,
        clock: Clock,
    ) -> Result<Self, Error> {
        let snapshots = SnapshotFiles::new(folders.agents.clone());
        Self::open_with(address, Use::Look, snapshots, folders, clock).await
    }

    /// As [`Store::open`], for a second store with the same folders. Snapshot
    /// files are never removed, since they may belong to the first.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_beside(
        address: &StoreAddress,
        folders: &Folders,
        clock: Clock,
    ) -> Result<Self, Error> {
        let snapshots = SnapshotFiles::shared(folders.agents.clone());
        Self::open_with(address, Use::Alone, snapshots, folders, clock).await
    }

    async fn open_with(
        address: &StoreAddress,
        used: Use,
        snapshots: SnapshotFiles,
        folders: &Folders,
        clock: Clock,
    ) -> Result<Self, Error> {
        match address {
            StoreAddress::Sqlite(path) => {
                let path = path.clone();
                let settings = SqliteSettings::default();
                let open = move || match used {
                    Use::Alone => Sqlite::open(&path, snapshots, &settings),
                    Use::Look => Sqlite::look(&path, snapshots, &settings),
                };
                blocking(open).await.map(Self::Sqlite)
            }
            #[cfg(feature = "postgres")]
            StoreAddress::Postgres(url) => match used {
                Use::Alone => Postgres::open(url, snapshots).await,
                Use::Look => Postgres::look(url, snapshots).await,
            }
            .map(Self::Postgres),
            #[cfg(not(feature = "postgres"))]
            StoreAddress::Postgres(_) => Err(without_postgres(address)),
            StoreAddress::Files(dir) => {
                let (users, servers) = (folders.users.clone(), folders.servers.clone());
                Files::open(dir.clone(), users, servers, clock)
                    .await
                    .map(Self::Files)
            }
        }
    }

    /// The schema version found at an address, without changing anything;
    /// `None` if nothing is there yet.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn version(address: &StoreAddress) -> Result<Option<u32>, Error> {
        match address {
            StoreAddress::Sqlite(path) => {
                let path = path.clone();
                blocking(move || Sqlite::version(&path)).await
            }
            #[cfg(feature = "postgres")]
            StoreAddress::Postgres(url) => Postgres::version(url).await,
            #[cfg(not(feature = "postgres"))]
            StoreAddress::Postgres(_) => Err(without_postgres(address)),
            StoreAddress::Files(dir) => Ok(Files::version(dir)),
        }
    }

    /// A store that never touches a disk and ends with the process.
    ///
    /// # Errors
    /// [`Error::Open`].
    pub async fn in_memory() -> Result<Self, Error> {
        blocking(Sqlite::in_memory).await.map(Self::Sqlite)
    }
}

/// Why a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Exclusive use by one process.
    Alone,
    /// Reading only, possibly beside another process.
    Look,
}

/// Runs on a blocking thread, since opening and migrating a file may be slow.
async fn blocking<T: Send + 'static>(
    open: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let opened = tokio::task::spawn_blocking(open).await;
    let broken = |source: tokio::task::JoinError| Error::Database {
        operation: "open the store",
        source: source.into(),
    };
    opened.map_err(broken)?
}

#[cfg(not(feature = "postgres"))]
fn without_postgres(address: &StoreAddress) -> Error {
    Error::Open {
        place: address.to_string(),
        remedy: "build with `--features postgres`".to_owned(),
        source: None,
    }
}

/// Forwards a call to the back end. PostgreSQL calls await the network in many
/// places, so their futures are boxed to keep each turn's future small.
macro_rules! each {
    ($store:expr, $name:ident($($argument:expr),*)) => {
        match $store {
            Store::Sqlite(store) => store.$name($($argument),*).await,
            #[cfg(feature = "postgres")]
            Store::Postgres(store) => Box::pin(store.$name($($argument),*)).await,
            Store::Files(store) => store.$name($($argument),*).await,
        }
    };
}

impl Backend for Store {
    async fn claim(&self, application: ApplicationId) -> Result<(), Error> {
        each!(self, claim(application))
    }

    async fn append(&self, turn: &[StoredMessage]) -> Result<u64, Error> {
        each!(self, append(turn))
    }

    /// Checks the result again: a row of another scope, or of an owner other
    /// than the scope's, is a bug of ours and must not reach anybody, so the
    /// call fails.
    async fn window(&self, query: &WindowQuery) -> Result<Vec<StoredMessage>, Error> {
        let rows = each!(self, window(query))?;
        let is_theirs = |row: &StoredMessage| {
            row.scope == query.scope && query.scope.owner().is_none_or(|owner| owner == row.owner)
        };
        if let Some(row) = rows.iter().find(|row| !is_theirs(row)) {
            tracing::error!(asked = %query.scope, found = %row.scope, owner = %row.owner,
                "a stored row does not belong to the conversation that was asked for: nothing of \
                 it is loaded");
            return Ok(Vec::new());
        }
        Ok(rows)
    }

    async fn conversation(
        &self,
        scope: Scope,
        now: UnixMillis,
    ) -> Result<ConversationStats, Error> {
        each!(self, conversation(scope, now))
    }

    async fn delete_conversation(&self, scope: Scope) -> Result<u64, Error> {
        each!(self, delete_conversation(scope))
    }

    async fn clear(&self, key: &ClearKey, at: UnixMillis) -> Result<(), Error> {
        each!(self, clear(key, at))
    }

    async fn cleared_at(
        &self,
        agent: &AgentName,
        guild: Option<GuildId>,
        user: UserId,
    ) -> Result<Option<UnixMillis>, Error> {
        each!(self, cleared_at(agent, guild, user))
    }

    async fn agent_created(&self, agent: &AgentName, now: UnixMillis) -> Result<UnixMillis, Error> {
        each!(self, agent_created(agent, now))
    }

    async fn own_messages(
        &self,
        owner: UserId,
        agent: &AgentName,
        guild: Option<GuildId>,
        since: UnixMillis,
    ) -> Result<Vec<StoredMessage>, Error> {
        each!(self, own_messages(owner, agent, guild, since))
    }

    async fn save_snapshot(&self, snapshot: &ContextSnapshot) -> Result<(), Error> {
        each!(self, save_snapshot(snapshot))
    }

    async fn snapshots(
        &self,
        owner: UserId,
        guild: Option<GuildId>,
        agent: Option<&AgentName>,
        limit: usize,
    ) -> Result<Vec<ContextSnapshotInfo>, Error> {
        each!(self, snapshots(owner, guild, agent, limit))
    }

    async fn snapshot(
        &self,
        owner: UserId,
        id: &SnapshotId,
    ) -> Result<Option<ContextSnapshot>, Error> {
        each!(self, snapshot(owner, id))
    }

    async fn facts(&self, subject: Subject) -> Result<Vec<Fact>, Error> {
        each!(self, facts(subject))
    }

    async fn put_facts(&self, facts: &[Fact]) -> Result<(), Error> {
        each!(self, put_facts(facts))
    }

    async fn remove_facts(&self, facts: &[FactId]) -> Result<u64, Error> {
        each!(self, remove_facts(facts))
    }

    async fn matching_facts(
        &self,
        guild: GuildId,
        words: &str,
        limit: usize,
    ) -> Result<Vec<FactId>, Error> {
        each!(self, matching_facts(guild, words, limit))
    }

    async fn opt_outs(&self) -> Result<Vec<(UserId, UnixMillis)>, Error> {
        each!(self, opt_outs())
    }

    async fn set_opt_out(&self, user: UserId, since: Option<UnixMillis>) -> Result<(), Error> {
        each!(self, set_opt_out(user, since))
    }

    async fn settings(&self) -> Result<Vec<(GuildId, GuildSettings)>, Error> {
        each!(self, settings())
    }

    async fn set_settings(&self, guild: GuildId, settings: &GuildSettings) -> Result<(), Error> {
        each!(self, set_settings(guild, settings))
    }

    async fn departures(&self) -> Result<Vec<(GuildId, UnixMillis)>, Error> {
        each!(self, departures())
    }

    async fn set_departure(&self, guild: GuildId, at: Option<UnixMillis>) -> Result<(), Error> {
        each!(self, set_departure(guild, at))
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        each!(self, purge(purge))
    }

    async fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        text: &str,
    ) -> Result<u64, Error> {
        each!(self, edit_message(channel, message, text))
    }

    async fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<MessageId>, Error> {
        each!(self, held_messages(channel, from, to))
    }

    async fn guilds(&self) -> Result<Vec<GuildId>, Error> {
        each!(self, guilds())
    }

    async fn members(&self, guild: GuildId) -> Result<Vec<UserId>, Error> {
        each!(self, members(guild))
    }

    async fn sweep(&self, now: UnixMillis) -> Result<u64, Error> {
        each!(self, sweep(now))
    }

    async fn records(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Records, Error> {
        each!(self, records(kind, owner, after, limit))
    }

    async fn write(&self, records: &[Record]) -> Result<(), Error> {
        each!(self, write(records))
    }

    async fn stats(&self) -> Result<Vec<KindStats>, Error> {
        each!(self, stats())
    }

    async fn tidy(&self) -> Result<(), Error> {
        each!(self, tidy())
    }

    async fn vacuum(&self) -> Result<(), Error> {
        each!(self, vacuum())
    }

    async fn close(&self) -> Result<(), Error> {
        each!(self, close())
    }
}
