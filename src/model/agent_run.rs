//! What agent runs are bound by, and the button that stops one.

use std::time::Duration;

/// The `custom_id` of the button that stops a run, up to its argument: the run's id.
pub const STOP_RUN: &str = "stop-run:";

/// How many agent runs may be under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// In all; if 0, there are none.
    pub all: usize,
    /// Of one user, wherever they are.
    pub per_user: usize,
    /// In one server.
    pub per_guild: usize,
}

/// How far one agent run may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBounds {
    /// From its start.
    pub time: Duration,
    /// How often the model may call tools.
    pub max_rounds: usize,
    /// How many REST calls its tools may make.
    pub max_fetches: usize,
    /// The tokens of all its requests and answers; the last one may exceed them.
    pub max_tokens: u64,
}
