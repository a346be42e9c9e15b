//! Whether a database is whole, looked at for a bounded time.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rusqlite::ErrorCode;
use rusqlite::config::DbConfig;

use super::fault::{Fault, Outcome};
use super::schema;
use super::session::Session;
use crate::{Checked, Error};

/// How long a start after an unclean end may look: about a gigabyte, read from a disk.
const AT_A_START: Duration = Duration::from_secs(10);

/// The pause between two interrupts.
const INTERRUPT_PAUSE: Duration = Duration::from_millis(1);

impl Session {
    /// Looks at a file that the last process did not close. A damaged one stays as it is,
    /// and so does its log.
    pub(super) fn check_left(&self) -> Outcome<()> {
        let keeps_log = |keeps| {
            let setting = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            self.connection.set_db_config(setting, keeps)
        };
        keeps_log(true)?;
        schema::version(&self.connection, &self.place)?;
        if self.check(AT_A_START)? == Checked::InPart {
            tracing::warn!(store = %self.place, seconds = AT_A_START.as_secs(),
                "the last process did not close the store, and it is too large to be checked whole \
                 at the start: `clew doctor` takes longer, `clew store backup` looks at all of it");
        }
        keeps_log(false)?;
        Ok(())
    }

    /// Looks for damage, for at most this long.
    pub(super) fn check(&self, most: Duration) -> Outcome<Checked> {
        let interrupt = self.connection.get_interrupt_handle();
        let (done, waits) = channel::<()>();
        let watch = move || {
            let mut wait = most;
            // Again and again: an interrupt before the statement begins is lost.
            while waits.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                interrupt.interrupt();
                wait = INTERRUPT_PAUSE;
            }
        };
        let found = thread::scope(|scope| {
            let watching = thread::Builder::new().spawn_scoped(scope, watch);
            watching.map_err(|error| Error::unavailable("check the store", error))?;
            let found = self.check_whole();
            drop(done);
            found
        });
        match found {
            Err(Fault::Sql(error))
                if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) =>
            {
                Ok(Checked::InPart)
            }
            found => found.map(|()| Checked::Whole),
        }
    }

    /// Looks for damage, however long it takes.
    pub(super) fn check_whole(&self) -> Outcome<()> {
        let sql = "PRAGMA quick_check(1)";
        let found = self
            .connection
            .query_row(sql, [], |row| row.get::<_, String>(0));
        let found = match found {
            Ok(found) if found == "ok" => return Ok(()),
            Ok(found) => found,
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                error.to_string()
            }
            Err(error) => return Err(error.into()),
        };
        Err(Fault::Store(Error::Damaged {
            place: self.place.to_string(),
            // Of several lines, of which the first names the database.
            found: found.lines().last().unwrap_or_default().to_owned(),
        }))
    }
}
