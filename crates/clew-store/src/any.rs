//! The store that `CONTEXT_STORE` names, of any back end.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use super::Postgres;
use super::{Backend, Error, FileFolders, Files, Record, SnapshotFiles, Sqlite, SqliteSettings};
use crate::model::StoreAddress;
use clew_context::model::{ApplicationId, ChannelId, Clock, MessageId};
use clew_context::outside;

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

impl Folders {
    fn of_files(&self, dir: &Path) -> FileFolders {
        [dir.to_owned(), self.users.clone(), self.servers.clone()]
    }
}

/// An open store, of any back end.
pub struct Store(Box<dyn Backend>);

impl Deref for Store {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl<B: Backend + 'static> From<B> for Store {
    fn from(backend: B) -> Self {
        Self(Box::new(backend))
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
        Self::open_with(address, OpenFor::Alone, snapshots, folders, clock).await
    }

    /// As [`Store::open`], but waits for another process until even PostgreSQL has noticed that its
    /// machine is gone.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_patiently(
        address: &StoreAddress,
        folders: &Folders,
        clock: Clock,
    ) -> Result<Self, Error> {
        let snapshots = SnapshotFiles::new(folders.agents.clone());
        Self::open_with(address, OpenFor::Patiently, snapshots, folders, clock).await
    }

    /// Opens it read-only, without locking it: another process may use it, start or come back
    /// meanwhile. Changes nothing.
    ///
    /// # Errors
    /// As [`Store::open`], but for the other process; [`Error::Open`] if there is none, or its
    /// schema is of an older version.
    pub async fn look(
        address: &StoreAddress,
        folders: &Folders,
        clock: Clock,
    ) -> Result<Self, Error> {
        let snapshots = SnapshotFiles::new(folders.agents.clone());
        Self::open_with(address, OpenFor::Look, snapshots, folders, clock).await
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
        Self::open_with(address, OpenFor::Alone, snapshots, folders, clock).await
    }

    /// Who opted out, how servers have it and, if one is named by one of its messages, an answer's
    /// receipt, as they are now: for a process beside the bot, which may run, start or end
    /// meanwhile. No lock is taken, nothing written and no file left, but for the memory of an
    /// `SQLite` log whose writer was killed.
    ///
    /// # Errors
    /// [`Error::Open`] if there is no store yet, or an older one; [`Error::Newer`];
    /// [`Error::Owned`]; [`Error::NotReady`]; otherwise the store's error.
    pub async fn peek(
        address: &StoreAddress,
        folders: &Folders,
        clock: Clock,
        application: ApplicationId,
        answer: Option<(ChannelId, MessageId)>,
    ) -> Result<Vec<Record>, Error> {
        match address {
            StoreAddress::Sqlite(path) => {
                let path = path.clone();
                blocking(move || Sqlite::peek(&path, application, answer)).await
            }
            #[cfg(feature = "postgres")]
            StoreAddress::Postgres(url) => Box::pin(Postgres::peek(url, application, answer)).await,
            #[cfg(not(feature = "postgres"))]
            StoreAddress::Postgres(_) => Err(without_postgres(address)),
            StoreAddress::Files(dir) => {
                let folders = folders.of_files(dir);
                blocking(move || Files::peek(folders, clock, application)).await
            }
        }
    }

    async fn open_with(
        address: &StoreAddress,
        used: OpenFor,
        snapshots: SnapshotFiles,
        folders: &Folders,
        clock: Clock,
    ) -> Result<Self, Error> {
        match address {
            StoreAddress::Sqlite(path) => {
                let path = path.clone();
                let settings = SqliteSettings::default();
                let open = move || match used {
                    OpenFor::Alone | OpenFor::Patiently => {
                        Sqlite::open(&path, snapshots, &settings)
                    }
                    OpenFor::Look => Sqlite::look(&path, snapshots, &settings),
                };
                blocking(open).await.map(Self::from)
            }
            #[cfg(feature = "postgres")]
            // Boxed, since callers would carry its size otherwise.
            StoreAddress::Postgres(url) => match used {
                OpenFor::Alone => Box::pin(Postgres::open(url, snapshots)).await,
                OpenFor::Patiently => Box::pin(Postgres::open_patiently(url, snapshots)).await,
                OpenFor::Look => Box::pin(Postgres::look(url, snapshots)).await,
            }
            .map(Self::from),
            #[cfg(not(feature = "postgres"))]
            StoreAddress::Postgres(_) => Err(without_postgres(address)),
            StoreAddress::Files(dir) => {
                let folders = folders.of_files(dir);
                match used {
                    OpenFor::Alone | OpenFor::Patiently => Files::open(folders, clock).await,
                    OpenFor::Look => Files::look(folders, clock).await,
                }
                .map(Self::from)
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

    /// Whether the database's user stands above the isolation of conversations that the
    /// database itself keeps up; only PostgreSQL has such users.
    ///
    /// # Errors
    /// As [`Store::open`].
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unused_async, reason = "only PostgreSQL has to be asked")
    )]
    pub async fn is_unguarded(address: &StoreAddress) -> Result<bool, Error> {
        match address {
            #[cfg(feature = "postgres")]
            StoreAddress::Postgres(url) => Postgres::stands_above(url).await,
            #[cfg(not(feature = "postgres"))]
            StoreAddress::Postgres(_) => Err(without_postgres(address)),
            StoreAddress::Sqlite(_) | StoreAddress::Files(_) => Ok(false),
        }
    }

    /// The schema version of this program's stores at such an address.
    pub const fn newest_version(address: &StoreAddress) -> u32 {
        match address {
            StoreAddress::Sqlite(_) => Sqlite::NEWEST_VERSION,
            #[cfg(feature = "postgres")]
            StoreAddress::Postgres(_) => Postgres::NEWEST_VERSION,
            #[cfg(not(feature = "postgres"))]
            StoreAddress::Postgres(_) => 0,
            StoreAddress::Files(_) => Files::NEWEST_VERSION,
        }
    }

    /// A store that never touches a disk and ends with the process.
    ///
    /// # Errors
    /// [`Error::Open`].
    pub async fn in_memory() -> Result<Self, Error> {
        blocking(Sqlite::in_memory).await.map(Self::from)
    }
}

/// What [`Store::peek`] says of a store that is not there, or older.
pub(super) fn not_begun(place: impl fmt::Display) -> Error {
    let remedy = "it is not there, or of an older version: start the bot (`clew run`) once";
    Error::unopened(place, remedy, None)
}

/// What [`Store::look`] says of a store that is not there, or older.
pub(super) fn not_current(place: impl fmt::Display) -> Error {
    let remedy = "it is not there, or of an older version: read or back it up with the program that \
                  made it, or stop the bot, if it runs, then `clew store migrate`";
    Error::unopened(place, remedy, None)
}

/// Why a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenFor {
    /// Exclusive use by one process.
    Alone,
    /// The same, by a bot.
    Patiently,
    /// Reading only, possibly beside another process.
    Look,
}

/// Runs on a blocking thread, since opening and migrating a file may be slow.
async fn blocking<T: Send + 'static>(
    open: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let opened = outside::blocking(open).await;
    opened.map_err(|error| Error::database("open the store", error))?
}

#[cfg(not(feature = "postgres"))]
pub(super) fn without_postgres(address: &StoreAddress) -> Error {
    Error::unopened(address, "build with `--features postgres`", None)
}
