//! What agent runs are bound by, and the button that stops one.

use std::time::Duration;

/// The `custom_id` of the button that stops a run, up to its argument: the run's id.
pub const STOP_RUN: &str = "stop-run:";

/// How many agent runs may be under way at once of one user, wherever they are.
pub const RUNS_PER_USER: usize = 1;
/// How many may be in one server.
pub const RUNS_PER_GUILD: usize = 2;
/// How often the model may call tools in one agent run.
pub const RUN_ROUNDS: usize = 20;
/// How many REST calls the tools of one may make.
pub const RUN_FETCHES: usize = 100;

/// How far one agent run may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBounds {
    /// From its start.
    pub time: Duration,
    /// The tokens of all its requests and answers; the last one may exceed them.
    pub max_tokens: u64,
}
