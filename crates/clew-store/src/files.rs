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

use super::any::not_begun;
use super::backend::{Visit, delegating};
use super::disk::blocking;
use super::json::Fields;
use super::pages::each_paged;
use super::{
    Backend, Capacity, ConversationStats, Cursor, Error, ExchangeQuery, Kind, KindStats, PartSize,
    Purge, Purged, Record, RecordKey, Records, TurnKey, WindowQuery,
};
use crate::model::{AgentName, ClearKey, Fact, Scope, StoredMessage, Subject};
use clew_context::model::{
    ApplicationId, ChannelId, Clock, GuildId, MessageId, UnixMillis, UserId,
};

/// The version of every file format.
const VERSION: u32 = 1;

/// The folders of a store of files: its own, of users' profiles, of servers' profiles.
pub type FileFolders = [PathBuf; 3];

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
    pub async fn open(folders: FileFolders, clock: Clock) -> Result<Self, Error> {
        blocking("open the files", move || {
            Self::start(StoreFolder::open(folders, clock)?)
        })
        .await
    }

    /// Reads a copy of them, in `TMPDIR`: another process may use them or start meanwhile, and
    /// they are left as they are.
    ///
    /// # Errors
    ///
    /// As [`Files::open`], but for the other process; there is no room for the copy.
    pub async fn look(folders: FileFolders, clock: Clock) -> Result<Self, Error> {
        blocking("open the files", move || {
            let found = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
            let [dir, users, servers] = folders.each_ref().map(found);
            let is_one_twice = dir == users || dir == servers || users == servers;
            Self::start(if is_one_twice {
                // Refused.
                StoreFolder::open(folders, clock)?
            } else {
                StoreFolder::copied(folders, clock)?
            })
        })
        .await
    }

    /// See [`Store::peek`](crate::Store::peek); files have no receipts. Each file is replaced whole,
    /// so that what is read of it is whole. Blocks.
    pub(super) fn peek(
        folders: FileFolders,
        clock: Clock,
        application: ApplicationId,
    ) -> Result<Vec<Record>, Error> {
        if !folders[0].is_dir() {
            return Err(not_begun(folders[0].display()));
        }
        StoreFolder::unlocked(folders, clock).standing(application)
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
    Error::unavailable(operation, "the store is closed")
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

/// Refuses a file of a newer version, and leaves it unchanged.
fn check_version(fields: &Fields) -> Result<(), Unread> {
    let found: u64 = fields.need("version")?;
    match u32::try_from(found).unwrap_or(u32::MAX) {
        VERSION => Ok(()),
        0 => Err(fields.unfit("version", "a version").into()),
        newer => Err(Unread::Newer(newer)),
    }
}

delegating! {
    impl Backend for Files {
        fn capacity(&self) -> Capacity {
            Capacity::NewestTurns
        }

        /// Nobody else writes: the folder is this process's alone.
        async fn each_record(&self, visit: Visit<'_>) -> Result<(), Error> {
            each_paged(self, visit).await
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

    run "see whose store it is": StoreFolder::claim(application: ApplicationId) -> ();
    run "try to write": StoreFolder::try_writing() -> ();
    run "append a turn": StoreFolder::append(&turn: &[StoredMessage]) -> u64;
    run "store an early turn": StoreFolder::append_early(&turn: &[StoredMessage]) -> ();
    run "take a turn back": StoreFolder::take_back(&key: &TurnKey) -> u64;
    run "read early turns": StoreFolder::early(limit: usize) -> Vec<StoredMessage>;
    run "read a conversation":
        StoreFolder::read_window(&query: &WindowQuery) -> Vec<StoredMessage>;
    run "read a conversation":
        StoreFolder::read_exchanges(&query: &ExchangeQuery) -> Vec<StoredMessage>;
    run "look at a conversation":
        StoreFolder::conversation(scope: Scope, now: UnixMillis) -> ConversationStats;
    run "delete a conversation": StoreFolder::delete_conversation(scope: Scope) -> u64;
    run "clear": StoreFolder::clear(&key: &ClearKey, at: UnixMillis) -> ();
    run "read a marker":
        StoreFolder::cleared_at(&agent: &AgentName, guild: Option<GuildId>, user: UserId)
            -> Option<UnixMillis>;
    run "note an agent":
        StoreFolder::agent_created(&agent: &AgentName, now: UnixMillis) -> UnixMillis;
    run "read a user's messages":
        StoreFolder::own_messages(
            owner: UserId, &agent: &AgentName, guild: Option<GuildId>, since: UnixMillis
        ) -> Vec<StoredMessage>;
    run "read facts": StoreFolder::facts(subject: Subject, most: usize) -> Vec<Fact>;
    run "purge": StoreFolder::purge(&purge: &Purge) -> Purged;
    run "edit a message":
        StoreFolder::edit_message(channel: ChannelId, message: MessageId, &text: &str) -> u64;
    run "list a channel's messages":
        StoreFolder::held_messages(channel: ChannelId, from: MessageId, to: MessageId)
            -> Vec<MessageId>;
    run "list servers": StoreFolder::guilds() -> Vec<GuildId>;
    run "list direct messages": StoreFolder::recent_direct(limit: usize) -> Vec<ChannelId>;
    run "list a server's users": StoreFolder::members(guild: GuildId) -> Vec<UserId>;
    run "sweep": StoreFolder::sweep(now: UnixMillis) -> u64;
    run "read entries":
        StoreFolder::records(
            kind: Kind, owner: Option<UserId>, ?after: Option<&Cursor>, limit: usize
        ) -> Records;
    run "write entries": StoreFolder::write(&records: &[Record]) -> ();
    run "remove entries": StoreFolder::remove(&keys: &[RecordKey]) -> u64;
    run "count": StoreFolder::stats() -> Vec<KindStats>;
    run "measure the files": StoreFolder::sizes() -> Vec<PartSize>;
    run "tidy the folders": StoreFolder::vacuum() -> ();
}
