//! `CONTEXT_STORE=files:DIR`: one JSON file per conversation, with other files
//! for the rest.
//!
//! `DIR/guilds/{guild}/{channel}/{user}.json` and `DIR/dms/{user}.json` hold
//! conversations; `DIR/markers/`, `DIR/settings/{guild}.json`,
//! `DIR/opt_outs.json`, `DIR/departures.json` and `DIR/agents.json` the rest,
//! `DIR/early/` turns that are not confirmed; facts are in `USER_PROFILE_DIR/{user}.json` and
//! `SERVER_PROFILE_DIR/{guild}.json`. Every part of a path that comes from
//! outside is a number.
//!
//! A conversation holds at most 15 messages, in the newest whole turns, for 24
//! hours from its first. Ordinals restart with a new file. Rows copied from
//! another store live for 24 hours after the copy.

mod conversation;
mod copy;
mod early;
mod entries;
mod folder;
mod look;
mod purge;
mod turns;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

pub(super) use conversation::MOST_MESSAGES;
use folder::{StoreFolder, Unread};

use super::backend::{Visit, each_paged};
use super::disk::blocking;
use super::json::{Fields, FormError, NUMBER};
use super::{
    Backend, Capacity, ConversationStats, Cursor, Error, ExchangeQuery, Kind, KindStats, PartSize,
    Purge, Purged, Record, RecordKey, Records, TurnKey, WindowQuery,
};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, ReceiptLimits, Scope,
    SnapshotId, StoredMessage, StoredReceipt, Subject,
};
use clew_context::model::{
    ApplicationId, ChannelId, Clock, GuildId, MessageId, UnixMillis, UserId,
};

/// The version of every file format.
const VERSION: u32 = 1;

/// A store of files. Two processes never share one.
#[derive(Clone)]
pub struct Files(Arc<StoreFolder>);

impl Files {
    /// Creates missing folders, locks them for this process and removes files a
    /// killed process left half-written. The clock decides when files expire.
    ///
    /// # Errors
    ///
    /// A folder cannot be created or read, another process uses it, or two of
    /// the three are the same.
    pub async fn open(
        dir: PathBuf,
        user_profiles: PathBuf,
        server_profiles: PathBuf,
        clock: Clock,
    ) -> Result<Self, Error> {
        blocking("open the files", move || {
            Self::start(StoreFolder::open(
                dir,
                user_profiles,
                server_profiles,
                clock,
            )?)
        })
        .await
    }

    /// Opens them for reading. If another process uses them, a copy in `TMPDIR` is read, and
    /// they are left as they are.
    ///
    /// # Errors
    ///
    /// As [`Files::open`], but for the other process; there is no room for the copy.
    pub async fn look(
        dir: PathBuf,
        user_profiles: PathBuf,
        server_profiles: PathBuf,
        clock: Clock,
    ) -> Result<Self, Error> {
        let folders = [dir, user_profiles, server_profiles];
        blocking("open the files", move || {
            let [dir, users, servers] = folders.clone();
            let opened = StoreFolder::open(dir, users, servers, Arc::clone(&clock));
            let is_one_twice = || {
                let [dir, users, servers] = folders.each_ref().map(|path| path.canonicalize().ok());
                dir == users || dir == servers || users == servers
            };
            match opened {
                Err(Error::Open { .. }) if !is_one_twice() => {
                    Self::start(StoreFolder::copied(folders, clock)?)
                }
                opened => Self::start(opened?),
            }
        })
        .await
    }

    fn start(folder: StoreFolder) -> Result<Self, Error> {
        folder.index_conversations()?;
        folder.index_links()?;
        Ok(Self(Arc::new(folder)))
    }

    /// The file version of this program.
    pub const NEWEST_VERSION: u32 = VERSION;

    /// The file version of a folder; `None` if it does not exist. Each file
    /// states its own, which is checked when it is read.
    pub fn version(dir: &Path) -> Option<u32> {
        dir.exists().then_some(VERSION)
    }

    /// Runs work with the files on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&StoreFolder) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = Arc::clone(&self.0);
        blocking(operation, move || {
            if folder.is_released() {
                return Err(closed(operation));
            }
            work(&folder)
        })
        .await
    }
}

