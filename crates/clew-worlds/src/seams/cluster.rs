//! Processes of one bot that agree by rows, as they do by PostgreSQL's: a lease, files, claims, and
//! a store that only who has the lease may use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use clew::config::Config;
use clew_context::model::{Clock, UnixMillis};
use clew_context::outside::Lease;
use clew_store::{
    Asked, Cluster, ClusterStatus, Error, Folders, KeptClaim, LEASE_EARLY, LEASE_RENEWED,
    LEASE_RENEWED_AGAIN, LEASE_TERM, Node, Store, Tenure,
};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::net::Net;
use super::store::{TroubledStore, held};
use crate::history::{GAVE_BACK, What};
use crate::process::Lack;
use crate::world::lock;

/// How lately a process was seen that can be the bot, and for how long one that could not be it cannot, in
/// milliseconds, as by PostgreSQL.
const SEEN: i64 = 5_000;
const UNABLE: i64 = 600_000;

/// How long a statement may take, in milliseconds.
const LATENCY: u64 = 8;

/// What the processes share. It outlives them.
#[derive(Default)]
pub(crate) struct Database {
    rows: Mutex<Rows>,
    store: OnceCell<Arc<Store>>,
}

#[derive(Default)]
struct Rows {
    /// As many tenures as there were.
    epoch: u32,
    /// The process of the last one.
    holder: String,
    /// Until when it has the lease, in milliseconds since the world's beginning.
    until: i64,
    /// When each process was seen last.
    seen: BTreeMap<u32, i64>,
    /// The processes that are the bot only if no other can be.
    drained: BTreeSet<u32>,
    /// Until when those that could not be the bot are in no other's place.
    unable_until: BTreeMap<u32, i64>,
    /// How many shards an operator wants; 0 for none that does.
    shards: u32,
    files: BTreeMap<String, Vec<u8>>,
    claims: BTreeMap<u64, KeptClaim>,
    /// The tenures that told that they began, before they opened the store, each with its process.
    begun: Vec<(u32, u32)>,
    /// Nobody reaches it until then.
    is_gone_until: i64,
    /// Nobody will any more.
    is_closed: bool,
}

impl Rows {
    /// Whether it is for another process to be the bot.
    fn is_relieved(&self, process: u32, now: i64) -> bool {
        let mut others = self.seen.iter();
        let can = |(other, seen): (&u32, &i64)| {
            let is_able = self
                .unable_until
                .get(other)
                .is_none_or(|until| *until < now);
            is_able && !self.drained.contains(other) && now - seen < SEEN
        };
        self.drained.contains(&process) && others.any(can)
    }

    fn drain(&mut self, process: u32) -> bool {
        self.seen.contains_key(&process) && self.drained.insert(process)
    }
}

impl Database {
    /// Has another number of shards, as an operator does.
    pub(crate) fn reshard(&self, shards: u32) {
        lock(&self.rows).shards = shards;
    }

    /// Drains a process, as an operator does.
    pub(crate) fn drain(&self, process: u32) {
        lock(&self.rows).drain(process);
    }

    /// Whether this is the last tenure; always where there are none.
    pub(crate) fn is_last(&self, epoch: u32) -> bool {
        [0, epoch].contains(&lock(&self.rows).epoch)
    }

    /// Nobody reaches it until then.
    pub(crate) fn go(&self, until: i64) {
        lock(&self.rows).is_gone_until = until;
    }

    /// Those of a process's tenures that told that they began, in order.
    pub(crate) fn begun_by(&self, process: u32) -> Vec<u32> {
        let rows = lock(&self.rows);
        let of = rows.begun.iter().filter(|(of, _)| *of == process);
        of.map(|(_, epoch)| *epoch).collect()
    }

    /// Whether the store that the processes share is open.
    pub(crate) fn is_open(&self) -> bool {
        self.store.initialized() && !lock(&self.rows).is_closed
    }

    /// All processes are gone.
    ///
    /// # Errors
    /// The store's error.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        if let Some(store) = self.store.get() {
            store.close().await?;
            lock(&self.rows).is_closed = true;
        }
        Ok(())
    }
}

/// The cluster, as one process sees it.
#[derive(Clone)]
pub(crate) struct LocalCluster {
    pub(crate) net: Net,
    /// Counts the processes that ever were, whichever was the bot.
    pub(crate) process: u32,
    pub(crate) name: String,
    pub(crate) config: Config,
    /// The process's.
    pub(crate) clock: Clock,
}

fn term_ms() -> i64 {
    LEASE_TERM.as_secs().cast_signed() * 1_000
}

fn not_reached() -> Error {
    Error::NotReady {
        place: "the database".to_owned(),
        source: "it is not reached".into(),
    }
}

