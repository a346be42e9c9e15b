//! The readable log.

use serde::Deserialize;
use tracing::level_filters::LevelFilter;

use super::check::Checker;
use super::variable as var;

/// What the readable log shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// `LOG_LEVEL` with `DEBUG` applied. It is a level, not a filter: at lower
    /// levels libraries print payloads, and so what people wrote.
    pub level: LevelFilter,
    /// `DEBUG`.
    pub debug: bool,
}

#[derive(Default, Deserialize)]
struct RawLog {
    log_level: Option<String>,
    debug: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> LogConfig {
    let raw: RawLog = check.raw();
    let debug = check.switch(&var::DEBUG, raw.debug);
    let level = check.one_of(
        &var::LOG_LEVEL,
        raw.log_level,
        &[
            ("info", LevelFilter::INFO),
            ("off", LevelFilter::OFF),
            ("error", LevelFilter::ERROR),
            ("warn", LevelFilter::WARN),
            ("debug", LevelFilter::DEBUG),
            ("trace", LevelFilter::TRACE),
        ],
    );
    let level = if debug {
        level.max(LevelFilter::DEBUG)
    } else {
        level
    };
    LogConfig { level, debug }
}
