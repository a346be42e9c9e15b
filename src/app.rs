//! The running bot: everything concrete is wired here, one loop is woken by
//! one closed set of events, and the end is orderly.
//!
//! Invariant: the loop never waits on work; what takes time is a tracked task
//! that reports back.

mod clock;
mod desk;
mod lanes;
mod rate;
mod secret;
mod wake;
mod wiring;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::discord::error::ConnectError;
use crate::discord::event::FatalReason;
use crate::discord::gateway::{self, Gateway};
use crate::discord::session::{
    self, Claims, LockError, Progress, SessionFile, SessionLock, ShardSession,
};
use crate::model::Clock;
use crate::telemetry::event::{Fatal, Stopping};
use crate::telemetry::{Guard, Ids, Telemetry};
use crate::turn::Services;
use crate::{llm, telemetry};

pub use clock::system_clock;

use desk::Desk;
use wake::Wake;

/// Events of Discord that may wait for the loop; a full queue holds the
/// shards up, which loses nothing.
const EVENTS: usize = 4_096;
/// What abandoned turns have for taking back what they posted.
const ABANDON: Duration = Duration::from_secs(5);
/// The gateway's close takes no longer.
const CLOSE: Duration = Duration::from_secs(5);
/// What is being sent beside turns, such as refusals, has this long.
const SETTLE: Duration = Duration::from_secs(2);
/// Within the state folder.
const SESSION_FILE: &str = "session.json";

