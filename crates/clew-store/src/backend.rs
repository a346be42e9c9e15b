//! What a store can do.

use std::future::Future;
use std::time::Duration;

use super::{Cursor, Error, Kind, KindStats, Purge, Purged, Record, Records};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, GuildSettings, Scope,
    SnapshotId, StoredMessage, Subject,
};
use clew_context::model::{ApplicationId, ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// Which rows of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowQuery {
    /// The conversation.
    pub scope: Scope,
    /// With this agent.
    pub agent: AgentName,
    /// Later than this.
    pub since: UnixMillis,
    /// Later than the clear markers that apply to this asker, too.
    pub cleared: Option<Asker>,
    /// At most so many, the newest.
    pub limit: usize,
}

/// Whose clear markers apply: those of a user and everybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// In this server; none in direct messages.
    pub guild: Option<GuildId>,
    /// Who asks.
    pub user: UserId,
}

/// What there is of one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationStats {
    /// There is something.
    pub exists: bool,
    /// Rows.
    pub message_count: usize,
    /// Time until it goes by itself; none if it never does.
    pub expires_in: Option<Duration>,
}

/// A result that comes later, on any thread.
pub trait Answer<T>: Future<Output = Result<T, Error>> + Send {}
impl<T, F: Future<Output = Result<T, Error>> + Send> Answer<T> for F {}

/// What a store can do. What is confirmed is durable: it survives `kill -9`.
/// No call blocks the async thread.
///
/// Every error is one of [`Error`]; a call that fails has changed nothing.
pub trait Backend: Send + Sync {
    /// Says whose store it is; the first to say so is.
    ///
    /// # Errors
    /// [`Error::Owned`] if it is another application's.
    fn claim(&self, application: ApplicationId) -> impl Answer<()>;

    /// Appends one turn to its conversation, all rows or none, and gives its
    /// ordinal. All rows have one scope, agent, turn. A turn that is there
    /// already in that scope is replaced and keeps its ordinal.
    ///
    /// A clock that went back is made up for: each row's timestamp is moved up
    /// to that of the conversation's newest row, and beyond the clear markers
    /// that apply to the turn's owner.
    fn append(&self, turn: &[StoredMessage]) -> impl Answer<u64>;

    /// The newest rows of a conversation, oldest first.
    fn window(&self, query: &WindowQuery) -> impl Answer<Vec<StoredMessage>>;

    /// What there is of a conversation, with all agents.
    fn conversation(&self, scope: Scope, now: UnixMillis) -> impl Answer<ConversationStats>;

    /// Deletes a conversation with all agents (`/clear-context`).
    /// Says how many rows went.
    fn delete_conversation(&self, scope: Scope) -> impl Answer<u64>;

    /// Moves a marker forward (`/context clear`). Rows stay.
    fn clear(&self, key: &ClearKey, at: UnixMillis) -> impl Answer<()>;

    /// The latest of the user's own marker and everybody's, for an agent in a
    /// server or in direct messages.
    fn cleared_at(
        &self,
        agent: &AgentName,
        guild: Option<GuildId>,
        user: UserId,
    ) -> impl Answer<Option<UnixMillis>>;

    /// When an agent was first seen, noted as `since` if it was not: its first
    /// marker.
    fn agent_created(&self, agent: &AgentName, since: UnixMillis) -> impl Answer<UnixMillis>;

    /// A user's own rows with an agent in a server (or in direct messages), in
    /// all channels and scopes, later than `since`, oldest first: what
    /// `/context save` keeps.
    fn own_messages(
        &self,
        owner: UserId,
        agent: &AgentName,
        guild: Option<GuildId>,
        since: UnixMillis,
    ) -> impl Answer<Vec<StoredMessage>>;

    /// Keeps a snapshot: its file and its row.
    fn save_snapshot(&self, snapshot: &ContextSnapshot) -> impl Answer<()>;

    /// A user's snapshots of a server (or of direct messages), newest first;
    /// of one agent or of all.
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

    /// Removes facts. Says how many went.
    fn remove_facts(&self, facts: &[FactId]) -> impl Answer<u64>;

    /// A server's facts that match words of a conversation, best first, at
    /// most `limit` (BM25, or PostgreSQL's own ranking). `words` is any text.
    fn matching_facts(&self, guild: GuildId, words: &str, limit: usize)
    -> impl Answer<Vec<FactId>>;

    /// Who opted out, and when.
    fn opt_outs(&self) -> impl Answer<Vec<(UserId, UnixMillis)>>;

    /// Notes an opt-out, or its end.
    fn set_opt_out(&self, user: UserId, since: Option<UnixMillis>) -> impl Answer<()>;

    /// The settings of all servers.
    fn settings(&self) -> impl Answer<Vec<(GuildId, GuildSettings)>>;

    /// Replaces the settings of a server.
    fn set_settings(&self, guild: GuildId, settings: &GuildSettings) -> impl Answer<()>;

    /// Servers that we left, and when.
    fn departures(&self) -> impl Answer<Vec<(GuildId, UnixMillis)>>;

    /// Notes that we left a server, or are back.
    fn set_departure(&self, guild: GuildId, at: Option<UnixMillis>) -> impl Answer<()>;

    /// Removes what has to go, without a trace in any file.
    fn purge(&self, purge: &Purge) -> impl Answer<Purged>;

    /// An edited message: its rows, and their copies in snapshots, get the new
    /// text. Says how many rows there were.
    fn edit_message(&self, channel: ChannelId, message: MessageId, text: &str) -> impl Answer<u64>;

    /// Which messages of a channel are held in any form, within a range of
    /// ids, both ends included: what a fetched page is compared with.
    fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> impl Answer<Vec<MessageId>>;

    /// Servers of which anything is kept, beside departures: some may have been
    /// left unseen.
    fn guilds(&self) -> impl Answer<Vec<GuildId>>;

    /// Users with anything from a server: who may have left it unseen.
    fn members(&self, guild: GuildId) -> impl Answer<Vec<UserId>>;

    /// Removes what expires by itself (files). Says how many rows
    /// went.
    fn sweep(&self, now: UnixMillis) -> impl Answer<u64>;

    /// Entries of a kind, of one user or of all, from a place on.
    fn records(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> impl Answer<Records>;

    /// Writes entries as they are, replacing those with the same key.
    fn write(&self, records: &[Record]) -> impl Answer<()>;

    /// How much there is of each kind.
    fn stats(&self) -> impl Answer<Vec<KindStats>>;

    /// Clears away what deletions and edits left behind, if it is time for
    /// that; others work meanwhile. Called every minute.
    fn tidy(&self) -> impl Answer<()> {
        std::future::ready(Ok(()))
    }

    /// Gives room back to the file system.
    fn vacuum(&self) -> impl Answer<()>;

    /// Finishes what is being written and lets go of files and connections.
    fn close(&self) -> impl Answer<()>;
}
