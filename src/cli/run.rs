//! `clew run`: logs the settings and turns signals into an orderly shutdown.

use std::collections::BTreeMap;
use std::process::ExitCode;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::signals::Signals;
use super::{FAILED, fail};
use crate::app::{self, system_clock};
use crate::config::{Config, Effective};

/// Runs the bot until a signal ends it.
pub(super) async fn run(config: Config) -> ExitCode {
    tracing::info!(settings = %settings(&config), "the settings in effect");
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let shutdown = CancellationToken::new();
    let signals = match stop_on_signals(shutdown.clone()) {
        Ok(signals) => signals,
        Err(error) => return fail(&error),
    };
    // Boxed: the future is large, and there is only one.
    let ended = Box::pin(app::run(config, system_clock(), shutdown)).await;
    signals.abort();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// One JSON object: each name with its value and where that comes from.
fn settings(config: &Config) -> String {
    let shown = |Effective {
                     name,
                     shown,
                     origin,
                 }| (name, [shown, origin.to_string()]);
    let all: BTreeMap<_, _> = config.effective().map(shown).collect();
    serde_json::to_string(&all).unwrap_or_default()
}

/// SIGTERM, SIGINT and SIGHUP end the bot in an orderly way, a second one at once.
fn stop_on_signals(shutdown: CancellationToken) -> std::io::Result<JoinHandle<()>> {
    let mut signals = Signals::listen()?;
    Ok(tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping: turns that run may end; another signal ends all at once");
        shutdown.cancel();
        signals.next().await;
        tracing::warn!("stopped at once: nothing is left for the next process to resume");
        std::process::exit(i32::from(FAILED));
    }))
}
