//! How many agent runs there may be, and how far one may go.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;
use crate::model::RunBounds;

/// How long a run may take.
const RUN_TIME: Duration = Duration::from_mins(10);

/// Agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConfig {
    /// `MAX_AGENT_RUNS`.
    pub most: usize,
    /// `AGENT_RUN_MAX_TOKENS`, and ten minutes.
    pub bounds: RunBounds,
}

#[derive(Default, Deserialize)]
struct RawRuns {
    max_agent_runs: Option<String>,
    agent_run_max_tokens: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> RunConfig {
    let raw: RawRuns = check.raw();
    RunConfig {
        most: check.number(&var::MAX_AGENT_RUNS, raw.max_agent_runs, 0..=1_000),
        bounds: RunBounds {
            time: RUN_TIME,
            max_tokens: check.number(
                &var::AGENT_RUN_MAX_TOKENS,
                raw.agent_run_max_tokens,
                1..=1_000_000_000,
            ),
        },
    }
}
