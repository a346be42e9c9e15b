//! A connection and how it is set up.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::fault::Fault;
use super::saved::SnapshotPlace;
use super::{schema, texts};
use crate::Error;
use crate::rank::Ranker;

/// Statements that a connection keeps prepared: all that we have, about.
const STATEMENTS: usize = 128;
/// Pages that the connection that writes keeps in memory, in KiB.
const WRITER_CACHE_KIB: i32 = 4 * 1024;
/// The same of one that reads. Each write of another connection makes it forget
/// all of them, so more would be memory without use.
const READER_CACHE_KIB: i32 = 512;
/// Pages (of 4 KiB) up to which a file is written again by way of memory; a
/// larger one goes by way of a temporary file, which has no name.
const PAGES_IN_MEMORY: i64 = 16 * 1024;
/// What the write-ahead log shrinks to when it was emptied, bytes.
const JOURNAL_LIMIT: i32 = 4 << 20;
/// Pages of 4 KiB that the log may have before an append waits for it to be
/// written into the database.
const LOG_PAGES: i32 = 16 * 1024;
/// How long it is tried to empty the log before that is put off, and how long
/// each try waits for those who read.
const SCRUB_PATIENCE: Duration = Duration::from_millis(2_500);
const SCRUB_WAIT: Duration = Duration::from_millis(250);
/// Between two tries, while another connection brings the log into the
/// database.
const SCRUB_PAUSE: Duration = Duration::from_millis(2);

/// What survives what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// What is confirmed survives the end of the process, `kill -9` included:
    /// it is in the operating system's hands. A loss of power may take the
    /// last turns, never the database. An append costs no wait for the disk,
    /// which is what keeps it under a millisecond.
    #[default]
    Process,
    /// What is confirmed survives a loss of power, too: every commit waits for
    /// the disk.
    Power,
    /// No promise at all, for tests.
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
    /// What survives what.
    pub durability: Durability,
    /// How long to wait for another process that writes.
    pub busy_timeout: Duration,
    /// Largest size in pages of 4 KiB; none: as large as the disk allows.
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

/// Whether the write-ahead log still has texts that went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    /// It has not.
    Clean,
    /// Nobody has tried yet to empty it.
    Due,
    /// It could not be emptied: another program reads.
    PutOff,
}

/// A connection on the thread that has it.
pub(super) struct Session {
    /// It.
    pub(super) connection: Connection,
    /// The file, for errors.
    pub(super) place: Arc<str>,
    /// Where snapshots' messages are.
    pub(super) snapshots: Arc<SnapshotPlace>,
    /// How long to wait for another process that writes.
    busy_timeout: Duration,
    /// The search among facts.
    pub(super) ranker: Ranker,
    /// Bytes that conversations may take, in memory.
    pub(super) room: Option<i64>,
    /// A text was overwritten in the work under way.
    overwrote: Cell<bool>,
    /// What the log may still have.
    log: Cell<Log>,
    /// Texts moved, so that the file has to be written again before anything
    /// that goes counts as gone. Stands in the table `upkeep`, too.
    rewrite_owed: Cell<bool>,
    /// Of the one that writes: a connection that brings the log into the
    /// database meanwhile.
    checkpointer: Cell<Option<Connection>>,
}

impl Session {
    /// The one connection that writes; brings the file to the newest version.
    pub(super) fn writer(
        path: &Path,
        snapshots: Arc<SnapshotPlace>,
        settings: &SqliteSettings,
    ) -> Result<Self, Error> {
        Self::first(path, snapshots, settings, |session| {
            session.set_up_writer(settings)?;
            session.pay_debts()?;
            session.open_checkpointer(path)
        })
    }

    /// The same for a look while another process has the file: whatever there
    /// is to do to it is that one's.
    pub(super) fn beside(
        path: &Path,
        snapshots: Arc<SnapshotPlace>,
        settings: &SqliteSettings,
    ) -> Result<Self, Error> {
        Self::first(path, snapshots, settings, |session| {
            session.set_up_any(settings.busy_timeout, WRITER_CACHE_KIB)?;
            let found = schema::version(&session.connection, &session.place)?;
            if found == schema::VERSION {
                return Ok(());
            }
            Err(Fault::Store(Error::Open {
                place: session.place.to_string(),
                remedy: format!(
                    "it is of version {found} and in use by another process: stop that one, then \
                     `clew store migrate`"
                ),
                source: None,
            }))
        })
    }

    fn first(
        path: &Path,
        snapshots: Arc<SnapshotPlace>,
        settings: &SqliteSettings,
        set_up: impl FnOnce(&Self) -> Result<(), Fault>,
    ) -> Result<Self, Error> {
        let place: Arc<str> = path.display().to_string().into();
        let connection = Connection::open(path).map_err(|error| unopened(&place, error))?;
        let session = Self::on(connection, &place, snapshots, settings.busy_timeout);
        match set_up(&session) {
            Ok(()) => Ok(session),
            Err(fault) => Err(unusable(fault, &place)),
        }
    }

    /// The version of the file at a path, 0 for an empty one.
    pub(super) fn version(path: &Path) -> Result<usize, Error> {
        let place = path.display().to_string();
        // What was left in the log is played back, which needs to write.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| unopened(&place, error))?;
        schema::version(&connection, &place).map_err(|fault| unusable(fault, &place))
    }

