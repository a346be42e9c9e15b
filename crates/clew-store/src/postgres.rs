//! PostgreSQL: everything is in the schema `clew` of a database.
//!
//! Each transaction names one conversation, the server's row-level security
//! limits it to that one, and every row is checked again on arrival. Only calls
//! that cover all conversations (purge, edit, export, statistics) see all rows,
//! for one transaction.
//!
//! The server may go away and come back: meanwhile calls fail within seconds
//! with [`Error::Unavailable`], and afterwards they work again.
//!
//! Times are exact to the millisecond. U+0000, which PostgreSQL refuses in
//! texts, becomes U+FFFD.

mod certificate;
mod cluster;
mod connect;
mod early;
mod facts;
mod hold;
mod messages;
mod purge;
mod receipts;
mod records;
mod schema;
mod session;
mod slots;
mod snapshots;
mod tables;
mod texts;
mod tidying;
mod values;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Pool, Transaction};
use tokio::sync::RwLock;
use tokio::time::Instant;

pub(super) use self::cluster::PostgresCluster;
use self::connect::Connected;
use self::hold::Hold;
use self::session::{Borrowed, Call, LONG_PATIENCE, Loan, Outcome, PATIENCE};
use self::slots::Slots;
use self::texts::TextRows;
use self::tidying::Tidying;
use super::any::{not_begun, not_current};
use super::backend::Visit;
use super::sql;
use super::{
    Backend, Capacity, ConversationStats, Cursor, Error, ExchangeQuery, Kind, KindStats, PartSize,
    Purge, Purged, Record, RecordKey, Records, SnapshotFiles, TurnKey, WindowQuery,
};
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, ReceiptLimits, Scope,
    SnapshotId, StoredMessage, StoredReceipt, Subject,
};
use clew_context::model::{
    ApplicationId, ChannelId, GuildId, MessageId, Secret, UnixMillis, UserId,
};

/// A plain vacuum makes dead rows unreadable without locking others out.
const VACUUM_AFTER_PURGE: &str = "VACUUM";
/// A full vacuum rewrites the tables and returns space to the file system.
const VACUUM_FULL: &str = "VACUUM (FULL, ANALYZE)";

/// A store in PostgreSQL.
pub struct Postgres {
    pool: Pool,
    slots: Slots,
    tidying: Tidying,
    /// Host and database, for errors.
    place: String,
    files: SnapshotFiles,
    /// Saved conversations, if they are rows.
    texts: Option<Arc<TextRows>>,
    /// Shared by running calls; locked exclusively to close the store.
    open: Arc<RwLock<()>>,
}

/// Runs a call in its own transaction, committed on success.
macro_rules! within {
    ($self:ident, $patience:expr, $operation:expr, $call:ident => $work:expr) => {
        session::bounded($patience, $operation, async {
            let mut loan = $self.lend().await?;
            let $call = $self.call(loan.begin().await?);
            let answer = $work.await?;
            $call.commit().await?;
            loan.finished();
            Ok(answer)
        })
        .await
    };
}

impl Postgres {
    /// Connects, locks the database for this process alone, migrates the
    /// tables, and logs a warning if row-level security does not apply to the
    /// role. `url` is `postgres://user:password@host/database?sslmode=MODE`:
    /// `disable`; `prefer` (default), encrypted if the server can, with any
    /// certificate; `require`, encrypted, with a certificate that the system
    /// trusts.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] naming host and database but not the password,
    /// [`Error::Held`] if another process uses it, [`Error::Newer`].
    pub async fn open(url: &Secret, files: SnapshotFiles) -> Result<Self, Error> {
        Self::open_for(Hold::alone(), connect::HELD_PATIENCE, url, files).await
    }

    /// See [`Store::open_patiently`](crate::Store::open_patiently).
    pub(super) async fn open_patiently(url: &Secret, files: SnapshotFiles) -> Result<Self, Error> {
        Self::open_for(Hold::alone(), connect::LONG_HELD_PATIENCE, url, files).await
    }

