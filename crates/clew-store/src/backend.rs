//! The operations of a store.

use std::time::Duration;

use async_trait::async_trait;

use super::{Cursor, Error, Kind, KindStats, PartSize, Purge, Purged, Record, RecordKey, Records};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, GuildSettings,
    ReceiptLimits, Scope, SnapshotId, StoredMessage, StoredReceipt, Subject,
};
use clew_context::model::{
    ApplicationId, ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId,
};

/// What looking for damage found: no damage, in what was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// All of it was looked at.
    Whole,
    /// Looking took too long.
    InPart,
}

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
    /// Whether rows of tools are read, too, and count.
    pub with_tools: bool,
    /// At most this many, the newest.
    pub limit: usize,
}

impl WindowQuery {
    /// The time that rows have to be later than.
    pub(crate) fn start(&self, cleared: Option<UnixMillis>) -> UnixMillis {
        cleared.map_or(self.since, |at| at.max(self.since))
    }
}

/// Selects questions and answers of a conversation, whatever their age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeQuery {
    /// The conversation.
    pub scope: Scope,
    /// Rows of this agent only.
    pub agent: AgentName,
    /// Which of them.
    pub which: Exchanges,
    /// At most this many rows.
    pub limit: usize,
}

/// Which questions and answers of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchanges {
    /// The newest of those with lower ordinals.
    Below(u64),
    /// The oldest of those with higher ordinals.
    Above(u64),
    /// Those of these turns; the oldest.
    Turns(Vec<TurnId>),
}

/// Whose clear markers apply: those of one user and those of everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// In this server; `None` for direct messages.
    pub guild: Option<GuildId>,
    /// Who asks.
    pub user: UserId,
}

/// What identifies a turn in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnKey {
    /// The conversation.
    pub scope: Scope,
    /// The agent that answered.
    pub agent: AgentName,
    /// The turn.
    pub turn: TurnId,
}

impl TurnKey {
    /// The turn of a row.
    pub fn of(row: &StoredMessage) -> Self {
        Self {
            scope: row.scope,
            agent: row.agent.clone(),
            turn: row.turn,
        }
    }
}

/// The rows, if all are of this conversation; otherwise none.
fn all_of(scope: Scope, rows: Vec<StoredMessage>) -> Vec<StoredMessage> {
    let is_theirs = |row: &StoredMessage| {
        row.scope == scope && scope.owner().is_none_or(|owner| owner == row.owner)
    };
    let Some(row) = rows.iter().find(|row| !is_theirs(row)) else {
        return rows;
    };
    tracing::error!(asked = %scope, found = %row.scope, owner = %row.owner,
        "a stored row does not belong to the conversation that was asked for: nothing of it is \
         loaded");
    Vec::new()
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

/// Takes each entry; its error ends the reading.
pub type Visit<'a> = &'a mut (dyn FnMut(Record) -> Result<(), Error> + Send);

/// How many of the newest rows [`Backend::recent_direct`] looks at.
pub(crate) const RECENT_ROWS: usize = 20_000;

/// What a store can hold of another's records; see [`CopyPlan`](super::CopyPlan).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// Every record, unchanged.
    Everything,
    /// Every record, with U+FFFD in place of U+0000.
    NoNul,
    /// No snapshots and receipts, and of turns the newest of the default agent's
    /// conversations of one person in one place.
    NewestTurns,
}

