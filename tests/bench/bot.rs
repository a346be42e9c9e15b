//! The bot under measurement: the real binary as a process of its own, with a simulator and a model in this
//! process.

use std::env;
use std::future::Future;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clew_simulator::{Id, Simulator, World};
use tempfile::TempDir;

use super::model::Model;
use super::process::Process;

/// Reading a flood of events takes the bot a while.
const PATIENCE: Duration = Duration::from_mins(5);
/// The pause between two checks whether the bot is still working.
const LOOK: Duration = Duration::from_millis(60);
/// Less CPU time than this between two checks counts as idle.
const IDLE: Duration = Duration::from_micros(500);

/// A running bot and its servers. Killed when dropped.
pub(crate) struct Bot {
    pub(crate) discord: Simulator,
    pub(crate) model: Model,
    child: Child,
    folder: TempDir,
}

impl Bot {
    /// Starts the bot in a world and waits until it has read its servers.
    pub(crate) async fn start(world: World) -> Self {
        Self::start_with(world, &[]).await
    }

    /// The same with settings.
    pub(crate) async fn start_with(world: World, settings: &[(&str, &str)]) -> Self {
        let discord = Simulator::start(world).await.unwrap().patience(PATIENCE);
        let model = Model::start(Duration::ZERO).await;
        let folder = TempDir::new().unwrap();
        let mut start = command(&discord, &model, folder.path());
        let child = start.envs(settings.iter().copied()).spawn().unwrap();
        discord.wait_ready().await.unwrap();
        let bot = Self {
            discord,
            model,
            child,
            folder,
        };
        bot.rest().await;
        bot
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// Where it runs: its store and its telemetry are below.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Has somebody ask, and waits for the answer.
    pub(crate) async fn answer(&self, channel: Id, person: Id) {
        let answered = self.discord.answers(channel).len();
        let us = self.discord.bot();
        let question = format!("<@{us}> what came of it?");
        self.discord.post(channel, person, question);
        self.model.arrival().await;
        let answers = self.discord.wait_answers(channel, answered + 1);
        answers.await.unwrap();
    }

    /// Waits until the bot has read every event and is idle.
    pub(crate) async fn rest(&self) {
        self.discord.settled().await.unwrap();
        self.discord.wait_idle().await.unwrap();
        let mut before = self.process().cpu();
        loop {
            tokio::time::sleep(LOOK).await;
            let now = self.process().cpu();
            if now.saturating_sub(before) < IDLE {
                return;
            }
            before = now;
        }
    }
}

/// Runs the bot in a folder, with nothing set but its servers and no limit on questions.
pub(crate) fn command(discord: &Simulator, model: &Model, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
    command
        .arg("run")
        .current_dir(folder)
        .env_clear()
        .env("DISCORD_TOKEN", discord.token())
        .env("DISCORD_API_URL", discord.url())
        .env("DISCORD_GATEWAY_URL", discord.gateway_url())
        .env("LLM_BASE_URL", model.url())
        .env("LLM_MODEL", "bench")
        .env("USER_TURNS_PER_MIN", "0")
        .stdout(Stdio::null());
    command
}

/// How much to measure, as a variable says, or by default.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment tells a bench how long it runs"
)]
pub(crate) fn amount(variable: &str, default: u64) -> u64 {
    let amount = env::var_os(variable);
    amount.map_or(default, |text| text.to_str().unwrap().parse().unwrap())
}

impl Drop for Bot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs something on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}