    async fn open_for(
        hold: Hold,
        patience: Duration,
        url: &Secret,
        files: SnapshotFiles,
    ) -> Result<Self, Error> {
        let connected = connect::pool(url, Some(hold.clone()))?;
        let mut client = connect::first(&connected, patience).await?;
        let place = &connected.place;
        let started = async {
            schema::migrate(&mut client, place).await?;
            let texts = || connect::pool(url, Some(hold.clone()));
            let texts = TextRows::of(&client, texts).await?;
            Ok((connect::stands_above(&client).await?, texts))
        };
        let started: Outcome<_> = started.await;
        let (stands_above, texts) = started.map_err(|failure| connect::at_start(failure, place))?;
        if stands_above {
            tracing::warn!(
                "the PostgreSQL role is a superuser or has BYPASSRLS: row-level security does not \
                 hold for it, use an ordinary role"
            );
        }
        drop(client);
        let store = Self::over(connected, files, texts);
        let tidy = "tidy the snapshots";
        session::bounded(
            PATIENCE,
            tidy,
            snapshots::at_files(&store.files, SnapshotFiles::sweep),
        )
        .await?;
        within!(store, LONG_PATIENCE, tidy, call => sql::take_back(&call, None))?;
        Ok(store)
    }

    /// Opens it read-only, without locking it: another process may use it, start or come back
    /// meanwhile. Changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Self::open`], but for the other process; [`Error::Open`] if there is none, or its
    /// schema is of an older version.
    pub async fn look(url: &Secret, files: SnapshotFiles) -> Result<Self, Error> {
        let (connected, found) = Self::found(url).await?;
        if found < Some(schema::KNOWN) {
            return Err(not_current(&connected.place));
        }
        let texts = Self::texts_beside(&connected, url).await?;
        Ok(Self::over(connected, files, texts))
    }

    /// The texts of a database that another process may have.
    async fn texts_beside(
        connected: &Connected,
        url: &Secret,
    ) -> Result<Option<Arc<TextRows>>, Error> {
        let client = connect::first(connected, Duration::ZERO).await?;
        let texts = TextRows::of(&client, || connect::pool(url, None)).await;
        texts.map_err(|failure| connect::at_start(failure, &connected.place))
    }

    /// See [`Store::peek`](crate::Store::peek).
    pub(super) async fn peek(
        url: &Secret,
        application: ApplicationId,
        answer: Option<(ChannelId, MessageId)>,
    ) -> Result<Vec<Record>, Error> {
        let (connected, found) = Self::found(url).await?;
        if found < Some(schema::KNOWN) {
            return Err(not_begun(&connected.place));
        }
        let store = Self::over(connected, SnapshotFiles::in_memory(), None);
        within!(store, PATIENCE, "see whose store it is", call => sql::owned_by(&call, application))?;
        let mut records = store.list(Kind::OptOuts).await?;
        records.extend(store.list(Kind::Settings).await?);
        if let Some((channel, message)) = answer {
            let receipt = store.receipt_of(channel, message).await?;
            records.extend(receipt.map(Record::Receipt));
        }
        store.close().await?;
        Ok(records)
    }

    fn over(connected: Connected, files: SnapshotFiles, texts: Option<Arc<TextRows>>) -> Self {
        let files = match &texts {
            Some(texts) => files.in_rows(Arc::<TextRows>::clone(texts)),
            None => files,
        };
        Self {
            texts,
            pool: connected.pool,
            slots: Slots::default(),
            tidying: Tidying::default(),
            place: connected.place,
            files,
            open: Arc::default(),
        }
    }

    /// The schema version of this program.
    pub const NEWEST_VERSION: u32 = schema::KNOWN;

    /// The schema version of a database, without changing anything; `None` if
    /// it holds nothing of ours.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub async fn version(url: &Secret) -> Result<Option<u32>, Error> {
        Ok(Self::found(url).await?.1)
    }

    /// A pool that may be beside another process's, and the schema version that it found.
    async fn found(url: &Secret) -> Result<(Connected, Option<u32>), Error> {
        let (connected, mut client) = connect::look(url).await?;
        let found = schema::found(&mut client, &connected.place).await;
        let found = found.map_err(|failure| connect::at_start(failure, &connected.place))?;
        Ok((connected, found))
    }

    /// Whether the role of the URL is a superuser or has BYPASSRLS, so that row-level
    /// security does not hold for it.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub async fn stands_above(url: &Secret) -> Result<bool, Error> {
        let (connected, client) = connect::look(url).await?;
        let stands_above = connect::stands_above(&client).await;
        stands_above.map_err(|failure| connect::at_start(failure, &connected.place))
    }

    async fn lend(&self) -> Outcome<Loan> {
        let open = Arc::clone(&self.open).read_owned().await;
        let (client, place) = self.slots.connection(&self.pool).await?;
        Ok(Loan {
            client: Borrowed::of(client),
            _open: open,
            _place: place,
        })
    }

    fn call<'a>(&'a self, transaction: Transaction<'a>) -> Call<'a> {
        Call {
            transaction,
            files: &self.files,
            place: &self.place,
        }
    }

    /// Runs a statement outside of transactions, without a time limit on the
    /// server. Its connection is not reused.
    async fn alone(&self, statement: &str) -> Outcome<()> {
        let mut loan = self.lend().await?;
        let client = loan.client.object()?;
        client.batch_execute("SET statement_timeout = 0").await?;
        Ok(client.batch_execute(statement).await?)
    }

    /// Vacuums all tables.
    async fn vacuum_all(&self, how: &str) -> Result<(), Error> {
        let tables = tidying::all(self.texts.is_some());
        let vacuum = format!("{how} {tables}");
        session::bounded(LONG_PATIENCE, "vacuum", self.alone(&vacuum)).await
    }

    async fn write_rows(&self, records: &[Record]) -> Result<(), Error> {
        let is_bulk = records::is_bulk(records);
        let patience = if is_bulk { LONG_PATIENCE } else { PATIENCE };
        within!(self, patience, "write entries", call => records::write(&call, records))
    }
}

