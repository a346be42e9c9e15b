//! What the bot says of itself over HTTP, at `METRICS_ADDR`: whether it is alive, whether it is
//! ready, and its metrics.
//!
//! Requests are answered beside the loop, which is asked one question at a time. Connections
//! are few, each has its time, and none is kept open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::loop_event::LoopEvent;
use crate::app;
use crate::http::{self, Bounds};
use crate::telemetry::event::CircuitChanged;
use crate::telemetry::{Gauges, LoopGauges, Metrics, MetricsFormat};
use crate::turn::Services;

/// What those who ask may take.
const BOUNDS: Bounds = Bounds {
    connections: 16,
    head: Duration::from_secs(2),
    connection: Some(Duration::from_secs(10)),
};
/// How long the loop may take to answer. It does so in microseconds unless it hangs.
const LOOP_ANSWERS: Duration = Duration::from_secs(2);

/// The server. It ends when dropped.
pub(super) struct Monitor {
    watched: Arc<Watched>,
    server: JoinHandle<()>,
}

/// What requests look at.
struct Watched {
    metrics: Arc<Metrics>,
    /// The process's name in its cluster.
    node: Option<String>,
    phase: Mutex<Phase>,
    /// The question to the loop that it has not answered yet: while it hangs, no second one
    /// is put.
    asked: tokio::sync::Mutex<Option<oneshot::Receiver<LoopGauges>>>,
}

/// How far the bot has come.
#[derive(Clone)]
enum Phase {
    /// It is not the bot, and why.
    StandingBy(&'static str),
    /// The store is being opened.
    Starting,
    /// The loop runs.
    Running(Arc<Services>, mpsc::UnboundedSender<LoopEvent>),
    /// Turns that run may end; nothing new begins.
    Stopping(Arc<Services>),
}

/// What one look shows.
struct Look {
    phase: Phase,
    /// None if the loop does not run, or does not answer.
    of_loop: Option<LoopGauges>,
}

impl Monitor {
    /// Takes the address.
    ///
    /// # Errors
    /// If another program has it, or it is none of this machine's.
    pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, app::Error> {
        let listener = TcpListener::bind(address).await;
        listener.map_err(|source| app::Error::Address {
            setting: "METRICS_ADDR",
            address,
            source,
        })
    }

