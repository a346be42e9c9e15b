//! One database call: connection, transaction, deadline and errors.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use deadpool_postgres::{HookError, Object, PoolError, Transaction};
use futures_util::future;
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use super::super::{Error, SnapshotFiles};
use super::values::{PostgresRow, borrowed, dollars};
use super::{facts, hold, messages, receipts, snapshots};
use crate::columns::Cell;
use crate::model::{ContextSnapshot, Fact, Scope, StoredMessage, StoredReceipt, Subject};
use crate::sql::{Database, Placed, See};
use crate::table::Table;

pub(super) type Outcome<T> = Result<T, Failure>;

/// How long a turn waits for a call. Longer than [`STATEMENT_TIMEOUT`], so that
/// the server can report which statement was slow.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// When the server aborts a statement of a turn.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(8);
/// When the server gives up waiting for a lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// For calls that cover everything: purge, export, statistics, vacuum.
pub(super) const LONG_PATIENCE: Duration = Duration::from_mins(10);
/// Shared by writers of a single conversation, exclusive for those that write
/// across all. An arbitrary number that spells "clew".
const WRITERS_LOCK: i64 = 0x636c_6577;

/// Makes one conversation's rows visible until the transaction ends.
const SEE_SCOPE: &str = "SELECT set_config('clew.scope', $1, true)";
/// The same, and keeps out writers across all conversations.
const WRITE_SCOPE: &str =
    "SELECT set_config('clew.scope', $1, true), pg_advisory_xact_lock_shared($2)";
/// Makes a user's facts and snapshots visible.
const SEE_USER: &str = "SELECT set_config('clew.user', $1, true)";
/// Makes a server's facts visible.
const SEE_SERVER: &str = "SELECT set_config('clew.server', $1, true)";
/// Makes all rows visible, and allows time to read them.
const SEE_ALL: &str =
    "SELECT set_config('clew.all', 'on', true), set_config('statement_timeout', $1, true)";
/// Keeps out all other writers.
const WRITE_ALL: &str = "SELECT pg_advisory_xact_lock($1)";

/// Why a call failed, before the call is named.
#[derive(Debug)]
pub(super) enum Failure {
    Database(tokio_postgres::Error),
    Pool(PoolError),
    /// The deadline passed.
    Slow,
    /// A row that is not in our format.
    Unreadable {
        place: String,
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A mistake of the caller.
    Refused(&'static str),
    /// An error that is complete already.
    Store(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<&'static str> for Failure {
    fn from(why: &'static str) -> Self {
        Self::Refused(why)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// Turns it into the error of an operation.
    pub(super) fn during(self, operation: &'static str) -> Error {
        match self {
            Self::Database(error) if is_passing(&error) => {
                Error::unavailable(operation, said(&error))
            }
            Self::Database(error) => Error::database(operation, said(&error)),
            Self::Pool(error) => hold::refusal(&error)
                .unwrap_or_else(|| Error::unavailable(operation, pool_said(&error))),
            Self::Slow => Error::unavailable(operation, "no answer in time"),
            Self::Unreadable { place, source } => Error::corrupt(operation, place, source),
            Self::Refused(why) => Error::database(operation, why),
            Self::Store(error) => error,
        }
    }
}

/// Whether a retry may help.
fn is_passing(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        let io = error.source().and_then(<dyn StdError>::downcast_ref);
        return error.is_closed() || io.is_some_and(is_passing_io);
    };
    // Connection, rollback, resources, operator intervention (PostgreSQL,
    // "Error Codes"), and locks.
    let class = code.code().get(..2).unwrap_or_default();
    // A server that takes no writes may be a standby that is promoted.
    let is_such = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    matches!(class, "08" | "40" | "53" | "57") || is_such.contains(code)
}

/// An untrusted certificate (invalid data) and a socket that the system does not
/// let us use stay as they are, so a retry is useless. A server that takes no
/// writes (`target_session_attrs`) is denied by the client, and may be promoted.
fn is_passing_io(error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::InvalidData => false,
        io::ErrorKind::PermissionDenied => error.raw_os_error().is_none(),
        _ => true,
    }
}

/// Whether a connection may be available later.
pub(super) fn is_passing_pool(error: &PoolError) -> bool {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            is_passing(error)
        }
        PoolError::Timeout(_) => true,
        _ => false,
    }
}

