//! Several processes of one bot that share a database: one has the lease and is the bot, the
//! others stand by and go on in its place.
//!
//! Invariant: what a process writes under a lease is refused once another one has the next.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

#[cfg(feature = "postgres")]
use super::postgres;
use super::{Error, Folders, Store};
use crate::model::StoreAddress;
use clew_context::model::UnixMillis;
use clew_context::outside::Lease;

/// How long a lease holds without being renewed, by the clock of what the processes share.
pub const LEASE_TERM: Duration = Duration::from_secs(10);
/// So much earlier it is over for who has it, counted from when the renewal was sent.
pub const LEASE_EARLY: Duration = Duration::from_secs(1);
/// How often it is renewed.
pub const LEASE_RENEWED: Duration = Duration::from_secs(3);
/// How soon again after a failure.
pub const LEASE_RENEWED_AGAIN: Duration = Duration::from_millis(500);

/// The processes of one bot. They agree by what they share.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Asks for the lease once.
    ///
    /// # Errors
    /// [`Error::NotReady`] if it cannot be known now; [`Error::Held`] by a process that is of no
    /// cluster; [`Error::Newer`].
    async fn ask(&self) -> Result<Asked, Error>;

    /// Who is there, as this process sees it. Changes nothing.
    ///
    /// # Errors
    /// The store's error.
    async fn status(&self) -> Result<ClusterStatus, Error>;

    /// This process's name.
    fn node(&self) -> &str;

    /// From now on the process of this name is the bot only if no other can be, until it ends. Returns
    /// false if it is not there.
    ///
    /// # Errors
    /// The store's error.
    async fn drain(&self, node: &str) -> Result<bool, Error>;

    /// Notes that this process could not be the bot just now: whoever is drained does not hand over to it.
    ///
    /// # Errors
    /// The store's error.
    async fn note_unable(&self) -> Result<(), Error>;

    /// From now on the bot has so many shards; as many as Discord recommends for 0.
    ///
    /// # Errors
    /// The store's error.
    async fn reshard(&self, shards: u32) -> Result<(), Error>;

    /// Removes what is kept in place of a file, for the next tenure.
    ///
    /// # Errors
    /// The store's error.
    async fn forget_file(&self, name: &str) -> Result<(), Error>;

    /// This process ends.
    async fn leave(&self);
}

/// Whose the lease is.
pub enum Asked {
    /// This process's, from now on.
    Ours(Arc<dyn Tenure>),
    /// That of the process of this name.
    Others(String),
}

/// The time in which this process has the lease: what it keeps is there for the next one. Nothing is
/// kept so once the lease is over, also before another process has it; the store refuses from then on.
#[async_trait]
pub trait Tenure: Send + Sync {
    /// Whether it still has it. It is renewed meanwhile.
    fn lease(&self) -> &Lease;

    /// Higher than that of each tenure before.
    fn epoch(&self) -> i64;

    /// Whether this process is to hand over to another that can be the bot.
    fn drains(&self) -> watch::Receiver<bool>;

    /// How many shards the bot is to have; 0 for as many as Discord recommends.
    fn shards(&self) -> watch::Receiver<u32>;

    /// Tells the others how many shards there are, and how many of them are connected.
    fn tell(&self, shards: u32, connected: u32);

    /// Opens the store, which refuses what comes after the tenure with [`Error::Held`].
    ///
    /// # Errors
    /// As [`Store::open`].
    async fn open_store(&self, folders: &Folders) -> Result<Store, Error>;

    /// What is kept in place of the files of the state folder: names and contents.
    ///
    /// # Errors
    /// The store's error.
    async fn files(&self) -> Result<Vec<(String, Vec<u8>)>, Error>;

    /// Keeps contents of files, all or none.
    ///
    /// # Errors
    /// The store's error: then it is not known whether they are kept.
    async fn keep_files(&self, files: &[(&str, &[u8])]) -> Result<(), Error>;

    /// Keeps them no longer.
    ///
    /// # Errors
    /// The same.
    async fn forget_files(&self, names: &[&str]) -> Result<(), Error>;

    /// What is kept of questions that were taken since then, a line each.
    ///
    /// # Errors
    /// The store's error.
    async fn claims(&self, since: UnixMillis) -> Result<Vec<String>, Error>;

    /// Keeps what is known of questions, each once, in place of what was known before.
    ///
    /// # Errors
    /// The store's error.
    async fn keep_claims(&self, claims: &[KeptClaim]) -> Result<(), Error>;

    /// Removes what is older.
    ///
    /// # Errors
    /// The store's error.
    async fn forget_claims(&self, before: UnixMillis) -> Result<(), Error>;

    /// Ends it: another process may have the lease at once.
    async fn end(&self);
}

/// What is known of a question that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptClaim {
    /// What it is found by.
    pub claim: u64,
    /// When it was taken.
    pub at: UnixMillis,
    /// As it is kept.
    pub line: String,
}

/// Who is there. By default nobody, as before the first start.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ClusterStatus {
    /// Which process has the lease; none if it has run out.
    pub holder: Option<String>,
    /// How many tenures there were.
    pub epoch: i64,
    /// How many shards the bot is to have; 0 for as many as Discord recommends.
    pub shards: i32,
    /// The processes that were heard of lately, by name.
    pub nodes: Vec<Node>,
    /// Whether the database names synchronous standbys, without which a failover may lose what was
    /// confirmed last.
    pub is_replicated: bool,
}

/// A process of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Node {
    /// Its machine's name and its process id.
    pub name: String,
    /// Of the program.
    pub version: String,
    /// For how many seconds it has been there, by the database's clock.
    pub seconds: i64,
    /// How many seconds ago it was heard of.
    pub silent_seconds: i64,
    /// Whether it is the bot only if no other can be.
    pub drains: bool,
    /// The shards there are, if it is the bot.
    pub shards: i32,
    /// How many of them are connected.
    pub connected: i32,
}

impl Node {
    /// Whether it can be the bot, or become it.
    pub const fn is_there(&self) -> bool {
        self.silent_seconds < LEASE_TERM.as_secs().cast_signed()
    }
}

/// The processes that share the store at an address. `node` is this one's name, `version` the
/// program's.
///
/// # Errors
/// [`Error::Open`] if such a store cannot be shared.
pub fn cluster(
    address: &StoreAddress,
    node: &str,
    version: &str,
) -> Result<Arc<dyn Cluster>, Error> {
    match address {
        #[cfg(feature = "postgres")]
        StoreAddress::Postgres(url) => {
            let cluster = postgres::PostgresCluster::new(url, node, version)?;
            Ok(Arc::new(cluster))
        }
        #[cfg(not(feature = "postgres"))]
        StoreAddress::Postgres(_) => {
            let _ = (node, version);
            Err(super::any::without_postgres(address))
        }
        StoreAddress::Sqlite(_) | StoreAddress::Files(_) => {
            let remedy = "only PostgreSQL is shared by several processes: name one, or set \
                          CLUSTER=off";
            Err(Error::unopened(address, remedy, None))
        }
    }
}
