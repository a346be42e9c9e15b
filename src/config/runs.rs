//! How many agent runs there may be, and how far one may go.

use std::time::Duration;

use super::check::Checker;
use super::variable as var;
use crate::model::RunBounds;

/// How long a run may take.
const RUN_TIME: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConfig {
    /// `MAX_AGENT_RUNS`.
    pub most: usize,
    /// `AGENT_RUN_MAX_TOKENS`, and ten minutes.
    pub bounds: RunBounds,
}

pub(super) fn read(check: &mut Checker) -> RunConfig {
    RunConfig {
        most: check.number(&var::MAX_AGENT_RUNS, 0..=1_000),
        bounds: RunBounds {
            time: RUN_TIME,
            max_tokens: check.number(&var::AGENT_RUN_MAX_TOKENS, 1..=1_000_000_000),
        },
    }
}