/// Whether the server has reached its limit of connections.
pub(super) fn is_full(error: &PoolError) -> bool {
    let PoolError::Backend(error) = error else {
        return false;
    };
    error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// The database's message, unless it may quote a row or a search word.
pub(super) fn said(error: &tokio_postgres::Error) -> String {
    let Some(database) = error.as_db_error() else {
        return match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
    };
    let code = database.code();
    let quotes = *code == SqlState::SYNTAX_ERROR || code.code().starts_with('2');
    // Class 28 is about roles and passwords, and only names the role.
    if quotes && !code.code().starts_with("28") {
        let table = database.table().unwrap_or("the statement");
        format!("error {} at {table}", code.code())
    } else {
        format!("error {}: {}", code.code(), database.message())
    }
}

/// The pool's message.
pub(super) fn pool_said(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => said(error),
        other => other.to_string(),
    }
}

/// A connection that returns to its pool only if the work on it succeeded, so that
/// no call meets leftovers of an aborted one, one that is silent is not tried
/// again, and what was sent on it late is not done after what came next.
pub(super) struct Borrowed(Option<Object>);

impl Borrowed {
    pub(super) const fn of(client: Object) -> Self {
        Self(Some(client))
    }

    pub(super) fn object(&mut self) -> Outcome<&mut Object> {
        self.0.as_mut().ok_or(Failure::Refused("the call is over"))
    }

    /// Returns the connection to the pool, for reuse.
    pub(super) fn returned(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// A connection for one call of an open store.
pub(super) struct Loan {
    pub(super) client: Borrowed,
    pub(super) _open: OwnedRwLockReadGuard<()>,
    /// Released after the connection, so that the next waiting call finds one.
    pub(super) _place: OwnedSemaphorePermit,
}

impl Loan {
    /// Begins a transaction, which has no effect unless committed.
    pub(super) async fn begin(&mut self) -> Outcome<Transaction<'_>> {
        Ok(self.client.object()?.transaction().await?)
    }

    /// Begins a transaction that reads everything as of one moment.
    pub(super) async fn begin_frozen(&mut self) -> Outcome<Transaction<'_>> {
        let transaction = self
            .client
            .object()?
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true);
        Ok(transaction.start().await?)
    }

    /// Returns the connection to the pool, for reuse.
    pub(super) fn finished(self) {
        self.client.returned();
    }
}

/// Gives an operation a deadline, and its failure a name.
pub(super) async fn bounded<T>(
    patience: Duration,
    operation: &'static str,
    work: impl Future<Output = Outcome<T>>,
) -> Result<T, Error> {
    let done = timeout(patience, work).await;
    let done = done.unwrap_or(Err(Failure::Slow));
    done.map_err(|failure| failure.during(operation))
}

/// What carries out a call: its transaction, and what the store has beside the database.
pub(super) struct Call<'a> {
    pub(super) transaction: Transaction<'a>,
    pub(super) files: &'a SnapshotFiles,
    /// Host and database, for errors.
    pub(super) place: &'a str,
}

