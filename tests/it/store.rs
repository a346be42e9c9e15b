//! Stores over real files and databases.

mod files;
mod records;
mod snapshots;
mod transcripts;
