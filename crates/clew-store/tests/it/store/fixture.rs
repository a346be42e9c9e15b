//! Places for each kind of store, with a clock that tests control.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clew_context::model::{Clock, Secret, UnixMillis};
use clew_store::model::StoreAddress;
use clew_store::{Backend, Error, Folders, SnapshotFiles, SqliteSettings};
use tempfile::TempDir;

use super::build::NOW;

/// A place for a store that can be opened, closed and reopened.
pub(super) trait Fixture: Sized + Send + Sync + 'static {
    /// The store type.
    type Store: Backend + 'static;
    /// Whether it supports scopes other than `member`, agents, tool rows and
    /// snapshots.
    const IS_DATABASE: bool;
    /// An empty place.
    fn fresh() -> impl Future<Output = Self> + Send;
    fn open(&self) -> impl Future<Output = Self::Store> + Send {
        async { self.try_open().await.unwrap() }
    }
    /// The same, when opening may fail.
    fn try_open(&self) -> impl Future<Output = Result<Self::Store, Error>> + Send;
    /// As a setting names it.
    fn address(&self) -> StoreAddress;
    /// Its folder and clock.
    fn ground(&self) -> &Ground;
    /// Every byte that outlives the process, once the store is closed.
    fn bytes(&self) -> Vec<u8> {
        self.ground().bytes()
    }
}

/// A folder and a clock.
pub(super) struct Ground {
    folder: TempDir,
    time: Arc<AtomicI64>,
}

impl Ground {
    fn new(folder: TempDir) -> Self {
        let time = Arc::new(AtomicI64::new(NOW.0));
        Self { folder, time }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that holds everything.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of agents.
    pub(super) fn agents(&self) -> PathBuf {
        self.path("agents")
    }

    /// Sets the clock.
    pub(super) fn set_time(&self, time: UnixMillis) {
        self.time.store(time.0, Ordering::SeqCst);
    }

    /// The folders that stores use.
    pub(super) fn folders(&self) -> Folders {
        Folders {
            agents: self.agents(),
            users: self.path("users"),
            servers: self.path("servers"),
        }
    }

    pub(super) fn clock(&self) -> Clock {
        let time = Arc::clone(&self.time);
        Arc::new(move || UnixMillis(time.load(Ordering::SeqCst)))
    }

    /// Every byte of every file, and the files' names.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                bytes.extend_from_slice(entry.file_name().as_encoded_bytes());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    bytes.extend(fs::read(entry.path()).unwrap());
                }
            }
        }
        bytes
    }
}

/// A folder in memory if possible, else on disk.
pub(super) fn fast_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// SQLite, without waiting for disks.
pub(super) struct Sqlite(Ground);

impl Fixture for Sqlite {
    type Store = clew_store::Sqlite;
    const IS_DATABASE: bool = true;

    async fn fresh() -> Self {
        Self(Ground::new(fast_folder()))
    }

    async fn try_open(&self) -> Result<Self::Store, Error> {
        try_open_sqlite(self.0.folder(), SqliteSettings::default()).await
    }

    fn address(&self) -> StoreAddress {
        StoreAddress::Sqlite(self.0.path("clew.db"))
    }

    fn ground(&self) -> &Ground {
        &self.0
    }
}

/// Opens `clew.db` in a folder, with snapshot files in `agents` beside it.
pub(super) async fn open_sqlite(folder: &Path, settings: SqliteSettings) -> clew_store::Sqlite {
    try_open_sqlite(folder, settings).await.unwrap()
}

async fn try_open_sqlite(
    folder: &Path,
    settings: SqliteSettings,
) -> Result<clew_store::Sqlite, Error> {
    let (path, files) = (folder.join("clew.db"), folder.join("agents"));
    let open = move || clew_store::Sqlite::open(&path, SnapshotFiles::new(files), &settings);
    tokio::task::spawn_blocking(open).await.unwrap()
}

/// A file store.
pub(super) struct Files(Ground);

impl Fixture for Files {
    type Store = clew_store::Files;
    const IS_DATABASE: bool = false;

    async fn fresh() -> Self {
        Self(Ground::new(fast_folder()))
    }

    async fn try_open(&self) -> Result<Self::Store, Error> {
        try_open_files(self.0.folder(), self.0.clock()).await
    }

    fn address(&self) -> StoreAddress {
        StoreAddress::Files(self.0.path("context"))
    }

    fn ground(&self) -> &Ground {
        &self.0
    }
}

/// Opens a file store in a folder, with a subfolder for each kind.
pub(super) async fn open_files(folder: &Path, clock: Clock) -> clew_store::Files {
    try_open_files(folder, clock).await.unwrap()
}

async fn try_open_files(folder: &Path, clock: Clock) -> Result<clew_store::Files, Error> {
    let folders = ["context", "users", "servers"].map(|name| folder.join(name));
    clew_store::Files::open(folders, clock).await
}

/// PostgreSQL: a database on the server that tests share.
#[cfg(feature = "postgres")]
pub(super) struct Postgres {
    ground: Ground,
    pub(super) database: crate::support::postgres::Database,
}

#[cfg(feature = "postgres")]
impl Fixture for Postgres {
    type Store = clew_store::Postgres;
    const IS_DATABASE: bool = true;

    async fn fresh() -> Self {
        let server = crate::support::postgres::Postgres::shared();
        Self {
            ground: Ground::new(fast_folder()),
            database: server.fresh_database().await,
        }
    }

    async fn try_open(&self) -> Result<Self::Store, Error> {
        let files = SnapshotFiles::new(self.ground.agents());
        clew_store::Postgres::open(&Secret::new(&*self.database.url), files).await
    }

    fn address(&self) -> StoreAddress {
        StoreAddress::Postgres(Secret::new(&*self.database.url))
    }

    fn ground(&self) -> &Ground {
        &self.ground
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.ground.bytes();
        bytes.extend(crate::support::postgres::dump_all(&self.database.admin_url).into_bytes());
        bytes
    }
}

/// Opens a database, with snapshot files in `agents` in a folder.
#[cfg(feature = "postgres")]
pub(super) async fn open_postgres(url: &str, folder: &Path) -> clew_store::Postgres {
    let files = SnapshotFiles::new(folder.join("agents"));
    let opened = clew_store::Postgres::open(&Secret::new(url), files).await;
    opened.unwrap()
}

/// Expects success from a database, and a refusal from files.
#[track_caller]
pub(super) fn needs_database<F: Fixture, T: Debug>(result: Result<T, Error>) -> Option<T> {
    if F::IS_DATABASE {
        return Some(result.unwrap());
    }
    let error = result.unwrap_err();
    assert!(matches!(error, Error::NeedsDatabase { .. }), "{error:?}");
    None
}

/// Runs the same checks, each on a fresh store of each kind.
macro_rules! on_each_store {
    ($($check:ident)+) => {
        on_each_store!(@on sqlite Sqlite $($check)+);
        #[cfg(feature = "postgres")]
        on_each_store!(@on postgres Postgres $($check)+);
        on_each_store!(@on files Files $($check)+);
    };
    (@on $module:ident $fixture:ident $($check:ident)+) => {
        mod $module {
            use crate::store::fixture::{$fixture, Fixture as _};
            $(
                #[tokio::test]
                async fn $check() {
                    super::$check(&$fixture::fresh().await).await;
                }
            )+
        }
    };
}
pub(super) use on_each_store;
