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
mod lists;
mod messages;
mod purge;
mod receipts;
mod records;
mod room;
mod row;
mod saved;
mod schema;
mod session;
mod tables;
mod texts;
mod worker;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use self::session::{Durability, SqliteSettings};
use async_trait::async_trait;

use self::fault::Fault;
use self::saved::SnapshotPlace;
use self::session::Session;
use self::worker::Queue;
use super::backend::{Visit, each_paged};
use super::{
    Backend, Checked, ConversationStats, Cursor, Error, ExchangeQuery, Kind, KindStats, PartSize,
    Purge, Purged, Record, RecordKey, Records, SnapshotFiles, TurnKey, WindowQuery, disk,
};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, ReceiptLimits, Scope,
    SnapshotId, StoredMessage, StoredReceipt, Subject,
};
use clew_context::model::{ApplicationId, ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// Read connections.
const READERS: usize = 2;
/// Bytes for conversations in memory: some tens of thousands of turns.
const BYTES_IN_MEMORY: u32 = 64 << 20;
/// Rows purged before other calls get a turn: a tenth of a second of work.
const ROWS_A_PURGE_STEP: u64 = 2_048;
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
        let snapshots = Arc::new(SnapshotPlace::Files(snapshots));
        let writer = Session::writer(path, snapshots, settings)?;
        let pending = saved::remove_pending(&writer);
        pending.map_err(|fault| fault.named("open the store", &writer.place))?;
        Self::start(path, writer, Some(hold))
    }

    /// As [`Self::open`], but read-only: it may run beside another process that
    /// uses the file, and then changes nothing. Blocks.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]; [`Error::Open`] if another process uses it and its
    /// schema is of an older version.
    pub fn look(
        path: &Path,
        snapshots: SnapshotFiles,
        settings: &SqliteSettings,
    ) -> Result<Self, Error> {
        match Self::open(path, snapshots.clone(), settings) {
            Err(Error::Held { .. }) => {}
            opened => return opened,
        }
        let snapshots = Arc::new(SnapshotPlace::Files(snapshots));
        let writer = Session::beside(path, snapshots, settings)?;
        Self::start(path, writer, None)
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
        let snapshots = Arc::new(SnapshotPlace::Memory(Mutex::new(BTreeMap::new())));
        let settings = SqliteSettings::default();
        let mut writer = Session::writer(Path::new(":memory:"), snapshots, &settings)?;
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
        W: FnMut(&Session) -> Result<T, Fault> + Send + 'static,
    {
        self.writer.ask(operation, false, work).await
    }

    /// Runs work by itself; it makes its own transactions.
    async fn alone<T, W>(&self, operation: &'static str, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: FnMut(&Session) -> Result<T, Fault> + Send + 'static,
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
        W: FnMut(&Session) -> Result<T, Fault> + Send + 'static,
    {
        let queue = self.readers.as_ref().unwrap_or(&self.writer);
        queue.ask(operation, true, work).await
    }
}

#[async_trait]
impl Backend for Sqlite {
    async fn claim(&self, application: ApplicationId) -> Result<(), Error> {
        self.alone("see whose store it is", move |session| {
            session.transact(|_| lists::claim(session, application))
        })
        .await
    }

    async fn try_writing(&self) -> Result<(), Error> {
        self.grouped("try to write", |session| {
            lists::try_writing(&session.connection)
        })
        .await
    }

    async fn append(&self, turn: &[StoredMessage]) -> Result<u64, Error> {
        let turn = turn.to_vec();
        self.grouped("append a turn", move |session| {
            messages::append(session, &turn)
        })
        .await
    }

    async fn append_early(&self, turn: &[StoredMessage]) -> Result<(), Error> {
        let turn = turn.to_vec();
        self.grouped("append an early turn", move |session| {
            messages::append_early(session, &turn)
        })
        .await
    }

    async fn take_back(&self, key: &TurnKey) -> Result<u64, Error> {
        let key = key.clone();
        self.grouped("take a turn back", move |session| {
            messages::take_back(session, &key)
        })
        .await
    }

    async fn early(&self, limit: usize) -> Result<Vec<StoredMessage>, Error> {
        self.read("read early turns", move |session| {
            messages::early(session, limit)
        })
        .await
    }

    async fn read_window(&self, query: &WindowQuery) -> Result<Vec<StoredMessage>, Error> {
        let query = query.clone();
        self.read("read a conversation", move |session| {
            messages::window(session, &query)
        })
        .await
    }

    async fn read_exchanges(&self, query: &ExchangeQuery) -> Result<Vec<StoredMessage>, Error> {
        let query = query.clone();
        self.read("read a conversation", move |session| {
            messages::exchanges(session, &query)
        })
        .await
    }

    async fn conversation(
        &self,
        scope: Scope,
        _now: UnixMillis,
    ) -> Result<ConversationStats, Error> {
        self.read("count a conversation", move |session| {
            messages::stats(session, scope)
        })
        .await
    }

    async fn delete_conversation(&self, scope: Scope) -> Result<u64, Error> {
        self.alone("delete a conversation", move |session| {
            session.transact(|_| messages::delete(session, scope))
        })
        .await
    }

    async fn clear(&self, key: &ClearKey, at: UnixMillis) -> Result<(), Error> {
        let key = key.clone();
        self.grouped("move a clear marker", move |session| {
            lists::clear(&session.connection, &key, at)
        })
        .await
    }

    async fn cleared_at(
        &self,
        agent: &AgentName,
        guild: Option<GuildId>,
        user: UserId,
    ) -> Result<Option<UnixMillis>, Error> {
        let agent = agent.clone();
        self.read("read a clear marker", move |session| {
            lists::cleared_at(&session.connection, &agent, guild, user)
        })
        .await
    }

    async fn agent_created(&self, agent: &AgentName, now: UnixMillis) -> Result<UnixMillis, Error> {
        const OPERATION: &str = "note when an agent was first seen";
        let name = agent.clone();
        // Nearly always it is known, and nothing has to be written.
        let seen = self.read(OPERATION, move |session| lists::agent_seen(session, &name));
        if let Some(seen) = seen.await? {
            return Ok(seen);
        }
        let name = agent.clone();
        let created = self.grouped(OPERATION, move |session| {
            lists::agent_created(session, &name, now)
        });
        created.await
    }

    async fn own_messages(
        &self,
        owner: UserId,
        agent: &AgentName,
        guild: Option<GuildId>,
        since: UnixMillis,
    ) -> Result<Vec<StoredMessage>, Error> {
        let agent = agent.clone();
        self.read("read a user's messages", move |session| {
            messages::own(session, owner, &agent, guild, since)
        })
        .await
    }

    async fn snapshots(
        &self,
        owner: UserId,
        guild: Option<GuildId>,
        agent: Option<&AgentName>,
        limit: usize,
    ) -> Result<Vec<ContextSnapshotInfo>, Error> {
        let agent = agent.cloned();
        self.read("list snapshots", move |session| {
            saved::list(session, owner, guild, agent.as_ref(), limit)
        })
        .await
    }

    async fn snapshot(
        &self,
        owner: UserId,
        id: &SnapshotId,
    ) -> Result<Option<ContextSnapshot>, Error> {
        let id = id.clone();
        self.read("read a snapshot", move |session| {
            saved::one(session, owner, &id)
        })
        .await
    }

    async fn receipt_of(
        &self,
        channel: ChannelId,
        message: MessageId,
    ) -> Result<Option<StoredReceipt>, Error> {
        self.read("read a receipt", move |session| {
            receipts::of_message(session, channel, message)
        })
        .await
    }

    async fn last_receipt(
        &self,
        channel: ChannelId,
        reader: UserId,
    ) -> Result<Option<StoredReceipt>, Error> {
        self.read("read a receipt", move |session| {
            receipts::last(session, channel, reader)
        })
        .await
    }

    async fn expire_receipts(&self, limits: ReceiptLimits) -> Result<u64, Error> {
        self.alone("remove old receipts", move |session| {
            session.transact(|connection| receipts::expire(connection, limits))
        })
        .await
    }

    async fn facts(&self, subject: Subject, most: usize) -> Result<Vec<Fact>, Error> {
        self.read("read facts", move |session| {
            facts::about(session, subject, most)
        })
        .await
    }

    async fn matching_facts(
        &self,
        guild: GuildId,
        words: &str,
        limit: usize,
    ) -> Result<Vec<FactId>, Error> {
        let words = words.to_owned();
        self.read("search facts", move |session| {
            facts::matching(session, guild, &words, limit)
        })
        .await
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
            let purged = purge::purge(session, &purge)?;
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

    async fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        text: &str,
    ) -> Result<u64, Error> {
        let text = text.to_owned();
        self.alone("edit a message", move |session| {
            purge::edit(session, channel, message, &text)
        })
        .await
    }

    async fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<MessageId>, Error> {
        let look = move |session: &Session| purge::held(session, channel, from, to);
        self.read("look up messages", look).await
    }

    async fn guilds(&self) -> Result<Vec<GuildId>, Error> {
        self.read("list servers", lists::guilds).await
    }

    async fn recent_direct(&self, limit: usize) -> Result<Vec<ChannelId>, Error> {
        let list = move |session: &Session| lists::recent_direct(session, limit);
        self.read("list direct messages", list).await
    }

    async fn members(&self, guild: GuildId) -> Result<Vec<UserId>, Error> {
        let list = move |session: &Session| lists::members(session, guild);
        self.read("list a server's users", list).await
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

    async fn records(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Records, Error> {
        let after = after.cloned();
        self.read("read entries", move |session| {
            records::page(session, kind, owner, after.as_ref(), limit)
        })
        .await
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

    async fn remove(&self, keys: &[RecordKey]) -> Result<u64, Error> {
        let keys = keys.to_vec();
        self.alone("remove entries", move |session| {
            session.transact(|_| records::remove(session, &keys))
        })
        .await
    }

    async fn stats(&self) -> Result<Vec<KindStats>, Error> {
        self.read("count what there is", records::stats).await
    }

    async fn sizes(&self) -> Result<Vec<PartSize>, Error> {
        self.read("measure the database", |session| {
            let mut sizes = records::sizes(session)?;
            sizes.extend(session.snapshots.size()?);
            Ok(sizes)
        })
        .await
    }

    async fn check(&self, most: Duration) -> Result<Checked, Error> {
        self.read("check the store", move |session| session.check(most))
            .await
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
        drop(
            self.hold
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        Ok(())
    }
}
