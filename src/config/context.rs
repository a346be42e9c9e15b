//! The caps of the collected context, and the window behind it.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;
use clew_context::model::{Limits, LinkContext, LoneContext};

/// The longest age that the caps accept, in minutes: ten years.
const LONGEST_AGE_MIN: u64 = 10 * 366 * 24 * 60;
/// The deadlines that `MEM_FETCH_TIMEOUT_S` accepts, in seconds. Discord waits three
/// seconds for the first response to an interaction; nobody waits for minutes.
const FETCH_TIMEOUT_S: std::ops::RangeInclusive<f64> = 0.05..=60.0;
/// The words of `LONE_CONTEXT`.
const LONE_CONTEXTS: [(&str, LoneContext); 2] =
    [("off", LoneContext::Off), ("recent", LoneContext::Recent)];
/// The bytes in the unit of `WINDOW_MAX_MB`.
const MEBIBYTE: usize = 1024 * 1024;

/// The window of recent messages, fed by the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowConfig {
    /// `WINDOW_PER_CHANNEL`: the most messages kept per channel.
    pub per_channel: usize,
    /// `WINDOW_MAX_MB` in bytes: the most for all kept messages together.
    pub max_bytes: usize,
}

#[derive(Default, Deserialize)]
struct RawContext {
    thread_context_tail_count: Option<String>,
    mem_max_msgs: Option<String>,
    mem_max_chars: Option<String>,
    mem_max_msg_chars: Option<String>,
    mem_max_age_min: Option<String>,
    mem_chain_max_age_min: Option<String>,
    mem_fetch_timeout_s: Option<String>,
    mem_max_fetches: Option<String>,
    mem_max_file_bytes: Option<String>,
    mem_include_pointed_apps: Option<String>,
    link_context: Option<String>,
    lone_context: Option<String>,
    lone_max_chars: Option<String>,
}

pub(super) fn read_limits(check: &mut Checker) -> Limits {
    let raw: RawContext = check.raw();
    let is_given =
        |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    // `MEM_MAX_AGE_MIN` set by hand without the other one applies to chains as well.
    let inherits = is_given(&raw.mem_max_age_min) && !is_given(&raw.mem_chain_max_age_min);
    let mut age = |variable, text| {
        let minutes = check.number(variable, text, 0..=LONGEST_AGE_MIN);
        (minutes > 0).then(|| Duration::from_mins(minutes))
    };
    let max_age = age(&var::MEM_MAX_AGE_MIN, raw.mem_max_age_min);
    let max_chain_age = if inherits {
        max_age
    } else {
        age(&var::MEM_CHAIN_MAX_AGE_MIN, raw.mem_chain_max_age_min)
    };
    let limits = Limits {
        tail: check.number(
            &var::THREAD_CONTEXT_TAIL_COUNT,
            raw.thread_context_tail_count,
            0..=40,
        ),
        max_msgs: check.number(&var::MEM_MAX_MSGS, raw.mem_max_msgs, 1..=1_000),
        max_chars: check.number(&var::MEM_MAX_CHARS, raw.mem_max_chars, 100..=1_000_000),
        max_msg_chars: check.number(&var::MEM_MAX_MSG_CHARS, raw.mem_max_msg_chars, 20..=100_000),
        max_age,
        max_chain_age,
        fetch_timeout: check.seconds(
            &var::MEM_FETCH_TIMEOUT_S,
            raw.mem_fetch_timeout_s,
            FETCH_TIMEOUT_S,
        ),
        max_fetches: check.number(&var::MEM_MAX_FETCHES, raw.mem_max_fetches, 0..=100),
        max_file_bytes: check.number(
            &var::MEM_MAX_FILE_BYTES,
            raw.mem_max_file_bytes,
            0..=1_000_000,
        ),
        include_pointed_apps: check
            .switch(&var::MEM_INCLUDE_POINTED_APPS, raw.mem_include_pointed_apps),
        link_context: read_link_context(check, raw.link_context),
        lone_context: check.one_of(&var::LONE_CONTEXT, raw.lone_context, &LONE_CONTEXTS),
        lone_max_chars: check.number(&var::LONE_MAX_CHARS, raw.lone_max_chars, 100..=100_000),
    };
    if limits.tail > limits.max_msgs {
        check.warn("THREAD_CONTEXT_TAIL_COUNT is above MEM_MAX_MSGS, which holds".to_owned());
    }
    limits
}

fn read_link_context(check: &mut Checker, raw: Option<String>) -> LinkContext {
    let accepted = format!(
        "two numbers from 0 to {}, such as 3,1 (messages before and after)",
        LinkContext::MOST
    );
    let context = check.optional(&var::LINK_CONTEXT, raw, &accepted, LinkContext::parse);
    context.unwrap_or_else(|| Limits::default().link_context)
}

#[derive(Default, Deserialize)]
struct RawWindow {
    window_per_channel: Option<String>,
    window_max_mb: Option<String>,
}

pub(super) fn read_window(check: &mut Checker) -> WindowConfig {
    let raw: RawWindow = check.raw();
    let mebibytes = check.number(&var::WINDOW_MAX_MB, raw.window_max_mb, 1..=4_095);
    WindowConfig {
        per_channel: check.number(&var::WINDOW_PER_CHANNEL, raw.window_per_channel, 0..=10_000),
        max_bytes: MEBIBYTE.saturating_mul(mebibytes),
    }
}