/// Implements [`Backend`] for a store that has its work done on another thread. Beside what is
/// written out, a line for each operation: how the store carries it out, what errors call it, and
/// the function that gets the arguments on that thread, after `@` what makes its answer an outcome. Those with a `&` are cloned for it, and
/// those with a `?` if there is anything.
macro_rules! delegating {
    (
        impl Backend for $store:ident { $($written_out:tt)* }
        $($how:ident $operation:literal: $(@$outcome:ident)? $place:ident::$name:ident(
            $($(&$lent:ident)? $(?$maybe:ident)? $($given:ident)?: $kind:ty),*
        ) -> $answer:ty;)*
    ) => {
        #[async_trait]
        impl Backend for $store {
            $(
                async fn $name(
                    &self,
                    $($($lent)? $($maybe)? $($given)?: $kind),*
                ) -> Result<$answer, Error> {
                    $($(let $lent = $lent.to_owned();)? $(let $maybe = $maybe.cloned();)?)*
                    let work = self.$how($operation, move |there| {
                        $($outcome)? ($place::$name(there $(, $(&$lent)? $($maybe.as_ref())? $($given)?)*))
                    });
                    work.await
                }
            )*

            $($written_out)*
        }
    };
}
pub(crate) use delegating;

/// What a store without saved conversations says to them.
pub(crate) const fn no_snapshots() -> Error {
    Error::NeedsDatabase {
        what: "saved conversations",
    }
}

/// The same of receipts: one is found by any of its messages, for weeks, which takes an index.
pub(crate) const fn no_receipts() -> Error {
    Error::NeedsDatabase {
        what: "receipts of answers",
    }
}

