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
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::cluster::{
    Asked, Cluster, ClusterStatus, KeptClaim, LEASE_EARLY, LEASE_RENEWED, LEASE_RENEWED_AGAIN,
    LEASE_TERM, Node, Tenure,
};
use super::super::{Error, Folders, SnapshotFiles, Store};
use super::connect::{self, Connected};
use super::hold::Hold;
use super::session::{Borrowed, Failure, LONG_PATIENCE, Outcome, PATIENCE, bounded};
use super::{Postgres, hold, schema};
use clew_context::model::{Secret, UnixMillis};
use clew_context::outside::Lease;

const TABLES: &str = include_str!("cluster.sql");
/// How long the connections of earlier epochs may take to end.
const END_PATIENCE_MS: i64 = 4_000;
/// A process that was not heard of so long is forgotten.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// For how long a process that could not be the bot is in no other's place.
const UNABLE: Duration = Duration::from_mins(10);

/// Who has the lease, none if it is free; whether this process's row is of late, and whether it leaves
/// the lease to another.
const LOOK: &str = "SELECT (SELECT node FROM leases WHERE name = 'bot' AND until >= clock_timestamp()), \
     EXISTS (SELECT FROM nodes WHERE name = $1 AND seen > clock_timestamp() - interval '3 s'), \
     EXISTS (SELECT FROM relieved WHERE name = $1)";
const HERE: &str = "INSERT INTO nodes VALUES ($1, $2, clock_timestamp(), clock_timestamp()) \
     ON CONFLICT (name) DO UPDATE SET seen = clock_timestamp(), shards = 0, connected = 0";
const TAKE: &str = "UPDATE leases SET epoch = epoch + 1, node = $1, \
         until = clock_timestamp() + make_interval(secs => $2) \
     WHERE name = 'bot' AND until < clock_timestamp() RETURNING epoch, shards";
const RENEWED: &str = "WITH here AS (UPDATE nodes SET seen = clock_timestamp(), shards = $4, \
         connected = $5 WHERE name = $2) \
     UPDATE leases SET until = clock_timestamp() + make_interval(secs => $3) \
     WHERE name = 'bot' AND epoch = $1 AND node = $2 \
     RETURNING shards, EXISTS (SELECT FROM relieved WHERE name = $2)";
/// The next process need not wait.
const END: &str = "UPDATE leases SET until = '-infinity' WHERE name = 'bot' AND epoch = $1";
const HAS_BEGUN: &str = "SELECT to_regclass('clew.leases') IS NOT NULL";
const HOLDER: &str = "SELECT epoch, node, until >= clock_timestamp(), \
         current_setting('synchronous_standby_names') <> '', shards \
     FROM leases WHERE name = 'bot'";
const NODES: &str = "SELECT name, version, \
         extract(epoch FROM clock_timestamp() - since)::bigint, \
         extract(epoch FROM clock_timestamp() - seen)::bigint, drains, shards, connected \
     FROM nodes WHERE seen > clock_timestamp() - make_interval(secs => $1) ORDER BY name";