impl Net {
    /// Does something with what the processes share, unless that is not reached.
    async fn at_rows<T>(&self, work: impl FnOnce(&mut Rows) -> T + Send) -> Result<T, Error> {
        self.process.cross().await;
        self.statement().await;
        self.process.cross().await;
        let done = if self.is_parted() {
            Err(not_reached())
        } else {
            Ok(work(&mut lock(&self.world.database.rows)))
        };
        self.statement().await;
        self.process.cross().await;
        done
    }

    async fn statement(&self) {
        sleep(Duration::from_millis(self.world.between(0, LATENCY))).await;
    }

    /// Whether the database is not reached now.
    pub(super) fn is_parted(&self) -> bool {
        let is_gone_until = lock(&self.world.database.rows).is_gone_until;
        self.process.lacks(Lack::Database) || self.world.clock.elapsed_ms() < is_gone_until
    }
}

#[async_trait]
impl Cluster for LocalCluster {
    async fn ask(&self) -> Result<Asked, Error> {
        let sent = Instant::now();
        let now = || self.net.world.clock.elapsed_ms();
        let taken = self.net.at_rows(|rows| {
            rows.seen.insert(self.process, now());
            if now() <= rows.until || rows.is_relieved(self.process, now()) {
                return Err(rows.holder.clone());
            }
            rows.epoch += 1;
            rows.holder.clone_from(&self.name);
            rows.until = now() + term_ms();
            let process = rows.epoch;
            self.net.process.becomes(process);
            self.net.world.note(What::Started { process });
            Ok((process, rows.shards))
        });
        let (epoch, shards) = match taken.await? {
            Ok(taken) => taken,
            Err(holder) => return Ok(Asked::Others(holder)),
        };
        let lease = Lease::new(sent + LEASE_TERM - LEASE_EARLY);
        let drains = watch::Sender::new(false);
        let shards = watch::Sender::new(shards);
        let told = (lease.clone(), drains.clone(), shards.clone());
        let renewing = keep(self.net.clone(), (self.process, epoch), told);
        let renewing = tokio::spawn(renewing);
        Ok(Asked::Ours(Arc::new(LocalTenure {
            cluster: self.clone(),
            epoch,
            lease,
            drains,
            shards,
            renewing,
        })))
    }

    fn node(&self) -> &str {
        &self.name
    }

    async fn drain(&self, node: &str) -> Result<bool, Error> {
        let number = node
            .rsplit(' ')
            .next()
            .and_then(|number| number.parse().ok());
        let drained = self
            .net
            .at_rows(|rows| rows.drain(number.unwrap_or_default()));
        drained.await
    }

    async fn note_unable(&self) -> Result<(), Error> {
        let until = self.net.world.clock.elapsed_ms() + UNABLE;
        let noted = self
            .net
            .at_rows(|rows| rows.unable_until.insert(self.process, until));
        noted.await?;
        self.net.world.note(What::Unable { until });
        Ok(())
    }

    async fn reshard(&self, shards: u32) -> Result<(), Error> {
        self.net.at_rows(|rows| rows.shards = shards).await
    }

    async fn status(&self) -> Result<ClusterStatus, Error> {
        let now = self.net.world.clock.elapsed_ms();
        let node = |(process, seen): (&u32, &i64)| Node {
            name: format!("process {process}"),
            version: String::new(),
            seconds: 0,
            silent_seconds: (now - seen) / 1_000,
            drains: false,
            shards: 0,
            connected: 0,
        };
        let nodes = self
            .net
            .at_rows(|rows| rows.seen.iter().map(node).collect());
        Ok(ClusterStatus {
            nodes: nodes.await?,
            ..ClusterStatus::default()
        })
    }

    async fn forget_file(&self, name: &str) -> Result<(), Error> {
        self.net.at_rows(|rows| drop(rows.files.remove(name))).await
    }

    async fn leave(&self) {}
}

/// Renews a lease until it is over.
async fn keep(
    net: Net,
    (process, epoch): (u32, u32),
    (lease, drains, shards): (Lease, watch::Sender<bool>, watch::Sender<u32>),
) {
    let renewing = async {
        let mut pause = LEASE_RENEWED;
        loop {
            sleep(pause).await;
            let sent = Instant::now();
            let renewed = net.at_rows(|rows| {
                let is_ours = rows.epoch == epoch;
                let now = net.world.clock.elapsed_ms();
                rows.seen.insert(process, now);
                if is_ours {
                    rows.until = now + term_ms();
                    drains.send_replace(rows.is_relieved(process, now));
                    shards.send_replace(rows.shards);
                }
                is_ours
            });
            pause = match renewed.await {
                Ok(true) => {
                    lease.renew(sent + LEASE_TERM - LEASE_EARLY);
                    LEASE_RENEWED
                }
                Ok(false) => {
                    lease.give_up();
                    return;
                }
                Err(_) => LEASE_RENEWED_AGAIN,
            };
        }
    };
    tokio::select! {
        biased;
        () = lease.over() => {}
        () = renewing => {}
    }
    note_over(&net, epoch, "its lease is over");
}

