//! The tools that models may call.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;

/// The longest that `TOOL_TIMEOUT_S` accepts, in seconds.
const LONGEST_TIMEOUT_S: f64 = 600.0;
/// The values of `TOOLS`, the default first.
const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

/// Whether and how models may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolConfig {
    /// `TOOLS`.
    pub is_on: bool,
    /// `TOOL_MAX_ROUNDS`, at least one: how often a model may call tools in one turn.
    pub max_rounds: usize,
    /// `TOOL_TIMEOUT_S`: how long one call may take.
    pub timeout: Duration,
}

/// How results of tools are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutputConfig {
    /// `TOOL_OUTPUT_DIR`.
    pub dir: PathBuf,
    /// `TOOL_OUTPUT_RESUME`.
    pub resume: bool,
}

#[derive(Default, Deserialize)]
struct RawTools {
    tools: Option<String>,
    tool_max_rounds: Option<String>,
    tool_timeout_s: Option<String>,
    tool_output_dir: Option<String>,
    tool_output_resume: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> ToolConfig {
    let raw: RawTools = check.raw();
    ToolConfig {
        is_on: check.one_of(&var::TOOLS, raw.tools, &SWITCH),
        max_rounds: check.number(&var::TOOL_MAX_ROUNDS, raw.tool_max_rounds, 1..=50),
        timeout: check.seconds(
            &var::TOOL_TIMEOUT_S,
            raw.tool_timeout_s,
            0.1..=LONGEST_TIMEOUT_S,
        ),
    }
}

pub(super) fn read_outputs(check: &mut Checker) -> ToolOutputConfig {
    let raw: RawTools = check.raw();
    ToolOutputConfig {
        dir: check.path(&var::TOOL_OUTPUT_DIR, raw.tool_output_dir),
        resume: check.switch(&var::TOOL_OUTPUT_RESUME, raw.tool_output_resume),
    }
}
