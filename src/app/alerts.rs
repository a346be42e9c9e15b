//! Tells the operator of troubles at `ALERT_WEBHOOK`, beside the loop.
//!
//! A file in the state folder says what was told and is not over, so that a restart repeats nothing.
//!
//! Invariant: alerts hold no texts and no ids, and nothing waits for them but the end of a process.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::loop_event::{LoopEvent, look};
use super::state_folder::StateFolder;
use super::{Error, Outside, Running, SETTLE, state_file};
use crate::config::Config;
use crate::engine::alerts::{Alert, Alerts, Trouble};
use crate::llm::ModelServers;
use crate::turn::Services;
use clew_context::model::{Clock, Secret};
use clew_context::outside::{Http, blocking};
use clew_discord::session::LockError;
use clew_store::model::StoreAddress;

/// The file in the state folder.
pub(super) const FILE: &str = "alerts.json";
/// How often troubles are looked for; doubled while the webhook takes nothing...
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// ...up to this.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How long one try to tell may take.
const TRY: Duration = Duration::from_secs(10);
/// How long a start may wait for a store or for room before that is told.
const START: Duration = Duration::from_secs(10);
/// From this part of `TOKENS_TOTAL_DAY` on the operator is told, in percent.
const BUDGET: u128 = 80;
/// With less room, a store or the telemetry soon fails.
pub const LOW_BYTES: u64 = 200 << 20;

/// Has a task of its own tell, if there is `ALERT_WEBHOOK`.
pub(super) struct Alerter(Option<Telling>);

struct Telling {
    phase: watch::Sender<Phase>,
    task: JoinHandle<()>,
    /// An earlier process told that no model answers.
    model_failed: bool,
}

/// How far the process has come.
#[derive(Clone)]
enum Phase {
    /// Nothing can be told of it.
    Quiet,
    /// It stands by, and the store can be asked.
    StandsBy,
    /// It starts. If that lasts, it is for this trouble.
    Starts(Trouble),
    Runs(Arc<Watched>),
    /// It ends, perhaps for this trouble.
    Ends(Option<Trouble>),
}

impl Alerter {
    pub(super) fn new(config: &Config, outside: &Outside) -> Self {
        Self(Teller::new(config, outside).map(|teller| {
            let (phase, phases) = watch::channel(Phase::Quiet);
            Telling {
                phase,
                model_failed: teller.alerts.told().contains(&Trouble::Model),
                task: tokio::spawn(teller.tell_of(phases)),
            }
        }))
    }

    fn enter(&self, phase: Phase) {
        if let Some(telling) = &self.0 {
            telling.phase.send_replace(phase);
        }
    }

    /// Does a part of the start. If it waits for long, that is told as this trouble, which is over
    /// once the bot runs.
    pub(super) async fn during<T>(&self, trouble: Trouble, start: impl Future<Output = T>) -> T {
        self.enter(Phase::Starts(trouble));
        let done = start.await;
        self.enter(Phase::Quiet);
        done
    }

    /// The process stands by; if a trouble keeps it from knowing whether to, that is told.
    pub(super) fn stands_by(&self, trouble: Option<Trouble>) {
        self.enter(trouble.map_or(Phase::StandsBy, Phase::Starts));
    }

    /// Looks for troubles and tells of them from now on.
    pub(super) fn watch(
        &self,
        running: &Running<'_>,
        loop_events: &mpsc::UnboundedSender<LoopEvent>,
    ) {
        let Some(telling) = &self.0 else { return };
        let folder = match &running.config.memory.store {
            StoreAddress::Sqlite(file) => file.parent().map(Path::to_path_buf),
            StoreAddress::Files(folder) => Some(folder.clone()),
            StoreAddress::Postgres(_) => None,
        };
        if let Some(model) = running
            .services
            .model
            .as_ref()
            .filter(|_| telling.model_failed)
        {
            model.suspect();
        }
        self.enter(Phase::Runs(Arc::new(Watched {
            services: Arc::clone(running.services),
            loop_events: loop_events.clone(),
            // A path without a folder is in the current one.
            folder: folder.map(|folder| Path::new(".").join(folder)),
        })));
    }

    /// Waits for what is being told, and tells why the process ends, if it should not.
    pub(super) async fn end(self, result: &Result<(), Error>) {
        let Some(telling) = self.0 else { return };
        let trouble = result.as_ref().err().and_then(trouble_of);
        telling.phase.send_replace(Phase::Ends(trouble));
        let patience = if trouble.is_some() { 2 * TRY } else { SETTLE };
        let _ = timeout(patience, telling.task).await;
    }
}

/// Tells, and knows what was told.
struct Teller {
    url: Secret,
    http: Http,
    clock: Clock,
    folder: StateFolder,
    alerts: Alerts,
    /// Until the next look.
    pause: Duration,
}

impl Teller {
    /// None without `ALERT_WEBHOOK`.
    fn new(config: &Config, outside: &Outside) -> Option<Self> {
        let url = config.telemetry.alerts.clone()?;
        // An error means that the process has a provider already.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("clew/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .build()
            .inspect_err(|error| tracing::error!(%error, "nothing can be told at ALERT_WEBHOOK"));
        let told = state_file::read(&config.state_dir, FILE).unwrap_or_else(|error| {
            tracing::warn!(path = %config.state_dir.join(FILE).display(), %error,
                "which alerts were told cannot be read: they may be told again");
            None
        });
        Some(Self {
            url,
            http: Http::new(client.ok()?).through(outside.sending(None)),
            clock: Arc::clone(&outside.clock),
            folder: StateFolder::local(config.state_dir.clone()),
            alerts: Alerts::after(told.unwrap_or_default()),
            pause: LOOK_EVERY,
        })
    }

