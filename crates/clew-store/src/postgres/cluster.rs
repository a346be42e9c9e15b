//! The processes of one bot that share a database: a lease by the database's clock, and what the
//! next process needs of the one before.
//!
//! A tenure's connections hold an advisory lock with its epoch (see `hold`). Whoever takes the
//! lease ends the connections of earlier epochs before it begins, so that nothing of them is
//! committed afterwards, and a statement costs no check. This needs `pg_terminate_backend` with
//! a timeout, of PostgreSQL 14.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql};

use super::super::cluster::{Cluster, ClusterStatus, Node, Tenure};
use super::super::snapshots::SnapshotRows;
use super::super::{Error, Folders, SnapshotFiles, Store};
use super::connect::{self, Connected};
use super::hold::Hold;
use super::session::{Failure, LONG_PATIENCE, Outcome, PATIENCE};
use super::{Postgres, hold, schema};
use clew_context::model::{Secret, UnixMillis};
use clew_context::outside::Lease;

const TABLES: &str = include_str!("cluster.sql");
/// How long a lease holds without being renewed, by the database's clock.
const TERM: Duration = Duration::from_secs(10);
/// So much earlier it is over for who has it, counted from when the renewal was sent.
const EARLY: Duration = Duration::from_secs(1);
/// How often it is renewed, and how often again after a failure.
const RENEW: Duration = Duration::from_secs(3);
const RENEW_AGAIN: Duration = Duration::from_millis(500);
/// How long the connections of earlier epochs may take to end.
const END_PATIENCE_MS: i64 = 4_000;
/// A process that was not heard of so long is forgotten.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// Whether the lease is free, and that this process is there.
const LOOK: &str = "WITH here AS ( \
         INSERT INTO nodes VALUES ($1, $2, clock_timestamp(), clock_timestamp()) \
         ON CONFLICT (name) DO UPDATE SET seen = clock_timestamp() \
             WHERE nodes.seen < clock_timestamp() - interval '3 s') \
     SELECT until < clock_timestamp() FROM leases WHERE name = 'bot'";
const TAKE: &str = "UPDATE leases SET epoch = epoch + 1, node = $1, \
         until = clock_timestamp() + make_interval(secs => $2) \
     WHERE name = 'bot' AND until < clock_timestamp() RETURNING epoch";
const RENEWED: &str = "WITH here AS (UPDATE nodes SET seen = clock_timestamp() WHERE name = $2) \
     UPDATE leases SET until = clock_timestamp() + make_interval(secs => $3) \
     WHERE name = 'bot' AND epoch = $1 AND node = $2";
/// The next process need not wait.
const END: &str = "UPDATE leases SET until = '-infinity' WHERE name = 'bot' AND epoch = $1";
const SEE_ALL: &str = "SELECT set_config('clew.all', 'on', true)";
const HAS_BEGUN: &str = "SELECT to_regclass('clew.leases') IS NOT NULL";
const HOLDER: &str = "SELECT epoch, node, until >= clock_timestamp(), \
         current_setting('synchronous_standby_names') <> '' \
     FROM leases WHERE name = 'bot'";
const NODES: &str = "SELECT name, version, \
         extract(epoch FROM clock_timestamp() - since)::bigint, \
         extract(epoch FROM clock_timestamp() - seen)::bigint \
     FROM nodes WHERE seen > clock_timestamp() - make_interval(secs => $1) ORDER BY name";
const FORGET_FILE: &str = "DELETE FROM state_files WHERE name = $1";
const FORGET_NODES: &str =
    "DELETE FROM nodes WHERE name = $1 OR seen < clock_timestamp() - make_interval(secs => $2)";

/// The processes that share a database.
pub(in super::super) struct PostgresCluster {
    url: Secret,
    node: String,
    version: String,
    /// For what is done without the lease.
    beside: Connected,
    /// The tables are there.
    begun: OnceCell<()>,
}

impl PostgresCluster {
    /// Does not connect yet.
    pub(in super::super) fn new(url: &Secret, node: &str, version: &str) -> Result<Self, Error> {
        Ok(Self {
            url: url.clone(),
            node: node.to_owned(),
            version: version.to_owned(),
            beside: connect::pool(url, None)?,
            begun: OnceCell::new(),
        })
    }

