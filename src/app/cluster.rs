//! With `CLUSTER=on`: standing by until this process has the lease, and going on with what the
//! process before kept.
//!
//! Invariant: the files are brought to what the rows say before anything reads them.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::alerts::Alerter;
use super::loop_event::{LoopEvent, look};
use super::monitor::Monitor;
use super::state_folder::{StateFolder, broken, read};
use super::when_ready::when_ready;
use super::{
    CLAIM_FILE, Error, Outside, Running, SESSION_FILE, run_alerting, secret, state_file, token_file,
};
use crate::config::Config;
use crate::engine::alerts::Trouble;
use crate::telemetry::{remove_old, with_sources};
use clew_context::model::{Clock, UnixMillis};
use clew_context::outside::blocking;
use clew_discord::session::{self, ClaimRows, Claims, GUILD_FILE, KEPT};
use clew_store::model::StoreAddress;
use clew_store::{Asked, Cluster, KeptClaim, Tenure};

/// The state folder's files that the next process needs, whichever it is. Claims have rows of
/// their own.
pub(super) const SHARED: [&str; 10] = [
    SESSION_FILE,
    GUILD_FILE,
    secret::CLAIM_KEY,
    secret::FRAME_KEY,
    secret::PSEUDONYM_KEY,
    token_file::FILE,
    state_file::RUNS,
    state_file::APPROVALS,
    state_file::CONNECTIONS,
    state_file::TOOLS,
];
/// A row that says that the others are there.
const BEGUN: &str = "begun";
/// How long a process waits before it stands by again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is asked for the lease.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long it is waited after an error.
const ERROR_PAUSE: Duration = Duration::from_secs(2);
/// How long it is waited until a claim that could not be kept is kept again.
const CLAIM_PAUSE: Duration = Duration::from_millis(100);
/// How long a process is the bot without reaching Discord...
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// ...and after a tenure in which it never did: if nobody does, the longest trouble is told of, and processes
/// take turns seldom.
const NEVER_REACHED: Duration = Duration::from_mins(8);
/// How often it is looked whether it does.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Brings the files to what the rows say.
fn replace_all(dir: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    for name in SHARED {
        match files.iter().find(|(of, _)| of == name) {
            Some((_, content)) => state_file::replace(dir, name, content)?,
            None => remove(&dir.join(name))?,
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What a process without a cluster left becomes the cluster's: if one runs without it again, no
/// token holds that was taken back meanwhile.
fn move_into(from: &Path, into: &Path) -> io::Result<()> {
    fs::create_dir_all(into)?;
    for name in SHARED {
        match fs::rename(from.join(name), into.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Runs the bot; in a cluster each time that it is this process's turn.
pub(super) async fn run_by_turns(
    config: &Config,
    outside: &mut Outside,
    alerter: &Alerter,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    if outside.cluster.is_none() {
        outside.cluster = of(config, &outside.clock)?;
    }
    let mut patience = PATIENCE;
    let result = loop {
        let running = run_alerting(config, outside, alerter, patience, shutdown.clone());
        match Box::pin(running).await {
            Err(error) if config.cluster && error.ends_tenure() => {
                tracing::warn!(error = %with_sources(&error), "this process is not the bot any more");
                patience = patience_after(&error);
                let is_ours = !matches!(
                    error,
                    Error::LeaseOver
                        | Error::Drained
                        | Error::Store(clew_store::Error::Held { .. })
                );
                if is_ours && let Some(cluster) = &outside.cluster {
                    // It fails if the database is not reached: then nobody is the bot.
                    let _ = cluster.note_unable().await;
                }
                sleep(AGAIN).await;
            }
            ended => break ended,
        }
    };
    if let Some(cluster) = &outside.cluster {
        cluster.leave().await;
    }
    result
}

/// The processes of this bot, of which this one is another; none without `CLUSTER=on`.
pub(super) fn of(config: &Config, clock: &Clock) -> Result<Option<Arc<dyn Cluster>>, Error> {
    let cluster = config.cluster.then(|| processes(config, &node(clock)));
    Ok(cluster.transpose()?)
}

/// The processes that share this store.
fn processes(config: &Config, node: &str) -> Result<Arc<dyn Cluster>, clew_store::Error> {
    clew_store::cluster(&config.memory.store, node, env!("CARGO_PKG_VERSION"))
}

/// This process's name among them: its machine's, which is a container's if it has one, its id, and
/// by its time what tells it from one that had the same before.
fn node(clock: &Clock) -> String {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    format!(
        "{machine}:{}.{:05x}",
        std::process::id(),
        clock().0 & 0xf_ffff
    )
}

/// The processes of this bot, for whoever is none of them.
///
/// # Errors
/// [`clew_store::Error::Open`] if such a store is not shared.
pub fn cluster(config: &Config) -> Result<Arc<dyn Cluster>, clew_store::Error> {
    processes(config, "")
}

/// Has the next process begin a new session, after which what is stored counts as
/// missed by it: it confirms messages with Discord before it shows them.
///
/// # Errors
/// If the session file, or what stands for it in a cluster, cannot be written.
pub async fn forget_session(config: &Config, clock: &Clock) -> Result<(), Error> {
    if let Some(cluster) = of(config, clock)? {
        cluster.forget_file(SESSION_FILE).await?;
    }
    let path = config.shared_state_dir();
    session::forget(&path.join(SESSION_FILE), clock())
        .map_err(|source| Error::State { path, source })
}

/// Where this process keeps what the next one needs: in a cluster once it has the lease.
pub(super) async fn folder(
    config: &Config,
    cluster: Option<&dyn Cluster>,
    clock: &Clock,
    monitor: Option<&Monitor>,
    alerter: &Alerter,
) -> Result<StateFolder, Error> {
    let Some(cluster) = cluster else {
        if cfg!(feature = "postgres") && matches!(config.memory.store, StoreAddress::Postgres(_)) {
            let bringing = when_ready(|| bring_back(config, clock));
            alerter.during(Trouble::Store, bringing).await?;
        }
        return Ok(StateFolder::local(config.state_dir.clone()));
    };
    let tenure = stand_by(config, cluster, clock, monitor, alerter).await?;
    if let Some(monitor) = monitor {
        monitor.starting();
    }
    let folder = shared(config, Arc::clone(&tenure), clock).await;
    if folder.is_err() {
        // Another process may have more luck.
        tenure.end().await;
    }
    folder
}

/// As the process before left it; the first one of a cluster brings what is in its folder.
async fn shared(
    config: &Config,
    tenure: Arc<dyn Tenure>,
    clock: &Clock,
) -> Result<StateFolder, Error> {
    let folder = StateFolder::of_tenure(config.shared_state_dir(), Arc::clone(&tenure));
    let files = tenure.files().await?;
    let place = |source| Error::State {
        path: folder.dir().to_owned(),
        source,
    };
    if !files.iter().any(|(name, _)| name == BEGUN) {
        let file = config.state_dir.join(CLAIM_FILE);
        let of_line = |(claim, at, line)| KeptClaim { claim, at, line };
        let claims = session::claims_in(&file, clock()).into_iter().map(of_line);
        tenure.keep_claims(&claims.collect::<Vec<_>>()).await?;
        remove(&file).map_err(place)?;
    }
    let (own, dir) = (config.state_dir.clone(), folder.dir().to_owned());
    let filled = blocking(move || fill(&own, &dir, &files)).await;
    let changed = filled.unwrap_or_else(broken).map_err(place)?;
    let kept = changed.iter().map(|(name, content)| (*name, &**content));
    let kept: Vec<(&str, &[u8])> = kept.collect();
    tenure.keep_files(&kept).await?;
    Ok(folder)
}

/// Fills the folder of a tenure. Returns what is to be kept before anything is done with it.
fn fill(
    own: &Path,
    dir: &Path,
    files: &[(String, Vec<u8>)],
) -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let has_begun = files.iter().any(|(name, _)| name == BEGUN);
    if has_begun {
        replace_all(dir, files)?;
    } else {
        move_into(own, dir)?;
    }
    let mut changed = Vec::new();
    for name in secret::KEYS {
        // A new one is made here.
        let key = secret::load(dir, name)?;
        if !files.iter().any(|(of, kept)| of == name && *kept == key) {
            changed.push((name, key));
        }
    }
    if !has_begun {
        for name in SHARED
            .into_iter()
            .filter(|name| !secret::KEYS.contains(name))
        {
            match read(&dir.join(name)) {
                Ok(content) => changed.extend(content.map(|content| (name, content))),
                Err(error) => tracing::warn!(%error, "the next process does not get this file"),
            }
        }
        changed.push((BEGUN, Vec::new()));
    }
    Ok(changed)
}

/// What a cluster kept goes with the process that has the database alone from now on: were it left,
/// a later cluster would go on with what was revoked or answered meanwhile.
async fn bring_back(config: &Config, clock: &Clock) -> Result<(), clew_store::Error> {
    let cluster = processes(config, &node(clock))?;
    let status = cluster.status().await?;
    // The store says who has it.
    if status.epoch == 0 || status.holder.is_some() {
        return Ok(());
    }
    let mut nodes = status.nodes.iter();
    if let Some(node) = nodes.find(|node| node.is_there()) {
        // It would begin anew without what it is robbed of.
        return Err(clew_store::Error::NotReady {
            place: config.memory.store.to_string(),
            source: format!("{} of a cluster may go on with it", node.name).into(),
        });
    }
    let brought = match cluster.ask().await {
        Ok(Asked::Ours(tenure)) => {
            let brought = take_along(config, tenure.as_ref(), clock).await;
            tenure.end().await;
            brought
        }
        Ok(Asked::Others(_)) | Err(clew_store::Error::Held { .. }) => Ok(()),
        Err(error) => Err(error),
    };
    cluster.leave().await;
    brought
}

async fn take_along(
    config: &Config,
    tenure: &dyn Tenure,
    clock: &Clock,
) -> Result<(), clew_store::Error> {
    let files = tenure.files().await?;
    if files.iter().any(|(name, _)| name == BEGUN) {
        let claims = tenure.claims(clock().before(KEPT)).await?;
        let dir = config.state_dir.clone();
        let writing = blocking(move || {
            replace_all(&dir, &files)?;
            let lines: String = claims.iter().flat_map(|line| [line, "\n"]).collect();
            state_file::replace(&dir, CLAIM_FILE, lines.as_bytes())
        });
        let written = writing.await.unwrap_or_else(broken);
        written.map_err(|source| clew_store::Error::Io {
            operation: "bring back what a cluster kept into",
            path: config.state_dir.clone(),
            source,
        })?;
        let names: Vec<_> = SHARED.into_iter().chain([BEGUN]).collect();
        tenure.forget_files(&names).await?;
    }
    tenure.forget_claims(UnixMillis(i64::MAX)).await
}

/// Waits for the lease.
///
/// # Errors
/// What only a person can mend.
async fn stand_by(
    config: &Config,
    cluster: &dyn Cluster,
    clock: &Clock,
    monitor: Option<&Monitor>,
    alerter: &Alerter,
) -> Result<Arc<dyn Tenure>, Error> {
    let (mut said, mut swept) = (None, None);
    if let Some(monitor) = monitor {
        monitor.standing_by("cluster: nobody has said yet who is the bot");
    }
    loop {
        let today = clock();
        if swept.replace(today.day()) != Some(today.day()) {
            forget_telemetry(config, today);
        }
        let waits = match cluster.ask().await {
            Ok(Asked::Ours(tenure)) => {
                tracing::info!(
                    epoch = tenure.epoch(),
                    "this process is the bot from now on"
                );
                alerter.stands_by(None);
                return Ok(tenure);
            }
            Ok(Asked::Others(holder)) => Waits::Another(holder),
            Err(error @ clew_store::Error::Held { .. }) => Waits::Stranger(with_sources(&error)),
            Err(error) if error.is_passing() => Waits::Store(with_sources(&error)),
            Err(error) => return Err(error.into()),
        };
        let pause = waits.pause();
        if said.as_ref() != Some(&waits) {
            waits.told(alerter, monitor);
            said = Some(waits);
        }
        sleep(pause).await;
    }
}

/// What it told as the bot is kept no longer for standing by.
fn forget_telemetry(config: &Config, now: UnixMillis) {
    let (dir, keep_days) = (&config.telemetry.dir, config.telemetry.keep_days);
    if let Some(days) = keep_days
        && let Err(error) = remove_old(dir, days, now)
    {
        tracing::debug!(%error, "old telemetry cannot be removed");
    }
}

/// The other processes, and how long this one is the bot without reaching Discord.
pub(super) type Others = (Arc<dyn Cluster>, Duration);

/// Watches the loop for the other processes, as long as it runs.
pub(super) fn watch(running: &Running<'_>, loop_events: &mpsc::UnboundedSender<LoopEvent>) {
    if let (Some(tenure), Some(others)) = (running.folder.tenure(), running.others.clone()) {
        let giving = give_way(Arc::clone(tenure), others, loop_events.clone());
        tokio::spawn(giving);
    }
}

/// Has another process be the bot if this one is to hand over, or has not reached Discord for so long: that
/// one may. Tells the others how it is connected.
async fn give_way(
    tenure: Arc<dyn Tenure>,
    (others, patience): Others,
    loop_events: mpsc::UnboundedSender<LoopEvent>,
) {
    let (mut was_reached, mut unreached_since) = (false, Instant::now());
    let mut drains = tenure.drains();
    while let Some(now) = look(&loop_events).await {
        let count = |shards| u32::try_from(shards).unwrap_or(u32::MAX);
        tenure.tell(count(now.shards), count(now.connected));
        if now.connected > 0 {
            (was_reached, unreached_since) = (true, Instant::now());
        }
        let given = if *drains.borrow_and_update() {
            Some(LoopEvent::HandOver)
        } else if unreached_since.elapsed() >= patience && is_another_there(&*others).await {
            Some(LoopEvent::GiveWay { was_reached })
        } else {
            None
        };
        if let Some(given) = given {
            // It fails if the loop has just ended.
            let _ = loop_events.send(given);
        }
        // It fails if the tenure is over, as the loop soon is.
        let _ = timeout(LOOK_EVERY, drains.changed()).await;
    }
}

async fn is_another_there(cluster: &dyn Cluster) -> bool {
    let nodes = cluster.status().await.map(|status| status.nodes);
    let nodes = nodes.unwrap_or_default();
    nodes.iter().filter(|node| node.is_there()).count() > 1
}

/// How many shards the bot is to have.
pub(super) fn shards(folder: &StateFolder) -> watch::Receiver<u32> {
    let of_tenure = folder.tenure().map(|tenure| tenure.shards());
    of_tenure.unwrap_or_else(|| watch::channel(0).1)
}

/// How long the next tenure may last without reaching Discord.
pub(super) const fn patience_after(ended: &Error) -> Duration {
    match ended {
        Error::Unreached { was_reached: false } => NEVER_REACHED,
        _ => PATIENCE,
    }
}

/// What a process that stands by waits for.
#[derive(PartialEq, Eq)]
enum Waits {
    /// The process that is the bot.
    Another(String),
    /// One that has the store and is of no cluster.
    Stranger(String),
    /// The store, which cannot be asked.
    Store(String),
}

impl Waits {
    const fn pause(&self) -> Duration {
        match self {
            Self::Another(_) => ASK_EVERY,
            Self::Stranger(_) | Self::Store(_) => ERROR_PAUSE,
        }
    }

    fn told(&self, alerter: &Alerter, monitor: Option<&Monitor>) {
        let why = match self {
            Self::Another(holder) => {
                tracing::info!(holder, "another process is the bot: standing by");
                "cluster: another process is the bot, this one stands by"
            }
            Self::Stranger(error) => {
                tracing::warn!(error, "standing by until that one ends");
                "cluster: a process of no cluster has the store, this one stands by"
            }
            Self::Store(error) => {
                tracing::warn!(
                    error,
                    "the store cannot be asked who is the bot: trying again"
                );
                "store: it cannot be asked who is the bot"
            }
        };
        if let Some(monitor) = monitor {
            monitor.standing_by(why);
        }
        let of_store = matches!(self, Self::Store(_));
        alerter.stands_by(of_store.then_some(Trouble::Store));
    }
}

/// What is known of questions that were taken.
pub(super) async fn claims(
    folder: &StateFolder,
    key: &[u8],
    clock: &Clock,
) -> Result<Claims, clew_store::Error> {
    let Some(tenure) = folder.tenure() else {
        return Ok(Claims::open(&folder.path(CLAIM_FILE), key, clock()));
    };
    let lines = tenure.claims(clock().before(KEPT)).await?;
    let rows = Arc::new(Rows(Arc::clone(tenure)));
    Ok(Claims::in_rows(rows, &lines, key, clock()))
}

/// Keeps claims as rows. A claim that cannot be kept is kept again until the tenure is over:
/// nothing is posted without it.
struct Rows(Arc<dyn Tenure>);

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rows").field(&self.0.epoch()).finish()
    }
}

impl ClaimRows for Rows {
    fn keep(&self, claim: u64, at: UnixMillis, line: String) -> BoxFuture<'static, bool> {
        let tenure = Arc::clone(&self.0);
        async move {
            let kept = [KeptClaim { claim, at, line }];
            while let Err(error) = tenure.keep_claims(&kept).await {
                if tenure.lease().is_over() {
                    return false;
                }
                tracing::debug!(error = %with_sources(&error), "a claim is not kept yet");
                sleep(CLAIM_PAUSE).await;
            }
            true
        }
        .boxed()
    }

    fn forget(&self, before: UnixMillis) -> BoxFuture<'static, ()> {
        let tenure = Arc::clone(&self.0);
        async move {
            if let Err(error) = tenure.forget_claims(before).await {
                tracing::debug!(error = %with_sources(&error), "old claims stay for an hour more");
            }
        }
        .boxed()
    }
}