    /// Tells of each phase until the last; what is being told is told to its end.
    async fn tell_of(mut self, mut phases: watch::Receiver<Phase>) {
        while phases.has_changed().is_ok() {
            let phase = phases.borrow_and_update().clone();
            match phase {
                // Nothing is known of the other troubles.
                Phase::StandsBy if self.alerts.told().contains(&Trouble::Store) => {
                    let mut there = self.alerts.told().clone();
                    there.remove(&Trouble::Store);
                    self.tell(&there).await;
                    let _ = timeout(self.pause, phases.changed()).await;
                }
                Phase::Quiet | Phase::StandsBy => drop(phases.changed().await),
                Phase::Starts(trouble) => {
                    let mut pause = START;
                    while timeout(pause, phases.changed()).await.is_err() {
                        self.begins(trouble).await;
                        pause = self.pause;
                    }
                }
                Phase::Runs(watched) => {
                    if let Some(there) = watched.look(&self.alerts).await {
                        self.tell(&there).await;
                    }
                    let _ = timeout(self.pause, phases.changed()).await;
                }
                Phase::Ends(trouble) => {
                    if let Some(trouble) = trouble {
                        self.begins(trouble).await;
                    }
                    return;
                }
            }
        }
    }

    /// Tells of a trouble; nothing is known of the others.
    async fn begins(&mut self, trouble: Trouble) {
        let mut there = self.alerts.told().clone();
        there.insert(trouble);
        self.tell(&there).await;
    }

    /// Tells what is to be told, now that these troubles are there.
    async fn tell(&mut self, there: &BTreeSet<Trouble>) {
        for alert in self.alerts.due(there, (self.clock)()) {
            if !self.deliver(alert).await {
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                return;
            }
            self.alerts.delivered(alert);
            self.note_told().await;
        }
        self.pause = LOOK_EVERY;
    }

    async fn note_told(&self) {
        let written = state_file::write(&self.folder, FILE, self.alerts.told()).await;
        if let Err(error) = written {
            tracing::warn!(path = %self.folder.path(FILE).display(), %error,
                "which alerts were told cannot be written: after a restart they may be told again");
        }
    }

    async fn deliver(&self, Alert { trouble, is_over }: Alert) -> bool {
        let over = if is_over { "over: " } else { "" };
        let body = json!({
            "content": format!("Clew: {over}{}", trouble.text()),
            "alert": trouble.as_str(),
            "over": is_over,
        });
        let request = self.http.request(Method::POST, self.url.expose());
        let request = request.timeout(TRY).json(&body);
        let alert = trouble.as_str();
        match self.http.send(request).await {
            Ok(answer) if answer.status().is_success() => return true,
            Ok(answer) => tracing::warn!(
                status = answer.status().as_u16(),
                alert,
                "ALERT_WEBHOOK does not take an alert: it is tried again"
            ),
            Err(error) => tracing::warn!(error = %error.without_url(), alert,
                "ALERT_WEBHOOK cannot be reached: it is tried again"),
        }
        false
    }
}

/// Why a process ended, if the operator is to know: for want of a store or a folder, and not by
/// another process, or since Discord refuses it.
const fn trouble_of(error: &Error) -> Option<Trouble> {
    match error {
        Error::Store(_)
        | Error::Telemetry(_)
        | Error::State { .. }
        | Error::Lock(LockError::Io { .. }) => Some(Trouble::Store),
        Error::Fatal(_) => Some(Trouble::Shard),
        _ => None,
    }
}

/// What is looked at while the bot runs.
struct Watched {
    services: Arc<Services>,
    loop_events: mpsc::UnboundedSender<LoopEvent>,
    /// Where the store is; none if it is a server.
    folder: Option<PathBuf>,
}

impl Watched {
    /// The troubles; none if the loop, which ends before the process does, knows of none.
    async fn look(&self, alerts: &Alerts) -> Option<BTreeSet<Trouble>> {
        let services = &self.services;
        let now = look(&self.loop_events).await?;
        let total = services.tokens.as_ref().and_then(|meter| meter.total());
        let spent = total
            .is_some_and(|total| u128::from(total.used) * 100 >= u128::from(total.limit) * BUDGET);
        let model = services.model.as_ref();
        let refuses = model.is_some_and(ModelServers::none_answers);
        let found = [
            (Trouble::Model, refuses),
            (Trouble::Store, !services.memory.store_state().is_back()),
            (Trouble::Budget, spent),
            (Trouble::Shard, alerts.is_shard_down(now.down)),
            (Trouble::Disk, self.is_disk_low().await),
        ];
        let there = found.into_iter().filter(|(_, is_there)| *is_there);
        Some(there.map(|(trouble, _)| trouble).collect())
    }

    async fn is_disk_low(&self) -> bool {
        let Some(folder) = self.folder.clone() else {
            return false;
        };
        let free = blocking(move || free_bytes(&folder)).await;
        matches!(free, Ok(Ok(bytes)) if bytes < LOW_BYTES)
    }
}

/// The free space of the disk that a folder is on.
///
/// # Errors
/// The system's.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let stats = rustix::fs::statvfs(folder)?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}

#[cfg(test)]
mod tests;
