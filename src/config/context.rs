//! The caps of the collected context, and the window behind it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::check::{Checker, SWITCHES};
use super::triggers::REPLY_TARGETS;
use super::variable::{self as var, Variable};
use clew_context::engine::window::WindowLimits;
use clew_context::model::{Limits, LinkContext, LoneContext, PlaceContext, ThreadSelect};

/// The ages that the caps accept, in minutes: up to ten years; 0 for no limit.
const AGE_MIN: RangeInclusive<u64> = 0..=10 * 366 * 24 * 60;
/// What the other caps accept, each in its unit.
const TAIL: RangeInclusive<u64> = 0..=40;
const MAX_MSGS: RangeInclusive<u64> = 1..=1_000;
const MAX_CHARS: RangeInclusive<u64> = 100..=1_000_000;
const MAX_MSG_CHARS: RangeInclusive<u64> = 20..=100_000;
const MAX_FETCHES: RangeInclusive<u64> = 0..=100;
const MAX_FILE_BYTES: RangeInclusive<u64> = 0..=1_000_000;
const LONE_MAX_CHARS: RangeInclusive<u64> = 100..=100_000;
/// The deadlines that `MEM_FETCH_TIMEOUT_S` accepts, in seconds. Discord waits three
/// seconds for the first response to an interaction; nobody waits for minutes.
const FETCH_TIMEOUT_S: RangeInclusive<f64> = 0.05..=60.0;
/// The bytes in the unit of `WINDOW_MAX_MB`.
const MEBIBYTE: usize = 1024 * 1024;

/// A setting that changes what is collected, to be tried out.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextSetting {
    /// Its row in the table.
    pub variable: &'static Variable,
    /// The values that it takes.
    pub takes: Takes,
}

/// The values that a setting takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Takes {
    /// Whole numbers.
    Whole(RangeInclusive<u64>),
    /// Seconds, with fractions.
    Seconds(RangeInclusive<f64>),
    Words(Vec<&'static str>),
    /// A text of its own form.
    Text,
}

impl ContextSetting {
    pub fn all() -> Vec<Self> {
        fn words<T>(words: &[(&'static str, T)]) -> Takes {
            Takes::Words(words.iter().map(|(word, _)| *word).collect())
        }
        [
            (&var::THREAD_CONTEXT_TAIL_COUNT, Takes::Whole(TAIL)),
            (&var::MEM_MAX_MSGS, Takes::Whole(MAX_MSGS)),
            (&var::MEM_MAX_CHARS, Takes::Whole(MAX_CHARS)),
            (&var::MEM_MAX_MSG_CHARS, Takes::Whole(MAX_MSG_CHARS)),
            (&var::MEM_MAX_AGE_MIN, Takes::Whole(AGE_MIN)),
            (&var::MEM_CHAIN_MAX_AGE_MIN, Takes::Whole(AGE_MIN)),
            (&var::MEM_FETCH_TIMEOUT_S, Takes::Seconds(FETCH_TIMEOUT_S)),
            (&var::MEM_MAX_FETCHES, Takes::Whole(MAX_FETCHES)),
            (&var::MEM_MAX_FILE_BYTES, Takes::Whole(MAX_FILE_BYTES)),
            (&var::MEM_INCLUDE_POINTED_APPS, words(&SWITCHES[..2])),
            (&var::LINK_CONTEXT, Takes::Text),
            (&var::LONE_CONTEXT, words(LoneContext::CHOICES)),
            (&var::LONE_MAX_CHARS, Takes::Whole(LONE_MAX_CHARS)),
            (&var::PLACE_CONTEXT, words(PlaceContext::CHOICES)),
            (&var::THREAD_SELECT, words(ThreadSelect::CHOICES)),
            (&var::THREAD_REPLY_TARGET, words(&REPLY_TARGETS)),
        ]
        .map(|(variable, takes)| Self { variable, takes })
        .to_vec()
    }
}

pub(super) fn read_limits(check: &mut Checker) -> Limits {
    let follows = check.source(&var::MEM_CHAIN_MAX_AGE_MIN).name == var::MEM_MAX_AGE_MIN.name;
    let mut age = |variable| {
        let minutes = check.number(variable, AGE_MIN);
        (minutes > 0).then(|| Duration::from_mins(minutes))
    };
    let max_age = age(&var::MEM_MAX_AGE_MIN);
    let max_chain_age = if follows {
        max_age
    } else {
        age(&var::MEM_CHAIN_MAX_AGE_MIN)
    };
    let mut count = |variable, range| {
        let number: u64 = check.number(variable, range);
        usize::try_from(number).unwrap_or(usize::MAX)
    };
    let limits = Limits {
        tail: count(&var::THREAD_CONTEXT_TAIL_COUNT, TAIL),
        max_msgs: count(&var::MEM_MAX_MSGS, MAX_MSGS),
        max_chars: count(&var::MEM_MAX_CHARS, MAX_CHARS),
        max_msg_chars: count(&var::MEM_MAX_MSG_CHARS, MAX_MSG_CHARS),
        max_fetches: count(&var::MEM_MAX_FETCHES, MAX_FETCHES),
        lone_max_chars: count(&var::LONE_MAX_CHARS, LONE_MAX_CHARS),
        max_age,
        max_chain_age,
        fetch_timeout: check.seconds(&var::MEM_FETCH_TIMEOUT_S, FETCH_TIMEOUT_S),
        max_file_bytes: check.number(&var::MEM_MAX_FILE_BYTES, MAX_FILE_BYTES),
        include_pointed_apps: check.switch(&var::MEM_INCLUDE_POINTED_APPS),
        link_context: read_link_context(check),
        lone_context: check.one_of(&var::LONE_CONTEXT, LoneContext::CHOICES),
        place_context: check.one_of(&var::PLACE_CONTEXT, PlaceContext::CHOICES),
        thread_select: check.one_of(&var::THREAD_SELECT, ThreadSelect::CHOICES),
    };
    if limits.tail > limits.max_msgs {
        check.warn("THREAD_CONTEXT_TAIL_COUNT is above MEM_MAX_MSGS, which holds");
    }
    limits
}

fn read_link_context(check: &mut Checker) -> LinkContext {
    let accepted = format!(
        "two numbers from 0 to {}, such as 3,1 (messages before and after)",
        LinkContext::MOST
    );
    let context = check.optional(&var::LINK_CONTEXT, &accepted, LinkContext::parse);
    context.unwrap_or_else(|| Limits::default().link_context)
}

pub(super) fn read_window(check: &mut Checker) -> WindowLimits {
    let mebibytes = check.number(&var::WINDOW_MAX_MB, 1..=4_095);
    WindowLimits {
        per_channel: check.number(&var::WINDOW_PER_CHANNEL, 0..=10_000),
        max_bytes: MEBIBYTE.saturating_mul(mebibytes),
    }
}
