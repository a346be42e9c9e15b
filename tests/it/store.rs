//! Stores over real files and databases.

mod records;
mod snapshots;
