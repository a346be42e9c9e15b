//! A connection and its setup.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::fault::{Fault, Outcome, is_passing};
use super::{file, schema, texts};
use crate::any::{not_begun, not_current};
use crate::{Error, SnapshotFiles};

/// Prepared statements cached per connection: about all that we have.
const STATEMENTS: usize = 128;
/// Page cache of the write connection, in KiB.
const WRITER_CACHE_KIB: i32 = 4 * 1024;
/// Page cache of a read connection, in KiB. Each write by another connection
/// invalidates all of it, so more would be wasted.
const READER_CACHE_KIB: i32 = 512;
/// Files of up to this many pages (of 4 KiB) are rewritten in memory; larger
/// ones by way of an unnamed temporary file.
const PAGES_IN_MEMORY: i64 = 2 * 1024;
/// Files of up to this many pages are rewritten for each purge of ids.
const PAGES_REWRITTEN: i64 = 16 * 1024;
/// Size to which the write-ahead log shrinks when emptied, in bytes.
const JOURNAL_LIMIT: i32 = 4 << 20;
/// Pages of 4 KiB that the log may have before an append waits for a
/// checkpoint.
const LOG_PAGES: i32 = 16 * 1024;
/// How long to try to empty the log before postponing it, and how long each try
/// waits for readers.
const SCRUB_PATIENCE: Duration = Duration::from_millis(2_500);
const SCRUB_WAIT: Duration = Duration::from_millis(250);
/// Pause between two tries, while another connection runs a checkpoint.
const SCRUB_PAUSE: Duration = Duration::from_millis(2);

/// What confirmed writes survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, `kill -9` included: the data is with the
    /// operating system. A power failure may lose the last turns, but never the
    /// database. Appends do not wait for the disk, which keeps them under a
    /// millisecond.
    #[default]
    Process,
    /// A power failure too: every commit waits for the disk.
    Power,
    /// Nothing; for tests.
    None,
}

impl Durability {
    const fn synchronous(self) -> &'static str {
        match self {
            Self::Process => "NORMAL",
            Self::Power => "FULL",
            Self::None => "OFF",
        }
    }
}

/// How the database is run. The default is what the bot uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteSettings {
    /// What confirmed writes survive.
    pub durability: Durability,
    /// How long to wait for another process that is writing.
    pub busy_timeout: Duration,
    /// Largest size in pages of 4 KiB; `None` for no limit but the disk.
    pub max_pages: Option<u32>,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            busy_timeout: Duration::from_secs(5),
            max_pages: None,
        }
    }
}

/// Whether the write-ahead log still holds deleted texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    /// It does not.
    Clean,
    /// It may; emptying it has not been tried yet.
    Due,
    /// It does: another program was reading, so it could not be emptied.
    PutOff,
}

/// A connection on its thread.
pub(super) struct Session {
    pub(super) connection: Connection,
    /// The file's path, for errors.
    pub(super) place: Arc<str>,
    /// Where snapshots' messages are stored.
    pub(super) snapshots: SnapshotFiles,
    /// How long to wait for another process that is writing.
    busy_timeout: Duration,
    /// Bytes that conversations in memory may take.
    pub(super) room: Option<i64>,
    /// Whether the current work overwrote a text.
    overwrote: Cell<bool>,
    /// Whether the log still holds deleted texts.
    log: Cell<Log>,
    /// Texts have moved, so the file must be rewritten before anything deleted
    /// counts as gone. Also stored in the table `upkeep`.
    rewrite_owed: Cell<bool>,
    /// On the writer, until it is taken: a connection that checkpoints the log in parallel.
    pub(super) checkpointer: Cell<Option<Connection>>,
}

impl Session {
    /// Opens the one write connection and migrates the file.
    pub(super) fn writer(
        path: &Path,
        snapshots: SnapshotFiles,
        settings: &SqliteSettings,
    ) -> Result<Self, Error> {
        let is_left = file::has_log(path);
        Self::first(path, snapshots, settings, |session| {
            if is_left {
                session.check_left()?;
            }
            session.set_up_writer(settings)?;
            session.pay_debts()?;
            session.open_checkpointer(path)
        })
    }

