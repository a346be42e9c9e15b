//! `clew run`: logs the settings and turns signals into an orderly shutdown.

use std::collections::BTreeMap;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

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
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        hang_up: if ignores_hang_up() {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        },
    };
    Ok(tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping: turns that run may end; another signal ends all at once");
        shutdown.cancel();
        signals.next().await;
        tracing::warn!("stopped at once: nothing is left for the next process to resume");
        std::process::exit(i32::from(FAILED));
    }))
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// None if the signal is ignored.
    hang_up: Option<Signal>,
}

impl Signals {
    async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hang_up => {}
        }
    }
}

/// Whether SIGHUP is ignored, as under `nohup`. Only Linux tells; elsewhere it is not.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1, SIGHUP.
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}