impl Database for Call<'_> {
    type Fault = Failure;
    type Row<'a> = PostgresRow<'a>;

    async fn all<T>(
        &self,
        what: See,
        table: &'static str,
        sql: &str,
        values: &[Cell<'_>],
        mut read: impl FnMut(&PostgresRow<'_>) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let found = seen_rows(&self.transaction, what, sql, values).await?;
        let found = found.iter().map(|row| PostgresRow::of(table, row));
        found.map(|row| read(&row)).collect()
    }

    async fn run(&self, sql: &str, values: &[Cell<'_>]) -> Outcome<u64> {
        let statement = self.transaction.prepare_cached(&dollars(sql)).await?;
        let values = borrowed(values);
        Ok(self.transaction.execute(&statement, &values).await?)
    }

    fn place(&self) -> &str {
        self.place
    }

    fn readable(&self, row: Outcome<StoredMessage>) -> Outcome<Option<StoredMessage>> {
        let row = row.map_err(|failure| {
            let error = failure.during("read a conversation");
            tracing::error!(%error, "a row cannot be read: left out");
        });
        Ok(row.ok())
    }

    async fn see(&self, what: See) -> Outcome<()> {
        if let Some((sql, value)) = seeing(what) {
            self.run(sql, &[Cell::Text(value.into())]).await?;
        }
        Ok(())
    }

    async fn remove_where(&self, table: &Table, which: &str, values: &[Cell<'_>]) -> Outcome<u64> {
        self.run(&table.delete(which), values).await
    }

    async fn insert_rows(&self, placed: &[Placed<'_>]) -> Outcome<()> {
        messages::insert_rows(self, placed).await
    }

    async fn put_fact(&self, fact: &Fact) -> Outcome<()> {
        facts::put(self, fact).await
    }

    async fn put_receipt(&self, receipt: &StoredReceipt) -> Outcome<()> {
        receipts::put(self, receipt).await
    }

    async fn put_snapshot(&self, snapshot: &ContextSnapshot) -> Outcome<()> {
        snapshots::put_row(self, snapshot).await
    }

    async fn at_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SnapshotFiles) -> Result<T, Error> + Send + 'static,
    ) -> Outcome<T> {
        snapshots::at_files(self.files, work).await
    }
}

impl Call<'_> {
    pub(super) async fn commit(self) -> Outcome<()> {
        Ok(self.transaction.commit().await?)
    }
}

/// Rows of what has to be seen. The statement that makes it visible and the one that reads it are
/// sent together.
async fn seen_rows(
    transaction: &Transaction<'_>,
    what: See,
    sql: &str,
    values: &[Cell<'_>],
) -> Outcome<Vec<Row>> {
    let statement = transaction.prepare_cached(&dollars(sql)).await?;
    let values = borrowed(values);
    let found = transaction.query(&statement, &values);
    let Some((see, seen)) = seeing(what) else {
        return Ok(found.await?);
    };
    let see = transaction.prepare_cached(see).await?;
    let seen: [&(dyn ToSql + Sync); 1] = [&seen];
    // Polled in this order, hence sent in this order.
    let (_, found) = future::try_join(transaction.query(&see, &seen), found).await?;
    Ok(found)
}

/// The statement that makes something visible until the transaction ends, and its parameter.
fn seeing(what: See) -> Option<(&'static str, String)> {
    Some(match what {
        See::Lists => return None,
        See::Scope(scope) => (SEE_SCOPE, scope.to_string()),
        See::About(Subject::User(user)) => (SEE_USER, user.to_string()),
        See::About(Subject::Server(guild)) => (SEE_SERVER, guild.to_string()),
        See::All => (SEE_ALL, LONG_PATIENCE.as_millis().to_string()),
    })
}

/// From here on the transaction reads and writes one conversation.
pub(super) async fn write_scope(call: &Call<'_>, scope: Scope) -> Outcome<()> {
    let values = [Cell::scope(scope), Cell::Number(WRITERS_LOCK)];
    call.run(WRITE_SCOPE, &values).await?;
    Ok(())
}

/// From here on the transaction reads and writes everything, exclusively.
pub(super) async fn write_all(call: &Call<'_>) -> Outcome<()> {
    call.see(See::All).await?;
    call.run(WRITE_ALL, &[Cell::Number(WRITERS_LOCK)]).await?;
    Ok(())
}
