//! Tells the operator of troubles at `ALERT_WEBHOOK`, beside the loop.
//!
//! A file in the state folder says what was told and is not over, so that a restart repeats nothing.
//!
//! Invariant: alerts hold no texts and no ids, and nothing waits for them but a start that fails.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::loop_event::LoopEvent;
use super::{Error, Outside, Running, state_file};
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

/// Tells, and knows what was told.
pub(super) struct Teller {
    url: Secret,
    http: Http,
    clock: Clock,
    state_dir: PathBuf,
    alerts: Alerts,
    /// Until the next look.
    pause: Duration,
}

impl Teller {
    /// None without `ALERT_WEBHOOK`.
    pub(super) fn new(config: &Config, outside: &Outside) -> Option<Self> {
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
            http: Http::new(client.ok()?).through(outside.transport.clone()),
            clock: Arc::clone(&outside.clock),
            state_dir: config.state_dir.clone(),
            alerts: Alerts::after(told.unwrap_or_default()),
            pause: LOOK_EVERY,
        })
    }

    /// Does a part of the start. If it waits for long, that is told as this trouble; if it fails
    /// for want of a store or a folder, that is told, too. Both are over once the bot runs.
    pub(super) async fn during<T>(
        teller: &mut Option<Self>,
        trouble: Trouble,
        start: impl Future<Output = Option<Result<T, Error>>>,
    ) -> Option<Result<T, Error>> {
        let Some(teller) = teller else {
            return start.await;
        };
        let telling = async {
            sleep(START).await;
            loop {
                teller.begins(trouble).await;
                sleep(teller.pause).await;
            }
        };
        let done = tokio::select! {
            biased;
            done = start => done,
            never = telling => match never {},
        };
        if let Some(Err(error)) = &done
            && is_of_disk(error)
        {
            teller.begins(Trouble::Store).await;
        }
        done
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
        let written = state_file::write(&self.state_dir, FILE, self.alerts.told()).await;
        if let Err(error) = written {
            tracing::warn!(path = %self.state_dir.join(FILE).display(), %error,
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

/// Whether a start failed for want of a store or a folder, and not by another process.
const fn is_of_disk(error: &Error) -> bool {
    matches!(
        error,
        Error::Store(_)
            | Error::Telemetry(_)
            | Error::State { .. }
            | Error::Lock(LockError::Io { .. })
    )
}

/// Looks while the bot runs, and tells.
struct Watcher {
    teller: Teller,
    services: Arc<Services>,
    loop_events: mpsc::UnboundedSender<LoopEvent>,
    /// Where the store is; none if it is a server.
    folder: Option<PathBuf>,
}

/// Looks and tells, if anybody is to be told, until the end.
pub(super) fn watch(
    teller: Option<Teller>,
    running: &Running<'_>,
    loop_events: &mpsc::UnboundedSender<LoopEvent>,
    tracker: &TaskTracker,
    ends: &CancellationToken,
) {
    let Some(teller) = teller else { return };
    let folder = match &running.config.memory.store {
        StoreAddress::Sqlite(file) => file.parent().map(Path::to_path_buf),
        StoreAddress::Files(folder) => Some(folder.clone()),
        StoreAddress::Postgres(_) => None,
    };
    if let Some(model) = &running.services.model
        && teller.alerts.told().contains(&Trouble::Model)
    {
        model.suspect();
    }
    let watcher = Watcher {
        teller,
        services: Arc::clone(running.services),
        loop_events: loop_events.clone(),
        // A path without a folder is in the current one.
        folder: folder.map(|folder| Path::new(".").join(folder)),
    };
    tracker.spawn(watcher.watch(ends.clone()));
}

impl Watcher {
    /// What was told is noted even at the end.
    async fn watch(mut self, ends: CancellationToken) {
        while let Some(there) = ends.run_until_cancelled(self.look()).await {
            if let Some(there) = there {
                self.teller.tell(&there).await;
            }
            ends.run_until_cancelled(sleep(self.teller.pause)).await;
        }
    }

    /// The troubles; none if the loop, which ends before the process does, knows of none.
    async fn look(&self) -> Option<BTreeSet<Trouble>> {
        let services = &self.services;
        let (reply, answer) = oneshot::channel();
        let _ = self.loop_events.send(LoopEvent::Look(reply));
        let now = answer.await.ok()?;
        let total = services.tokens.as_ref().and_then(|meter| meter.total());
        let spent = total
            .is_some_and(|total| u128::from(total.used) * 100 >= u128::from(total.limit) * BUDGET);
        let model = services.model.as_ref();
        let refuses = model.is_some_and(ModelServers::none_answers);
        let down = now.shards == 0 || now.connected < now.shards;
        let found = [
            (Trouble::Model, refuses),
            (Trouble::Store, !services.memory.store_state().is_back()),
            (Trouble::Budget, spent),
            (Trouble::Shard, down),
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
