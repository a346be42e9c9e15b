//! Stores over real files and databases.

mod build;
mod contract;
mod files;
mod fixture;
mod purge_bytes;
mod records;
mod snapshots;
mod transcripts;
mod world;