const FORGET_FILES: &str = "DELETE FROM state_files WHERE name = ANY($1)";
const FORGET_NODES: &str =
    "DELETE FROM nodes WHERE seen < clock_timestamp() - make_interval(secs => $1)";

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

    /// Does something beside whoever has the lease, within a lease's time: a server that is silent
    /// keeps nobody waiting. The tables are there.
    async fn beside<T>(
        &self,
        work: impl AsyncFnOnce(&mut Object) -> Outcome<T>,
    ) -> Result<T, Error> {
        let working = async {
            if !self.begun.initialized() {
                let mut client = Borrowed::of(connect::first(&self.beside, Duration::ZERO).await?);
                begin(client.object()?).await?;
                client.returned();
                // It fails if another call was as fast.
                let _ = self.begun.set(());
            }
            let mut client = Borrowed::of(self.beside.pool.get().await?);
            let done = work(client.object()?).await?;
            client.returned();
            Ok(done)
        };
        self.in_term(working).await
    }

    async fn in_term<T>(&self, work: impl Future<Output = Outcome<T>>) -> Result<T, Error> {
        let done = timeout(LEASE_TERM, work).await;
        let done = done.unwrap_or(Err(Failure::Slow));
        done.map_err(|failure| connect::at_start(failure, &self.beside.place))
    }

    /// Takes the lease if it is free, and ends what is left of earlier tenures. Returns the epoch, and how
    /// many shards there are to be.
    async fn take(&self, client: &mut Object) -> Outcome<Option<(i64, i32)>> {
        let transaction = client.transaction().await?;
        hold::one_by_one(&transaction).await?;
        let values: [&(dyn ToSql + Sync); 2] = [&self.node, &LEASE_TERM.as_secs_f64()];
        let Some(row) = transaction.query_opt(TAKE, &values).await? else {
            return Ok(None);
        };
        let epoch: i64 = row.try_get(0)?;
        if let Some(holder) = hold::end_earlier(&transaction, epoch, END_PATIENCE_MS).await? {
            let place = self.beside.place.clone();
            return Err(Error::Held { place, holder }.into());
        }
        let forgotten = FORGOTTEN.as_secs_f64();
        transaction.execute(FORGET_NODES, &[&forgotten]).await?;
        transaction.commit().await?;
        Ok(Some((epoch, row.try_get(1)?)))
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
    async fn ask(&self) -> Result<Asked, Error> {
        let sent = Instant::now();
        let taken = self.beside(async |client| {
            let row = client.query_one(LOOK, &[&self.node]).await?;
            if !row.try_get::<_, bool>(1)? {
                client.execute(HERE, &[&self.node, &self.version]).await?;
            }
            if let Some(holder) = row.try_get(0)? {
                return Ok(Err(holder));
            }
            if row.try_get(2)? {
                return Ok(Err("another one, soon".to_owned()));
            }
            // Whoever cannot use the tables would keep the others from them.
            schema::found(client, &self.beside.place).await?;
            let taken = self.take(client).await?;
            Ok(taken.ok_or_else(|| "another one, just now".to_owned()))
        });
        let (epoch, shards) = match taken.await? {
            Ok(taken) => taken,
            Err(holder) => return Ok(Asked::Others(holder)),
        };
        let lease = Lease::new(sent + LEASE_TERM - LEASE_EARLY);
        let pool = || connect::pool(&self.url, Some(Hold::tenure(epoch, &self.node)));
        let connected = pool()?;
        let told = Arc::new(Told {
            shards: watch::channel(count(shards)).0,
            drains: watch::channel(false).0,
            connected: watch::channel((0, 0)).0,
        });
        let renewing = Renewing {
            told: Arc::clone(&told),
            // Of its own: whatever else is slow, the lease is renewed.
            pool: pool()?.pool,
            node: self.node.clone(),
            epoch,
            lease: lease.clone(),
        };
        Ok(Asked::Ours(Arc::new(PostgresTenure {
            url: self.url.clone(),
            node: self.node.clone(),
            connected,
            epoch,
            lease,
            told,
            renewing: tokio::spawn(renewing.run()),
        })))
    }

    fn node(&self) -> &str {
        &self.node
    }

    async fn drain(&self, node: &str) -> Result<bool, Error> {
        let drained = self.beside(async |client| {
            let sql = "UPDATE nodes SET drains = TRUE WHERE name = $1";
            Ok(client.execute(sql, &[&node]).await? > 0)
        });
        drained.await
    }

    async fn note_unable(&self) -> Result<(), Error> {
        let noted = self.beside(async |client| {
            let sql = "UPDATE nodes SET unable_until = clock_timestamp() + make_interval(secs => $2) \
                       WHERE name = $1";
            let secs = UNABLE.as_secs_f64();
            client.execute(sql, &[&self.node, &secs]).await?;
            Ok(())
        });
        noted.await
    }

    async fn reshard(&self, shards: u32) -> Result<(), Error> {
        let wished = self.beside(async |client| {
            let sql = "UPDATE leases SET shards = $1 WHERE name = 'bot'";
            client.execute(sql, &[&shards.cast_signed()]).await?;
            Ok(())
        });
        wished.await
    }

    async fn status(&self) -> Result<ClusterStatus, Error> {
        let reading = async {
            let mut client = Borrowed::of(connect::first(&self.beside, Duration::ZERO).await?);
            let status = read_status(client.object()?).await?;
            client.returned();
            Ok(status)
        };
        self.in_term(reading).await
    }

    async fn forget_file(&self, name: &str) -> Result<(), Error> {
        let forgotten = self.beside(async |client| {
            client.execute(FORGET_FILES, &[&[name].as_slice()]).await?;
            Ok(())
        });
        forgotten.await
    }

    async fn leave(&self) {
        let left = self.beside(async |client| {
            client
                .execute("DELETE FROM nodes WHERE name = $1", &[&self.node])
                .await?;
            Ok(())
        });
        if let Err(error) = left.await {
            tracing::debug!(%error, "the others learn only by its silence that this process ended");
        }
        self.beside.pool.close();
    }
}

