//! Why a store call failed.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::model::StoreAddress;
use clew_context::model::ApplicationId;

/// An error from a database or file system.
type Source = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    /// Whether a retry may help, without anybody's doing: the store is locked, starting or
    /// unreachable, or its disk is full.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::NotReady { .. } => true,
            Self::Io { source, .. } => is_full(source),
            _ => false,
        }
    }

    /// Whether the store fails whatever it is asked, and not this request alone: what is passing,
    /// a disk that is broken or may only be read, and another process that has the store.
    pub fn is_of_store(&self) -> bool {
        match self {
            Self::Held { .. } => true,
            Self::Io { source, .. } => is_full(source) || is_of_disk(source),
            _ => self.is_passing(),
        }
    }

    /// What a failed call of the operating system is to the caller.
    pub(crate) fn io<'a>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl Fn(io::Error) -> Self + Copy + use<'a> {
        move |source| Self::Io {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    /// [`Self::Unavailable`].
    pub(crate) fn unavailable(operation: &'static str, source: impl Into<Source>) -> Self {
        let source = source.into();
        Self::Unavailable { operation, source }
    }

    /// [`Self::Database`].
    pub(crate) fn database(operation: &'static str, source: impl Into<Source>) -> Self {
        let source = source.into();
        Self::Database { operation, source }
    }

    /// [`Self::Corrupt`].
    pub(crate) fn corrupt(
        operation: &'static str,
        place: impl fmt::Display,
        source: impl Into<Source>,
    ) -> Self {
        Self::Corrupt {
            operation,
            place: place.to_string(),
            source: Some(source.into()),
        }
    }

    /// [`Self::NotReady`].
    pub(crate) fn not_ready(place: &str, source: impl Into<Source>) -> Self {
        Self::NotReady {
            place: place.to_owned(),
            source: source.into(),
        }
    }

    /// [`Self::Newer`].
    pub(crate) fn newer(place: &str, found: u32, known: u32) -> Self {
        let place = place.to_owned();
        Self::Newer {
            place,
            found,
            known,
        }
    }

    /// [`Self::Open`], with what the operating system or the database says.
    pub(crate) fn unopened(
        place: impl fmt::Display,
        remedy: impl Into<String>,
        source: Option<Source>,
    ) -> Self {
        Self::Open {
            place: place.to_string(),
            remedy: remedy.into(),
            source,
        }
    }

    /// Whether the application that asks owns the store.
    pub(crate) fn unless_owned(
        place: &str,
        owner: ApplicationId,
        asked: ApplicationId,
    ) -> Result<(), Self> {
        if owner == asked {
            return Ok(());
        }
        Err(Self::Owned {
            place: place.to_owned(),
            owner,
            asked,
        })
    }
}

/// No room on the disk, or no more than is allowed to us.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// EIO, ENFILE and EMFILE have no kind of their own.
const OF_DISK: [i32; 3] = [5, 23, 24];

fn is_of_disk(error: &io::Error) -> bool {
    let is_known = matches!(
        error.kind(),
        io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StaleNetworkFileHandle
            | io::ErrorKind::TimedOut
            | io::ErrorKind::OutOfMemory
    );
    is_known
        || error
            .raw_os_error()
            .is_some_and(|number| OF_DISK.contains(&number))
}

/// Why a store call failed. `Display` names the place and, where a person can
/// help, the remedy; it never holds message text or passwords.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened.
    #[error("cannot open the store {place}: {remedy}")]
    Open {
        /// Path or address, without a password.
        place: String,
        /// What to do.
        remedy: String,
        /// The underlying error.
        #[source]
        source: Option<Source>,
    },
    /// It cannot be opened yet: its server is starting, stopping, full or unreachable,
    /// its file is locked, or its disk full. Opening it again may help.
    #[error("the store {place} is not ready")]
    NotReady {
        /// Path or address, without a password.
        place: String,
        /// The underlying error.
        #[source]
        source: Source,
    },
    /// Its file was damaged, and is left as it is.
    #[error(
        "the store {place} is damaged ({found}) and was left as it is: move it away (mv {place} \
         {place}.damaged; likewise {place}-wal and {place}-shm, if they are there) and restore a \
         backup (clew store import FILE); docs/operating.md says what to do without one"
    )]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong with it.
        found: String,
    },
    /// Another process uses the store.
    #[error(
        "the store {place} is in use by another process ({holder}): stop that one first, or give \
         each a CONTEXT_STORE of its own"
    )]
    Held {
        /// Path or address, without a password.
        place: String,
        /// The other process, as far as known.
        holder: String,
    },
    /// It belongs to another bot.
    #[error(
        "the store {place} is of another bot, application {owner}, and this one is application \
         {asked}: give this one a CONTEXT_STORE of its own; if it takes the other's place, \
         `clew store copy` makes a store of the same content for it"
    )]
    Owned {
        /// Path or address, without a password.
        place: String,
        /// The application that owns it.
        owner: ApplicationId,
        /// The application that asked for it.
        asked: ApplicationId,
    },
    /// Its schema is of a newer program version.
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
    /// This back end does not support it.
    #[error(
        "{what} need a database: set CONTEXT_STORE={}",
        StoreAddress::DATABASES
    )]
    NeedsDatabase {
        /// What was asked for, in the plural.
        what: &'static str,
    },
    /// Locked, full, gone or over a limit for now; a retry may help.
    #[error("the store is not available: cannot {operation}")]
    Unavailable {
        /// What was asked for.
        operation: &'static str,
        /// The underlying error.
        #[source]
        source: Source,
    },
    /// Stored data cannot be read.
    #[error("cannot {operation}: {place} holds what is not ours: restore it from a backup")]
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
        /// The file.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
    /// Any other database error.
    #[error("cannot {operation}")]
    Database {
        /// What was asked for.
        operation: &'static str,
        /// The database's error.
        #[source]
        source: Source,
    },
}