/// What a store can do. Confirmed writes are durable: they survive `kill -9`.
/// No call blocks the async thread.
///
/// Every error is an [`Error`]. A failed call has changed nothing in a database,
/// but a failed purge or edit may have changed snapshots' files, which then hold
/// less than their rows say. Files are written one by one, so a failed call may
/// have changed some of them; a purge goes on past a file that fails, removes
/// what it can, and then returns the first error.
///
/// What the stores share is written once: which turns may be appended, and with
/// which times (`append`); what a purge removes ([`Purge::takes`], within a
/// conversation or a snapshot [`Reach`](super::Reach), the rest of a snapshot
/// `SnapshotRest`); whose a record is ([`Record::is_of`]) and what it replaces
/// ([`Record::key`]); the snapshots' files ([`SnapshotFiles`](super::SnapshotFiles)).
/// Databases also share their rows' form (`columns`), most of their tables and the
/// statements about whole kinds (`table`), and what is done with them (`sql`).
/// Snapshots and receipts are kept by databases only.
///
/// In a database, a conversation's last ordinal outlives its rows: after
/// [`delete_conversation`](Self::delete_conversation) or a purge of all rows the
/// next turn still gets a higher one. It goes with a purge of the channel,
/// server, member or user that its scope names. In files it goes with the last
/// row.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What it can hold.
    fn capacity(&self) -> Capacity {
        Capacity::Everything
    }

    /// Claims the store for an application; the first to claim it owns it.
    ///
    /// # Errors
    /// [`Error::Owned`] if another application owns it.
    async fn claim(&self, application: ApplicationId) -> Result<(), Error>;

    /// Writes something that changes nothing, to learn whether the store takes what is written.
    ///
    /// # Errors
    /// Like any other write.
    async fn try_writing(&self) -> Result<(), Error>;

    /// Appends one turn to its conversation, all rows or none, and returns its
    /// ordinal. All rows share one scope, agent and turn. A turn that this scope
    /// and agent already have is replaced and keeps its ordinal.
    ///
    /// Makes up for a clock that went back: each row's timestamp is raised to
    /// that of the conversation's newest row, and past the clear markers that
    /// apply to the turn's owner.
    ///
    /// Early rows of the turn become its rows, and keep their place and times.
    async fn append(&self, turn: &[StoredMessage]) -> Result<u64, Error>;

    /// The same together with its answer's receipt.
    async fn append_with(
        &self,
        turn: &[StoredMessage],
        receipt: &StoredReceipt,
    ) -> Result<u64, Error> {
        let ordinal = self.append(turn).await?;
        self.write(&[Record::Receipt(receipt.clone())]).await?;
        Ok(ordinal)
    }

    /// Puts a turn into the store before its answer is wholly posted, in place of
    /// an earlier attempt. Until [`append`](Self::append) confirms it, its rows are
    /// early: [`early`](Self::early) alone shows them, while purges, edits,
    /// deletions and [`held_messages`](Self::held_messages) reach them. A power
    /// failure may lose them, `kill -9` does not.
    async fn append_early(&self, turn: &[StoredMessage]) -> Result<(), Error>;

    /// Removes the early rows of a turn whose answer was not posted; what is
    /// confirmed stays. Returns how many there were.
    async fn take_back(&self, key: &TurnKey) -> Result<u64, Error>;

    /// Early rows, turn by turn, of at most `limit` turns.
    async fn early(&self, limit: usize) -> Result<Vec<StoredMessage>, Error>;

    /// The newest rows of a conversation, oldest first: by ordinal, then turn,
    /// then position in the turn, not by time. Called through
    /// [`window`](Self::window).
    async fn read_window(&self, query: &WindowQuery) -> Result<Vec<StoredMessage>, Error>;

    /// The newest rows of a conversation, in the order of
    /// [`read_window`](Self::read_window).
    ///
    /// Checks them again: a row of another scope, or of an owner other than the
    /// scope's, is a bug of ours and must not reach anybody, so nothing is
    /// returned.
    async fn window(&self, query: &WindowQuery) -> Result<Vec<StoredMessage>, Error> {
        let rows = self.read_window(query).await?;
        Ok(all_of(query.scope, rows))
    }

    /// Questions and answers of a conversation, in the order of
    /// [`read_window`](Self::read_window). Called through
    /// [`exchanges`](Self::exchanges).
    async fn read_exchanges(&self, query: &ExchangeQuery) -> Result<Vec<StoredMessage>, Error>;

    /// Questions and answers of a conversation, oldest first, checked again as
    /// [`window`](Self::window) does.
    async fn exchanges(&self, query: &ExchangeQuery) -> Result<Vec<StoredMessage>, Error> {
        let rows = self.read_exchanges(query).await?;
        Ok(all_of(query.scope, rows))
    }

    /// What is stored of a conversation, across all agents.
    async fn conversation(&self, scope: Scope, now: UnixMillis)
    -> Result<ConversationStats, Error>;

    /// Deletes a conversation for all agents (`/clear-context`). Returns how
    /// many rows were deleted.
    async fn delete_conversation(&self, scope: Scope) -> Result<u64, Error>;

    /// Moves a clear marker forward (`/context clear`). Rows stay.
    async fn clear(&self, key: &ClearKey, at: UnixMillis) -> Result<(), Error>;

    /// The later of the user's own marker and everybody's, for an agent in a
    /// server or in direct messages.
    async fn cleared_at(
        &self,
        agent: &AgentName,
        guild: Option<GuildId>,
        user: UserId,
    ) -> Result<Option<UnixMillis>, Error>;

    /// When an agent was first seen, before which it has no history. Records
    /// `now` if it was not known.
    async fn agent_created(&self, agent: &AgentName, now: UnixMillis) -> Result<UnixMillis, Error>;

    /// A user's own rows with an agent in a server (or in direct messages),
    /// across channels and scopes, later than `since`, oldest first: what
    /// `/context save` saves.
    async fn own_messages(
        &self,
        owner: UserId,
        agent: &AgentName,
        guild: Option<GuildId>,
        since: UnixMillis,
    ) -> Result<Vec<StoredMessage>, Error>;

    /// A user's snapshots from a server (or from direct messages), newest
    /// first, of one agent or of all.
    async fn snapshots(
        &self,
        owner: UserId,
        guild: Option<GuildId>,
        agent: Option<&AgentName>,
        limit: usize,
    ) -> Result<Vec<ContextSnapshotInfo>, Error> {
        let _ = (owner, guild, agent, limit);
        Err(no_snapshots())
    }

    /// One of a user's snapshots.
    async fn snapshot(
        &self,
        owner: UserId,
        id: &SnapshotId,
    ) -> Result<Option<ContextSnapshot>, Error> {
        let _ = (owner, id);
        Err(no_snapshots())
    }

    /// The receipt of an answer, by one of its messages or by its trigger.
    async fn receipt_of(
        &self,
        channel: ChannelId,
        message: MessageId,
    ) -> Result<Option<StoredReceipt>, Error> {
        let _ = (channel, message);
        Err(no_receipts())
    }

    /// The receipt of the newest answer in a channel, passing over private answers
    /// to others than the reader.
    async fn last_receipt(
        &self,
        channel: ChannelId,
        reader: UserId,
    ) -> Result<Option<StoredReceipt>, Error> {
        let _ = (channel, reader);
        Err(no_receipts())
    }

    /// Removes the receipts beyond these limits. Returns how many.
    async fn expire_receipts(&self, limits: ReceiptLimits) -> Result<u64, Error> {
        let _ = limits;
        Ok(0)
    }

    /// The facts about a user or a server, oldest first; of more than `most` the most
    /// useful. What is longer than [`MAX_FACT_BYTES`](crate::model::MAX_FACT_BYTES) is left out.
    async fn facts(&self, subject: Subject, most: usize) -> Result<Vec<Fact>, Error>;

    /// Removes everything a purge covers, leaving no trace in any file.
    async fn purge(&self, purge: &Purge) -> Result<Purged, Error>;

    /// Gives an edited message its new text, in its rows
    /// ([`StoredMessage::is_text_of`]) and in snapshots
    /// ([`with_edit`](super::with_edit)). Returns how many rows had another
    /// text; snapshots do not count. What was made from its former text goes
    /// with [`Purge::Edited`].
    async fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        text: &str,
    ) -> Result<u64, Error>;

    /// Which messages of a channel are stored in any form, or are what something
    /// was made from, within an inclusive range of ids; compared with a fetched
    /// page.
    async fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<MessageId>, Error>;

    /// Servers with anything stored, besides departures; we may have left some
    /// of them while offline.
    async fn guilds(&self) -> Result<Vec<GuildId>, Error>;

    /// Channels of stored direct messages, those written in last first, at most `limit`. A
    /// database looks at its newest 20,000 rows.
    async fn recent_direct(&self, limit: usize) -> Result<Vec<ChannelId>, Error>;

    /// Users with anything stored from a server, or made from their messages
    /// there; they may have left it while we were offline.
    async fn members(&self, guild: GuildId) -> Result<Vec<UserId>, Error>;

    /// Removes what expired (files); clears deleted rows and shrinks the file
    /// if worthwhile (SQLite). Returns how many rows expired.
    async fn sweep(&self, now: UnixMillis) -> Result<u64, Error>;

    /// Entries of a kind, of one user ([`Record::is_of`]) or of all, continuing
    /// from a cursor. A `limit` of 0 gives no entries and no cursor.
    /// [`Kind::Transcripts`] is in no store.
    async fn records(
        &self,
        kind: Kind,
        owner: Option<UserId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Records, Error>;

    /// Visits every entry, kind by kind in the order of [`Kind::ALL`], all as of one
    /// moment, whatever is written meanwhile. The files of snapshots are read as they
    /// are by then.
    async fn each_record(&self, visit: Visit<'_>) -> Result<(), Error>;

    /// Writes entries unchanged, ordinals and times included, replacing those
    /// with the same [`key`](Record::key); a snapshot, with its file, the one
    /// with its id; a row the one of its turn with the same role, tool calls,
    /// call that it answers, and message. Rows that are written together stay
    /// separate, even if they look alike.
    async fn write(&self, records: &[Record]) -> Result<(), Error>;

    /// Removes entries by their keys. Returns how many there were.
    async fn remove(&self, keys: &[RecordKey]) -> Result<u64, Error>;

    /// How much there is of each kind.
    async fn stats(&self) -> Result<Vec<KindStats>, Error>;

    /// What the store takes on disk, part by part.
    async fn sizes(&self) -> Result<Vec<PartSize>, Error>;

    /// Cleans up what deletions and edits left behind, if it is due, without
    /// blocking other calls. Called every minute.
    async fn tidy(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Looks whether the store is damaged, for at most this long. Databases with a server
    /// of their own check themselves, and files are checked as they are read.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    async fn check(&self, most: Duration) -> Result<Checked, Error> {
        let _ = most;
        Ok(Checked::Whole)
    }

    /// Returns unused space to the file system.
    async fn vacuum(&self) -> Result<(), Error>;

    /// Finishes pending writes and releases files and connections.
    async fn close(&self) -> Result<(), Error>;

    /// Saves a snapshot.
    async fn save_snapshot(&self, snapshot: &ContextSnapshot) -> Result<(), Error> {
        self.write(&[Record::Snapshot(snapshot.clone())]).await
    }

    /// Writes facts, replacing those with the same id.
    async fn put_facts(&self, facts: &[Fact]) -> Result<(), Error> {
        let facts: Vec<Record> = facts.iter().cloned().map(Record::Fact).collect();
        self.write(&facts).await
    }

    /// Removes facts. Returns how many were removed.
    async fn remove_facts(&self, facts: &[FactId]) -> Result<u64, Error> {
        let facts: Vec<RecordKey> = facts.iter().copied().map(RecordKey::Fact).collect();
        self.remove(&facts).await
    }

    /// All entries of a kind that is a short list.
    async fn list(&self, kind: Kind) -> Result<Vec<Record>, Error> {
        Ok(self.records(kind, None, None, usize::MAX).await?.records)
    }

    /// Who opted out, and when.
    async fn opt_outs(&self) -> Result<Vec<(UserId, UnixMillis)>, Error> {
        let found = listed(self, Kind::OptOuts, |record| match record {
            Record::OptOut(user, since) => Some((user, since)),
            _ => None,
        });
        found.await
    }

    /// Records an opt-out, or removes it (`None`).
    async fn set_opt_out(&self, user: UserId, since: Option<UnixMillis>) -> Result<(), Error> {
        match since {
            Some(since) => self.write(&[Record::OptOut(user, since)]).await,
            None => self.remove(&[RecordKey::OptOut(user)]).await.map(drop),
        }
    }

    /// The settings of all servers.
    async fn settings(&self) -> Result<Vec<(GuildId, GuildSettings)>, Error> {
        let found = listed(self, Kind::Settings, |record| match record {
            Record::Settings(guild, settings) => Some((guild, settings)),
            _ => None,
        });
        found.await
    }

    /// Replaces a server's settings.
    async fn set_settings(&self, guild: GuildId, settings: &GuildSettings) -> Result<(), Error> {
        self.write(&[Record::Settings(guild, settings.clone())])
            .await
    }

    /// Servers that we left, and when.
    async fn departures(&self) -> Result<Vec<(GuildId, UnixMillis)>, Error> {
        let found = listed(self, Kind::Departures, |record| match record {
            Record::Departure(guild, at) => Some((guild, at)),
            _ => None,
        });
        found.await
    }

    /// Records that we left a server, or that we are back (`None`).
    async fn set_departure(&self, guild: GuildId, at: Option<UnixMillis>) -> Result<(), Error> {
        match at {
            Some(at) => self.write(&[Record::Departure(guild, at)]).await,
            None => self.remove(&[RecordKey::Departure(guild)]).await.map(drop),
        }
    }
}

/// The entries of a kind that is a short list, each as what is read of it.
async fn listed<B: Backend + ?Sized, T>(
    store: &B,
    kind: Kind,
    read: fn(Record) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let found = store.list(kind).await?.into_iter();
    Ok(found.filter_map(read).collect())
}
