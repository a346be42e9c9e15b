//! How the simulated Discord misbehaves towards the bot.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use super::{Answer, ApiError, Body};
use crate::playground::Shared;
use clew_simulator::{Fault, FaultKind};

/// The reads with which the bot collects: faults hold for these, so that it can still answer.
const READS: (&str, &str) = ("GET", "/channels/**");
/// The longest delay, in milliseconds.
const MOST_DELAY_MS: u64 = 60_000;
/// How long a 429 asks to wait, in seconds: soon over once the fault is.
const RETRY_AFTER_S: f64 = 2.0;

/// How Discord misbehaves now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(in crate::playground) struct FaultState {
    /// By how much each read is late, in milliseconds.
    pub(in crate::playground) slow_ms: u64,
    /// What each read is answered with instead; none as usual.
    status: Option<u16>,
}

/// The switches to change; those left out stay.
#[derive(Debug, Deserialize)]
pub(super) struct FaultChange {
    slow_ms: Option<u64>,
    /// Null ends it.
    #[serde(default)]
    status: StatusChange,
}

/// A status that may be left out, which is not the same as null.
#[derive(Debug, Clone, Copy, Default)]
enum StatusChange {
    #[default]
    Same,
    To(Option<u16>),
}

impl<'de> Deserialize<'de> for StatusChange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Option::deserialize(from).map(Self::To)
    }
}

impl FaultState {
    /// Status, code and message of the forced answer.
    const fn forced(self) -> Option<(u16, u64, &'static str)> {
        match self.status {
            Some(403) => Some((403, 50_001, "Missing Access")),
            Some(429) => Some((429, 0, "You are being rate limited.")),
            Some(500) => Some((500, 0, "500: Internal Server Error")),
            _ => None,
        }
    }

    /// The forced answer: its status and body.
    pub(in crate::playground) fn answer(self) -> Option<(u16, Vec<u8>)> {
        let (status, code, message) = self.forced()?;
        let body = json!({"message": message, "code": code});
        Some((status, body.to_string().into_bytes()))
    }

    fn faults(self) -> Vec<Fault> {
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

impl Shared {
    /// How Discord misbehaves now.
    pub(in crate::playground) fn faults(&self) -> FaultState {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns faults on and off.
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Body(change): Body<FaultChange>,
) -> Answer {
    let before = shared.faults();
    let faults = FaultState {
        slow_ms: change.slow_ms.unwrap_or(before.slow_ms),
        status: match change.status {
            StatusChange::Same => before.status,
            StatusChange::To(status) => status,
        },
    };
    if faults.slow_ms > MOST_DELAY_MS {
        return Err(ApiError::bad(format!("slow_ms is at most {MOST_DELAY_MS}")));
    }
    if faults.status.is_some() && faults.forced().is_none() {
        return Err(ApiError::bad("status is 403, 429, 500 or null"));
    }
    let mut held = shared.faults.lock().unwrap_or_else(PoisonError::into_inner);
    shared.discord.end_faults();
    for fault in faults.faults() {
        shared.discord.fault(fault);
    }
    *held = faults;
    drop(held);
    if faults != before {
        shared.events.state_changed();
    }
    Ok(Json(json!(faults)))
}

/// Drops the bot's connection to the gateway; it comes back by itself.
pub(super) async fn disconnect(State(shared): State<Arc<Shared>>) -> Answer {
    shared.discord.drop_gateway();
    Ok(Json(json!({})))
}