fn closed(operation: &'static str) -> Error {
    Error::Unavailable {
        operation,
        source: "the store is closed".into(),
    }
}

/// Other agents need a database.
pub(super) fn check_agent(agent: &AgentName) -> Result<(), Error> {
    if *agent == AgentName::default_agent() {
        return Ok(());
    }
    Err(Error::NeedsDatabase {
        what: "agents other than the default one",
    })
}

fn no_snapshots() -> Error {
    Error::NeedsDatabase {
        what: "saved conversations",
    }
}

/// A receipt is found by any of its messages, for weeks: that takes an index.
fn no_receipts() -> Error {
    Error::NeedsDatabase {
        what: "receipts of answers",
    }
}

/// Refuses a file of a newer version, and leaves it unchanged.
fn check_version(fields: &Fields) -> Result<(), Unread> {
    let found = fields.need("version", NUMBER)?;
    match u32::try_from(found).unwrap_or(u32::MAX) {
        VERSION => Ok(()),
        0 => Err(Unread::Form(FormError::Unfit {
            field: "version".to_owned(),
            expected: "a version",
        })),
        newer => Err(Unread::Newer(newer)),
    }
}

#[async_trait]
impl Backend for Files {
    fn capacity(&self) -> Capacity {
        Capacity::NewestTurns
    }

    async fn claim(&self, application: ApplicationId) -> Result<(), Error> {
        self.run("see whose store it is", move |folder| {
            folder.claim(application)
        })
        .await
    }

    async fn try_writing(&self) -> Result<(), Error> {
        self.run("try to write", StoreFolder::try_writing).await
    }

    async fn append(&self, turn: &[StoredMessage]) -> Result<u64, Error> {
        let turn = turn.to_vec();
        self.run("append a turn", move |folder| folder.append(&turn))
            .await
    }

    async fn append_early(&self, turn: &[StoredMessage]) -> Result<(), Error> {
        let turn = turn.to_vec();
        self.run("store an early turn", move |folder| {
            folder.append_early(&turn)
        })
        .await
    }

    async fn take_back(&self, key: &TurnKey) -> Result<u64, Error> {
        let key = key.clone();
        self.run("take a turn back", move |folder| folder.take_back(&key))
            .await
    }

    async fn early(&self, limit: usize) -> Result<Vec<StoredMessage>, Error> {
        self.run("read early turns", move |folder| folder.early(limit))
            .await
    }

    async fn read_window(&self, query: &WindowQuery) -> Result<Vec<StoredMessage>, Error> {
        let query = query.clone();
        self.run("read a conversation", move |folder| folder.window(&query))
            .await
    }

    async fn read_exchanges(&self, query: &ExchangeQuery) -> Result<Vec<StoredMessage>, Error> {
        let query = query.clone();
        self.run("read a conversation", move |folder| {
            folder.exchanges(&query)
        })
        .await
    }

    async fn conversation(
        &self,
        scope: Scope,
        now: UnixMillis,
    ) -> Result<ConversationStats, Error> {
        self.run("look at a conversation", move |folder| {
            folder.conversation_stats(scope, now)
        })
        .await
    }

    async fn delete_conversation(&self, scope: Scope) -> Result<u64, Error> {
        self.run("delete a conversation", move |folder| {
            folder.delete_conversation(scope)
        })
        .await
    }

    async fn clear(&self, key: &ClearKey, at: UnixMillis) -> Result<(), Error> {
        let key = key.clone();
        self.run("clear", move |folder| folder.clear(&key, at))
            .await
    }

    async fn cleared_at(
        &self,
        agent: &AgentName,
        guild: Option<GuildId>,
        user: UserId,
    ) -> Result<Option<UnixMillis>, Error> {
        let agent = agent.clone();
        self.run("read a marker", move |folder| {
            folder.cleared_at(&agent, guild, user)
        })
        .await
    }

    async fn agent_created(&self, agent: &AgentName, now: UnixMillis) -> Result<UnixMillis, Error> {
        let agent = agent.clone();
        self.run("note an agent", move |folder| {
            folder.agent_created(&agent, now)
        })
        .await
    }

