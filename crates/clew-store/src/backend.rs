//! The operations of a store.

use std::future::Future;
use std::time::Duration;

use super::{Cursor, Error, Kind, KindStats, Purge, Purged, Record, Records};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, GuildSettings, Scope,
    SnapshotId, StoredMessage, Subject,
};
use clew_context::model::{ApplicationId, ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// Selects rows of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowQuery {
    /// The conversation.
    pub scope: Scope,
    /// Rows of this agent only.
    pub agent: AgentName,
    /// Rows later than this.
    pub since: UnixMillis,
    /// Also later than the clear markers that apply to this asker.
    pub cleared: Option<Asker>,
    /// At most this many, the newest.
    pub limit: usize,
}

/// Whose clear markers apply: those of one user and those of everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// In this server; `None` for direct messages.
    pub guild: Option<GuildId>,
    /// Who asks.
    pub user: UserId,
}

/// What is stored of one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationStats {
    /// Whether anything is stored.
    pub exists: bool,
    /// Rows.
    pub message_count: usize,
    /// Time until it expires; `None` if it never does.
    pub expires_in: Option<Duration>,
}

/// A future result that can be awaited on any thread.
pub trait Answer<T>: Future<Output = Result<T, Error>> + Send {}
impl<T, F: Future<Output = Result<T, Error>> + Send> Answer<T> for F {}

/// What a store can do. Confirmed writes are durable: they survive `kill -9`.
/// No call blocks the async thread.
///
/// Every error is an [`Error`]; a failed call has changed nothing.
pub trait Backend: Send + Sync {
    /// Claims the store for an application; the first to claim it owns it.
    ///
    /// # Errors
    /// [`Error::Owned`] if another application owns it.
    fn claim(&self, application: ApplicationId) -> impl Answer<()>;

    /// Appends one turn to its conversation, all rows or none, and returns its
    /// ordinal. All rows share one scope, agent and turn. A turn already in
    /// that scope is replaced and keeps its ordinal.
    ///
    /// Makes up for a clock that went back: each row's timestamp is raised to
    /// that of the conversation's newest row, and past the clear markers that
    /// apply to the turn's owner.
    fn append(&self, turn: &[StoredMessage]) -> impl Answer<u64>;

    /// The newest rows of a conversation, oldest first.
    fn window(&self, query: &WindowQuery) -> impl Answer<Vec<StoredMessage>>;

    /// What is stored of a conversation, across all agents.
    fn conversation(&self, scope: Scope, now: UnixMillis) -> impl Answer<ConversationStats>;

    /// Deletes a conversation for all agents (`/clear-context`). Returns how
    /// many rows were deleted.
    fn delete_conversation(&self, scope: Scope) -> impl Answer<u64>;

    /// Moves a clear marker forward (`/context clear`). Rows stay.
    fn clear(&self, key: &ClearKey, at: UnixMillis) -> impl Answer<()>;

    /// The later of the user's own marker and everybody's, for an agent in a
    /// server or in direct messages.
    fn cleared_at(
        &self,
        agent: &AgentName,
        guild: Option<GuildId>,
        user: UserId,
    ) -> impl Answer<Option<UnixMillis>>;

    /// When an agent was first seen, before which it has no history. Records
    /// `since` if it was not known.
    fn agent_created(&self, agent: &AgentName, since: UnixMillis) -> impl Answer<UnixMillis>;

    /// A user's own rows with an agent in a server (or in direct messages),
    /// across channels and scopes, later than `since`, oldest first: what
    /// `/context save` saves.
    fn own_messages(
        &self,
        owner: UserId,
        agent: &AgentName,
        guild: Option<GuildId>,
        since: UnixMillis,
    ) -> impl Answer<Vec<StoredMessage>>;

    /// Saves a snapshot: its file and its row.
    fn save_snapshot(&self, snapshot: &ContextSnapshot) -> impl Answer<()>;

    /// A user's snapshots from a server (or from direct messages), newest
    /// first, of one agent or of all.
    fn snapshots(
        &self,
        owner: UserId,
        guild: Option<GuildId>,
        agent: Option<&AgentName>,
        limit: usize,
    ) -> impl Answer<Vec<ContextSnapshotInfo>>;

    /// One of a user's snapshots.
    fn snapshot(&self, owner: UserId, id: &SnapshotId) -> impl Answer<Option<ContextSnapshot>>;

    /// All facts about a user or a server, oldest first.
    fn facts(&self, subject: Subject) -> impl Answer<Vec<Fact>>;

    /// Writes facts, replacing those with the same id.
    fn put_facts(&self, facts: &[Fact]) -> impl Answer<()>;

    /// Removes facts. Returns how many were removed.
    fn remove_facts(&self, facts: &[FactId]) -> impl Answer<u64>;

    /// At most `limit` of a server's facts that match `words`, which may be any
    /// text; best first (by BM25, or PostgreSQL's own ranking).
    fn matching_facts(&self, guild: GuildId, words: &str, limit: usize)
    -> impl Answer<Vec<FactId>>;

    /// Who opted out, and when.
    fn opt_outs(&self) -> impl Answer<Vec<(UserId, UnixMillis)>>;

    /// Records an opt-out, or removes it (`None`).
    fn set_opt_out(&self, user: UserId, since: Option<UnixMillis>) -> impl Answer<()>;

    /// The settings of all servers.
    fn settings(&self) -> impl Answer<Vec<(GuildId, GuildSettings)>>;

    /// Replaces a server's settings.
    fn set_settings(&self, guild: GuildId, settings: &GuildSettings) -> impl Answer<()>;

    /// Servers that we left, and when.
    fn departures(&self) -> impl Answer<Vec<(GuildId, UnixMillis)>>;

    /// Records that we left a server, or that we are back (`None`).
    fn set_departure(&self, guild: GuildId, at: Option<UnixMillis>) -> impl Answer<()>;

    /// Removes everything a purge covers, leaving no trace in any file.
    fn purge(&self, purge: &Purge) -> impl Answer<Purged>;

    /// Gives an edited message its new text, in its rows and in snapshots.
    /// Returns how many rows matched.
    fn edit_message(&self, channel: ChannelId, message: MessageId, text: &str) -> impl Answer<u64>;

    /// Which messages of a channel are stored in any form, within an inclusive
    /// range of ids; compared with a fetched page.
    fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> impl Answer<Vec<MessageId>>;

    /// Servers with anything stored, besides departures; we may have left some
    /// of them while offline.
    fn guilds(&self) -> impl Answer<Vec<GuildId>>;

    /// Users with anything stored from a server; they may have left it while we
    /// were offline.
    fn members(&self, guild: GuildId) -> impl Answer<Vec<UserId>>;

    /// Removes what expired (files); clears deleted rows and shrinks the file
    /// if worthwhile (SQLite). Returns how many rows expired.
    fn sweep(&self, now: UnixMillis) -> impl Answer<u64>;

    /// Entries of a kind, of one user or of all, continuing from a cursor.
    fn records(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> impl Answer<Records>;

    /// Writes entries unchanged, replacing those with the same key.
    fn write(&self, records: &[Record]) -> impl Answer<()>;

    /// How much there is of each kind.
    fn stats(&self) -> impl Answer<Vec<KindStats>>;

    /// Cleans up what deletions and edits left behind, if it is due, without
    /// blocking other calls. Called every minute.
    fn tidy(&self) -> impl Answer<()> {
        std::future::ready(Ok(()))
    }

    /// Returns unused space to the file system.
    fn vacuum(&self) -> impl Answer<()>;

    /// Finishes pending writes and releases files and connections.
    fn close(&self) -> impl Answer<()>;
}
