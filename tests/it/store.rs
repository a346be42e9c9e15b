//! Stores over real files and databases.

mod files;
#[cfg(feature = "postgres")]
mod postgres;
mod records;
mod snapshots;
mod sqlite;
mod transcripts;
