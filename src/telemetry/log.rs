//! The log for people, on standard error. Unlike telemetry it has sentences; like
//! telemetry it never contains a message's text.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::LogFormat;

/// Starts the log of this process. A second call changes nothing and returns
/// `false`: a process has one log, however many bots run in it.
pub fn init_log(level: LevelFilter, format: LogFormat) -> bool {
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    let lines: Box<dyn Layer<_> + Send + Sync> = match format {
        LogFormat::Text => Box::new(lines),
        LogFormat::Json => Box::new(lines.json().flatten_event(true)),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(log_filter(level)))
        .try_init()
        .is_ok()
}

/// What is logged: ours at the given level, of libraries only warnings. At
/// lower levels they print payloads, and so what people wrote. rmcp's warnings do, too, and
/// addresses with keys in them; ours say why there is no connection.
pub fn log_filter(ours: LevelFilter) -> Targets {
    Targets::new()
        .with_target("clew", ours)
        .with_target("rmcp", LevelFilter::OFF)
        .with_default(ours.min(LevelFilter::WARN))
}

/// An error with its sources, for the log.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
