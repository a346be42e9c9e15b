//! The tools that models may call.

use std::path::PathBuf;
use std::time::Duration;

use super::check::Checker;
use super::variable as var;

/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Whether and how models may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolConfig {
    /// `TOOL_MAX_ROUNDS`: how often a model may call tools in one turn; 0: it is offered none.
    pub max_rounds: usize,
    /// How long one call may take.
    pub timeout: Duration,
}

impl ToolConfig {
    /// Whether models are offered tools.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.max_rounds > 0
    }
}

/// How results of tools are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutputConfig {
    /// `TOOL_OUTPUT_DIR`.
    pub dir: PathBuf,
    /// `TOOL_OUTPUT_RESUME`.
    pub resume: bool,
}

pub(super) fn read(check: &mut Checker) -> ToolConfig {
    ToolConfig {
        max_rounds: check.number(&var::TOOL_MAX_ROUNDS, 0..=50),
        timeout: TIMEOUT,
    }
}
