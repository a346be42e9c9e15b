//! What months of telemetry say: how turns ended and how long they took, what was
//! missing, what caps left out, tokens and cost, whom limits turned away.
//!
//! Lines are read and counted (`tally`) one by one, in the order of the files. Memory is
//! bounded: one line, and lists that keep those names that weigh most (`top`).
//!
//! Invariant: `report` reads files of telemetry and nothing else, and makes texts; it
//! never writes, and holds one line at a time.

mod files;
mod finish;
mod line;
mod lines;
mod page;
mod read;
mod span;
mod summary;
mod tally;
mod text;
mod times;
mod top;
mod turns;
mod usage;
mod words;

use crate::model::Prices;
use clew_context::model::UnixMillis;

pub use page::page;
pub use read::read;
pub use span::{End, parse_time};
pub use summary::Report;
pub use text::{text, wrapped};
pub use words::grouped;

/// What a report is to count.
#[derive(Debug, Clone)]
pub struct Options {
    /// Events from this time on; all if none.
    pub since: Option<UnixMillis>,
    /// Events before this time; all if none.
    pub until: Option<UnixMillis>,
    /// Events of this server only.
    pub guild: Option<Guild>,
    pub prices: Prices,
    /// The most names of a list, and the most of the slowest turns.
    pub rows: usize,
}

/// Whose events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guild {
    /// Those of a server, by its id.
    Server(u64),
    /// Those outside of servers.
    DirectMessages,
}