    async fn client(&self) -> Result<Object, Error> {
        let mut client = connect::first(&self.beside, Duration::ZERO).await?;
        let begun = self.begun.get_or_try_init(|| begin(&mut client)).await;
        begun.map_err(|failure| connect::at_start(failure, &self.beside.place))?;
        Ok(client)
    }

    fn said<T>(&self, done: Outcome<T>) -> Result<T, Error> {
        done.map_err(|failure| connect::at_start(failure, &self.beside.place))
    }

    /// Takes the lease if it is free, and ends what is left of earlier tenures. Returns the epoch.
    async fn take(&self, client: &mut Object) -> Outcome<Option<i64>> {
        let transaction = client.transaction().await?;
        hold::one_by_one(&transaction).await?;
        let values: [&(dyn ToSql + Sync); 2] = [&self.node, &TERM.as_secs_f64()];
        let Some(row) = transaction.query_opt(TAKE, &values).await? else {
            return Ok(None);
        };
        let epoch: i64 = row.try_get(0)?;
        if let Some(holder) = hold::end_earlier(&transaction, epoch, END_PATIENCE_MS).await? {
            let place = self.beside.place.clone();
            return Err(Error::Held { place, holder }.into());
        }
        transaction.commit().await?;
        Ok(Some(epoch))
    }
}

/// Makes the tables. Two processes may start at the same time.
async fn begin(client: &mut Object) -> Outcome<()> {
    let transaction = client.transaction().await?;
    schema::alone(&transaction).await?;
    transaction.batch_execute(TABLES).await?;
    Ok(transaction.commit().await?)
}

#[async_trait]
impl Cluster for PostgresCluster {
    async fn ask(&self) -> Result<Option<Arc<dyn Tenure>>, Error> {
        let sent = Instant::now();
        let mut client = self.client().await?;
        let looked = async {
            let row = client.query_opt(LOOK, &[&self.node, &self.version]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
        };
        let looked: Outcome<bool> = looked.await;
        if !self.said(looked)? {
            return Ok(None);
        }
        let place = &self.beside.place;
        // Whoever cannot use the tables would keep the others from them.
        self.said(schema::found(&mut client, place).await)?;
        let taken = self.take(&mut client).await;
        let Some(epoch) = self.said(taken)? else {
            return Ok(None);
        };
        let lease = Lease::new(sent + TERM - EARLY);
        let pool = || connect::pool(&self.url, Some(Hold::tenure(epoch, &self.node)));
        let connected = pool()?;
        let renewing = Renewing {
            // Of its own: whatever else is slow, the lease is renewed.
            pool: pool()?.pool,
            node: self.node.clone(),
            epoch,
            lease: lease.clone(),
        };
        Ok(Some(Arc::new(PostgresTenure {
            url: self.url.clone(),
            node: self.node.clone(),
            connected,
            epoch,
            lease,
            renewing: tokio::spawn(renewing.run()),
        })))
    }

    async fn status(&self) -> Result<ClusterStatus, Error> {
        let client = connect::first(&self.beside, Duration::ZERO).await?;
        let read = async {
            let has_begun: bool = client.query_one(HAS_BEGUN, &[]).await?.try_get(0)?;
            if !has_begun {
                return Ok(ClusterStatus::default());
            }
            let holder = client.query_one(HOLDER, &[]).await?;
            let rows = client.query(NODES, &[&FORGOTTEN.as_secs_f64()]).await?;
            let node = |row: &Row| {
                Ok(Node {
                    name: row.try_get(0)?,
                    version: row.try_get(1)?,
                    seconds: row.try_get(2)?,
                    silent_seconds: row.try_get(3)?,
                })
            };
            let is_held: bool = holder.try_get(2)?;
            Ok(ClusterStatus {
                holder: is_held.then(|| holder.try_get(1)).transpose()?,
                epoch: holder.try_get(0)?,
                nodes: rows.iter().map(node).collect::<Outcome<_>>()?,
                is_replicated: holder.try_get(3)?,
            })
        };
        self.said(read.await)
    }

    async fn forget_file(&self, name: &str) -> Result<(), Error> {
        let client = self.client().await?;
        let forgotten = client.execute(FORGET_FILE, &[&name]).await;
        self.said(forgotten.map(drop).map_err(Failure::from))
    }

    async fn leave(&self) {
        let leaving = async {
            let client = self.client().await?;
            let forgotten = client
                .execute(FORGET_NODES, &[&self.node, &FORGOTTEN.as_secs_f64()])
                .await;
            self.said(forgotten.map_err(Failure::from))
        };
        if let Err(error) = leaving.await {
            tracing::debug!(%error, "the others learn only by its silence that this process ended");
        }
        self.beside.pool.close();
    }
}

/// Renews a lease until it is over.
struct Renewing {
    pool: Pool,
    node: String,
    epoch: i64,
    lease: Lease,
}

impl Renewing {
    async fn run(self) {
        // At once, so that it has its connection before it is needed.
        let mut pause = Duration::ZERO;
        let mut has_failed = false;
        while !self.lease.is_over() {
            sleep(pause).await;
            let sent = Instant::now();
            let patience = timeout_at(sent + RENEW, self.renewed());
            match patience.await.unwrap_or(Err(Failure::Slow)) {
                Ok(true) => {
                    (pause, has_failed) = (RENEW, false);
                    self.lease.renew(sent + TERM - EARLY);
                }
                Ok(false) => self.lease.give_up(),
                Err(failure) => {
                    let error = failure.during("renew the lease");
                    if matches!(error, Error::Held { .. }) {
                        self.lease.give_up();
                    } else if !has_failed {
                        tracing::warn!(%error, "the lease cannot be renewed: trying again");
                    }
                    (pause, has_failed) = (RENEW_AGAIN, true);
                }
            }
        }
    }