    /// A connection that cannot write.
    pub(super) fn reader(writer: &Self, path: &Path) -> Result<Self, Error> {
        let place = Arc::clone(&writer.place);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| unopened(&place, error))?;
        let snapshots = Arc::clone(&writer.snapshots);
        let session = Self::on(connection, &place, snapshots, writer.busy_timeout);
        let set_up = || -> Result<(), Fault> {
            session.set_up_any(session.busy_timeout, READER_CACHE_KIB)?;
            Ok(session.connection.pragma_update(None, "query_only", true)?)
        };
        set_up().map_err(|fault| fault.named(OPENING, &place))?;
        Ok(session)
    }

    /// As it is before it is set up.
    fn on(
        connection: Connection,
        place: &Arc<str>,
        snapshots: Arc<SnapshotPlace>,
        busy_timeout: Duration,
    ) -> Self {
        Self {
            connection,
            place: Arc::clone(place),
            snapshots,
            busy_timeout,
            ranker: Ranker::default(),
            room: None,
            overwrote: Cell::new(false),
            log: Cell::new(Log::Clean),
            rewrite_owed: Cell::new(false),
            checkpointer: Cell::new(None),
        }
    }

    fn set_up_any(&self, wait: Duration, cache_kib: i32) -> Result<(), Fault> {
        self.connection.busy_timeout(wait)?;
        // A statement would be planned anew for each value that it is asked with.
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

    /// Whose file it is comes first: the journal mode is written to it.
    fn set_up_writer(&self, settings: &SqliteSettings) -> Result<(), Fault> {
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

    /// A checkpoint waits for the disk. On a connection of its own it holds up
    /// nobody: who writes goes on writing to the log.
    fn open_checkpointer(&self, path: &Path) -> Result<(), Fault> {
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

    /// The connection that brings the log into the database, once.
    pub(super) fn take_checkpointer(&self) -> Option<Connection> {
        self.checkpointer.take()
    }

    fn is_in_memory(&self) -> bool {
        self.connection.path().is_none_or(str::is_empty)
    }

    /// Runs work in a transaction of its own, rolled back when it fails.
    pub(super) fn transact<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&self.connection, immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Whether texts went since this was asked the last time: what was done
    /// since is confirmed after [`Self::scrub`].
    pub(super) fn takes_scrub(&self) -> bool {
        let overwrote = self.overwrote.take();
        if overwrote {
            self.log.set(Log::Due);
        }
        overwrote
    }

    /// A text was overwritten.
    pub(super) fn overwrote(&self) {
        self.overwrote.set(true);
    }

    /// Leaves nothing in the files of texts that went since the last time.
    ///
    /// In the database they are overwritten already; the log may have older
    /// pages and is emptied. Our readers hold that up for moments only; if
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

    /// What a kill left undone: pages with texts that went may stand in the
    /// log, copies of texts that moved in the file.
    fn pay_debts(&self) -> Result<(), Fault> {
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

    /// Drops overwritten texts and writes the whole file again, without room
    /// between.
    pub(super) fn compact(&self) -> Result<(), Fault> {
        texts::drop_blank(self)?;
        if self.is_in_memory() {
            return Ok(());
        }
        self.rewrite_owed.set(true);
        self.rewrite()?;
        self.empty_log();
        Ok(())
    }

    /// Writes the whole file again.
    fn rewrite(&self) -> rusqlite::Result<()> {
        let connection = &self.connection;
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let place = if pages > PAGES_IN_MEMORY {
            "FILE"
        } else {
            "MEMORY"
        };
        connection.pragma_update(None, "temp_store", place)?;
        let written = connection.execute_batch("VACUUM");
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        written?;
        texts::rewritten(connection)?;
        self.rewrite_owed.set(false);
        Ok(())
    }

    /// Writes the log into the database and empties it.
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

/// What is being done meanwhile.
const OPENING: &str = "open the store";

/// Why a file cannot be used, with what to do about it.
fn unusable(fault: Fault, place: &str) -> Error {
    let Fault::Sql(error) = fault else {
        return fault.named(OPENING, place);
    };
    match Fault::Sql(error).named(OPENING, place) {
        Error::Corrupt { source, .. } => Error::Open {
            place: place.to_owned(),
            remedy: "the file is not an SQLite database, or is damaged; name another file in \
                     CONTEXT_STORE=sqlite:PATH, or restore a backup"
                .to_owned(),
            source,
        },
        Error::Unavailable { source, .. } => Error::Open {
            place: place.to_owned(),
            remedy: "it is in use by another program, or its disk is full or not writable"
                .to_owned(),
            source: Some(source),
        },
        other => other,
    }
}

fn unopened(place: &str, error: rusqlite::Error) -> Error {
    Error::Open {
        place: place.to_owned(),
        remedy: "check that the folder is there and that we may read and write the file".to_owned(),
        source: Some(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use rusqlite::StatementStatus;

    use super::*;

    /// Planning costs more than most statements do.
    #[test]
    fn a_statement_is_planned_once_whatever_it_is_asked_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clew.db");
        let snapshots = Arc::new(SnapshotPlace::Memory(Mutex::new(BTreeMap::new())));
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