    /// Opens a file to look at, which another process may have; migrating and
    /// cleaning up are up to whoever opens it to write.
    pub(super) fn beside(
        path: &Path,
        snapshots: SnapshotFiles,
        settings: &SqliteSettings,
    ) -> Result<Self, Error> {
        Self::first(path, snapshots, settings, |session| {
            session.set_up_any(settings.busy_timeout, WRITER_CACHE_KIB)?;
            if schema::version(&session.connection, &session.place)? == schema::VERSION {
                return Ok(());
            }
            Err(not_current(&session.place).into())
        })
    }

    /// Opens a file to read while another process may have it, or begin to. Without a log it is
    /// taken as one that nobody changes.
    pub(super) fn peeking(path: &Path, has_log: bool) -> Result<Self, Error> {
        let place: Arc<str> = path.display().to_string().into();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let uri = file::uri(path, if has_log { "" } else { "?immutable=1" });
        let opened = Connection::open_with_flags(uri, flags);
        let connection = opened.map_err(|error| unopened(&place, error))?;
        let busy_timeout = SqliteSettings::default().busy_timeout;
        let session = Self::on(connection, &place, SnapshotFiles::in_memory(), busy_timeout);
        let set_up = || -> Outcome<()> {
            session.set_up_any(busy_timeout, READER_CACHE_KIB)?;
            if schema::version(&session.connection, &place)? == schema::VERSION {
                return Ok(());
            }
            Err(not_begun(&place).into())
        };
        set_up().map_err(|fault| unusable(fault, &place))?;
        Ok(session)
    }

    fn first(
        path: &Path,
        snapshots: SnapshotFiles,
        settings: &SqliteSettings,
        set_up: impl FnOnce(&Self) -> Outcome<()>,
    ) -> Result<Self, Error> {
        let place: Arc<str> = path.display().to_string().into();
        let connection = Connection::open(path).map_err(|error| unopened(&place, error))?;
        let session = Self::on(connection, &place, snapshots, settings.busy_timeout);
        set_up(&session).map_err(|fault| unusable(fault, &place))?;
        Ok(session)
    }

    /// The version of the file at a path; 0 for an empty one.
    pub(super) fn version(path: &Path) -> Result<usize, Error> {
        let place = path.display().to_string();
        // Opening replays a leftover log, which needs write access.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| unopened(&place, error))?;
        schema::version(&connection, &place).map_err(|fault| unusable(fault, &place))
    }

    /// A copy of the whole database as of now, in a temporary file without a name,
    /// which goes with it. Reading it keeps nobody waiting.
    pub(super) fn copied(&self) -> Outcome<Self> {
        let mut connection = Connection::open("")?;
        let copying = Backup::new(&self.connection, &mut connection)?;
        // At once: between steps each write elsewhere would have it begin again.
        let copied = copying.step(-1);
        drop(copying);
        let refused = match copied {
            Ok(StepResult::Done) => None,
            Ok(_) => Some("another program has locked it".to_owned()),
            Err(error) => Some(format!(
                "{error}; SQLITE_TMPDIR names a folder for the copy"
            )),
        };
        if let Some(why) = refused {
            return Err(Error::unavailable("copy the store", why).into());
        }
        let snapshots = self.snapshots.clone();
        let copy = Self::on(connection, &self.place, snapshots, self.busy_timeout);
        copy.set_up_any(self.busy_timeout, READER_CACHE_KIB)?;
        copy.check_whole()?;
        Ok(copy)
    }

