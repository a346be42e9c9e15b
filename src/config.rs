//! The settings: read from the environment and `.env`, checked as a whole, and
//! provided as values that cannot be wrong.
//!
//! There are two stages: `envy` gives the texts by name, then each concern is
//! checked and turned into its typed struct. Problems are
//! collected until the end, so that one start names them all. [`VARIABLES`] is
//! the table of all variables; `.env.example` is generated from it.
//!
//! Invariant: `config` imports only domain types (`model`, clew-context's
//! and clew-store's) and is the only reader of the environment.

mod access;
mod check;
mod cluster;
mod context;
mod discord;
mod endpoint;
mod fallbacks;
mod llm;
mod log;
mod mcp;
mod memory;
mod prices;
mod problem;
mod prompt;
mod runs;
mod server;
mod store;
mod telemetry;
mod tools;
mod triggers;
mod turns;
mod unknown;
mod values;
mod variable;

use std::path::{Path, PathBuf};

use crate::model::Prices;
use clew_context::engine::window::WindowLimits;
use clew_context::model::{AccessRules, Limits, ReplyTarget, TriggerRules};

pub use context::{ContextSetting, Takes};
pub use discord::{DiscordConfig, MessageContent};
pub use endpoint::Endpoint;
#[cfg(feature = "test-util")]
pub use fallbacks::FallbackConfig;
pub use llm::LlmConfig;
pub use log::{LogConfig, LogFormat};
pub use mcp::{McpConfig, McpListen};
pub use memory::MemoryConfig;
pub use problem::{ConfigErrors, Problem};
pub use runs::RunConfig;
#[cfg(feature = "otel")]
pub use telemetry::TraceConfig;
pub use telemetry::{TelemetryConfig, TelemetryIds};
pub use tools::{Search, ToolConfig, ToolOutputConfig};
pub use turns::{AnswerConfig, CatchUpConfig, TurnConfig};
pub use values::SettingOrigin;
#[cfg(feature = "test-util")]
pub use variable::Group;
pub use variable::{VARIABLES, Variable};

use check::Checker;
use values::Values;

/// The file in the working directory with further settings.
const DOTENV: &str = ".env";
/// The prefixes of what demo and playground take from the environment: caps, the apps
/// through which people write, the model and the servers of tools.
const DEMO: [&str; 8] = [
    "MEM_", "THREAD_", "LINK_", "LONE_", "PLACE_", "PROXY_", "LLM_", "MCP_",
];

/// Every setting, checked.
#[derive(Debug, Clone)]
pub struct Config {
    pub discord: DiscordConfig,
    /// Who may use the bot, and where.
    pub access: AccessRules,
    /// What makes a message a trigger.
    pub triggers: TriggerRules,
    /// `THREAD_REPLY_TARGET`: which message an answer in a thread replies to.
    pub reply_target: ReplyTarget,
    /// The model; without one the bot answers with its inspector.
    pub llm: Option<LlmConfig>,
    /// `LLM_PRICES`.
    pub prices: Prices,
    /// `SYSTEM_PROMPT`, else our own.
    pub prompt: String,
    /// The caps of a block.
    pub limits: Limits,
    /// The window of recent messages.
    pub window: WindowLimits,
    /// How many turns run at once.
    pub turns: TurnConfig,
    pub runs: RunConfig,
    /// The form of an answer.
    pub answers: AnswerConfig,
    /// Whether and how models may call tools.
    pub tools: ToolConfig,
    /// `MCP_LISTEN`.
    pub mcp_listen: Option<McpListen>,
    /// Tools of MCP servers, if there are any.
    pub mcp: Option<McpConfig>,
    /// How results of tools are kept.
    pub tool_outputs: ToolOutputConfig,
    pub telemetry: TelemetryConfig,
    pub memory: MemoryConfig,
    pub log: LogConfig,
    /// `STATE_DIR`: the session file and the secret behind frame nonces.
    pub state_dir: PathBuf,
    /// `CLUSTER`: whether several processes share the store, of which one is the bot.
    pub cluster: bool,
    values: Values,
    warnings: Vec<String>,
}

/// One variable with the value in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    pub name: &'static str,
    /// Its value, also where it follows another variable; `[set]` for a secret, without
    /// the password for an address, and `[not set]` without a value and default.
    pub shown: String,
    /// Where the value comes from.
    pub origin: SettingOrigin,
}

impl Config {
    /// Reads the settings from an environment and a `.env` file, which may be
    /// missing. The environment takes precedence over the file. If a name occurs in
    /// two pairs, the later one counts, so that flags can be appended as pairs.
    ///
    /// An empty value means the default. `$NAME` and `${NAME}` in the file are
    /// replaced; single quotes prevent that.
    ///
    /// # Errors
    /// All problems of all variables at once.
    pub fn load(
        environment: impl IntoIterator<Item = (String, String)>,
        dotenv: Option<&Path>,
    ) -> Result<Self, ConfigErrors> {
        Self::checked(Values::gather(environment, dotenv))
    }

