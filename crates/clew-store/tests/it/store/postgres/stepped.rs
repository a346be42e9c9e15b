//! Real connections of several processes to one database, whose statements are let through one by one in
//! a random order: whatever the order, nothing of a tenure is kept once the next one has begun.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use clew_store::model::StoreAddress;
use clew_store::{Asked, Cluster, KeptClaim, Tenure, cluster};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::super::random::{Random, seed};
use super::*;

/// Orders that are tried, unless `STORE_TEST_ORDERS` says otherwise.
const ORDERS: u64 = 40;
/// How many statements are let through one by one, until the processes are to end.
const STATEMENTS: u64 = 400;
/// The longest time from one statement that is let through to the next, in microseconds: others may come.
const PAUSE_US: u64 = 300;
/// One of so many steps finds that the lease has run out, as if whoever has it had been paused.
const RUNS_OUT: u64 = 40;
/// Not while a process takes it, which is held, or before there are tables.
const RUN_OUT: &str = "DO $$ BEGIN SET LOCAL lock_timeout = '2ms'; \
     UPDATE clew.leases SET until = '-infinity'; \
     EXCEPTION WHEN lock_not_available OR undefined_table THEN NULL; END $$";
/// Stands in a statement that renews the lease, and in no other.
const RENEWAL: &[u8] = b"WITH here AS";
/// By how much the claims of an epoch are above those of the one before.
const OF_EPOCH: u64 = 1_000;
/// The protocol's version 3.0, as a startup message names it (PostgreSQL's documentation, "Message
/// Formats").
const STARTUP: [u8; 4] = [0, 3, 0, 0];

/// Holds what processes send to the database until it is let through.
#[derive(Clone, Default)]
struct Steps {
    held: Arc<Mutex<Vec<oneshot::Sender<()>>>>,
    /// Whether everything is let through.
    is_open: Arc<watch::Sender<bool>>,
}

impl Steps {
    fn held(&self) -> MutexGuard<'_, Vec<oneshot::Sender<()>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a statement may pass. A renewal passes at the end only: whoever has the lease does not
    /// learn that it has run out.
    async fn pass(&self, is_renewal: bool) {
        let mut open = self.is_open.subscribe();
        if *open.borrow_and_update() {
            return;
        }
        let (let_through, waits) = oneshot::channel();
        if !is_renewal {
            self.held().push(let_through);
        }
        tokio::select! {
            Ok(()) = waits => {}
            _ = open.wait_for(|is_open| *is_open) => {}
        }
    }

    /// Lets one through, if one is held.
    fn step(&self, random: &mut Random) -> bool {
        let mut held = self.held();
        held.retain(|one| !one.is_closed());
        if held.is_empty() {
            return false;
        }
        let one = random.below(u64::try_from(held.len()).unwrap());
        let one = usize::try_from(one).unwrap();
        held.swap_remove(one).send(()).is_ok()
    }

    /// Passes connections on to a port. Returns where they come to, and what takes them until it is dropped.
    async fn before(&self, port: u16) -> (u16, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let steps = self.clone();
        let mut taking = JoinSet::new();
        taking.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                // A statement is several small writes, which else wait for each other's receipt.
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (from_client, mut to_client) = client.into_split();
                let (mut from_server, to_server) = server.into_split();
                tokio::spawn(async move { drop(copy(&mut from_server, &mut to_client).await) });
                let steps = steps.clone();
                tokio::spawn(async move { drop(steps.forward(from_client, to_server).await) });
            }
        });
        (own, taking)
    }

    async fn forward(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
    ) -> std::io::Result<()> {
        let mut has_started = false;
        let mut waiting = Vec::new();
        loop {
            let kind = if has_started {
                Some(from.read_u8().await?)
            } else {
                None
            };
            let length = from.read_u32().await?;
            let mut content = vec![0; length as usize - 4];
            from.read_exact(&mut content).await?;
            waiting.extend(kind);
            waiting.extend(length.to_be_bytes());
            waiting.extend(&content);
            has_started |= content.starts_with(&STARTUP);
            match kind {
                // Before a password, it, and the end.
                None | Some(b'p' | b'X') => {}
                // A query, or the end of what belongs together.
                Some(b'Q' | b'S') => {
                    let is_renewal = waiting.windows(RENEWAL.len()).any(|part| part == RENEWAL);
                    self.pass(is_renewal).await;
                }
                Some(_) => continue,
            }
            to.write_all(&waiting).await?;
            waiting.clear();
        }
    }
}

/// What is known from outside.
#[derive(Default)]
struct Known {
    /// The epochs that began, each with the claims that its tenure found.
    begun: BTreeMap<i64, BTreeSet<u64>>,
    /// Claims that were kept, as their tenures were told.
    kept: BTreeSet<u64>,
    /// Claims that were asked to be kept when another tenure had begun already.
    late: BTreeSet<u64>,
    /// The processes are to end.
    is_over: bool,
}

type KnownToAll = Arc<Mutex<Known>>;

