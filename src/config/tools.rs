//! The tools that models may call.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;

/// The longest that `TOOL_TIMEOUT_S` accepts, in seconds.
const LONGEST_TIMEOUT_S: f64 = 600.0;
/// The longest that outputs may be kept, in hours: a year.
const LONGEST_AGE_H: u64 = 366 * 24;
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
    /// `TOOL_OFFER_MAX`: how many results of earlier turns a prompt names.
    pub max_offers: usize,
}

/// How results of tools are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutputConfig {
    /// `TOOL_OUTPUT_DIR`.
    pub dir: PathBuf,
    /// `TOOL_OUTPUT_RESUME`.
    pub resume: bool,
    /// `TOOL_POINTERS_MAX`: how many.
    pub max_pointers: usize,
    /// `TOOL_OUTPUT_MAX_MB`, in bytes.
    pub max_bytes: u64,
    /// `TOOL_OUTPUT_MAX_AGE_H`.
    pub max_age: Duration,
    /// `TOOL_SESSION_IDLE_MIN`.
    pub max_idle: Duration,
}

#[derive(Default, Deserialize)]
struct RawTools {
    tools: Option<String>,
    tool_max_rounds: Option<String>,
    tool_timeout_s: Option<String>,
    tool_prompt_max_chars: Option<String>,
    tool_offer_max: Option<String>,
    tool_output_dir: Option<String>,
    tool_output_resume: Option<String>,
    tool_pointers_max: Option<String>,
    tool_output_max_mb: Option<String>,
    tool_output_max_age_h: Option<String>,
    tool_session_idle_min: Option<String>,
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
        max_offers: check.number(&var::TOOL_OFFER_MAX, raw.tool_offer_max, 0..=100),
    }
}

pub(super) fn read_outputs(check: &mut Checker) -> ToolOutputConfig {
    let raw: RawTools = check.raw();
    let megabytes: u64 = check.number(
        &var::TOOL_OUTPUT_MAX_MB,
        raw.tool_output_max_mb,
        1..=1_000_000,
    );
    let hours = check.number(
        &var::TOOL_OUTPUT_MAX_AGE_H,
        raw.tool_output_max_age_h,
        1..=LONGEST_AGE_H,
    );
    let minutes = check.number(
        &var::TOOL_SESSION_IDLE_MIN,
        raw.tool_session_idle_min,
        1..=60 * LONGEST_AGE_H,
    );
    ToolOutputConfig {
        dir: check.path(&var::TOOL_OUTPUT_DIR, raw.tool_output_dir),
        resume: check.switch(&var::TOOL_OUTPUT_RESUME, raw.tool_output_resume),
        max_pointers: check.number(
            &var::TOOL_POINTERS_MAX,
            raw.tool_pointers_max,
            1..=1_000_000,
        ),
        max_bytes: megabytes << 20,
        max_age: Duration::from_hours(hours),
        max_idle: Duration::from_mins(minutes),
    }
}
