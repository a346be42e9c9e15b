//! Why a store did not do what it was asked.

use std::path::PathBuf;

use clew_context::model::ApplicationId;

/// What a database or file system said.
type Source = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    /// Asking again may help.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NotReady { .. })
    }
}

/// Why a store did not do what it was asked. `Display` names the place and,
/// where a person can do something, the remedy; no text of messages, no
/// password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened.
    #[error("cannot open the store {place}: {remedy}")]
    Open {
        /// Path or address, without a password.
        place: String,
        /// What to do.
        remedy: String,
        /// What the system said.
        #[source]
        source: Option<Source>,
    },
    /// It cannot be opened yet: its server starts, stops, is full or cannot be
    /// reached. Opening it again may help.
    #[error("the store {place} is not ready")]
    NotReady {
        /// Address, without a password.
        place: String,
        /// What the system said.
        #[source]
        source: Source,
    },
    /// Another process uses it.
    #[error(
        "the store {place} is in use by another process ({holder}): stop that one first, or give \
         each a CONTEXT_STORE of its own"
    )]
    Held {
        /// Path or address, without a password.
        place: String,
        /// Which process, as far as it is known.
        holder: String,
    },
    /// What it holds is another bot's.
    #[error(
        "the store {place} is of another bot, application {owner}, and this one is application \
         {asked}: give this one a CONTEXT_STORE of its own; if it takes the other's place, \
         `clew store copy` makes a store of the same content for it"
    )]
    Owned {
        /// Path or address, without a password.
        place: String,
        /// Whose it is.
        owner: ApplicationId,
        /// Who asked for it.
        asked: ApplicationId,
    },
    /// Its schema is of a newer version of the program.
    #[error(
        "the store {place} is of version {found}, this program knows {known}: update the program, \
         or restore the backup from before the update"
    )]
    Newer {
        /// Path or address, without a password.
        place: String,
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// Not with this store.
    #[error("{what} need a database: set CONTEXT_STORE=sqlite:PATH or postgres://...")]
    NeedsDatabase {
        /// What was asked for, plural.
        what: &'static str,
    },
    /// It is locked, full, gone or over its limits for now; asking again may
    /// help.
    #[error("the store is not available: cannot {operation}")]
    Unavailable {
        /// What was asked for.
        operation: &'static str,
        /// What the system said.
        #[source]
        source: Source,
    },
    /// What it holds cannot be read.
    #[error("cannot {operation}: {place} holds what is not ours")]
    Corrupt {
        /// What was asked for.
        operation: &'static str,
        /// File, or table and row.
        place: String,
        /// Why it cannot be read.
        #[source]
        source: Option<Source>,
    },
    /// A file could not be read or written.
    #[error("cannot {operation} {path}", path = .path.display())]
    Io {
        /// What was asked for.
        operation: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Anything else that a database refused.
    #[error("cannot {operation}")]
    Database {
        /// What was asked for.
        operation: &'static str,
        /// What the database said.
        #[source]
        source: Source,
    },
}
