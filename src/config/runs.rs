//! How many agent runs there may be, and how far one may go.

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;
use crate::model::{RunBounds, RunLimits};

/// Agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConfig {
    /// `MAX_AGENT_RUNS`, `AGENT_RUNS_PER_USER`, `AGENT_RUNS_PER_GUILD`.
    pub limits: RunLimits,
    /// `AGENT_RUN_TIMEOUT_S`, `AGENT_RUN_MAX_ROUNDS`, `AGENT_RUN_MAX_FETCHES`,
    /// `AGENT_RUN_MAX_TOKENS`.
    pub bounds: RunBounds,
}

#[derive(Default, Deserialize)]
struct RawRuns {
    max_agent_runs: Option<String>,
    agent_runs_per_user: Option<String>,
    agent_runs_per_guild: Option<String>,
    agent_run_timeout_s: Option<String>,
    agent_run_max_rounds: Option<String>,
    agent_run_max_fetches: Option<String>,
    agent_run_max_tokens: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> RunConfig {
    let raw: RawRuns = check.raw();
    RunConfig {
        limits: RunLimits {
            all: check.number(&var::MAX_AGENT_RUNS, raw.max_agent_runs, 0..=1_000),
            per_user: check.number(
                &var::AGENT_RUNS_PER_USER,
                raw.agent_runs_per_user,
                1..=1_000,
            ),
            per_guild: check.number(
                &var::AGENT_RUNS_PER_GUILD,
                raw.agent_runs_per_guild,
                1..=1_000,
            ),
        },
        bounds: RunBounds {
            time: check.seconds(
                &var::AGENT_RUN_TIMEOUT_S,
                raw.agent_run_timeout_s,
                1.0..=86_400.0,
            ),
            max_rounds: check.number(
                &var::AGENT_RUN_MAX_ROUNDS,
                raw.agent_run_max_rounds,
                1..=1_000,
            ),
            max_fetches: check.number(
                &var::AGENT_RUN_MAX_FETCHES,
                raw.agent_run_max_fetches,
                1..=10_000,
            ),
            max_tokens: check.number(
                &var::AGENT_RUN_MAX_TOKENS,
                raw.agent_run_max_tokens,
                1..=1_000_000_000,
            ),
        },
    }
}
