//! The running bot: everything concrete is wired up here, one loop is woken by one
//! closed set of events, and shutdown is orderly.
//!
//! Invariant: the loop never waits for work; whatever takes time is a tracked task
//! that reports back.

mod alerts;
mod begin;
mod catch_up;
mod clock;
mod cluster;
mod dispatcher;
mod holds;
mod loop_event;
mod mcp;
mod monitor;
mod outside;
mod queues;
mod restarts;
mod secret;
mod serving;
mod session;
mod shares;
mod state_file;
mod state_folder;
mod token_file;
mod when_ready;
mod wiring;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::engine::alerts::Trouble;
use crate::model::without_keys;
use crate::telemetry::event::Fatal;
#[cfg(feature = "otel")]
use crate::telemetry::{Exporter, Telemetry, Traces};
use crate::telemetry::{Guard, Ids, LineTap, Metrics, with_sources};
use crate::tools::SeenTools;
use crate::turn::{Services, TurnObserver};
use crate::{llm, telemetry, turn};
use clew_context::discord::error::ConnectError;
use clew_context::model::{Clock, Secret, UnixMillis};
use clew_context::outside::blocking;
use clew_discord::event::FatalReason;
use clew_discord::gateway::{self, Dial, Gateway};
use clew_discord::session::{LockError, ShardProgress, ShardSession};

pub use alerts::{LOW_BYTES, free_bytes};
pub use begin::claim;
pub use clock::system_clock;
pub use cluster::{cluster, forget_session};
pub use mcp::{AloneServer, Greeting, SOCKET};
pub use outside::Outside;
pub use wiring::{folders, model_settings};

use alerts::Alerter;
use begin::{Begun, begin, is_of_full_disk, once_there_is_room};
use dispatcher::Dispatcher;
use loop_event::EventSources;
use monitor::Monitor;
use serving::{drain, serve};
use session::SessionKeeper;
use state_folder::StateFolder;

/// The most Discord events that may wait for the loop; a full queue makes the
/// shards wait, which loses nothing.
const EVENTS: usize = 4_096;
/// How long closing the gateway may take.
const CLOSE: Duration = Duration::from_secs(5);
/// How long other things being sent, such as refusals, may take at the end.
const SETTLE: Duration = Duration::from_secs(2);
/// The name of the session file in the state folder.
const SESSION_FILE: &str = "session.json";
/// The name of the file with what was answered, in the state folder.
const CLAIM_FILE: &str = "claims.jsonl";

