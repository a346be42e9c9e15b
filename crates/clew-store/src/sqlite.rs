//! The store in one `SQLite` file, or in memory.
//!
//! One thread writes and two read, each with its own connection; async code
//! only waits. Writes that are waiting at the same time share a transaction,
//! each in a savepoint, so that they fail separately. A call is carried out
//! even if its future is dropped.

mod check;
mod facts;
mod fault;
mod file;
mod messages;
mod purge;
mod records;
mod room;
mod row;
mod saved;
mod schema;
mod session;
mod statement;
mod tables;
mod texts;
mod worker;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use self::session::{Durability, SqliteSettings};
use async_trait::async_trait;

use self::fault::Outcome;
use self::session::Session;
use self::statement::at_once;
use self::worker::{Queue, lock};
use super::any::not_begun;
use super::backend::{Visit, delegating};
use super::pages::each_paged;
use super::sql;
use super::{
    Backend, Checked, ConversationStats, Cursor, Error, ExchangeQuery, Kind, KindStats, PartSize,
    Purge, Purged, Record, RecordKey, Records, SnapshotFiles, TurnKey, WindowQuery, disk,
};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, ReceiptLimits, Scope,
    SnapshotId, StoredMessage, StoredReceipt, Subject,
};
use clew_context::model::{ApplicationId, ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// Read connections.
const READERS: usize = 2;
/// Bytes for conversations in memory: some tens of thousands of turns.
const BYTES_IN_MEMORY: u32 = 64 << 20;
/// Rows purged before other calls get a turn: a tenth of a second of work.
const ROWS_A_PURGE_STEP: u64 = 2_048;
/// How often [`Sqlite::peek`] reads, at most.
const PEEKS: usize = 5;
/// The operation named in errors.
const PURGING: &str = "remove what has to go";
/// Rows swept before other calls get a turn: some milliseconds of work.
const ROWS_A_STEP: usize = 64;

/// A store in a file, or in memory.
pub struct Sqlite {
    writer: Queue,
    /// `None` in memory, where a database has one connection.
    readers: Option<Queue>,
    /// Whether this process has swept; see [`Backend::sweep`].
    has_swept: AtomicBool,
    /// Held while the store is open, if it is for this process alone.
    hold: Mutex<Option<disk::Hold>>,
}

impl Sqlite {
    /// Opens a database file for this process alone, creating it and its folder
    /// if missing, and migrates it to the newest version. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] if it is a folder, another program's, damaged, locked or
    /// unreachable; [`Error::Held`] if another process uses it;
    /// [`Error::Newer`] if a newer version wrote it.
    pub fn open(
        path: &Path,
        snapshots: SnapshotFiles,
        settings: &SqliteSettings,
    ) -> Result<Self, Error> {
        file::make(path)?;
        let hold = disk::hold(&file::lock_of(path)?)?.map_err(|holder| Error::Held {
            place: path.display().to_string(),
            holder,
        })?;
        snapshots.sweep()?;
        let writer = Session::writer(path, snapshots, settings)?;
        let pending = saved::remove_pending(&writer);
        pending.map_err(|fault| fault.named("open the store", &writer.place))?;
        Self::start(path, writer, Some(hold))
    }

    /// Opens it read-only, without locking it: another process may use it or start meanwhile.
    /// Changes nothing. Blocks.
    ///
    /// # Errors
    ///
    /// As [`Self::open`], but for the other process; [`Error::Io`] if there is no file,
    /// [`Error::Open`] if its schema is of an older version.
    pub fn look(
        path: &Path,
        snapshots: SnapshotFiles,
        settings: &SqliteSettings,
    ) -> Result<Self, Error> {
        // Neither one that is not there nor one with a second log.
        file::lock_of(path)?;
        let writer = Session::beside(path, snapshots, settings)?;
        Self::start(path, writer, None)
    }

    /// See [`Store::peek`](crate::Store::peek). Where no other process has a log, the file is read
    /// as it lies, without SQLite's locks, which take files of their own; again, if one began
    /// meanwhile. Blocks.
    pub(super) fn peek(
        path: &Path,
        application: ApplicationId,
        answer: Option<(ChannelId, MessageId)>,
    ) -> Result<Vec<Record>, Error> {
        for _ in 0..PEEKS {
            let Some(before) = file::state(path) else {
                return Err(not_begun(path.display()));
            };
            let read = Self::peek_once(path, before.has_log, application, answer);
            if before.has_log || file::state(path).as_ref() == Some(&before) {
                return read;
            }
        }
        let why = "another process keeps beginning to use it";
        Err(Error::not_ready(&path.display().to_string(), why))
    }

    fn peek_once(
        path: &Path,
        has_log: bool,
        application: ApplicationId,
        answer: Option<(ChannelId, MessageId)>,
    ) -> Result<Vec<Record>, Error> {
        let session = Session::peeking(path, has_log)?;
        let read = || -> Outcome<Vec<Record>> {
            at_once(sql::owned_by(&session, application))?;
            let receipt = match answer {
                Some((channel, id)) => at_once(sql::receipt_of(&session, channel, id))?,
                None => None,
            };
            let list = |kind| at_once(sql::records(&session, kind, None, None, usize::MAX));
            let listed = [list(Kind::OptOuts)?, list(Kind::Settings)?].into_iter();
            let listed = listed.flat_map(|page| page.records);
            Ok(listed.chain(receipt.map(Record::Receipt)).collect())
        };
        read().map_err(|fault| fault.named("read the store", &session.place))
    }

    fn start(path: &Path, writer: Session, hold: Option<disk::Hold>) -> Result<Self, Error> {
        let readers = (0..READERS).map(|_| Session::reader(&writer, path));
        let readers = readers.collect::<Result<_, _>>()?;
        Ok(Self {
            readers: Some(Queue::to_readers(readers)?),
            writer: Queue::to_writer(writer)?,
            has_swept: AtomicBool::new(false),
            hold: Mutex::new(hold),
        })
    }

    /// The schema version of this program.
    #[expect(clippy::cast_possible_truncation, reason = "there are few migrations")]
    pub const NEWEST_VERSION: u32 = schema::VERSION as u32;

    /// The version of a database file, without changing it; `None` if there is
    /// no file or an empty one. Blocks.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn version(path: &Path) -> Result<Option<u32>, Error> {
        if !path.exists() {
            return Ok(None);
        }
        let found = Session::version(path)?;
        Ok(u32::try_from(found).ok().filter(|found| *found > 0))
    }

    /// A store entirely in memory, snapshots included, of at most 64 MiB. When
    /// it is full, the oldest conversations are removed, of those users who
    /// take more than their share.
    ///
    /// # Errors
    ///
    /// There is no memory, or no thread could be started.
    pub fn in_memory() -> Result<Self, Error> {
        Self::in_memory_of(BYTES_IN_MEMORY)
    }

    /// The same with another limit, in bytes.
    ///
    /// # Errors
    ///
    /// As [`Self::in_memory`].
    pub fn in_memory_of(bytes: u32) -> Result<Self, Error> {
        let settings = SqliteSettings::default();
        let mut writer =
            Session::writer(Path::new(":memory:"), SnapshotFiles::in_memory(), &settings)?;
        writer.room = Some(bytes.into());
        Ok(Self {
            readers: None,
            writer: Queue::to_writer(writer)?,
            has_swept: AtomicBool::new(false),
            hold: Mutex::new(None),
        })
    }

    /// Runs work in a transaction that other calls may share.
    async fn grouped<T, W>(&self, operation: &'static str, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnMut(&Session) -> Outcome<T> + Send + 'static,
    {
        self.writer.ask(operation, false, work).await
    }

    /// Runs work by itself; it makes its own transactions.
    async fn alone<T, W>(&self, operation: &'static str, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnMut(&Session) -> Outcome<T> + Send + 'static,
    {
        self.writer.ask(operation, true, work).await
    }

    /// Sweeps deleted rows in steps, so that other calls get a turn in between, and clears
    /// the files of their ids. `is_due`: others were deleted already.
    async fn sweep_rows(&self, mut is_due: bool) -> Result<(), Error> {
        let step = |session: &Session| texts::sweep_rows(session, ROWS_A_STEP);
        let mut swept = ROWS_A_STEP;
        while swept == ROWS_A_STEP {
            swept = self.alone("sweep", step).await?;
            is_due |= swept > 0;
        }
        if is_due {
            self.alone("sweep", Session::clear_ids).await?;
        }
        Ok(())
    }

    /// Removes the rows of turns that a purge reaches, in steps. Returns how many.
    async fn purge_messages(&self, purge: &Purge) -> Result<u64, Error> {
        let (mut removed, mut step) = (0, ROWS_A_PURGE_STEP);
        while step == ROWS_A_PURGE_STEP {
            let purge = purge.clone();
            let work =
                move |session: &Session| purge::some_messages(session, &purge, ROWS_A_PURGE_STEP);
            step = self.alone(PURGING, work).await?;
            removed += step;
        }
        Ok(removed)
    }

    async fn read<T, W>(&self, operation: &'static str, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnMut(&Session) -> Outcome<T> + Send + 'static,
    {
        let queue = self.readers.as_ref().unwrap_or(&self.writer);
        queue.ask(operation, true, work).await
    }
}

delegating! {
    impl Backend for Sqlite {
        async fn agent_created(
            &self,
            agent: &AgentName,
            now: UnixMillis,
        ) -> Result<UnixMillis, Error> {
            const OPERATION: &str = "note when an agent was first seen";
            let name = agent.clone();
            // Nearly always it is known, and nothing has to be written.
            let seen = self.read(OPERATION, move |session| {
                at_once(sql::agent_seen(session, &name))
            });
            if let Some(seen) = seen.await? {
                return Ok(seen);
            }
            let name = agent.clone();
            let created = self.grouped(OPERATION, move |session| {
                at_once(sql::agent_created(session, &name, now))
            });
            created.await
        }

        async fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
            let is_single = matches!(purge, Purge::Messages { .. } | Purge::Edited { .. });
            let mut removed = 0;
            if !is_single {
                removed = self.purge_messages(purge).await?;
            }
            let purge = purge.clone();
            let purged = self.alone(PURGING, move |session| {
                let before = session.connection.total_changes();
                let purged = session.transact(|_| at_once(sql::purge(session, &purge)))?;
                Ok((purged, session.connection.total_changes() > before))
            });
            let (mut purged, is_changed) = purged.await?;
            purged.add(Kind::Messages, removed);
            // For a user, a server or a channel not even the ids may stay. The
            // texts are already gone, so a failure here is made up for by a later
            // sweep.
            if !is_single && let Err(error) = self.sweep_rows(is_changed || removed > 0).await {
                tracing::warn!(%error, "rows that were removed are not swept yet");
            }
            Ok(purged)
        }

        /// Nothing expires here. Sweeps rows deleted one by one once that is
        /// worthwhile, and at the first call, in case the last process was killed.
        async fn sweep(&self, _now: UnixMillis) -> Result<u64, Error> {
            let is_first = !self.has_swept.swap(true, Ordering::Relaxed);
            let is_due = self.read("look what is to be swept", texts::is_sweep_due);
            if is_due.await? || is_first {
                self.sweep_rows(false).await?;
            }
            let is_due = self.read("look what is to be swept", texts::is_rewrite_due);
            if is_due.await? {
                self.alone("write the store again", Session::compact)
                    .await?;
            }
            Ok(0)
        }

        async fn each_record(&self, visit: Visit<'_>) -> Result<(), Error> {
            let copy = self.read("copy the store", Session::copied).await?;
            let copy = Self {
                readers: None,
                writer: Queue::to_readers(vec![copy])?,
                has_swept: AtomicBool::new(false),
                hold: Mutex::new(None),
            };
            let visited = each_paged(&copy, visit).await;
            copy.close().await?;
            visited
        }

        async fn write(&self, records: &[Record]) -> Result<(), Error> {
            let records = records.to_vec();
            // Snapshots make their own transactions.
            let is_alone = records
                .iter()
                .any(|record| record.kind() == Kind::Snapshots);
            let written = self.writer.ask("write entries", is_alone, move |session| {
                records::write(session, &records)
            });
            written.await
        }

        async fn vacuum(&self) -> Result<(), Error> {
            self.sweep_rows(false).await?;
            self.alone("give room back", Session::compact).await
        }

        /// Readers first, since the last connection to close empties the log.
        async fn close(&self) -> Result<(), Error> {
            if let Some(readers) = &self.readers {
                readers.close().await;
            }
            self.writer.close().await;
            drop(lock(&self.hold).take());
            Ok(())
        }
    }

    grouped "see whose store it is": @at_once sql::claim(application: ApplicationId) -> ();
    grouped "try to write": records::try_writing() -> ();
    grouped "append a turn": messages::append(&turn: &[StoredMessage]) -> u64;
    grouped "append a turn":
        messages::append_with(&turn: &[StoredMessage], &receipt: &StoredReceipt) -> u64;
    grouped "append an early turn": messages::append_early(&turn: &[StoredMessage]) -> ();
    grouped "take a turn back": messages::take_back(&key: &TurnKey) -> u64;
    read "read early turns": @at_once sql::early(limit: usize) -> Vec<StoredMessage>;
    read "read a conversation": messages::read_window(&query: &WindowQuery) -> Vec<StoredMessage>;
    read "read a conversation":
        @at_once sql::read_exchanges(&query: &ExchangeQuery) -> Vec<StoredMessage>;
    read "count a conversation":
        @at_once sql::conversation(scope: Scope, now: UnixMillis) -> ConversationStats;
    alone "delete a conversation": messages::delete_conversation(scope: Scope) -> u64;
    grouped "move a clear marker": @at_once sql::clear(&key: &ClearKey, at: UnixMillis) -> ();
    read "read a clear marker":
        @at_once sql::cleared_at(&agent: &AgentName, guild: Option<GuildId>, user: UserId)
            -> Option<UnixMillis>;
    read "read a user's messages":
        @at_once sql::own_messages(
            owner: UserId, &agent: &AgentName, guild: Option<GuildId>, since: UnixMillis
        ) -> Vec<StoredMessage>;
    read "list snapshots":
        @at_once sql::snapshots(
            owner: UserId, guild: Option<GuildId>, ?agent: Option<&AgentName>, limit: usize
        ) -> Vec<ContextSnapshotInfo>;
    read "read a snapshot":
        @at_once sql::snapshot(owner: UserId, &id: &SnapshotId) -> Option<ContextSnapshot>;
    read "read a receipt":
        @at_once sql::receipt_of(channel: ChannelId, message: MessageId) -> Option<StoredReceipt>;
    read "read a receipt":
        @at_once sql::last_receipt(channel: ChannelId, reader: UserId) -> Option<StoredReceipt>;
    grouped "remove old receipts": @at_once sql::expire_receipts(limits: ReceiptLimits) -> u64;
    read "read facts": @at_once sql::facts(subject: Subject, most: usize) -> Vec<Fact>;
    alone "edit a message":
        purge::edit_message(channel: ChannelId, message: MessageId, &text: &str) -> u64;
    read "look up messages":
        @at_once sql::held_messages(channel: ChannelId, from: MessageId, to: MessageId) -> Vec<MessageId>;
    read "list servers": @at_once sql::guilds() -> Vec<GuildId>;
    read "list direct messages": @at_once sql::recent_direct(limit: usize) -> Vec<ChannelId>;
    read "list a server's users": @at_once sql::members(guild: GuildId) -> Vec<UserId>;
    read "read entries":
        @at_once sql::records(
            kind: Kind, owner: Option<UserId>, ?after: Option<&Cursor>, limit: usize
        ) -> Records;
    grouped "remove entries": @at_once sql::remove(&keys: &[RecordKey]) -> u64;
    read "count what there is": @at_once sql::stats() -> Vec<KindStats>;
    read "measure the database": records::sizes() -> Vec<PartSize>;
    read "check the store": Session::check(most: Duration) -> Checked;
}