    async fn renewed(&self) -> Outcome<bool> {
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(RENEWED).await?;
        let secs = TERM.as_secs_f64();
        let renewed = client
            .execute(&statement, &[&self.epoch, &self.node, &secs])
            .await?;
        Ok(renewed > 0)
    }
}

/// See [`Tenure`].
struct PostgresTenure {
    url: Secret,
    node: String,
    /// Its connections hold the epoch's lock.
    connected: Connected,
    epoch: i64,
    lease: Lease,
    renewing: JoinHandle<()>,
}

impl Drop for PostgresTenure {
    fn drop(&mut self) {
        self.renewing.abort();
        self.lease.give_up();
    }
}

impl PostgresTenure {
    /// Runs a statement within time.
    async fn run(
        &self,
        operation: &'static str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Error> {
        let running = async {
            let client = self.connected.pool.get().await?;
            let statement = client.prepare_cached(sql).await?;
            client.execute(&statement, values).await?;
            Ok(())
        };
        within(operation, running).await
    }
}

/// The texts of saved conversations. Its calls come from threads that may block.
#[derive(Debug)]
struct TextRows {
    pool: Pool,
    runtime: Handle,
}

impl TextRows {
    /// Runs a statement that sees all rows, in a transaction of its own.
    fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let running = async {
            let mut client = self.pool.get().await?;
            let transaction = client.transaction().await?;
            transaction.batch_execute(SEE_ALL).await?;
            let rows = transaction.query(sql, values).await?;
            transaction.commit().await?;
            Ok(rows)
        };
        let operation = "read or write a saved conversation";
        self.runtime.block_on(within(operation, running))
    }

    fn first<T: FromSqlOwned>(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<T>, Error> {
        let rows = self.rows(sql, values)?;
        let first = rows.first().map(|row| row.try_get(0)).transpose();
        first.map_err(|error| Failure::from(error).during("read a saved conversation"))
    }
}

impl SnapshotRows for TextRows {
    fn put(&self, name: &str, text: &str) -> Result<(), Error> {
        let sql = "INSERT INTO snapshot_texts VALUES ($1, $2) \
                   ON CONFLICT (name) DO UPDATE SET content = excluded.content";
        self.rows(sql, &[&name, &text]).map(drop)
    }

