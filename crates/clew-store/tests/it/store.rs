//! The stores, with real files and databases.

mod build;
mod contract;
mod crash;
mod files;
mod fixture;
mod isolation;
mod moment;
#[cfg(feature = "postgres")]
mod postgres;
mod purge_bytes;
mod random;
mod records;
mod snapshots;
mod sqlite;
mod transcripts;
mod trouble;
mod world;