    async fn own_messages(
        &self,
        owner: UserId,
        agent: &AgentName,
        guild: Option<GuildId>,
        since: UnixMillis,
    ) -> Result<Vec<StoredMessage>, Error> {
        let agent = agent.clone();
        self.run("read a user's messages", move |folder| {
            folder.own_messages(owner, &agent, guild, since)
        })
        .await
    }

    async fn snapshots(
        &self,
        _: UserId,
        _: Option<GuildId>,
        _: Option<&AgentName>,
        _: usize,
    ) -> Result<Vec<ContextSnapshotInfo>, Error> {
        Err(no_snapshots())
    }

    async fn snapshot(&self, _: UserId, _: &SnapshotId) -> Result<Option<ContextSnapshot>, Error> {
        Err(no_snapshots())
    }

    async fn receipt_of(&self, _: ChannelId, _: MessageId) -> Result<Option<StoredReceipt>, Error> {
        Err(no_receipts())
    }

    async fn last_receipt(&self, _: ChannelId, _: UserId) -> Result<Option<StoredReceipt>, Error> {
        Err(no_receipts())
    }

    async fn expire_receipts(&self, _: ReceiptLimits) -> Result<u64, Error> {
        Ok(0)
    }

    async fn facts(&self, subject: Subject, most: usize) -> Result<Vec<Fact>, Error> {
        self.run("read facts", move |folder| folder.facts(subject, most))
            .await
    }

    async fn matching_facts(
        &self,
        guild: GuildId,
        words: &str,
        limit: usize,
    ) -> Result<Vec<FactId>, Error> {
        let words = words.to_owned();
        self.run("rank facts", move |folder| {
            folder.matching_facts(guild, &words, limit)
        })
        .await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        let purge = purge.clone();
        self.run("purge", move |folder| folder.purge(&purge)).await
    }

    async fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        text: &str,
    ) -> Result<u64, Error> {
        let text = text.to_owned();
        self.run("edit a message", move |folder| {
            folder.edit_message(channel, message, &text)
        })
        .await
    }

    async fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<MessageId>, Error> {
        self.run("list a channel's messages", move |folder| {
            folder.held_messages(channel, from, to)
        })
        .await
    }

    async fn guilds(&self) -> Result<Vec<GuildId>, Error> {
        self.run("list servers", StoreFolder::kept_guilds).await
    }

    async fn recent_direct(&self, limit: usize) -> Result<Vec<ChannelId>, Error> {
        self.run("list direct messages", move |folder| {
            folder.recent_direct(limit)
        })
        .await
    }

    async fn members(&self, guild: GuildId) -> Result<Vec<UserId>, Error> {
        self.run("list a server's users", move |folder| folder.members(guild))
            .await
    }

    async fn sweep(&self, now: UnixMillis) -> Result<u64, Error> {
        self.run("sweep", move |folder| folder.sweep(now)).await
    }

    async fn records(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Records, Error> {
        let after = after.cloned();
        self.run("read entries", move |folder| {
            folder.records(kind, owner, after.as_ref(), limit)
        })
        .await
    }

    /// Nobody else writes: the folder is this process's alone.
    async fn each_record(&self, visit: Visit<'_>) -> Result<(), Error> {
        each_paged(self, visit).await
    }

    async fn write(&self, records: &[Record]) -> Result<(), Error> {
        let records = records.to_vec();
        self.run("write entries", move |folder| folder.write(&records))
            .await
    }

    async fn remove(&self, keys: &[RecordKey]) -> Result<u64, Error> {
        let keys = keys.to_vec();
        self.run("remove entries", move |folder| folder.remove(&keys))
            .await
    }

    async fn stats(&self) -> Result<Vec<KindStats>, Error> {
        self.run("count", StoreFolder::stats).await
    }

    async fn sizes(&self) -> Result<Vec<PartSize>, Error> {
        self.run("measure the files", StoreFolder::sizes).await
    }

    async fn vacuum(&self) -> Result<(), Error> {
        self.run("tidy the folders", StoreFolder::tidy).await
    }

    async fn close(&self) -> Result<(), Error> {
        let folder = Arc::clone(&self.0);
        blocking("close", move || {
            folder.release();
            Ok(())
        })
        .await
    }
}
