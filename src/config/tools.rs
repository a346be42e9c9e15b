//! The tools that models may call.

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
    /// `TOOL_PROMPT_MAX_CHARS`: what tools gave in one request, in Unicode scalars.
    pub max_prompt_chars: usize,
}

#[derive(Default, Deserialize)]
struct RawTools {
    tools: Option<String>,
    tool_max_rounds: Option<String>,
    tool_timeout_s: Option<String>,
    tool_prompt_max_chars: Option<String>,
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
        max_prompt_chars: check.number(
            &var::TOOL_PROMPT_MAX_CHARS,
            raw.tool_prompt_max_chars,
            2_000..=10_000_000,
        ),
    }
}
