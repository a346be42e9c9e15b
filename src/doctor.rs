//! `clew doctor`: tries the settings on the real things, and says what to do about each
//! that does not work.
//!
//! Invariant: no session with the gateway is started, nothing is posted, and nothing stays
//! behind; no finding shows a secret.

mod address;
mod discord;
mod folders;
mod mcp;
mod model;
mod proxies;
mod store;

pub use mcp::servers;
pub use model::model_names;

use clew_discord::rest::Application;
use serde::Serialize;

use crate::config::{Config, ConfigErrors, Problem};

/// How something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It works.
    Ok,
    /// It works, but something about it is better changed.
    Warning,
    /// It does not work.
    Failed,
}

/// What was found of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was tried: `settings`, `token`, `intents`, `server`, `proxies`, `clock`,
    /// `model`, `store`, `mcp`, `disk`, `metrics`.
    pub subject: &'static str,
    /// How it was found.
    pub outcome: Outcome,
    /// What was found, one line.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self {
            subject,
            outcome: Outcome::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn warning(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Warning,
            remedy: Some(remedy.into()),
            ..Self::ok(subject, found)
        }
    }

    fn failed(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Failed,
            ..Self::warning(subject, found, remedy)
        }
    }
}

/// Tries everything and hands on each finding as it comes. A setting that cannot be used
/// keeps nothing from being tried but what it names.
pub async fn run(config: Result<Config, ConfigErrors>, tell: &mut dyn FnMut(Finding)) {
    let (config, problems) = match config {
        Ok(config) => (config, Vec::new()),
        Err(errors) => (*errors.rest, errors.problems),
    };
    settings(&config, &problems, tell);
    let is_usable = |names: &[&str]| {
        let mut problems = problems.iter();
        !problems.any(|problem| names.contains(&problem.subject.as_str()))
    };
    if is_usable(&["DISCORD_TOKEN", "DISCORD_API_URL"]) {
        discord::look(&config, tell).await;
    }
    if is_usable(&["LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL"]) {
        model::look(&config, tell).await;
    }
    if is_usable(&["CONTEXT_STORE", "STATE_DIR"]) {
        store::look(&config, tell).await;
    }
    if is_usable(&["MCP_CONFIG", "STATE_DIR"]) {
        mcp::look(&config, tell).await;
    }
    folders::look(&config, is_usable, tell);
    for finding in address::found(&config) {
        tell(finding);
    }
}

/// What is to be said of a setting that cannot be used.
pub fn of_problem(problem: &Problem) -> Finding {
    let found = format!("{} {}", problem.subject, problem.shown);
    Finding::failed("settings", found, format!("accepted: {}", problem.accepted))
}

/// Whether Discord accepts the token: the application, with what is to be said of it.
///
/// # Errors
/// What does not work.
pub async fn application(config: &Config) -> Result<(Application, Vec<Finding>), Finding> {
    let (_, application) = discord::application(config).await?;
    let findings = discord::of_application(config, &application);
    Ok((application, findings))
}

/// How many gateway sessions may still be started today; none if Discord does not tell.
pub async fn session_starts_left(config: &Config) -> Option<u32> {
    discord::starts_left(config).await
}

/// Each model server.
pub async fn models(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    model::look(config, &mut |finding| found.push(finding)).await;
    found
}

pub async fn store(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    store::look(config, &mut |finding| found.push(finding)).await;
    found
}

fn settings(config: &Config, problems: &[Problem], tell: &mut dyn FnMut(Finding)) {
    problems.iter().map(of_problem).for_each(&mut *tell);
    for warning in config.warnings() {
        let remedy = "correct it, or remove it: .env.example lists all settings";
        tell(Finding::warning("settings", warning.as_str(), remedy));
    }
    if problems.is_empty() && config.warnings().is_empty() {
        let set = config
            .effective()
            .filter(|setting| setting.origin != crate::config::SettingOrigin::Default);
        let count = set.count();
        tell(Finding::ok("settings", format!("{count} set, all usable")));
    }
}