/// Implements [`Backend`]: beside what is written out, a line for each operation whose function
/// does all of it in one transaction.
macro_rules! transacting {
    (
        impl Backend for Postgres { $($written_out:tt)* }
        $($patience:ident $operation:literal: $place:ident::$name:ident(
            $($argument:ident: $kind:ty),*
        ) -> $answer:ty;)*
    ) => {
        #[async_trait]
        impl Backend for Postgres {
            $(
                async fn $name(&self, $($argument: $kind),*) -> Result<$answer, Error> {
                    within!(self, $patience, $operation, call =>
                        $place::$name(&call, $($argument),*))
                }
            )*

            $($written_out)*
        }
    };
}

transacting! {
    impl Backend for Postgres {
        fn capacity(&self) -> Capacity {
            Capacity::NoNul
        }

        async fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
            let purged = within!(self, LONG_PATIENCE, "remove what has to go", call =>
                purge::purge(&call, purge))?;
            if purge::is_thorough(purge)
                && purged.total() > 0
                && let Err(error) = self.vacuum_all(VACUUM_AFTER_PURGE).await
            {
                // The rows are deleted; tidying will do the rest.
                tracing::warn!(%error, "no vacuum after a purge");
            }
            Ok(purged)
        }

        /// Nothing expires here.
        async fn sweep(&self, _: UnixMillis) -> Result<u64, Error> {
            Ok(0)
        }

        async fn records(
            &self,
            kind: Kind,
            owner: Option<UserId>,
            after: Option<&Cursor>,
            limit: usize,
        ) -> Result<Records, Error> {
            let patience = if kind.is_text() {
                LONG_PATIENCE
            } else {
                PATIENCE
            };
            within!(self, patience, "read entries", call =>
                sql::records(&call, kind, owner, after, limit))
        }

        async fn each_record(&self, visit: Visit<'_>) -> Result<(), Error> {
            let operation = "read entries";
            let started = async {
                let mut loan = self.lend().await?;
                let call = self.call(loan.begin_frozen().await?);
                records::each(&call, visit).await?;
                call.commit().await?;
                loan.finished();
                Ok(())
            };
            let read: Outcome<()> = started.await;
            read.map_err(|failure| failure.during(operation))
        }

        async fn write(&self, records: &[Record]) -> Result<(), Error> {
            let operation = "write entries";
            let snapshots: Vec<_> = records.iter().filter_map(Record::snapshot).collect();
            if snapshots.is_empty() {
                return self.write_rows(records).await;
            }
            within!(self, LONG_PATIENCE, operation, call => sql::announce(&call, &snapshots))?;
            let written = snapshots::write_files(&self.files, &snapshots);
            let written = session::bounded(LONG_PATIENCE, operation, written).await;
            let written = match written {
                Ok(()) => self.write_rows(records).await,
                Err(error) => Err(error),
            };
            if written.is_err() {
                // Report the first error; what stays is removed at the next start.
                let taken = within!(self, LONG_PATIENCE, operation, call =>
                    sql::take_back(&call, Some(&snapshots)));
                drop(taken);
            }
            written
        }

        async fn sizes(&self) -> Result<Vec<PartSize>, Error> {
            let operation = "measure the tables";
            let mut sizes =
                within!(self, PATIENCE, operation, call => records::sizes(&call))?;
            let files = snapshots::at_files(&self.files, SnapshotFiles::size);
            sizes.extend(session::bounded(LONG_PATIENCE, operation, files).await?);
            Ok(sizes)
        }

        async fn tidy(&self) -> Result<(), Error> {
            if !self.tidying.is_due() {
                return Ok(());
            }
            let dirty = within!(self, PATIENCE, "look for dead rows", call =>
                tidying::dirty(&call))?;
            let began = Instant::now();
            for table in dirty {
                let vacuum = tidying::vacuum(table);
                session::bounded(LONG_PATIENCE, "vacuum", self.alone(&vacuum))
                    .await?;
            }
            self.tidying.took(began.elapsed());
            Ok(())
        }

        /// Rewrites the tables, which are locked meanwhile.
        async fn vacuum(&self) -> Result<(), Error> {
            self.vacuum_all(VACUUM_FULL).await
        }

        async fn close(&self) -> Result<(), Error> {
            session::bounded(PATIENCE, "close the store", async {
                let _alone = self.open.write().await;
                if let Some(texts) = &self.texts {
                    texts.close().await;
                }
                hold::release(&self.pool).await;
                self.pool.close();
                Ok(())
            })
            .await
        }
    }

    PATIENCE "see whose store it is": sql::claim(application: ApplicationId) -> ();
    PATIENCE "try to write": records::try_writing() -> ();
    PATIENCE "store a turn": messages::append(turn: &[StoredMessage]) -> u64;
    PATIENCE "store an early turn": early::append_early(turn: &[StoredMessage]) -> ();
    PATIENCE "take a turn back": early::take_back(key: &TurnKey) -> u64;
    PATIENCE "read early turns": sql::early(limit: usize) -> Vec<StoredMessage>;
    PATIENCE "read a conversation":
        messages::read_window(query: &WindowQuery) -> Vec<StoredMessage>;
    PATIENCE "read a conversation":
        sql::read_exchanges(query: &ExchangeQuery) -> Vec<StoredMessage>;
    PATIENCE "look at a conversation":
        sql::conversation(scope: Scope, now: UnixMillis) -> ConversationStats;
    PATIENCE "delete a conversation": messages::delete_conversation(scope: Scope) -> u64;
    PATIENCE "clear a conversation": sql::clear(key: &ClearKey, at: UnixMillis) -> ();
    PATIENCE "read where a conversation begins":
        sql::cleared_at(agent: &AgentName, guild: Option<GuildId>, user: UserId)
            -> Option<UnixMillis>;
    PATIENCE "note an agent":
        sql::agent_created(agent: &AgentName, now: UnixMillis) -> UnixMillis;
    PATIENCE "read a user's messages":
        sql::own_messages(
            owner: UserId, agent: &AgentName, guild: Option<GuildId>, since: UnixMillis
        ) -> Vec<StoredMessage>;
    PATIENCE "list snapshots":
        sql::snapshots(
            owner: UserId, guild: Option<GuildId>, agent: Option<&AgentName>, limit: usize
        ) -> Vec<ContextSnapshotInfo>;
    PATIENCE "read a snapshot":
        sql::snapshot(owner: UserId, id: &SnapshotId) -> Option<ContextSnapshot>;
    PATIENCE "read a receipt":
        sql::receipt_of(channel: ChannelId, message: MessageId) -> Option<StoredReceipt>;
    PATIENCE "read a receipt":
        sql::last_receipt(channel: ChannelId, reader: UserId) -> Option<StoredReceipt>;
    LONG_PATIENCE "remove old receipts": sql::expire_receipts(limits: ReceiptLimits) -> u64;
    PATIENCE "read facts": sql::facts(subject: Subject, most: usize) -> Vec<Fact>;
    LONG_PATIENCE "edit a message":
        messages::edit_message(channel: ChannelId, message: MessageId, text: &str) -> u64;
    PATIENCE "look for messages":
        sql::held_messages(channel: ChannelId, from: MessageId, to: MessageId)
            -> Vec<MessageId>;
    LONG_PATIENCE "list servers": sql::guilds() -> Vec<GuildId>;
    LONG_PATIENCE "list direct messages":
        sql::recent_direct(limit: usize) -> Vec<ChannelId>;
    LONG_PATIENCE "list users": sql::members(guild: GuildId) -> Vec<UserId>;
    PATIENCE "remove entries": sql::remove(keys: &[RecordKey]) -> u64;
    LONG_PATIENCE "count entries": sql::stats() -> Vec<KindStats>;
}
