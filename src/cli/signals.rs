//! The signals that end a command in an orderly way: SIGTERM, SIGINT and SIGHUP.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// See the module.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// None if the signal is ignored.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Takes signals from now on; one that comes before [`Signals::next`] is not lost.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: (!ignores_hang_up())
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
        })
    }

    /// Waits for one.
    pub(super) async fn next(&mut self) {
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
