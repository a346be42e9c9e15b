//! Stores over real files and databases.

mod build;
mod contract;
mod crash;
mod files;
mod fixture;
mod isolation;
mod purge_bytes;
mod random;
mod records;
mod snapshots;
mod transcripts;
mod world;