    /// The same settings with other values of some variables.
    ///
    /// # Errors
    /// See [`Config::load`].
    pub fn changed<'a>(
        &self,
        pairs: impl IntoIterator<Item = (&'static Variable, &'a str)>,
    ) -> Result<Self, ConfigErrors> {
        Self::checked(self.values.changed(pairs))
    }

    fn checked(values: Values) -> Result<Self, ConfigErrors> {
        let mut check = Checker::new(values);
        let discord = discord::read(&mut check);
        let tools = tools::read(&mut check, discord.message_content);
        let config = Self {
            discord,
            access: access::read(&mut check),
            triggers: triggers::read(&mut check),
            reply_target: check.one_of(&variable::THREAD_REPLY_TARGET, &triggers::REPLY_TARGETS),
            llm: llm::read(&mut check),
            prices: prices::read(&mut check),
            prompt: prompt::read(&mut check),
            limits: context::read_limits(&mut check),
            window: context::read_window(&mut check),
            turns: turns::read(&mut check),
            runs: runs::read(&mut check),
            answers: AnswerConfig {
                max_messages: check.number(&variable::ANSWER_MAX_MESSAGES, 1..=20),
                receipt_button: check.switch(&variable::RECEIPT_BUTTON),
            },
            tools,
            mcp_listen: mcp::read_listen(&mut check),
            mcp: mcp::read(&mut check),
            tool_outputs: ToolOutputConfig {
                dir: check.path(&variable::TOOL_OUTPUT_DIR),
                resume: check.switch(&variable::TOOL_OUTPUT_RESUME),
            },
            telemetry: telemetry::read(&mut check),
            memory: memory::read(&mut check),
            log: log::read(&mut check),
            state_dir: check.path(&variable::STATE_DIR),
            cluster: false,
            values: Values::default(),
            warnings: Vec::new(),
        };
        let cluster = cluster::read(&mut check, &config.memory);
        let (values, warnings, problems) = check.finish();
        let config = Self {
            cluster,
            values,
            warnings,
            ..config
        };
        if problems.is_empty() {
            return Ok(config);
        }
        Err(ConfigErrors {
            problems,
            rest: Box::new(config),
        })
    }

    /// The folder with what the next process needs, as this one last knew it.
    pub fn shared_state_dir(&self) -> PathBuf {
        if self.cluster {
            self.state_dir.join("cluster")
        } else {
            self.state_dir.clone()
        }
    }

    /// The settings of this process: its environment, and `.env` in the working
    /// directory.
    ///
    /// # Errors
    /// See [`Config::load`].
    pub fn of_process() -> Result<Self, ConfigErrors> {
        Self::of_process_with(Vec::new())
    }

    /// The same with a command's flags, as pairs that take precedence over both.
    ///
    /// # Errors
    /// See [`Config::load`].
    pub fn of_process_with(flags: Vec<(String, String)>) -> Result<Self, ConfigErrors> {
        let pairs = process_environment().chain(flags);
        // Problems name the full path: the operator may not know the working directory.
        let dotenv = std::path::absolute(DOTENV).unwrap_or_else(|_| DOTENV.into());
        Self::load(pairs, Some(&dotenv))
    }

    /// The same without `.env`: for who is about to write it.
    ///
    /// # Errors
    /// See [`Config::load`].
    pub fn of_environment_with(flags: Vec<(String, String)>) -> Result<Self, ConfigErrors> {
        Self::load(process_environment().chain(flags), None)
    }

    /// What this process's environment sets for demo and playground: caps (`MEM_*`,
    /// `THREAD_*`, `LINK_*`, `LONE_*`, `PLACE_*`), the apps through which people write
    /// (`PROXY_*`), the model (`LLM_*`) and `MCP_CONFIG` with the names that its file may
    /// name, as pairs for [`Config::load`].
    pub fn demo_of_process() -> Vec<(String, String)> {
        let pairs: Vec<_> = process_environment().collect();
        let has_servers = pairs
            .iter()
            .any(|(name, _)| name == variable::MCP_CONFIG.name);
        let is_ours = |name: &str| VARIABLES.iter().any(|variable| variable.name == name);
        let is_for_demo = |name: &str| DEMO.iter().any(|prefix| name.starts_with(prefix));
        let is_taken = |name: &str| is_for_demo(name) || has_servers && !is_ours(name);
        pairs
            .into_iter()
            .filter(|(name, _)| is_taken(name))
            .collect()
    }

    /// Whether colours are wanted on a terminal: unless `NO_COLOR` says no
    /// (<https://no-color.org>).
    pub fn has_colours() -> bool {
        let mut environment = process_environment();
        !environment.any(|(name, value)| name == "NO_COLOR" && !value.is_empty())
    }

    /// How this process writes what it has to say, as far as its settings can be read.
    pub fn log_format_of_process() -> LogFormat {
        match Self::of_process() {
            Ok(config) => config.log.format,
            Err(errors) => errors.rest.log.format,
        }
    }

    /// What has to be typed to start this program again.
    pub fn program_of_process() -> String {
        let mut environment = process_environment();
        if environment.any(|(name, _)| name == "CARGO_MANIFEST_DIR") {
            return "cargo run --".to_owned();
        }
        let typed = std::env::args().next();
        typed.unwrap_or_else(|| "clew".to_owned())
    }

    /// Every variable with the value in effect, in the table's order, to be logged
    /// at the start.
    pub fn effective(&self) -> impl Iterator<Item = Effective> {
        VARIABLES
            .iter()
            .map(|variable| self.values.effective(variable))
    }

    /// A name that is set and seems to be meant as `DISCORD_TOKEN`, which is not set.
    pub fn meant_as_token(&self) -> Option<&str> {
        self.values.meant_as_token.as_deref()
    }

    /// What is accepted but odd, one line each: unknown names, settings without
    /// effect. To be logged at the start.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The environment of this process. Bytes that are not UTF-8 become U+FFFD, so that
/// an odd variable of another program cannot stop the bot.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
fn process_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        (
            name.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_and_playground_take_every_cap_of_a_block() {
        let of_block = VARIABLES.iter().filter(|one| one.group == Group::Context);
        let is_taken = |one: &Variable| DEMO.iter().any(|prefix| one.name.starts_with(prefix));
        let left_out: Vec<_> = of_block.filter(|one| !is_taken(one)).collect();
        assert!(left_out.is_empty(), "{left_out:?}");
    }
}
