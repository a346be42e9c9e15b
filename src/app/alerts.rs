//! Tells the operator of troubles at `ALERT_WEBHOOK`, beside the loop.
//!
//! Invariant: alerts hold no texts and no ids, and nothing waits for them.

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

use super::Running;
use super::loop_event::LoopEvent;
use crate::engine::alerts::{Alert, Alerts, Trouble};
use crate::llm::ModelServers;
use crate::turn::Services;
use clew_context::model::{Clock, Secret};
use clew_context::outside::{Http, blocking};
use clew_store::model::StoreAddress;

/// How often troubles are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long one try to tell may take.
const TRY: Duration = Duration::from_secs(10);
/// How often telling is tried; the pause after the first try, doubled for each further one.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);
/// From this part of `TOKENS_TOTAL_DAY` on the operator is told, in percent.
const BUDGET: u128 = 80;
/// With less room, a store or the telemetry soon fails.
pub const LOW_BYTES: u64 = 200 << 20;

/// Looks and tells.
pub(super) struct Watcher {
    url: Secret,
    http: Http,
    services: Arc<Services>,
    loop_events: mpsc::UnboundedSender<LoopEvent>,
    clock: Clock,
    /// Where the store is; none if it is a server.
    folder: Option<PathBuf>,
}

impl Watcher {
    /// None without `ALERT_WEBHOOK`. The process has a provider for TLS: Discord's client is there.
    pub(super) fn new(
        running: &Running<'_>,
        loop_events: &mpsc::UnboundedSender<LoopEvent>,
    ) -> Option<Self> {
        let config = running.config;
        let url = config.telemetry.alerts.clone()?;
        let client = reqwest::Client::builder()
            .user_agent(concat!("clew/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .build()
            .inspect_err(|error| tracing::error!(%error, "nothing can be told at ALERT_WEBHOOK"));
        let folder = match &config.memory.store {
            StoreAddress::Sqlite(file) => file.parent().map(Path::to_path_buf),
            StoreAddress::Files(folder) => Some(folder.clone()),
            StoreAddress::Postgres(_) => None,
        };
        Some(Self {
            url,
            http: Http::new(client.ok()?).through(running.transport.cloned()),
            services: Arc::clone(running.services),
            loop_events: loop_events.clone(),
            clock: Arc::clone(running.clock),
            // A path without a folder is in the current one.
            folder: folder.map(|folder| Path::new(".").join(folder)),
        })
    }

    /// Until the end.
    pub(super) async fn watch(self, ends: CancellationToken) {
        let watching = async {
            let mut alerts = Alerts::default();
            loop {
                let there = self.look().await;
                for alert in alerts.look(&there, (self.clock)()) {
                    self.tell(alert).await;
                }
                sleep(LOOK_EVERY).await;
            }
        };
        ends.run_until_cancelled(watching).await;
    }

    async fn look(&self) -> BTreeSet<Trouble> {
        let services = &self.services;
        let (reply, answer) = oneshot::channel();
        // The loop is gone only when the process ends.
        let _ = self.loop_events.send(LoopEvent::Look(reply));
        let of_loop = answer.await.ok();
        let total = services.tokens.as_ref().and_then(|meter| meter.total());
        let spent = total
            .is_some_and(|total| u128::from(total.used) * 100 >= u128::from(total.limit) * BUDGET);
        let model = services.model.as_ref();
        let refuses = model.is_some_and(ModelServers::none_answers);
        let down = of_loop.is_some_and(|now| now.shards == 0 || now.connected < now.shards);
        let found = [
            (Trouble::Model, refuses),
            (Trouble::Store, !services.memory.store_state().is_back()),
            (Trouble::Budget, spent),
            (Trouble::Shard, down),
            (Trouble::Disk, self.is_disk_low().await),
        ];
        let there = found.into_iter().filter(|(_, is_there)| *is_there);
        there.map(|(trouble, _)| trouble).collect()
    }

    async fn is_disk_low(&self) -> bool {
        let Some(folder) = self.folder.clone() else {
            return false;
        };
        let free = blocking(move || free_bytes(&folder)).await;
        matches!(free, Ok(Ok(bytes)) if bytes < LOW_BYTES)
    }

    async fn tell(&self, Alert { trouble, is_over }: Alert) {
        let over = if is_over { "over: " } else { "" };
        let body = json!({
            "content": format!("Clew: {over}{}", trouble.text()),
            "alert": trouble.as_str(),
            "over": is_over,
        });
        for attempt in 0..TRIES {
            if attempt > 0 {
                sleep(PAUSE * (1 << (attempt - 1))).await;
            }
            let request = self.http.request(Method::POST, self.url.expose());
            let request = request.timeout(TRY).json(&body);
            match self.http.send(request).await {
                Ok(answer) if answer.status().is_success() => return,
                Ok(answer) => tracing::warn!(
                    status = answer.status().as_u16(),
                    alert = trouble.as_str(),
                    "ALERT_WEBHOOK does not take an alert"
                ),
                Err(error) => tracing::warn!(error = %error.without_url(),
                    alert = trouble.as_str(), "ALERT_WEBHOOK cannot be reached"),
            }
        }
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
