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

use std::io;
use std::path::PathBuf;

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
    /// What tokens cost.
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

/// There is nothing to report about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A path cannot be read.
    #[error("cannot read `{}`", .path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A folder holds no telemetry.
    #[error(
        "no telemetry in the folder `{}`: name the folder that TELEMETRY_DIR names where the bot runs, or files",
        .dir.display()
    )]
    NoFiles {
        /// The folder.
        dir: PathBuf,
    },
    /// No line is one of telemetry.
    #[error("no line of telemetry in the {files} files, {place}: are these the bot's files?")]
    NoLines {
        /// How many files were read.
        files: usize,
        /// The first line that could not be read, and why.
        place: String,
    },
}
