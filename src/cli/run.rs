//! `clew run`: logs the settings and turns signals into an orderly shutdown.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Level;
use tracing::level_filters::LevelFilter;

use super::exit::{Ended, FAILED, cannot, log_object};
use super::signals::Signals;
use crate::app::{self, system_clock};
use crate::config::{Config, Effective, LogFormat};

/// Runs the bot until a signal ends it.
pub(super) async fn run(config: Config) -> Ended {
    app::token(&config).map_err(cannot)?;
    log_settings(&config);
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let shutdown = CancellationToken::new();
    let signals = stop_on_signals(shutdown.clone()).map_err(cannot)?;
    // Boxed: the future is large, and there is only one.
    let ended = Box::pin(app::run(config, system_clock(), shutdown)).await;
    signals.abort();
    ended.map_err(cannot)?;
    Ok(ExitCode::SUCCESS)
}

/// As JSON, or in a line of JSON.
fn log_settings(config: &Config) {
    let message = "the settings in effect";
    match config.log.format {
        LogFormat::Text => tracing::info!(settings = %settings(config), "{message}"),
        LogFormat::Json if config.log.level >= LevelFilter::INFO => {
            log_object(Level::INFO, message, json!({"settings": settings(config)}));
        }
        LogFormat::Json => {}
    }
}

/// An object: each name with its value and where that comes from.
fn settings(config: &Config) -> Value {
    let shown = |one: Effective| (one.name, [one.shown, one.origin.to_string()]);
    let all: BTreeMap<_, _> = config.effective().map(shown).collect();
    json!(all)
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
