//! How the simulated Discord can misbehave towards the bot.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use clew_simulator::{Fault, FaultKind};

/// The reads with which the bot collects: faults hold for these, so that it can still answer.
const READS: (&str, &str) = ("GET", "/channels/**");
/// How long a 429 asks to wait, in seconds: soon over once the fault is.
const RETRY_AFTER_S: f64 = 2.0;

/// How Discord misbehaves now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct FaultState {
    /// By how much each read is late, in milliseconds.
    pub(super) slow_ms: u64,
    /// What each read is answered with instead; none as usual.
    pub(super) status: Option<u16>,
}

impl FaultState {
    /// Status, code and message of the forced answer.
    pub(super) const fn forced(self) -> Option<(u16, u64, &'static str)> {
        match self.status {
            Some(403) => Some((403, 50_001, "Missing Access")),
            Some(429) => Some((429, 0, "You are being rate limited.")),
            Some(500) => Some((500, 0, "500: Internal Server Error")),
            _ => None,
        }
    }

    /// The forced answer: its status and body.
    pub(super) fn answer(self) -> Option<(u16, Vec<u8>)> {
        let (status, code, message) = self.forced()?;
        let body = json!({"message": message, "code": code});
        Some((status, body.to_string().into_bytes()))
    }

    pub(super) fn faults(self) -> Vec<Fault> {
        let (method, path) = READS;
        let mut faults = Vec::new();
        if self.slow_ms > 0 {
            let delay = FaultKind::Latency(Duration::from_millis(self.slow_ms));
            faults.push(Fault::new(method, path, delay));
        }
        match self.forced() {
            Some((429, ..)) => faults.push(Fault::rate_limited(method, path, RETRY_AFTER_S)),
            Some((status, code, message)) => {
                faults.push(Fault::status(method, path, status, code, message));
            }
            None => {}
        }
        faults
    }
}
