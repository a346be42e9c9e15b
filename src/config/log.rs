//! The readable log.

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use super::check::Checker;
use super::variable as var;

/// What the readable log shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// `LOG_LEVEL` with `DEBUG` applied: a filter that tracing accepts.
    pub filter: String,
    /// `DEBUG`.
    pub debug: bool,
}

#[derive(Default, Deserialize)]
struct Raw {
    log_level: Option<String>,
    debug: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> LogConfig {
    let raw: Raw = check.raw();
    let debug = check.switch(&var::DEBUG, raw.debug);
    let level = check.optional(
        &var::LOG_LEVEL,
        raw.log_level,
        "off, error, warn, info, debug or trace, or target=level pairs, comma separated",
        filter,
    );
    let level = level.unwrap_or_default();
    LogConfig {
        filter: if debug {
            format!("{level},clew=debug")
        } else {
            level
        },
        debug,
    }
}

/// A misspelt level alone would be taken as the name of a target, and
/// silence everything.
fn filter(text: &str) -> Option<String> {
    let known = ["off", "error", "warn", "info", "debug", "trace"];
    let sound = text.split(',').map(str::trim).all(|part| {
        part.contains(['=', '[', ':']) || known.iter().any(|level| part.eq_ignore_ascii_case(level))
    });
    let parses = EnvFilter::builder().parse(text).is_ok();
    (sound && parses).then(|| text.to_owned())
}