    /// Answers requests from now on.
    pub(super) fn start(
        listener: TcpListener,
        metrics: Arc<Metrics>,
        node: Option<String>,
    ) -> Self {
        let watched = Arc::new(Watched {
            metrics,
            node,
            phase: Mutex::new(Phase::Starting),
            asked: tokio::sync::Mutex::default(),
        });
        let router = Router::new()
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics_now))
            .with_state(Arc::clone(&watched));
        Self {
            watched,
            server: tokio::spawn(http::serve(listener, router, BOUNDS)),
        }
    }

    /// It waits until it is its turn to be the bot, for this reason.
    pub(super) fn standing_by(&self, why: &'static str) {
        *self.watched.phase.lock() = Phase::StandingBy(why);
    }

    /// The store is about to be opened.
    pub(super) fn starting(&self) {
        *self.watched.phase.lock() = Phase::Starting;
    }

    /// Counts what is told of.
    pub(super) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.watched.metrics)
    }

    /// The loop begins to run.
    pub(super) fn running(
        &self,
        services: &Arc<Services>,
        loop_events: &mpsc::UnboundedSender<LoopEvent>,
    ) {
        *self.watched.phase.lock() = Phase::Running(Arc::clone(services), loop_events.clone());
    }

    /// The bot is stopping.
    pub(super) fn stopping(&self, services: &Arc<Services>) {
        *self.watched.phase.lock() = Phase::Stopping(Arc::clone(services));
    }

    /// Ends it. The address is free on return.
    pub(super) async fn stop(mut self) {
        self.server.abort();
        // The task was aborted, so this is a cancellation error.
        let _ = (&mut self.server).await;
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn healthz(State(watched): State<Arc<Watched>>) -> impl IntoResponse {
    if watched.look().await.is_alive() {
        return (StatusCode::OK, "alive\n".to_owned());
    }
    let seconds = LOOP_ANSWERS.as_secs();
    let told = format!("the loop has not answered for {seconds} s: restart the bot\n");
    (StatusCode::SERVICE_UNAVAILABLE, told)
}

async fn readyz(State(watched): State<Arc<Watched>>) -> impl IntoResponse {
    let missing = watched.look().await.missing();
    let (status, said) = if missing.is_empty() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let node = watched.node.iter().map(|node| format!("node: {node}"));
    let lines: Vec<_> = [said.to_owned()]
        .into_iter()
        .chain(missing)
        .chain(node)
        .collect();
    (status, lines.join("\n") + "\n")
}

async fn metrics_now(State(watched): State<Arc<Watched>>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get_all(ACCEPT).iter();
    let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
    let format = MetricsFormat::asked_by(&accept.join(","));
    let gauges = Gauges {
        node: watched.node.clone(),
        ..watched.look().await.gauges()
    };
    let rendered = watched.metrics.render(gauges, format);
    ([(CONTENT_TYPE, format.content_type())], rendered)
}

impl Watched {
    async fn look(&self) -> Look {
        let phase = self.phase.lock().clone();
        let of_loop = match &phase {
            Phase::Running(_, loop_events) => {
                let asked = timeout(LOOP_ANSWERS, self.ask(loop_events)).await;
                asked.ok().flatten()
            }
            Phase::StandingBy(_) | Phase::Starting | Phase::Stopping(_) => None,
        };
        // The phase may have changed while the loop was asked.
        Look {
            phase: self.phase.lock().clone(),
            of_loop,
        }
    }

    /// Asks the loop, unless it still owes an answer.
    async fn ask(&self, loop_events: &mpsc::UnboundedSender<LoopEvent>) -> Option<LoopGauges> {
        let mut asked = self.asked.lock().await;
        let answer = asked.get_or_insert_with(|| {
            let (reply, answer) = oneshot::channel();
            // The loop is gone only when the process ends.
            let _ = loop_events.send(LoopEvent::Look(reply));
            answer
        });
        let answer = answer.await;
        *asked = None;
        answer.ok()
    }
}

impl Look {
    fn is_alive(&self) -> bool {
        self.of_loop.is_some() || !matches!(self.phase, Phase::Running(..))
    }

    /// What keeps the bot from answering as it should, a line each.
    fn missing(&self) -> Vec<String> {
        let services = match &self.phase {
            Phase::StandingBy(why) => return vec![(*why).to_owned()],
            Phase::Starting => return vec!["store: it is not open yet".to_owned()],
            Phase::Stopping(_) => return vec!["process: it is stopping".to_owned()],
            Phase::Running(services, _) => services,
        };
        let of_loop = match self.of_loop {
            None => Some("loop: it does not answer".to_owned()),
            Some(LoopGauges { shards: 0, .. }) => Some("discord: not connected yet".to_owned()),
            Some(now) if now.connected < now.shards => Some(format!(
                "discord: {} of {} shards are connected",
                now.connected, now.shards
            )),
            Some(_) => None,
        };
        let store = services.memory.store_state();
        let CircuitChanged {
            read,
            write,
            unsaved,
        } = &store;
        let store = (!store.is_back()).then(|| {
            format!(
                "store: reading is {}, writing is {}; {unsaved} answered turns wait for it",
                read.as_str(),
                write.as_str()
            )
        });
        of_loop.into_iter().chain(store).collect()
    }

    fn gauges(&self) -> Gauges {
        let services = match &self.phase {
            Phase::StandingBy(_) | Phase::Starting => None,
            Phase::Running(services, _) | Phase::Stopping(services) => Some(services),
        };
        Gauges {
            node: None,
            is_ready: self.missing().is_empty(),
            is_alive: self.is_alive(),
            of_loop: self.of_loop,
            window: services.map(|services| services.window().size()),
            store: services.map(|services| services.memory.store_state()),
            dropped_lines: services.map_or(0, |services| services.telemetry.dropped()),
        }
    }
}