/// Why the bot does not run, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No token.
    #[error(
        "DISCORD_TOKEN is not set: put the bot's token (developer portal, your application, Bot) \
         into the environment or into a file .env, or run `clew demo` to see the bot without one"
    )]
    NoToken,
    /// Another process runs with this token.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The client for Discord could not be set up.
    #[error(transparent)]
    Discord(#[from] ConnectError),
    /// The client for the model could not be set up.
    #[error(transparent)]
    Model(#[from] llm::SetupError),
    /// The events have nowhere to go.
    #[error(transparent)]
    Telemetry(#[from] telemetry::Error),
    /// The state folder cannot be used.
    #[error("cannot use the folder STATE_DIR={path}: make it writable or name another one")]
    State {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Discord does not want this bot as it is configured.
    #[error(transparent)]
    Fatal(#[from] FatalReason),
}

/// Runs the bot until `shutdown`, then drains and closes it.
///
/// # Errors
/// What only a person can cure; each says how.
pub async fn run(config: Config, clock: Clock, shutdown: CancellationToken) -> Result<(), Error> {
    let token = config.discord.token.clone().ok_or(Error::NoToken)?;
    let session_path = config.state_dir.join(SESSION_FILE);
    let _lock = SessionLock::take(&session_path)?;
    let secret = secret::load(&config.state_dir).map_err(|source| Error::State {
        path: config.state_dir.clone(),
        source,
    })?;
    let (telemetry, guard) = Telemetry::start(&wiring::telemetry(&config), Arc::clone(&clock))?;
    telemetry.emit(&Ids::default(), wiring::started(&config));
    let services = Arc::new(wiring::services(
        &config,
        token.expose(),
        telemetry,
        secret,
    )?);
    let left = load_session(&session_path, token.expose(), &clock, &services);
    let result = connected(
        &config,
        &clock,
        &services,
        token.expose(),
        left,
        &session_path,
        shutdown,
    )
    .await;
    if let Err(Error::Fatal(reason)) = &result {
        let fatal = Fatal {
            reason: wiring::fatal(reason),
        };
        services.telemetry.emit(&Ids::default(), fatal);
    }
    close(guard).await;
    result
}

/// What the process before left, taken once: if this one is killed, the next
/// begins with a fresh session rather than answer twice.
fn load_session(
    path: &std::path::Path,
    token: &str,
    clock: &Clock,
    services: &Services,
) -> Option<SessionFile> {
    let loaded = session::load(path, token, clock());
    if path.exists()
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!(%error, "the session file cannot be removed");
    }
    match loaded {
        Ok(mut file) => {
            file.restore(&services.facts);
            Some(file)
        }
        Err(absent) => {
            tracing::info!(%absent, "a fresh session begins");
            None
        }
    }
}

async fn connected(
    config: &Config,
    clock: &Clock,
    services: &Arc<Services>,
    token: &str,
    left: Option<SessionFile>,
    session_path: &std::path::Path,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let progress = Arc::new(Mutex::new(Progress::default()));
    let claims = left
        .as_ref()
        .map(|left| Claims::restore(&left.answered))
        .unwrap_or_default();
    let (events, mut deliveries) = mpsc::channel(EVENTS);
    let (wakes, mut woken) = mpsc::unbounded_channel();
    let closing = CancellationToken::new();
    let gateway = Gateway {
        settings: wiring::gateway(config, token, left.map(|left| left.shards)),
        facts: Arc::clone(&services.facts),
        progress: Arc::clone(&progress),
        events,
        shutdown: closing.clone(),
    };
    let kept = gateway.settings.resume.clone();
    let tracker = TaskTracker::new();
    let connection = tracker.spawn({
        let rest = services.rest.clone();
        async move { gateway::run(gateway, &rest).await }
    });
    tokio::pin!(connection);
    let mut desk = Desk::new(
        config,
        Arc::clone(services),
        claims,
        Arc::clone(&progress),
        tracker,
        wakes,
    );
    let ended = loop {
        let wake = tokio::select! {
            biased;
            () = shutdown.cancelled() => Wake::Stop,
            Some(wake) = woken.recv() => wake,
            Some(delivery) = deliveries.recv() => Wake::Discord(delivery),
            () = services.rest.token_refused() => {
                Wake::Disconnected(Err(FatalReason::TokenRefused))
            }
            ended = &mut connection => {
                Wake::Disconnected(ended.unwrap_or(Err(FatalReason::Broken)))
            },
        };
        match wake {
            Wake::Stop => break Ok(()),
            Wake::Disconnected(ended) => break ended,
            Wake::Discord(delivery) => desk.deliver(delivery),
            Wake::Ask(request) => desk.ask(*request),
            Wake::Placed(request, mark) => desk.placed(*request, mark),
            Wake::Done(done) => desk.done(done),
        }
    };
    closing.cancel();
    if ended.is_ok() {
        let _ = tokio::time::timeout(CLOSE, &mut connection).await;
    }
    let stopping = drain(&mut desk, &mut woken, config.turns.shutdown_timeout).await;
    services.telemetry.emit(&Ids::default(), stopping);
    if ended.is_ok() {
        let mut sessions = progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .sessions();
        if sessions.is_empty() {
            // Never connected: those of the process before are as good still.
            sessions = kept;
        }
        save_session(session_path, token, clock, services, &desk, sessions);
    }
    ended.map_err(Error::from)
}

/// Running turns may end; after the deadline they take back what they posted,
/// and the next process answers.
async fn drain(
    desk: &mut Desk,
    woken: &mut mpsc::UnboundedReceiver<Wake>,
    patience: Duration,
) -> Stopping {
    desk.close();
    let before = desk.running();
    let _ = tokio::time::timeout(patience, finish(desk, woken)).await;
    let abandoned = desk.running();
    if abandoned > 0 {
        desk.abandon();
        let _ = tokio::time::timeout(ABANDON, finish(desk, woken)).await;
    }
    desk.settle(SETTLE).await;
    while let Ok(wake) = woken.try_recv() {
        if let Wake::Ask(request) = wake {
            desk.ask(*request);
        }
    }
    desk.settle(SETTLE).await;
    Stopping {
        drained: before - abandoned,
        abandoned,
    }
}

async fn finish(desk: &mut Desk, woken: &mut mpsc::UnboundedReceiver<Wake>) {
    while desk.running() > 0 {
        match woken.recv().await {
            Some(Wake::Done(done)) => desk.done(done),
            Some(Wake::Ask(request)) => desk.ask(*request),
            Some(_) => {}
            None => return,
        }
    }
}

fn save_session(
    path: &std::path::Path,
    token: &str,
    clock: &Clock,
    services: &Services,
    desk: &Desk,
    sessions: Vec<ShardSession>,
) {
    let answered = desk.answered();
    let Some(file) = SessionFile::new(clock(), token, sessions, answered, &services.facts) else {
        return;
    };
    if let Err(error) = session::save(path, &file) {
        tracing::warn!(%error, "the session cannot be saved: the next start begins a fresh one");
    }
}

/// Flushes; waits on the writing thread, so not on this one.
async fn close(guard: Guard) {
    let _ = tokio::task::spawn_blocking(move || guard.close()).await;
}
