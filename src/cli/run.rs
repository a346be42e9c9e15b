//! `clew run`: settings into the log, signals into an orderly end.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fail;
use crate::app::{self, system_clock};
use crate::config::Config;

/// Runs the bot until SIGTERM or SIGINT.
pub(super) async fn run(config: Config) -> ExitCode {
    if config.discord.token.is_none() {
        return fail(&app::Error::NoToken);
    }
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
    // Boxed: it is large, and there is one.
    let ended = Box::pin(app::run(config, system_clock(), shutdown)).await;
    signals.abort();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// SIGTERM and SIGINT end the bot in order.
fn stop_on_signals(shutdown: CancellationToken) -> std::io::Result<JoinHandle<()>> {
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