async fn read_status(client: &Object) -> Outcome<ClusterStatus> {
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
            drains: row.try_get(4)?,
            shards: row.try_get(5)?,
            connected: row.try_get(6)?,
        })
    };
    let is_held: bool = holder.try_get(2)?;
    Ok(ClusterStatus {
        holder: is_held.then(|| holder.try_get(1)).transpose()?,
        epoch: holder.try_get(0)?,
        nodes: rows.iter().map(node).collect::<Outcome<_>>()?,
        is_replicated: holder.try_get(3)?,
        shards: holder.try_get(4)?,
    })
}

/// What is told with each renewal.
struct Told {
    shards: watch::Sender<u32>,
    drains: watch::Sender<bool>,
    /// The shards there are, and how many are connected.
    connected: watch::Sender<(u32, u32)>,
}

/// As it is kept.
fn count(shards: i32) -> u32 {
    u32::try_from(shards).unwrap_or_default()
}

/// Renews a lease until it is over.
struct Renewing {
    told: Arc<Told>,
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
            let patience = timeout_at(sent + LEASE_RENEWED, self.renewed());
            match patience.await.unwrap_or(Err(Failure::Slow)) {
                Ok(true) => {
                    (pause, has_failed) = (LEASE_RENEWED, false);
                    self.lease.renew(sent + LEASE_TERM - LEASE_EARLY);
                }
                Ok(false) => self.lease.give_up(),
                Err(failure) => {
                    let error = failure.during("renew the lease");
                    if matches!(error, Error::Held { .. }) {
                        self.lease.give_up();
                    } else if !has_failed {
                        tracing::warn!(%error, "the lease cannot be renewed: trying again");
                    }
                    (pause, has_failed) = (LEASE_RENEWED_AGAIN, true);
                }
            }
        }
    }

    async fn renewed(&self) -> Outcome<bool> {
        let mut client = Borrowed::of(self.pool.get().await?);
        let connection = client.object()?;
        let statement = connection.prepare_cached(RENEWED).await?;
        let secs = LEASE_TERM.as_secs_f64();
        let (shards, connected) = *self.told.connected.borrow();
        let (shards, connected) = (shards.cast_signed(), connected.cast_signed());
        let values: [&(dyn ToSql + Sync); 5] =
            [&self.epoch, &self.node, &secs, &shards, &connected];
        let renewed = connection.query_opt(&statement, &values).await?;
        client.returned();
        let Some(row) = renewed else { return Ok(false) };
        self.told
            .shards
            .send_if_modified(changed(count(row.try_get(0)?)));
        self.told.drains.send_if_modified(changed(row.try_get(1)?));
        Ok(true)
    }
}

