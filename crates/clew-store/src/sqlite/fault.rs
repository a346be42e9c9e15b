//! Errors on a connection's thread, and their names for callers.

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::Error;

pub(super) type Outcome<T> = Result<T, Fault>;

/// What went wrong. Never contains message text, since our statements take
/// their values as parameters.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error of `SQLite`. Shared by all jobs of the failed transaction.
    Sql(Arc<rusqlite::Error>),
    /// A row cannot be read.
    Row {
        /// The row's table.
        table: &'static str,
        /// The row's key.
        key: String,
        /// The column.
        column: &'static str,
    },
    /// An error that is complete already.
    Store(Error),
    /// The caller's values contradict each other.
    Unfit(&'static str),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl From<&'static str> for Fault {
    fn from(why: &'static str) -> Self {
        Self::Unfit(why)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Whether opening again may help: another program has the file locked, or the disk is full,
/// as it is when the log's index cannot grow.
pub(super) fn is_passing(error: &rusqlite::Error) -> bool {
    let is_full = |failure: &rusqlite::ffi::Error| {
        failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
    };
    match error {
        rusqlite::Error::SqliteFailure(failure, _) if is_full(failure) => true,
        error => matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull)
        ),
    }
}

impl Fault {
    /// Turns it into the error of an operation.
    pub(super) fn named(self, operation: &'static str, place: &str) -> Error {
        match self {
            Self::Store(error) => error,
            Self::Unfit(why) => Error::database(operation, why),
            Self::Row { table, key, column } => Error::corrupt(
                operation,
                format_args!("row {key} of table {table} in {place}"),
                format!("column {column} is not what we write"),
            ),
            Self::Sql(error) => {
                let source: Box<dyn std::error::Error + Send + Sync> = Box::new(Arc::clone(&error));
                match error.sqlite_error_code() {
                    Some(
                        ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::DiskFull
                        | ErrorCode::SystemIoFailure
                        | ErrorCode::CannotOpen
                        | ErrorCode::ReadOnly
                        | ErrorCode::OutOfMemory,
                    ) => Error::Unavailable { operation, source },
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                        Error::corrupt(operation, place, source)
                    }
                    _ => Error::Database { operation, source },
                }
            }
        }
    }
}
