//! The readable log.

use tracing::level_filters::LevelFilter;

use super::check::Checker;
use super::variable as var;

/// What the readable log shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// Info, or with `DEBUG` debug. It is a level, not a filter: at lower levels libraries
    /// print payloads, and so what people wrote.
    pub level: LevelFilter,
    /// `DEBUG`.
    pub debug: bool,
    /// `LOG_FORMAT`.
    pub format: LogFormat,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// A JSON object, for collectors of logs.
    Json,
}

pub(super) fn read(check: &mut Checker) -> LogConfig {
    let debug = check.switch(&var::DEBUG);
    let level = if debug {
        LevelFilter::DEBUG
    } else {
        LevelFilter::INFO
    };
    let format = check.one_of(
        &var::LOG_FORMAT,
        &[("text", LogFormat::Text), ("json", LogFormat::Json)],
    );
    LogConfig {
        level,
        debug,
        format,
    }
}
