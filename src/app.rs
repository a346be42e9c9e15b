//! The running bot: everything concrete is wired up here, one loop is woken by one
//! closed set of events, and shutdown is orderly.
//!
//! Invariant: the loop never waits for work; whatever takes time is a tracked task
//! that reports back.

mod alerts;
mod begin;
mod catch_up;
mod clock;
mod dispatcher;
mod holds;
mod loop_event;
mod mcp;
mod monitor;
mod outside;
mod queues;
mod restarts;
mod secret;
mod session;
mod shares;
mod state_file;
mod token_file;
mod wiring;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::engine::alerts::Trouble;
use crate::model::without_keys;
use crate::telemetry::event::{Fatal, Stopping};
#[cfg(feature = "otel")]
use crate::telemetry::{Exporter, Telemetry, Traces};
use crate::telemetry::{Guard, Ids, LineTap, Metrics, with_sources};
use crate::tools::SeenTools;
use crate::turn::{Services, TurnObserver};
use crate::{llm, telemetry, turn};
use clew_context::discord::error::ConnectError;
use clew_context::model::{ApplicationId, Clock, Secret, UnixMillis};
use clew_context::outside::blocking;
use clew_discord::event::FatalReason;
use clew_discord::gateway::{self, Dial, Gateway};
use clew_discord::session::{self as session_files, LockError, ShardProgress, ShardSession};

pub use alerts::{LOW_BYTES, free_bytes};
pub use begin::claim;
pub use clock::system_clock;
pub use mcp::{AloneServer, Greeting, SOCKET};
pub use outside::Outside;
pub use wiring::{folders, model_settings};

use alerts::Alerter;
use begin::{Begun, begin, once_there_is_room};
use dispatcher::Dispatcher;
use loop_event::{EventSources, LoopEvent};
use monitor::Monitor;
use session::SessionKeeper;

/// The most Discord events that may wait for the loop; a full queue makes the
/// shards wait, which loses nothing.
const EVENTS: usize = 4_096;
/// How long abandoned turns may take to take back what they posted.
const ABANDON: Duration = Duration::from_secs(5);
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
    outside: Outside,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let alerter = Alerter::new(&config, &outside);
    let result = run_alerting(config, outside, &alerter, shutdown).await;
    alerter.end(&result).await;
    result
}