/// Puts a value in another one's place; false if it is the same.
fn changed<T: PartialEq>(to: T) -> impl FnOnce(&mut T) -> bool {
    |value| {
        let is_other = *value != to;
        *value = to;
        is_other
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
    told: Arc<Told>,
    renewing: JoinHandle<()>,
}

impl Drop for PostgresTenure {
    fn drop(&mut self) {
        self.renewing.abort();
        self.lease.give_up();
    }
}

impl PostgresTenure {
    /// Runs a statement within time, as long as the lease holds: what is known later, such as that an
    /// answer could not be posted, is not for the next process.
    async fn run(
        &self,
        operation: &'static str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Error> {
        let running = self.lease.during(self.execute(operation, sql, values));
        running.await.unwrap_or_else(|| {
            Err(Error::Held {
                place: self.connected.place.clone(),
                holder: "whichever process has the lease next".to_owned(),
            })
        })
    }

    async fn execute(
        &self,
        operation: &'static str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Error> {
        let running = async {
            let mut client = Borrowed::of(self.connected.pool.get().await?);
            let connection = client.object()?;
            let statement = connection.prepare_cached(sql).await?;
            connection.execute(&statement, values).await?;
            client.returned();
            Ok(())
        };
        bounded(PATIENCE, operation, running).await
    }
}

#[async_trait]
impl Tenure for PostgresTenure {
    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn epoch(&self) -> i64 {
        self.epoch
    }

    fn drains(&self) -> watch::Receiver<bool> {
        self.told.drains.subscribe()
    }

    fn shards(&self) -> watch::Receiver<u32> {
        self.told.shards.subscribe()
    }

    fn tell(&self, shards: u32, connected: u32) {
        self.told.connected.send_replace((shards, connected));
    }

    async fn open_store(&self, folders: &Folders) -> Result<Store, Error> {
        let files = SnapshotFiles::new(folders.agents.clone());
        let hold = Hold::tenure(self.epoch, &self.node);
        let opened = Postgres::open_for(hold, Duration::ZERO, &self.url, files);
        Ok(Store::from(Box::pin(opened).await?))
    }

    async fn files(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let reading = async {
            // It is not used again: its limit is another one.
            let mut client = Borrowed::of(self.connected.pool.get().await?);
            let connection = client.object()?;
            let long = format!("SET statement_timeout = {}", LONG_PATIENCE.as_millis());
            connection.batch_execute(&long).await?;
            let rows = connection.query("SELECT name, content FROM state_files", &[]);
            let rows = rows.await?;
            let file = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
            rows.iter().map(file).collect()
        };
        bounded(LONG_PATIENCE, "read what the last process left", reading).await
    }

    async fn keep_files(&self, files: &[(&str, &[u8])]) -> Result<(), Error> {
        let (names, contents): (Vec<&str>, Vec<&[u8]>) = files.iter().copied().unzip();
        let sql = "INSERT INTO state_files SELECT * FROM unnest($1::text[], $2::bytea[]) \
                   ON CONFLICT (name) DO UPDATE SET content = excluded.content";
        self.run(
            "keep what the next process needs",
            sql,
            &[&names, &contents],
        )
        .await
    }

    async fn forget_files(&self, names: &[&str]) -> Result<(), Error> {
        let operation = "forget what the next process does not need";
        self.run(operation, FORGET_FILES, &[&names]).await
    }

    async fn claims(&self, since: UnixMillis) -> Result<Vec<String>, Error> {
        let reading = async {
            let mut client = Borrowed::of(self.connected.pool.get().await?);
            let sql = "SELECT line FROM claims WHERE at >= $1 ORDER BY at";
            let rows = client.object()?.query(sql, &[&since.0]).await?;
            client.returned();
            let line = |row: &Row| Ok(row.try_get(0)?);
            rows.iter().map(line).collect()
        };
        bounded(PATIENCE, "read which questions were taken", reading).await
    }

    async fn keep_claims(&self, claims: &[KeptClaim]) -> Result<(), Error> {
        let sql = "INSERT INTO claims SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) \
                   ON CONFLICT (claim) DO UPDATE SET at = excluded.at, line = excluded.line";
        let ids: Vec<i64> = claims.iter().map(|one| one.claim.cast_signed()).collect();
        let times: Vec<i64> = claims.iter().map(|one| one.at.0).collect();
        let lines: Vec<&str> = claims.iter().map(|one| one.line.as_str()).collect();
        let values: [&(dyn ToSql + Sync); 3] = [&ids, &times, &lines];
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
        let ended = self
            .execute("give the lease back", END, &[&self.epoch])
            .await;
        if let Err(error) = ended {
            tracing::warn!(%error, "the next process waits until the lease has run out");
        }
        hold::release(&self.connected.pool).await;
    }
}