    /// Opens a read-only connection.
    pub(super) fn reader(writer: &Self, path: &Path) -> Result<Self, Error> {
        let place = Arc::clone(&writer.place);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| unopened(&place, error))?;
        let snapshots = writer.snapshots.clone();
        let session = Self::on(connection, &place, snapshots, writer.busy_timeout);
        let set_up = || -> Outcome<()> {
            session.set_up_any(session.busy_timeout, READER_CACHE_KIB)?;
            Ok(session.connection.pragma_update(None, "query_only", true)?)
        };
        set_up().map_err(|fault| fault.named(OPENING, &place))?;
        Ok(session)
    }

    /// A session before its setup.
    fn on(
        connection: Connection,
        place: &Arc<str>,
        snapshots: SnapshotFiles,
        busy_timeout: Duration,
    ) -> Self {
        Self {
            connection,
            place: Arc::clone(place),
            snapshots,
            busy_timeout,
            room: None,
            overwrote: Cell::new(false),
            log: Cell::new(Log::Clean),
            rewrite_owed: Cell::new(false),
            checkpointer: Cell::new(None),
        }
    }

    fn set_up_any(&self, wait: Duration, cache_kib: i32) -> Outcome<()> {
        self.connection.busy_timeout(wait)?;
        // Otherwise a statement would be planned again for each value it is run
        // with.
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        self.connection
            .set_prepared_statement_cache_capacity(STATEMENTS);
        self.connection
            .pragma_update(None, "cache_size", -cache_kib)?;
        Ok(self
            .connection
            .pragma_update(None, "temp_store", "MEMORY")?)
    }

    /// Checks first that the file is ours, since setting the journal mode
    /// writes.
    fn set_up_writer(&self, settings: &SqliteSettings) -> Outcome<()> {
        let connection = &self.connection;
        self.set_up_any(settings.busy_timeout, WRITER_CACHE_KIB)?;
        schema::version(connection, &self.place)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", settings.durability.synchronous())?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
        connection.pragma_update_and_check(
            None,
            "journal_size_limit",
            JOURNAL_LIMIT,
            |_| Ok(()),
        )?;
        if let Some(pages) = settings.max_pages {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
        schema::migrate(connection, &self.place)
    }

    /// Opens the checkpointer. A checkpoint waits for the disk; on its own
    /// connection it blocks nobody, and writers keep appending to the log.
    fn open_checkpointer(&self, path: &Path) -> Outcome<()> {
        if self.is_in_memory() {
            return Ok(());
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(self.busy_timeout)?;
        self.connection
            .pragma_update_and_check(None, "wal_autocheckpoint", LOG_PAGES, |_| Ok(()))?;
        self.checkpointer.set(Some(connection));
        Ok(())
    }

    fn is_in_memory(&self) -> bool {
        self.connection.path().is_none_or(str::is_empty)
    }

    /// Runs work in its own transaction, rolled back on failure.
    pub(super) fn transact<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&self.connection, immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Whether texts were overwritten since the last call. If so, the work
    /// since then may only be confirmed after [`Self::scrub`].
    pub(super) fn takes_scrub(&self) -> bool {
        let overwrote = self.overwrote.take();
        if overwrote {
            self.log.set(Log::Due);
        }
        overwrote
    }

    /// Notes that a text was overwritten.
    pub(super) fn overwrote(&self) {
        self.overwrote.set(true);
    }

    /// Removes the last traces of deleted texts from the files.
    ///
    /// They are overwritten in the database already, but the log may hold older
    /// pages and is emptied. Our readers delay that only for moments. If
    /// another program reads for longer, it is tried again after later jobs,
    /// without waiting.
    pub(super) fn scrub(&self) {
        if self.is_in_memory() {
            return self.log.set(Log::Clean);
        }
        match self.log.get() {
            Log::Clean => {}
            Log::PutOff => drop(self.empties_log(Duration::ZERO)),
            Log::Due => {
                if self.rewrite_owed.get()
                    && let Err(error) = self.rewrite()
                {
                    tracing::warn!(
                        store = %self.place, %error,
                        "the file could not be written again: copies of what was deleted may be \
                         left in it"
                    );
                }
                self.empty_log();
            }
        }
    }

    /// Has a purge confirmed only when the log is empty and the file is written again, since
    /// rows that moved between pages left copies of their ids. A large file is not written
    /// again: that would keep other writers waiting.
    pub(super) fn clear_ids(&self) -> Outcome<()> {
        if self.pages()? <= PAGES_REWRITTEN && !self.is_in_memory() {
            texts::owe_rewrite(&self.connection, true)?;
            self.rewrite_owed.set(true);
        }
        self.overwrote();
        Ok(())
    }

    fn pages(&self) -> rusqlite::Result<i64> {
        let read = |row: &rusqlite::Row<'_>| row.get(0);
        self.connection.pragma_query_value(None, "page_count", read)
    }

    /// Finishes what a killed process left undone: the log may hold pages with
    /// deleted texts, the file copies of texts that moved.
    fn pay_debts(&self) -> Outcome<()> {
        if self.is_in_memory() {
            return Ok(());
        }
        let is_owed = texts::is_rewrite_owed(&self.connection)?;
        self.rewrite_owed.set(is_owed);
        if is_owed {
            self.rewrite()?;
        }
        self.empty_log();
        Ok(())
    }

    /// Drops overwritten texts and rewrites the whole file without gaps.
    pub(super) fn compact(&self) -> Outcome<()> {
        texts::drop_blank(self)?;
        if self.is_in_memory() {
            return Ok(());
        }
        self.rewrite_owed.set(true);
        self.rewrite()?;
        self.empty_log();
        Ok(())
    }

    /// Rewrites the whole file.
    fn rewrite(&self) -> rusqlite::Result<()> {
        let connection = &self.connection;
        let place = if self.pages()? > PAGES_IN_MEMORY {
            "FILE"
        } else {
            "MEMORY"
        };
        connection.pragma_update(None, "temp_store", place)?;
        let written = connection.execute_batch("VACUUM");
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        written?;
        texts::owe_rewrite(connection, false)?;
        self.rewrite_owed.set(false);
        Ok(())
    }

    /// Checkpoints and empties the log.
    fn empty_log(&self) {
        let until = Instant::now() + SCRUB_PATIENCE;
        while !self.empties_log(SCRUB_WAIT) {
            if Instant::now() > until {
                self.log.set(Log::PutOff);
                tracing::warn!(
                    store = %self.place,
                    "what was deleted is still in the write-ahead log: another program reads the \
                     database"
                );
                return;
            }
            thread::sleep(SCRUB_PAUSE);
        }
    }

    fn empties_log(&self, wait: Duration) -> bool {
        let empty = || -> rusqlite::Result<i64> {
            self.connection.busy_timeout(wait)?;
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            let busy = self.connection.query_row(sql, [], |row| row.get(0));
            self.connection.busy_timeout(self.busy_timeout)?;
            busy
        };
        let is_empty = empty().is_ok_and(|busy| busy == 0);
        if is_empty {
            self.log.set(Log::Clean);
        }
        is_empty
    }
}

/// The operation named in errors.
const OPENING: &str = "open the store";

/// The error for an unusable file, with its remedy.
fn unusable(fault: Fault, place: &str) -> Error {
    let Fault::Sql(error) = fault else {
        return fault.named(OPENING, place);
    };
    if is_passing(&error) {
        return Error::not_ready(place, error);
    }
    match Fault::Sql(error).named(OPENING, place) {
        Error::Corrupt { source, .. } => {
            let remedy = "the file is not an SQLite database, or is damaged; name another file in \
                          CONTEXT_STORE=sqlite:PATH, or restore a backup";
            Error::unopened(place, remedy, source)
        }
        Error::Unavailable { source, .. } => {
            let remedy = "it or its folder is not writable, or the disk is broken";
            Error::unopened(place, remedy, Some(source))
        }
        other => other,
    }
}

fn unopened(place: &str, error: rusqlite::Error) -> Error {
    let remedy = "check that the folder is there and that we may read and write the file";
    Error::unopened(place, remedy, Some(error.into()))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    /// Planning costs more than running most statements.
    #[test]
    fn a_statement_is_planned_once_whatever_it_is_asked_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clew.db");
        let snapshots = SnapshotFiles::in_memory();
        let writer = Session::writer(&path, snapshots, &SqliteSettings::default()).unwrap();
        let reader = Session::reader(&writer, &path).unwrap();
        for session in [&writer, &reader] {
            let sql = "SELECT id FROM messages WHERE owner_id = ?1 AND timestamp > ?2";
            let mut select = session.connection.prepare_cached(sql).unwrap();
            for owner in 0..3 {
                assert!(!select.exists((owner, "2026-11-22")).unwrap());
                assert!(!select.exists((owner, "2026-11-23")).unwrap());
            }
            assert_eq!(select.get_status(StatementStatus::RePrepare), 0);
        }
    }
}