fn lock(known: &KnownToAll) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process: it asks for the lease, notes claims, and ends its tenures, some without a word.
async fn live(node: Arc<dyn Cluster>, known: KnownToAll, mut random: Random) {
    let mut tenure: Option<Arc<dyn Tenure>> = None;
    let mut noted = 0;
    while !lock(&known).is_over {
        let Some(of) = &tenure else {
            if let Ok(Asked::Ours(taken)) = node.ask().await {
                let found = taken.claims(UnixMillis(0)).await;
                if let Ok(found) = found {
                    let found = found.iter().map(|line| line.parse().unwrap()).collect();
                    let before = lock(&known).begun.insert(taken.epoch(), found);
                    assert!(before.is_none(), "epoch {} began twice", taken.epoch());
                }
                tenure = Some(taken);
            }
            continue;
        };
        match random.below(12) {
            _ if of.lease().is_over() => tenure = None,
            0 => {
                of.end().await;
                tenure = None;
            }
            1 => tenure = None,
            _ => {
                noted += 1;
                let claim = of.epoch().cast_unsigned() * OF_EPOCH + noted;
                let is_late = lock(&known).begun.keys().any(|epoch| *epoch > of.epoch());
                let line = claim.to_string();
                let at = UnixMillis(1);
                let done = of.keep_claims(&[KeptClaim { claim, at, line }]).await;
                let mut known = lock(&known);
                known.late.extend(is_late.then_some(claim));
                known.kept.extend(done.is_ok().then_some(claim));
            }
        }
    }
    node.leave().await;
}

/// Whatever the order: each epoch begins once; what a tenure was told is kept is found by the next one;
/// and nothing of it comes later.
#[tokio::test(flavor = "multi_thread")]
async fn in_any_order_nothing_of_a_tenure_comes_after_the_next_began() {
    #[expect(clippy::disallowed_methods, reason = "a test's own size is no setting")]
    let orders =
        std::env::var("STORE_TEST_ORDERS").map_or(ORDERS, |orders| orders.parse().unwrap());
    let first = seed(1);
    let server = server::Postgres::shared();
    let database = server.fresh_database().await;
    let connecting = tokio_postgres::connect(&database.admin_url, NoTls);
    let (admin, connection) = connecting.await.unwrap();
    tokio::spawn(connection);
    let (mut begun, mut kept, mut steps) = (0, 0, 0);
    for order in first..first + orders {
        let known = in_order(order, (server.port(), &database.url), &admin, &mut steps).await;
        check(&known, &database, order).await;
        begun += known.begun.len();
        kept += known.kept.len();
    }
    assert!(
        begun as u64 > orders && kept as u64 > orders,
        "{begun} {kept}"
    );
    println!("{orders} orders of {steps} statements: {begun} tenures, {kept} claims kept");
}

/// Runs processes in the order of a seed, to their end.
async fn in_order(order: u64, (port, url): (u16, &str), admin: &Client, steps: &mut u64) -> Known {
    let mut random = Random::new(order);
    let gate = Steps::default();
    let (own, _taking) = gate.before(port).await;
    let gated = url.replace(&format!(":{port}/"), &format!(":{own}/"));
    assert_ne!(gated, url);
    let known = KnownToAll::default();
    let mut processes = JoinSet::new();
    for number in 0..2 + random.below(3) {
        let address = StoreAddress::Postgres(Secret::new(&gated));
        let node = cluster(&address, &format!("{order}.{number}"), "1").unwrap();
        processes.spawn(live(node, Arc::clone(&known), Random::new(random.next())));
    }
    let mut let_through = 0;
    while let_through < STATEMENTS {
        if gate.step(&mut random) {
            let_through += 1;
            if random.below(RUNS_OUT) == 0 {
                admin.batch_execute(RUN_OUT).await.unwrap();
            }
        }
        // Not of a worker's time: the timer is too coarse.
        thread::sleep(Duration::from_micros(random.below(PAUSE_US)));
    }
    *steps += let_through;
    lock(&known).is_over = true;
    gate.is_open.send_replace(true);
    while let Some(ended) = processes.join_next().await {
        ended.unwrap();
    }
    let known = Arc::into_inner(known).unwrap().into_inner();
    known.unwrap()
}

async fn check(known: &Known, database: &server::Database, order: u64) {
    let rows = "SELECT claim FROM clew.claims";
    let rows = server::query(&database.admin_url, rows).await;
    let rows = rows.into_iter().flatten().flatten();
    let rows: BTreeSet<u64> = rows.map(|claim| claim.parse().unwrap()).collect();
    let of_epochs = known
        .begun
        .keys()
        .next()
        .map_or(0, |first| first.cast_unsigned() * OF_EPOCH);
    let lost: Vec<_> = known.kept.difference(&rows).collect();
    assert!(
        lost.is_empty(),
        "order {order}: {lost:?} were kept and are not there"
    );
    let late: Vec<_> = rows.intersection(&known.late).collect();
    assert!(
        late.is_empty(),
        "order {order}: {late:?} came after the next tenure began"
    );
    for (epoch, found) in &known.begun {
        let earlier = rows.range(of_epochs..epoch.cast_unsigned() * OF_EPOCH);
        let missed: Vec<_> = earlier.filter(|claim| !found.contains(claim)).collect();
        assert!(
            missed.is_empty(),
            "order {order}: tenure {epoch} did not find {missed:?}"
        );
    }
}
