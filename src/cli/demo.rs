//! `clew demo`: standard output and exit codes around [`demo`].

use std::io::{self, IsTerminal, LineWriter};
use std::process::ExitCode;

use tracing::level_filters::LevelFilter;

use super::{CANNOT, FAILED, fail_with};
use crate::config::Config;
use crate::demo::{self, Error};
use crate::telemetry::init_log;

/// Plays the demo. Only caps from the environment apply, and nothing from `.env`.
pub(super) async fn run() -> ExitCode {
    init_log(LevelFilter::WARN);
    let stdout = io::stdout();
    let styled = stdout.is_terminal();
    let mut out = LineWriter::new(stdout);
    let played = tokio::select! {
        played = demo::run(Config::caps_of_process(), &mut out, styled) => played,
        // The demo's temporary folder is removed with it.
        _ = tokio::signal::ctrl_c() => return ExitCode::from(FAILED),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error @ Error::Settings(_)) => fail_with(CANNOT, &error),
        Err(error) => fail_with(FAILED, &error),
    }
}