/// Why the bot does not run, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no token.
    #[error(
        "DISCORD_TOKEN is not set{}: put the bot's token (developer portal, your application, Bot) \
         into the environment or into a file .env, or run `clew demo` to see the bot without one",
        .meant.as_ref().map(|name| format!(", but {name} is: did you mean that?")).unwrap_or_default()
    )]
    NoToken {
        /// A variable that looks like it, and where it is set.
        meant: Option<String>,
    },
    /// Another process runs with this token.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The client for Discord could not be set up.
    #[error(transparent)]
    Discord(#[from] ConnectError),
    /// The client for the model could not be set up.
    #[error(transparent)]
    Model(#[from] llm::SetupError),
    /// The store cannot be opened or used.
    #[error(transparent)]
    Store(#[from] clew_store::Error),
    /// In a cluster another process may be the bot by now.
    #[error("the lease could not be renewed in time: another process may go on")]
    LeaseOver,
    /// In a cluster another process may reach what this one does not.
    #[error("Discord is not reached from here: another process may go on")]
    Unreached {
        /// Whether it was reached in this tenure.
        was_reached: bool,
    },
    /// In a cluster an operator asked for it.
    #[error("another process is to be the bot (clew cluster drain)")]
    Drained,
    /// Telemetry cannot be written.
    #[error(transparent)]
    Telemetry(#[from] telemetry::Error),
    /// The state folder cannot be used.
    #[error("cannot use the folder STATE_DIR={path}: make it writable or name another one")]
    State {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// An address that is to be listened on cannot be used.
    #[error(
        "cannot listen on {setting}={address}: choose a free port and an address of this machine"
    )]
    Address {
        setting: &'static str,
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The client for traces could not be set up.
    #[cfg(feature = "otel")]
    #[error(transparent)]
    Traces(#[from] telemetry::SetupError),
    /// Discord refuses this bot as it is configured.
    #[error(transparent)]
    Fatal(#[from] FatalReason),
}

impl Error {
    /// Whether a process of a cluster stands by after it: another one goes on, or may be able to.
    fn ends_tenure(&self) -> bool {
        match self {
            Self::LeaseOver
            | Self::Unreached { .. }
            | Self::Drained
            | Self::Store(clew_store::Error::Held { .. }) => true,
            Self::Store(error) => error.is_passing(),
            _ => is_of_full_disk(self),
        }
    }
}

/// Whoever watches the bot run.
pub struct Observer {
    /// Gets what turns share, once it is there.
    pub services: oneshot::Sender<Arc<Services>>,
    /// Gets the news of turns.
    pub turns: TurnObserver,
    /// Gets the lines of the telemetry.
    pub lines: LineTap,
}

/// The bot's token.
///
/// # Errors
/// [`Error::NoToken`].
pub fn token(config: &Config) -> Result<Secret, Error> {
    let token = config.discord.token.clone();
    token.ok_or_else(|| Error::NoToken {
        meant: config.meant_as_token().map(str::to_owned),
    })
}

/// Runs the bot until `shutdown`, then drains and closes it.
///
/// # Errors
/// Whatever only a person can fix; each error says how.
pub async fn run(config: Config, clock: Clock, shutdown: CancellationToken) -> Result<(), Error> {
    // Boxed: the future is large, and there is only one.
    Box::pin(run_in(config, Outside::of_system(clock), shutdown)).await
}

/// The same with something else around it.
///
/// # Errors
/// Like [`run`].
pub async fn run_in(
    config: Config,
    mut outside: Outside,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let alerter = Alerter::new(&config, &outside);
    // Boxed: it is large.
    let running = cluster::run_by_turns(&config, &mut outside, &alerter, shutdown);
    let result = Box::pin(running).await;
    alerter.end(&result).await;
    result
}

/// Runs the bot; in a cluster once it is this process's turn, and as long as it is.
async fn run_alerting(
    config: &Config,
    outside: &mut Outside,
    alerter: &Alerter,
    patience: Duration,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let token = token(config)?;
    let claimed = once_there_is_room(|| Ok(claim(config)?));
    let claimed = shutdown.run_until_cancelled(claimed);
    let Some(claimed) = alerter.during(Trouble::Disk, claimed).await else {
        return Ok(());
    };
    let _lock = claimed?;
    let cluster = outside.cluster.clone();
    let monitor = match config.telemetry.metrics {
        Some(address) => {
            let metrics = Arc::new(Metrics::new((outside.clock)()));
            let node = cluster.as_ref().map(|cluster| cluster.node().to_owned());
            let listener = Monitor::listen(address).await?;
            Some(Monitor::start(listener, metrics, node))
        }
        None => None,
    };
    let result = {
        let folder = cluster::folder(
            config,
            cluster.as_deref(),
            &outside.clock,
            monitor.as_ref(),
            alerter,
        );
        match shutdown.run_until_cancelled(folder).await {
            Some(Ok(folder)) => {
                let tenure = folder.tenure().cloned();
                let others = cluster.map(|cluster| (cluster, patience));
                let parts = (folder, monitor.as_ref(), others);
                let running = run_once(config, outside, parts, alerter, &token, shutdown);
                let result = Box::pin(running).await;
                if let Some(tenure) = tenure {
                    tenure.end().await;
                }
                result
            }
            Some(Err(error)) => Err(error),
            None => Ok(()),
        }
    };
    if let Some(monitor) = monitor {
        monitor.stop().await;
    }
    result
}

/// Runs the bot from a state folder that it has.
async fn run_once(
    config: &Config,
    outside: &mut Outside,
    (folder, monitor, others): (StateFolder, Option<&Monitor>, Option<cluster::Others>),
    alerter: &Alerter,
    token: &Secret,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let clock = Arc::clone(&outside.clock);
    let observer = outside.observer.take();
    let begun = async {
        // Another process may have room.
        if folder.tenure().is_some() {
            return begin(config, &folder, &clock);
        }
        once_there_is_room(|| begin(config, &folder, &clock)).await
    };
    let begun = shutdown.run_until_cancelled(begun);
    let Some(begun) = alerter.during(Trouble::Disk, begun).await else {
        return Ok(());
    };
    let Begun {
        keys,
        mut telemetry,
        guard,
    } = begun?;
    let for_programs = mcp::listen(config.mcp_listen).await?;
    if let Some(monitor) = monitor {
        telemetry = telemetry.counted(monitor.metrics());
    }
    if let Some(observer) = &observer {
        telemetry = telemetry.tapped(observer.lines.clone());
    }
    #[cfg(feature = "otel")]
    let exporter = export_traces(config, &mut telemetry)?;
    let node = outside.cluster.as_ref().map(|cluster| cluster.node());
    telemetry.emit(&Ids::default(), wiring::started(config, node));
    let services = wiring::services(config, token.expose(), telemetry, keys, outside, &folder);
    // Waits for a store that is not ready, unless the process is to end.
    // Boxed: it is large.
    let services = Box::pin(shutdown.run_until_cancelled(services));
    let Some(services) = alerter.during(Trouble::Store, services).await else {
        end(guard).await;
        return Ok(());
    };
    let mut services = services?;
    services.observer = observer.as_ref().map(|observer| observer.turns.clone());
    let services = Arc::new(services);
    if let Some(observer) = observer {
        // It fails if the observer is gone already.
        let _ = observer.services.send(Arc::clone(&services));
    }
    let mut programs = mcp::serve(config, &services, for_programs);
    let running = Running {
        config,
        services: &services,
        folder: &folder,
        token: token.expose(),
        clock: &clock,
        monitor,
        others,
        dial: outside.dial.as_ref(),
        alerter,
    };
    let result = run_with_upkeep(&running, shutdown).await;
    // Their address is free on return.
    programs.shutdown().await;
    if let Err(Error::Fatal(reason)) = &result {
        let fatal = Fatal {
            reason: wiring::fatal(reason),
        };
        services.telemetry.emit(&Ids::default(), fatal);
    }
    #[cfg(feature = "otel")]
    if let Some(exporter) = exporter {
        exporter.close().await;
    }
    end(guard).await;
    result
}

/// Has telemetry make traces, if they are to go somewhere.
#[cfg(feature = "otel")]
fn export_traces(
    config: &Config,
    telemetry: &mut Telemetry,
) -> Result<Option<Exporter>, telemetry::SetupError> {
    let Some(traces) = &config.telemetry.traces else {
        return Ok(None);
    };
    let (traces, exporter) = Traces::export(traces, config.llm.as_ref())?;
    *telemetry = telemetry.clone().traced(traces);
    Ok(Some(exporter))
}

/// A bot whose parts are set up.
struct Running<'a> {
    config: &'a Config,
    services: &'a Arc<Services>,
    folder: &'a StateFolder,
    token: &'a str,
    clock: &'a Clock,
    /// None without `METRICS_ADDR`.
    monitor: Option<&'a Monitor>,
    /// None without a cluster.
    others: Option<cluster::Others>,
    dial: Option<&'a Arc<dyn Dial>>,
    alerter: &'a Alerter,
}

/// Runs the memory's upkeep along with the bot, and closes the memory after it.
async fn run_with_upkeep(running: &Running<'_>, shutdown: CancellationToken) -> Result<(), Error> {
    let Running {
        services, folder, ..
    } = *running;
    let ends = CancellationToken::new();
    let upkeep = {
        let (services, ends) = (Arc::clone(services), ends.clone());
        async move {
            let Services {
                memory,
                rest,
                guild_state,
                claims,
                ..
            } = &*services;
            let edit_of = |message: &_| services.edit_of(message);
            Box::pin(memory.upkeep(rest, guild_state, claims, &edit_of, ends)).await;
        }
    };
    let upkeep = tokio::spawn(upkeep);
    let state_files = keep_state(Arc::clone(services), folder.clone(), ends.clone());
    let state_files = tokio::spawn(state_files);
    let result = run_connected(running, shutdown).await;
    ends.cancel();
    if upkeep.await.is_err() {
        tracing::error!("the upkeep of memory broke off by a fault of ours");
    }
    if state_files.await.is_err() {
        tracing::error!("what is under way was not kept by a fault of ours");
    }
    services.memory.close().await;
    result
}

/// Connects, serves until the end and leaves the next process what it needs.
async fn run_connected(running: &Running<'_>, shutdown: CancellationToken) -> Result<(), Error> {
    let Running {
        config,
        services,
        token,
        folder,
        ..
    } = *running;
    let (before, whole_until) = take_over(running).await;
    let progress = Arc::new(Mutex::new(ShardProgress::from(before.clone())));
    let keeper = SessionKeeper::new(running, &progress);
    let keeper_ends = CancellationToken::new();
    let keeping = tokio::spawn(keeper.keep(keeper_ends.clone()));
    let (events, deliveries) = mpsc::channel(EVENTS);
    let (loop_events, reports) = mpsc::unbounded_channel();
    let closing = CancellationToken::new();
    let gateway = Gateway {
        settings: wiring::gateway(config, token, before),
        guild_state: Arc::clone(&services.guild_state),
        progress: Arc::clone(&progress),
        events,
        clock: Arc::clone(running.clock),
        shutdown: closing.clone(),
        shards: cluster::shards(folder),
        dial: running.dial.cloned(),
    };
    let tracker = TaskTracker::new();
    tracker.spawn(check_model(Arc::clone(services), shutdown.clone()));
    tracker.spawn(report_broken_off(Arc::clone(services), shutdown.clone()));
    running.alerter.watch(running, &loop_events);
    cluster::watch(running, &loop_events);
    let rest = services.rest.clone();
    let mut sources = EventSources {
        shutdown,
        reports,
        deliveries,
        services: Arc::clone(services),
        connection: tracker.spawn(async move { gateway::run(gateway, &rest).await }),
        lease: folder.lease().cloned(),
    };
    if let Some(monitor) = running.monitor {
        monitor.running(services, &loop_events);
    }
    let mut dispatcher = Dispatcher::new(
        config,
        Arc::clone(services),
        Arc::clone(&progress),
        tracker,
        loop_events,
        whole_until,
    );
    let ended = serve(services, &mut dispatcher, &mut sources).await;
    if let Some(monitor) = running.monitor {
        monitor.stopping(services);
    }
    closing.cancel();
    if matches!(ended, Ok(()) | Err(Error::Drained)) {
        let _ = tokio::time::timeout(CLOSE, &mut sources.connection).await;
    }
    // Whoever has our store has our questions: nothing more is answered here.
    let patience = match &ended {
        Err(Error::Store(_) | Error::LeaseOver) => None,
        Err(Error::Unreached { .. }) => Some(Duration::ZERO),
        _ => Some(config.turns.shutdown_timeout),
    };
    let stopping = drain(&mut dispatcher, &mut sources.reports, patience).await;
    tracing::info!(
        drained = stopping.drained,
        abandoned = stopping.abandoned,
        "stopped: what was abandoned is asked again by the next process"
    );
    services.telemetry.emit(&Ids::default(), stopping);
    keeper_ends.cancel();
    match keeping.await {
        Ok(keeper) => leave_session(keeper, &ended, config.cluster).await,
        Err(error) => tracing::error!(%error, "the session was not kept by a fault of ours"),
    }
    ended
}

/// Leaves the session to the next process, if it may go on with it.
async fn leave_session(keeper: SessionKeeper, ended: &Result<(), Error>, is_cluster: bool) {
    match ended {
        Ok(()) | Err(Error::Unreached { .. } | Error::Drained) => keeper.leave().await,
        // What is noted is another process's by now.
        Err(error) if is_cluster && error.ends_tenure() => {}
        Err(_) => keeper.forget().await,
    }
}

/// Takes over what the previous process left. Returns its sessions, and until when it had
/// heard and handled everything.
async fn take_over(running: &Running<'_>) -> (Vec<ShardSession>, Option<UnixMillis>) {
    let (services, folder) = (running.services, running.folder);
    let taken = session::take(folder, running.token, running.clock, &services.guild_state).await;
    let whole_until = taken.heard.whole_until;
    if let Some(alive) = taken.heard.alive {
        services.memory.not_before(alive);
    }
    let Some(left) = taken.left else {
        return (Vec::new(), whole_until);
    };
    services.memory.take_over(&left.session.gaps);
    let mut shards = left.session.shards;
    for shard in &mut shards {
        shard.unfinished_since.get_or_insert(left.session.written);
    }
    (shards, whole_until)
}

/// Warns at the start, not only at the first question, if the model cannot be
/// reached.
async fn check_model(services: Arc<Services>, shutdown: CancellationToken) {
    let Some(model) = &services.model else {
        return;
    };
    for client in model.clients() {
        if let Some(Err(error)) = shutdown.run_until_cancelled(client.look()).await {
            let url = without_keys(client.models_url().as_str());
            tracing::warn!(url, error = %with_sources(&error),
                "cannot reach the model: check the server's address and key in LLM_*, and that it runs");
        }
    }
}

/// How the tools of MCP servers read when the bot last listed them.
pub fn seen_tools(config: &Config) -> SeenTools {
    state_file::left(&config.shared_state_dir(), state_file::TOOLS)
}

/// Keeps what the next process needs of what is under way, and today's tokens.
async fn keep_state(services: Arc<Services>, folder: StateFolder, ends: CancellationToken) {
    let tokens = async {
        if let Some(meter) = services.tokens.clone() {
            token_file::keep(meter, folder.clone(), ends.clone()).await;
        }
    };
    let (runs, approvals) = (services.runs.clone(), services.approvals.clone());
    let connections = services.connections.clone();
    let tools = Arc::clone(&services.tool_servers);
    tokio::join!(
        tokens,
        state_file::keep(runs, state_file::RUNS, folder.clone(), ends.clone()),
        state_file::keep(
            approvals,
            state_file::APPROVALS,
            folder.clone(),
            ends.clone()
        ),
        state_file::keep(
            connections,
            state_file::CONNECTIONS,
            folder.clone(),
            ends.clone()
        ),
        state_file::keep(tools, state_file::TOOLS, folder.clone(), ends.clone()),
    );
}

/// Says of the agent runs of an earlier process that they broke off, and of what waited for
/// consent that it was not done.
async fn report_broken_off(services: Arc<Services>, shutdown: CancellationToken) {
    let reporting = async {
        turn::report_broken_off(&services).await;
        turn::report_given_up(&services, None).await;
    };
    shutdown.run_until_cancelled(reporting).await;
}

/// Flushes telemetry without blocking this thread on the writing one.
async fn end(guard: Guard) {
    let _ = blocking(move || guard.close()).await;
}
