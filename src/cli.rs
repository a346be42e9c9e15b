//! The command line: `clew`, `clew run`, `clew demo`, `clew replay`.
//!
//! Invariant: only `cli` and what it calls to print write to standard output.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::app::{self, system_clock};
use crate::config::Config;
use crate::telemetry::init_log;

/// The exit code for settings and input that only a person can cure.
const CANNOT: u8 = 2;

/// A Discord bot that answers with the right context.
///
/// Without a command: the demo, or `run` once DISCORD_TOKEN is set. Settings
/// are environment variables, or lines of a file .env (see .env.example).
#[derive(Debug, Parser)]
#[command(name = "clew", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Connects to Discord and answers until it is stopped.
    Run,
}

/// Parses the arguments and does what they say.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let config = match Config::of_process() {
        Ok(config) => config,
        Err(errors) => return fail(&errors),
    };
    init_log(config.log.level);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    match cli.command {
        None | Some(Command::Run) => runtime.block_on(run(config)),
    }
}

async fn run(config: Config) -> ExitCode {
    for effective in config.effective() {
        tracing::info!(name = effective.name, value = effective.shown, origin = ?effective.origin,
            "setting");
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let shutdown = CancellationToken::new();
    let signals = match stop_on_signals(shutdown.clone()) {
        Ok(signals) => signals,
        Err(error) => return fail(&error),
    };
    let ended = app::run(config, system_clock(), shutdown).await;
    signals.abort();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// SIGTERM and SIGINT end the bot in order.
fn stop_on_signals(shutdown: CancellationToken) -> std::io::Result<tokio::task::JoinHandle<()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: turns that run may end");
        shutdown.cancel();
    }))
}

#[expect(clippy::print_stderr, reason = "the last word before the process ends")]
fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("clew: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::from(CANNOT)
}