/// Notes that it is the bot no more, once.
fn note_over(net: &Net, epoch: u32, why: &str) {
    if net.process.is_cut() || net.process.number() != epoch {
        return;
    }
    net.process.becomes(0);
    let error = (!net.world.is_asked_to_stop(epoch)).then(|| format!("{GAVE_BACK}: {why}"));
    let process = epoch;
    net.world.note(What::Ended { process, error });
}

struct LocalTenure {
    cluster: LocalCluster,
    epoch: u32,
    lease: Lease,
    drains: watch::Sender<bool>,
    shards: watch::Sender<u32>,
    renewing: JoinHandle<()>,
}

impl Drop for LocalTenure {
    fn drop(&mut self) {
        self.renewing.abort();
        self.lease.give_up();
        note_over(&self.cluster.net, self.epoch, "it is dropped");
    }
}

impl LocalTenure {
    /// Does something with the rows as long as the lease holds, and this is the last tenure.
    async fn run<T>(&self, work: impl FnOnce(&mut Rows) -> T + Send) -> Result<T, Error> {
        let done = self.cluster.net.at_rows(|rows| {
            let is_ours = rows.epoch == self.epoch;
            is_ours.then(|| work(rows)).ok_or_else(held)
        });
        let done = self.lease.during(done).await;
        done.unwrap_or_else(|| Ok(Err(held())))?
    }
}

#[async_trait]
impl Tenure for LocalTenure {
    fn lease(&self) -> &Lease {
        &self.lease
    }

    fn epoch(&self) -> i64 {
        self.epoch.into()
    }

    fn drains(&self) -> watch::Receiver<bool> {
        self.drains.subscribe()
    }

    fn shards(&self) -> watch::Receiver<u32> {
        self.shards.subscribe()
    }

    fn tell(&self, _: u32, _: u32) {}

    async fn open_store(&self, folders: &Folders) -> Result<Store, Error> {
        let begun = (self.cluster.process, self.epoch);
        lock(&self.cluster.net.world.database.rows)
            .begun
            .push(begun);
        self.run(|_| ()).await?;
        let address = &self.cluster.config.memory.store;
        let opening = async {
            let clock = Arc::clone(&self.cluster.clock);
            let opened = Store::open(address, folders, clock).await?;
            Ok::<_, Error>(Arc::new(opened))
        };
        let store = self
            .cluster
            .net
            .world
            .database
            .store
            .get_or_try_init(|| opening);
        let store = Arc::clone(store.await?);
        Ok(TroubledStore::of_tenure(
            store,
            self.cluster.net.clone(),
            self.epoch,
        ))
    }

    async fn files(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let files = self.run(|rows| rows.files.clone()).await?;
        Ok(files.into_iter().collect())
    }

    async fn keep_files(&self, files: &[(&str, &[u8])]) -> Result<(), Error> {
        let files: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.to_vec()))
            .collect();
        self.run(|rows| rows.files.extend(files)).await
    }

    async fn forget_files(&self, names: &[&str]) -> Result<(), Error> {
        self.run(|rows| rows.files.retain(|name, _| !names.contains(&&**name)))
            .await
    }

    async fn claims(&self, since: UnixMillis) -> Result<Vec<String>, Error> {
        let claims = self.run(|rows| {
            let mut claims: Vec<KeptClaim> = rows.claims.values().cloned().collect();
            claims.retain(|claim| claim.at >= since);
            claims.sort_by_key(|claim| claim.at);
            claims
        });
        Ok(claims.await?.into_iter().map(|claim| claim.line).collect())
    }

    async fn keep_claims(&self, claims: &[KeptClaim]) -> Result<(), Error> {
        let claims = claims.iter().map(|one| (one.claim, one.clone()));
        let claims: Vec<(u64, KeptClaim)> = claims.collect();
        self.run(|rows| rows.claims.extend(claims)).await
    }

    async fn forget_claims(&self, before: UnixMillis) -> Result<(), Error> {
        self.run(|rows| rows.claims.retain(|_, claim| claim.at >= before))
            .await
    }

    async fn end(&self) {
        self.renewing.abort();
        self.lease.give_up();
        note_over(&self.cluster.net, self.epoch, "it ended");
        let epoch = self.epoch;
        let given = self.cluster.net.at_rows(|rows| {
            if rows.epoch == epoch {
                rows.until = i64::MIN;
            }
        });
        let _ = given.await;
    }
}
