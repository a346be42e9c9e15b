//! The bot under test: the real `app::run` with a real shard and REST client,
//! against the simulator and the fake model, in its own folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clew::app;
use clew::config::Config;
use clew_context::model::Clock;
use clew_simulator::{Simulator, World};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::model::FakeModel;
use super::schema;

/// Longer than stopping ever takes, unless it hangs, and than a database is waited for that another bot has.
const STOP: Duration = Duration::from_mins(2);

/// How long the simulator waits for what a test expects.
const PATIENCE: Duration = Duration::from_secs(90);

/// A change of what no variable sets.
type Adjustment = Box<dyn Fn(&mut Config) + Send + Sync>;

/// The simulator, the model and a folder, on which bots can be started and stopped.
pub(crate) struct Stage {
    pub(crate) discord: Simulator,
    pub(crate) model: FakeModel,
    pub(crate) folder: TempDir,
    /// The bot's clock: the system's, unless a test sets its own.
    pub(crate) clock: Clock,
    settings: Vec<(String, String)>,
    adjusted: Vec<Adjustment>,
}

/// A running bot.
pub(crate) struct Bot {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), app::Error>>,
    telemetry: PathBuf,
}

impl Stage {
    /// A stage with a model. `settings` are pairs of variable and value, in
    /// addition to those that point the bot at the stage.
    pub(crate) async fn new(world: World, settings: &[(&str, &str)]) -> Self {
        let discord = Simulator::start(world).await.unwrap().patience(PATIENCE);
        let model = FakeModel::start().await;
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut all = vec![
            ("DISCORD_TOKEN".to_owned(), discord.token()),
            ("DISCORD_API_URL".to_owned(), discord.url()),
            ("DISCORD_GATEWAY_URL".to_owned(), discord.gateway_url()),
            ("LLM_BASE_URL".to_owned(), model.url()),
            ("LLM_MODEL".to_owned(), "fake".to_owned()),
            ("TELEMETRY_DIR".to_owned(), path("telemetry")),
            ("STATE_DIR".to_owned(), path("state")),
            (
                "CONTEXT_STORE".to_owned(),
                format!("sqlite:{}", path("clew.db")),
            ),
            ("AGENTS_DIR".to_owned(), path("agents")),
            ("TOOL_OUTPUT_DIR".to_owned(), path("tool_outputs")),
            ("USER_PROFILE_DIR".to_owned(), path("users")),
            ("SERVER_PROFILE_DIR".to_owned(), path("servers")),
        ];
        all.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Self {
            discord,
            model,
            folder,
            clock: app::system_clock(),
            settings: all,
            adjusted: Vec::new(),
        }
    }

    /// Changes what no variable sets, for the following starts.
    pub(crate) fn adjust(&mut self, change: impl Fn(&mut Config) + Send + Sync + 'static) {
        self.adjusted.push(Box::new(change));
    }

    /// Changes a setting for the following starts.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    pub(crate) fn config(&self) -> Config {
        self.loaded(self.settings.clone())
    }

    fn loaded(&self, settings: Vec<(String, String)>) -> Config {
        let mut config = Config::load(settings, None).unwrap();
        for change in &self.adjusted {
            change(&mut config);
        }
        config
    }

    /// Starts the bot and waits until the gateway has greeted it.
    pub(crate) async fn start(&self) -> Bot {
        self.start_with(&[]).await
    }

    /// The same with additional settings, for this start only.
    pub(crate) async fn start_with(&self, settings: &[(&str, &str)]) -> Bot {
        let mut all = self.settings.clone();
        let more = settings.iter().copied();
        all.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let begun = self.discord.sessions_begun();
        let bot = self.run(self.loaded(all));
        self.discord.wait_sessions(begun + 1).await.unwrap();
        self.discord.settled().await.unwrap();
        bot
    }

    /// Starts the bot without waiting.
    pub(crate) fn launch(&self) -> Bot {
        self.run(self.config())
    }

    fn run(&self, config: Config) -> Bot {
        let shutdown = CancellationToken::new();
        let running = app::run(config, self.clock.clone(), shutdown.clone());
        let telemetry = self.folder.path().join("telemetry");
        Bot {
            shutdown,
            task: tokio::spawn(running),
            telemetry,
        }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }
}

impl Bot {
    /// Stops the bot in an orderly way. Returns its telemetry lines, all validated.
    pub(crate) async fn stop(self) -> Vec<Value> {
        self.shutdown.cancel();
        self.ended().await.unwrap()
    }

    /// Asks the bot to stop, without waiting.
    pub(crate) fn ask_to_stop(&self) {
        self.shutdown.cancel();
    }

    /// Waits until the bot ends. Returns its telemetry lines if it ended in order, else the error.
    pub(crate) async fn ended(self) -> Result<Vec<Value>, app::Error> {
        timeout(STOP, self.task)
            .await
            .expect("the bot ends")
            .unwrap()?;
        Ok(lines(&self.telemetry))
    }
}

/// The telemetry written so far, validated.
pub(crate) fn lines(folder: &Path) -> Vec<Value> {
    schema::validate_dir(folder)
}

/// The details of all events of one name, in order.
pub(crate) fn details(lines: &[Value], event: &str) -> Vec<Value> {
    let of = |line: &&Value| line["event"] == event;
    lines
        .iter()
        .filter(of)
        .map(|line| line["detail"].clone())
        .collect()
}

/// All text of a model request, without roles.
pub(crate) fn prompt(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let texts = messages
        .iter()
        .map(|message| message["content"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n----\n")
}