async fn run_alerting(
    config: Config,
    mut outside: Outside,
    alerter: &Alerter,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let clock = Arc::clone(&outside.clock);
    let observer = outside.observer.take();
    let token = token(&config)?;
    let session_path = config.state_dir.join(SESSION_FILE);
    let begun = once_there_is_room(|| begin(&config, &clock));
    let begun = shutdown.run_until_cancelled(begun);
    let Some(begun) = alerter.during(Trouble::Disk, begun).await else {
        return Ok(());
    };
    let Begun {
        lock: _lock,
        keys,
        mut telemetry,
        guard,
    } = begun?;
    let listener = match config.telemetry.metrics {
        Some(address) => Some(Monitor::listen(address).await?),
        None => None,
    };
    let for_programs = mcp::listen(config.mcp_listen).await?;
    let monitor = listener.map(|listener| {
        let metrics = Arc::new(Metrics::new(clock()));
        telemetry = telemetry.clone().counted(Arc::clone(&metrics));
        Monitor::start(listener, metrics)
    });
    if let Some(observer) = &observer {
        telemetry = telemetry.tapped(observer.lines.clone());
    }
    #[cfg(feature = "otel")]
    let exporter = export_traces(&config, &mut telemetry)?;
    telemetry.emit(&Ids::default(), wiring::started(&config));
    let services = wiring::services(&config, token.expose(), telemetry, keys, &outside);
    // Waits for a store that is not ready, unless the process is to end.
    // Boxed: it is large.
    let services = Box::pin(shutdown.run_until_cancelled(services));
    let Some(services) = alerter.during(Trouble::Store, services).await else {
        end(monitor, guard).await;
        return Ok(());
    };
    let mut services = services?;
    services.observer = observer.as_ref().map(|observer| observer.turns.clone());
    let services = Arc::new(services);
    if let Some(observer) = observer {
        // It fails if the observer is gone already.
        let _ = observer.services.send(Arc::clone(&services));
    }
    let mut programs = mcp::serve(&config, &services, for_programs);
    let running = Running {
        config: &config,
        services: &services,
        session_path: &session_path,
        token: token.expose(),
        clock: &clock,
        monitor: monitor.as_ref(),
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
    end(monitor, guard).await;
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

/// Has the next process begin a new session, after which what is stored counts as
/// missed by it: it confirms messages with Discord before it shows them.
///
/// # Errors
/// If the session file cannot be written.
pub fn forget_session(config: &Config, clock: &Clock) -> std::io::Result<()> {
    session_files::forget(&config.state_dir.join(SESSION_FILE), clock())
}

/// A bot whose parts are set up.
struct Running<'a> {
    config: &'a Config,
    services: &'a Arc<Services>,
    session_path: &'a Path,
    token: &'a str,
    clock: &'a Clock,
    /// None without `METRICS_ADDR`.
    monitor: Option<&'a Monitor>,
    dial: Option<&'a Arc<dyn Dial>>,
    alerter: &'a Alerter,
}

/// Runs the memory's upkeep along with the bot, and closes the memory after it.
async fn run_with_upkeep(running: &Running<'_>, shutdown: CancellationToken) -> Result<(), Error> {
    let Running {
        config, services, ..
    } = *running;
    let ends = CancellationToken::new();
    let upkeep = {
        let (services, ends) = (Arc::clone(services), ends.clone());
        async move {
            let Services {
                memory,
                rest,
                guild_state,
                ..
            } = &*services;
            let edit_of = |message: &_| services.edit_of(message);
            Box::pin(memory.upkeep(rest, guild_state, &edit_of, ends)).await;
        }
    };
    let upkeep = tokio::spawn(upkeep);
    let tokens = services.tokens.clone().map(|meter| {
        let state_dir = config.state_dir.clone();
        tokio::spawn(token_file::keep(meter, state_dir, ends.clone()))
    });
    let state_files = tokio::spawn(keep_state(
        Arc::clone(services),
        config.state_dir.clone(),
        ends.clone(),
    ));
    let result = run_connected(running, shutdown).await;
    ends.cancel();
    if upkeep.await.is_err() {
        tracing::error!("the upkeep of memory broke off by a fault of ours");
    }
    if let Some(tokens) = tokens
        && tokens.await.is_err()
    {
        tracing::error!("today's tokens were not kept by a fault of ours");
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
        ..
    } = *running;
    let (before, whole_until) = take_over(running);
    let progress = Arc::new(Mutex::new(ShardProgress::from(before.clone())));
    let (path, token_of) = (running.session_path.to_owned(), token.to_owned());
    let keeper = SessionKeeper::new(path, token_of, Arc::clone(services), Arc::clone(&progress));
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
        dial: running.dial.cloned(),
    };
    let tracker = TaskTracker::new();
    tracker.spawn(check_model(Arc::clone(services), shutdown.clone()));
    tracker.spawn(report_broken_off(Arc::clone(services), shutdown.clone()));
    running.alerter.watch(running, &loop_events);
    let rest = services.rest.clone();
    let mut sources = EventSources {
        shutdown,
        reports,
        deliveries,
        services: Arc::clone(services),
        connection: tracker.spawn(async move { gateway::run(gateway, &rest).await }),
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
    if ended.is_ok() {
        let _ = tokio::time::timeout(CLOSE, &mut sources.connection).await;
    }
    // Whoever has our store has our questions: nothing more is answered here.
    let patience = match &ended {
        Err(Error::Store(_)) => Duration::ZERO,
        _ => config.turns.shutdown_timeout,
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
        Ok(keeper) if ended.is_ok() => keeper.leave().await,
        Ok(keeper) => keeper.forget(),
        Err(error) => tracing::error!(%error, "the session was not kept by a fault of ours"),
    }
    ended
}

/// Takes over what the previous process left. Returns its sessions, and until when it had
/// heard and handled everything.
fn take_over(running: &Running<'_>) -> (Vec<ShardSession>, Option<UnixMillis>) {
    let (services, path) = (running.services, running.session_path);
    let taken = session::take(path, running.token, running.clock, &services.guild_state);
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
    state_file::left(&config.state_dir, state_file::TOOLS)
}

/// Keeps what the next process needs of what is under way.
async fn keep_state(services: Arc<Services>, dir: PathBuf, ends: CancellationToken) {
    let (runs, approvals) = (services.runs.clone(), services.approvals.clone());
    let connections = services.connections.clone();
    let tools = Arc::clone(&services.tool_servers);
    tokio::join!(
        state_file::keep(runs, state_file::RUNS, dir.clone(), ends.clone()),
        state_file::keep(approvals, state_file::APPROVALS, dir.clone(), ends.clone()),
        state_file::keep(
            connections,
            state_file::CONNECTIONS,
            dir.clone(),
            ends.clone()
        ),
        state_file::keep(tools, state_file::TOOLS, dir, ends),
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

async fn serve(
    services: &Services,
    dispatcher: &mut Dispatcher,
    sources: &mut EventSources,
) -> Result<(), Error> {
    let mut is_claimed = false;
    loop {
        match sources.next(dispatcher.due()).await {
            LoopEvent::Stop => return Ok(()),
            LoopEvent::Disconnected(ended) => return ended.map_err(Error::from),
            LoopEvent::StoreLost(held) => return Err(held.into()),
            LoopEvent::Discord(delivery) => {
                // Discord's first event or the session file tells who we are. Only
                // this once the loop waits: nothing may be read from or written to
                // another bot's store.
                if !is_claimed && let Some(us) = services.guild_state.current_user() {
                    is_claimed = true;
                    claim_store(services, us.application).await?;
                }
                dispatcher.deliver(delivery);
            }
            LoopEvent::Due => dispatcher.ask_due(),
            LoopEvent::Ask(request) => drop(dispatcher.submit(*request, None)),
            LoopEvent::Run(request, slot) => dispatcher.start_run(*request, slot),
            LoopEvent::StopRun(id) => dispatcher.stop_run(id),
            LoopEvent::Steer(steer, reply) => drop(reply.send(dispatcher.steer(steer))),
            LoopEvent::LookedUp(of, kind, mark) => dispatcher.looked_up(of, kind, mark),
            LoopEvent::CatchUp(news) => dispatcher.catch_up_goes_on(news),
            LoopEvent::TurnWaits(trigger) => dispatcher.turn_waits(trigger),
            LoopEvent::TurnEnded(end) => dispatcher.turn_ended(end),
            LoopEvent::Look(reply) => dispatcher.look(reply),
        }
    }
}

/// Claims the store. If it fails, the bot runs on; before servers are taken
/// for left, the store is claimed again.
async fn claim_store(services: &Services, application: ApplicationId) -> Result<(), Error> {
    match services.memory.claim(application).await {
        Err(error @ clew_store::Error::Owned { .. }) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "the store does not say whose it is");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Lets running turns finish; after the deadline they take back what they
/// posted, and the next process answers.
async fn drain(
    dispatcher: &mut Dispatcher,
    reports: &mut mpsc::UnboundedReceiver<LoopEvent>,
    patience: Duration,
) -> Stopping {
    dispatcher.close();
    let mut drained = 0;
    let finishing = finish(dispatcher, reports, &mut drained);
    let _ = tokio::time::timeout(patience, finishing).await;
    let abandoned = dispatcher.running();
    if abandoned > 0 {
        dispatcher.abandon();
        let mut taken_back = 0;
        let taking_back = finish(dispatcher, reports, &mut taken_back);
        let _ = tokio::time::timeout(ABANDON, taking_back).await;
    }
    dispatcher.settle(SETTLE).await;
    while let Ok(loop_event) = reports.try_recv() {
        match loop_event {
            LoopEvent::Ask(request) => drop(dispatcher.submit(*request, None)),
            LoopEvent::Run(request, slot) => dispatcher.start_run(*request, slot),
            _ => {}
        }
    }
    dispatcher.settle(SETTLE).await;
    Stopping { drained, abandoned }
}

/// Waits for what runs, also for runs that begin meanwhile, and counts what ended.
async fn finish(
    dispatcher: &mut Dispatcher,
    reports: &mut mpsc::UnboundedReceiver<LoopEvent>,
    ended: &mut usize,
) {
    while dispatcher.running() > 0 {
        match reports.recv().await {
            Some(LoopEvent::TurnEnded(end)) => {
                *ended += 1;
                dispatcher.turn_ended(end);
            }
            Some(LoopEvent::Ask(request)) => drop(dispatcher.submit(*request, None)),
            Some(LoopEvent::Run(request, slot)) => dispatcher.start_run(*request, slot),
            Some(LoopEvent::StopRun(id)) => dispatcher.stop_run(id),
            Some(LoopEvent::Steer(steer, reply)) => drop(reply.send(dispatcher.steer(steer))),
            Some(_) => {}
            None => return,
        }
    }
}

/// Ends the monitor, and flushes telemetry without blocking this thread on the writing one.
async fn end(monitor: Option<Monitor>, guard: Guard) {
    if let Some(monitor) = monitor {
        monitor.stop().await;
    }
    let _ = blocking(move || guard.close()).await;
}
