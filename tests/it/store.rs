//! Stores over real files and databases.

mod build;
mod contract;
mod fixture;
mod records;
mod snapshots;
mod world;
