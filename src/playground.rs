//! `clew playground`: a page in the browser with a simulated Discord and the real bot in it.
//! One talks to the bot as several people, sees beside each answer what it was made from,
//! and tries other caps on it.
//!
//! Invariant: only whoever has the page's token reads or changes anything; what people wrote
//! leaves as text, or as HTML that was cleaned.

mod api;
mod context;
mod error;
mod events;
mod export;
mod faults;
mod guard;
mod html;
mod model;
mod page;
mod relay;
mod shown;
mod source;
mod turns;
mod world;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::Observer;
use crate::config::Config;
use crate::sandbox::{self, Sandbox};
use crate::turn::Services;
use clew_simulator::{Id, ScriptedModel, Simulator};

#[cfg(feature = "test-util")]
pub use html::{Names, to_html};

use events::EventHub;
use faults::FaultState;
use guard::PageToken;
use turns::KeptTurns;

/// How many calls and gateway records the simulator keeps in its log at least.
const KEPT_CALLS: usize = 1_000;

/// Why the playground does not run, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bot or its world cannot run.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// The page's address cannot be used.
    #[error("cannot listen on {address}: choose another port with --port, or free this one")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the page's server stopped")]
    Serve(#[source] io::Error),
}

/// How the playground runs.
#[derive(Debug)]
pub struct PlaygroundOptions {
    /// Pairs of variable and value for the bot.
    pub settings: Vec<(String, String)>,
    /// Where the page is served; port 0 means any free one.
    pub listen: SocketAddr,
}

pub struct Playground {
    sandbox: Sandbox,
    link: String,
    shutdown: CancellationToken,
    server: JoinHandle<()>,
    /// The model, unless the settings name one.
    _model: Option<ScriptedModel>,
}

/// What the routes share.
struct Shared {
    discord: Arc<Simulator>,
    /// The settings with which the bot runs.
    config: Config,
    /// The same as pairs of variable and value.
    settings: Vec<(String, String)>,
    services: Arc<Services>,
    turns: KeptTurns,
    events: EventHub,
    token: PageToken,
    /// The model's name as the page shows it.
    model: String,
    /// Where a newcomer may ask, and what.
    suggestion: (Id, String),
    faults: Mutex<FaultState>,
    /// How many exports are open.
    opened: tokio::sync::Mutex<usize>,
    /// Ends the streams of events.
    shutdown: CancellationToken,
}

impl Playground {
    /// Starts the simulator, the bot and the page's server.
    ///
    /// # Errors
    /// Whatever keeps one of them from running.
    pub async fn start(options: PlaygroundOptions) -> Result<Self, Error> {
        let listener = TcpListener::bind(options.listen).await;
        let listener = listener.map_err(|source| Error::Listen {
            address: options.listen,
            source,
        })?;
        let address = listener.local_addr().map_err(Error::Serve)?;
        let (world, suggestion) = world::build();
        let own_model = sandbox::name_model(&options.settings);
        let scripted = if own_model {
            None
        } else {
            Some(model::start().await.map_err(sandbox::Error::Port)?)
        };
        let mut settings = scripted.as_ref().map_or_else(Vec::new, model::settings);
        settings.extend(options.settings);
        let (news, turns) = mpsc::unbounded_channel();
        let (lines, tapped) = mpsc::unbounded_channel();
        let (services, started) = oneshot::channel();
        let observer = Observer {
            services,
            turns: news,
            lines,
        };
        let sandbox = Sandbox::start(world, settings, Some(observer)).await?;
        sandbox.discord.keep_log(KEPT_CALLS);
        // The bot has connected, so it has sent them.
        let services = started.await.map_err(|_| sandbox::Error::Bot(None))?;
        let model = match (&scripted, &sandbox.config.llm) {
            (None, Some(llm)) => llm.model.clone(),
            _ => "scripted".to_owned(),
        };
        let shared = Arc::new(Shared {
            discord: Arc::clone(&sandbox.discord),
            config: sandbox.config.clone(),
            settings: sandbox.settings.clone(),
            services,
            turns: KeptTurns::default(),
            events: EventHub::default(),
            token: PageToken::new(address),
            model,
            suggestion,
            faults: Mutex::default(),
            opened: tokio::sync::Mutex::default(),
            shutdown: CancellationToken::new(),
        });
        tokio::spawn(relay::events(Arc::clone(&shared)));
        tokio::spawn(relay::turns(Arc::clone(&shared), turns, tapped));
        let (link, shutdown) = (shared.token.link(), shared.shutdown.clone());
        let server = tokio::spawn(api::serve(listener, shared));
        Ok(Self {
            sandbox,
            link,
            shutdown,
            server,
            _model: scripted,
        })
    }

    pub fn link(&self) -> &str {
        &self.link
    }

    /// Waits until something stops that should not, and says what.
    pub async fn broken(&mut self) -> Error {
        tokio::select! {
            broken = self.sandbox.broken() => broken.into(),
            _ = &mut self.server => Error::Serve(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the page's streams, stops the bot cleanly, then the simulator.
    ///
    /// # Errors
    /// If the bot does not stop.
    pub async fn stop(self) -> Result<(), Error> {
        self.shutdown.cancel();
        let stopped = self.sandbox.stop().await;
        self.server.abort();
        Ok(stopped?)
    }

    /// The simulator, for tests.
    #[cfg(feature = "test-util")]
    pub fn discord(&self) -> &Simulator {
        &self.sandbox.discord
    }

    /// The bot's settings, for tests.
    #[cfg(feature = "test-util")]
    pub const fn config(&self) -> &Config {
        &self.sandbox.config
    }
}
