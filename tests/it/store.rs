//! Stores over real files and databases.

#[cfg(feature = "postgres")]
mod postgres;
mod records;
mod snapshots;
