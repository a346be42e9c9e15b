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
use tokio::time::sleep;

use super::alerts::Alerter;
use super::monitor::Monitor;
use super::state_folder::{StateFolder, broken};
use super::{CLAIM_FILE, Error, SESSION_FILE, secret, state_file, token_file};
use crate::config::Config;
use crate::engine::alerts::Trouble;
use crate::telemetry::with_sources;
use clew_context::model::{Clock, UnixMillis};
use clew_context::outside::blocking;
use clew_discord::session::{ClaimRows, Claims, GUILD_FILE, KEPT};
use clew_store::{Cluster, Tenure};

/// The state folder's files that the next process needs, whichever it is. Claims have rows of
/// their own.
const SHARED: [&str; 10] = [
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
/// How often it is asked for the lease.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long it is waited after an error.
const ERROR_PAUSE: Duration = Duration::from_secs(2);
/// How long it is waited until a claim that could not be kept is kept again.
const CLAIM_PAUSE: Duration = Duration::from_millis(100);
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
    for name in SHARED.iter().chain([&CLAIM_FILE]) {
        match fs::rename(from.join(name), into.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The processes of this bot; none without `CLUSTER=on`.
pub(super) fn of(config: &Config) -> Result<Option<Arc<dyn Cluster>>, Error> {
    let cluster = config.cluster.then(|| processes(config));
    Ok(cluster.transpose()?)
}

/// The processes that share this store.
pub(super) fn processes(config: &Config) -> Result<Arc<dyn Cluster>, clew_store::Error> {
    let version = env!("CARGO_PKG_VERSION");
    clew_store::cluster(&config.memory.store, &node(), version)
}

/// This process's name among them: its machine's, which is a container's if it has one, and its id.
fn node() -> String {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    format!("{machine}:{}", std::process::id())
}

/// Where this process keeps what the next one needs: in a cluster once it has the lease.
pub(super) async fn folder(
    config: &Config,
    cluster: Option<&dyn Cluster>,
    monitor: Option<&Monitor>,
    alerter: &Alerter,
) -> Result<StateFolder, Error> {
    let Some(cluster) = cluster else {
        return Ok(StateFolder::local(config.state_dir.clone()));
    };
    if let Some(monitor) = monitor {
        monitor.standing_by();
    }
    let tenure = stand_by(cluster, alerter).await?;
    if let Some(monitor) = monitor {
        monitor.starting();
    }
    shared(config, tenure).await
}

/// As the process before left it; the first one of a cluster brings what is in its folder.
async fn shared(config: &Config, tenure: Arc<dyn Tenure>) -> Result<StateFolder, Error> {
    let folder = StateFolder::of_tenure(config.shared_state_dir(), Arc::clone(&tenure));
    let files = tenure.files().await?;
    let place = |source| Error::State {
        path: folder.dir().to_owned(),
        source,
    };
    let has_begun = files.iter().any(|(name, _)| name == BEGUN);
    let (own, dir) = (config.state_dir.clone(), folder.dir().to_owned());
    let filled = blocking(move || {
        if has_begun {
            replace_all(&dir, &files)?;
        } else {
            move_into(&own, &dir)?;
        }
        // A new one is made here, and kept before anything is done with it.
        let mut changed = Vec::new();
        for name in secret::KEYS {
            let key = secret::load(&dir, name)?;
            if !files.iter().any(|(of, kept)| of == name && *kept == key) {
                changed.push(name);
            }
        }
        Ok(changed)
    });
    let changed = filled.await.unwrap_or_else(broken).map_err(place)?;
    let kept: &[&str] = if has_begun { &changed } else { &SHARED };
    for name in kept {
        folder.keep(name).await.map_err(place)?;
    }
    if !has_begun {
        tenure.keep_file(BEGUN, Some(b"")).await?;
    }
    Ok(folder)
}

/// Waits for the lease.
///
/// # Errors
/// What only a person can mend.
async fn stand_by(cluster: &dyn Cluster, alerter: &Alerter) -> Result<Arc<dyn Tenure>, Error> {
    let mut said = None;
    loop {
        let waits = match cluster.ask().await {
            Ok(Some(tenure)) => {
                tracing::info!(
                    epoch = tenure.epoch(),
                    "this process is the bot from now on"
                );
                alerter.stands_by(None);
                return Ok(tenure);
            }
            Ok(None) => Waits::Another(holder(cluster).await),
            Err(error @ clew_store::Error::Held { .. }) => Waits::Stranger(with_sources(&error)),
            Err(error) if error.is_passing() => Waits::Store(with_sources(&error)),
            Err(error) => return Err(error.into()),
        };
        let pause = waits.pause();
        if said.as_ref() != Some(&waits) {
            waits.told(alerter);
            said = Some(waits);
        }
        sleep(pause).await;
    }
}

async fn holder(cluster: &dyn Cluster) -> Option<String> {
    cluster.status().await.ok()?.holder
}

/// What a process that stands by waits for.
#[derive(PartialEq, Eq)]
enum Waits {
    /// The process that is the bot.
    Another(Option<String>),
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

    fn told(&self, alerter: &Alerter) {
        match self {
            Self::Another(holder) => {
                let holder = holder.as_deref().unwrap_or("unknown");
                tracing::info!(holder, "another process is the bot: standing by");
            }
            Self::Stranger(error) => tracing::warn!(error, "standing by until that one ends"),
            Self::Store(error) => {
                tracing::warn!(
                    error,
                    "the store cannot be asked who is the bot: trying again"
                );
            }
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
    let mut lines = Vec::new();
    // Only until the cluster's first tenure has noted its own.
    if tenure.epoch() <= 1 {
        let file = fs::read_to_string(folder.path(CLAIM_FILE));
        lines.extend(file.unwrap_or_default().lines().map(str::to_owned));
    }
    lines.extend(tenure.claims(clock().before(KEPT)).await?);
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
    fn keep(&self, claim: u64, at: UnixMillis, line: String) -> BoxFuture<'static, ()> {
        let tenure = Arc::clone(&self.0);
        async move {
            while let Err(error) = tenure.keep_claim(claim, at, &line).await {
                if tenure.lease().is_over() {
                    return;
                }
                tracing::debug!(error = %with_sources(&error), "a claim is not kept yet");
                sleep(CLAIM_PAUSE).await;
            }
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