    fn get(&self, name: &str) -> Result<Option<String>, Error> {
        self.first(
            "SELECT content FROM snapshot_texts WHERE name = $1",
            &[&name],
        )
    }

    fn remove(&self, name: &str) -> Result<bool, Error> {
        let sql = "DELETE FROM snapshot_texts WHERE name = $1 RETURNING true";
        Ok(self.first(sql, &[&name])?.unwrap_or(false))
    }

    fn bytes(&self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(sum(length(content)), 0)::bigint FROM snapshot_texts";
        let bytes: Option<i64> = self.first(sql, &[])?;
        Ok(bytes.unwrap_or_default().unsigned_abs())
    }
}

async fn within<T>(
    operation: &'static str,
    running: impl Future<Output = Outcome<T>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(PATIENCE, running).await;
    let done = done.unwrap_or(Err(Failure::Slow));
    done.map_err(|failure| failure.during(operation))
}

#[async_trait]
impl Tenure for PostgresTenure {
    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn epoch(&self) -> i64 {
        self.epoch
    }

    async fn open_store(&self, folders: &Folders) -> Result<Store, Error> {
        let rows = TextRows {
            pool: self.connected.pool.clone(),
            runtime: Handle::current(),
        };
        let files = SnapshotFiles::in_rows(folders.agents.clone(), Arc::new(rows));
        let hold = Hold::tenure(self.epoch, &self.node);
        let opened = Postgres::open_for(hold, Duration::ZERO, &self.url, files);
        Ok(Store::from(Box::pin(opened).await?))
    }

    async fn files(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let reading = async {
            let client = self.connected.pool.get().await?;
            let long = LONG_PATIENCE.as_millis();
            let rows = format!("SET statement_timeout = {long}");
            client.batch_execute(&rows).await?;
            let rows = client.query("SELECT name, content FROM state_files", &[]);
            let rows = rows.await?;
            drop(Object::take(client));
            let file = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
            rows.iter().map(file).collect()
        };
        within("read what the last process left", reading).await
    }

    async fn keep_file(&self, name: &str, content: Option<&[u8]>) -> Result<(), Error> {
        let operation = "keep what the next process needs";
        let Some(content) = content else {
            return self.run(operation, FORGET_FILE, &[&name]).await;
        };
        let sql = "INSERT INTO state_files VALUES ($1, $2) \
                   ON CONFLICT (name) DO UPDATE SET content = excluded.content";
        self.run(operation, sql, &[&name, &content]).await
    }

    async fn claims(&self, since: UnixMillis) -> Result<Vec<String>, Error> {
        let reading = async {
            let client = self.connected.pool.get().await?;
            let sql = "SELECT line FROM claims WHERE at >= $1 ORDER BY at";
            let rows = client.query(sql, &[&since.0]).await?;
            let line = |row: &Row| Ok(row.try_get(0)?);
            rows.iter().map(line).collect()
        };
        within("read which questions were taken", reading).await
    }

    async fn keep_claim(&self, claim: u64, at: UnixMillis, line: &str) -> Result<(), Error> {
        let sql = "INSERT INTO claims VALUES ($1, $2, $3) ON CONFLICT (claim) \
                   DO UPDATE SET at = excluded.at, line = excluded.line";
        let values: [&(dyn ToSql + Sync); 3] = [&claim.cast_signed(), &at.0, &line];
        self.run("note that a question is taken", sql, &values)
            .await
    }

    async fn forget_claims(&self, before: UnixMillis) -> Result<(), Error> {
        let sql = "DELETE FROM claims WHERE at < $1";
        self.run("forget old questions", sql, &[&before.0]).await
    }

    async fn end(&self) {
        self.renewing.abort();
        self.lease.give_up();
        let ended = self.run("give the lease back", END, &[&self.epoch]).await;
        if let Err(error) = ended {
            tracing::warn!(%error, "the next process waits until the lease has run out");
        }
        hold::release(&self.connected.pool).await;
    }
}
