//! Stores for what outlives the process, in SQLite, PostgreSQL or files.
//!
//! [`Backend`] lists what a store can do; `tests/it/store` runs one contract
//! against all of them. [`Kind`] is the closed list of what is stored: purge,
//! export, copy and statistics go through [`Kind::ALL`], which is made from the
//! same list as the enum, and match a kind without a wildcard.
//!
//! Invariant: SQL is written here only; no read returns a row of a scope other
//! than the one asked for.

mod any;
mod append;
mod backend;
mod cluster;
mod columns;
mod copy;
mod disk;
mod erasure;
mod error;
mod files;
mod import;
mod json;
mod kind;
pub mod model;
pub mod outputs;
mod packed;
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod snapshots;
mod sql;
mod sqlite;
mod table;
mod transcripts;

pub use any::{Folders, Store};
pub use backend::{
    Asker, Backend, Capacity, Checked, ConversationStats, ExchangeQuery, Exchanges, TurnKey, Visit,
    WindowQuery,
};
pub use cluster::{
    Asked, Cluster, ClusterStatus, KeptClaim, LEASE_EARLY, LEASE_RENEWED, LEASE_RENEWED_AGAIN,
    LEASE_TERM, Node, Tenure, cluster,
};
pub use copy::{Copied, CopyError, CopyPlan, CopyProgress, Loss};
pub use disk::close_files;
pub use erasure::Erasure;
pub use error::Error;
pub use files::{FileFolders, Files};
pub use import::{Import, Imported};
pub use json::FormError;
pub use kind::{Kind, KindStats, PartSize, Purge, Purged};
pub use pages::Pages;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use record::{Cursor, Record, RecordKey, Records};
pub use snapshots::{Reach, SUMMARY_REMOVED, SnapshotFiles, with_edit, without};
pub use sqlite::{Durability, Sqlite, SqliteSettings};
pub use transcripts::{Restored, Transcripts};

/// Compiles and runs the README's first example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
