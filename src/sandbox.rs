//! A bot on a simulated Discord, in a temporary folder: what the demo and the playground run.
//!
//! Invariant: nothing reaches beyond loopback and the folder, but for a model that the
//! settings name.

pub mod plan;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::app::{self, Outside};
use crate::config::{Config, ConfigErrors};
use clew_simulator::{Simulator, WaitError, World};

/// How long connecting and stopping may take, unless something hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// Why there is no sandbox, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] ConfigErrors),
    /// There is no temporary folder, or its files cannot be read.
    #[error("cannot use a temporary folder: set TMPDIR to one that is writable")]
    Folder(#[source] io::Error),
    /// No port could be opened on loopback.
    #[error("cannot open a port on 127.0.0.1 for the simulator")]
    Port(#[source] io::Error),
    /// The bot did not start, or stopped by itself.
    #[error("the bot stopped")]
    Bot(#[source] Option<app::Error>),
    /// The bot did not connect.
    #[error("the bot does not do what it should")]
    Silent(#[from] WaitError),
}

/// The running bot and its world.
pub struct Sandbox {
    /// What the bot takes for Discord.
    pub discord: Arc<Simulator>,
    /// The settings with which the bot runs.
    pub config: Config,
    /// The same as pairs of variable and value.
    pub settings: Vec<(String, String)>,
    bot: JoinHandle<Result<(), app::Error>>,
    shutdown: CancellationToken,
    /// Removed with everything in it when dropped.
    _folder: TempDir,
}

impl Sandbox {
    /// Starts both and waits until the bot has connected. `settings` are pairs of variable
    /// and value in addition to those that point the bot at the simulator and keep its files
    /// in the folder.
    ///
    /// # Errors
    /// Whatever keeps one of them from running.
    pub async fn start(
        world: World,
        settings: Vec<(String, String)>,
        observer: Option<app::Observer>,
    ) -> Result<Self, Error> {
        let folder = TempDir::with_prefix("clew-").map_err(Error::Folder)?;
        let discord = Simulator::start(world).await.map_err(Error::Port)?;
        let mut all = own_settings(&discord, folder.path());
        all.extend(settings);
        let config = Config::load(all.clone(), None)?;
        for warning in config.warnings() {
            tracing::warn!("{warning}");
        }
        let shutdown = CancellationToken::new();
        let outside = Outside {
            observer,
            ..Outside::of_system(app::system_clock())
        };
        let running = app::run_in(config.clone(), outside, shutdown.clone());
        let mut sandbox = Self {
            discord: Arc::new(discord.patience(PATIENCE)),
            config,
            settings: all,
            bot: tokio::spawn(running),
            shutdown,
            _folder: folder,
        };
        tokio::select! {
            biased;
            ready = sandbox.discord.wait_ready() => ready?,
            ended = &mut sandbox.bot => return Err(stopped(ended.ok())),
        }
        Ok(sandbox)
    }

    /// Waits until the bot stops by itself, and says why.
    pub async fn broken(&mut self) -> Error {
        stopped((&mut self.bot).await.ok())
    }

    /// Stops the bot cleanly, and the simulator once nobody else holds it.
    ///
    /// # Errors
    /// If the bot does not stop, or stopped with an error.
    pub async fn stop(self) -> Result<(), Error> {
        if self.bot.is_finished() {
            return Ok(());
        }
        self.shutdown.cancel();
        let ended = timeout(PATIENCE, self.bot).await;
        match ended {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(ended) => Err(stopped(ended.ok())),
            Err(_) => Err(Error::Bot(None)),
        }
    }
}

/// Settings that point the bot at the simulator and keep its files out of the
/// working directory.
fn own_settings(discord: &Simulator, folder: &Path) -> Vec<(String, String)> {
    let path = |name: &str| folder.join(name).display().to_string();
    settings([
        ("DISCORD_TOKEN", discord.token()),
        ("DISCORD_API_URL", discord.url()),
        ("DISCORD_GATEWAY_URL", discord.gateway_url()),
        ("TELEMETRY_DIR", path("telemetry")),
        ("STATE_DIR", path("state")),
        ("CONTEXT_STORE", format!("sqlite:{}", path("clew.db"))),
        ("AGENTS_DIR", path("agents")),
        ("TOOL_OUTPUT_DIR", path("tool_outputs")),
        ("IN_MEMORY_CONTEXT_ONLY", "true".to_owned()),
    ])
}

/// Settings as names and values.
pub fn settings<const N: usize>(settings: [(&str, String); N]) -> Vec<(String, String)> {
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    settings.into()
}

/// Whether settings name a model that is asked.
pub fn name_model(settings: &[(String, String)]) -> bool {
    let is_model = |(name, value): &(String, String)| name == "LLM_BASE_URL" && !value.is_empty();
    settings.iter().any(is_model)
}

fn stopped(ended: Option<Result<(), app::Error>>) -> Error {
    Error::Bot(ended.and_then(Result::err))
}
