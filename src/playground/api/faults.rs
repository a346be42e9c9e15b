//! The switches for how the simulated Discord misbehaves towards the bot.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::{Answer, Body, SharedState};
use crate::playground::Shared;
use crate::playground::error::ApiError;
use crate::playground::faults::FaultState;

/// The longest delay, in milliseconds.
const MOST_DELAY_MS: u64 = 60_000;

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

impl Shared {
    /// How Discord misbehaves now.
    pub(in crate::playground) fn faults(&self) -> FaultState {
        *self.faults.lock()
    }
}

/// Turns faults on and off.
pub(super) async fn put(State(shared): SharedState, Body(change): Body<FaultChange>) -> Answer {
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
    let mut held = shared.faults.lock();
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
pub(super) async fn disconnect(State(shared): SharedState) -> Answer {
    shared.discord.drop_gateway();
    Ok(Json(json!({})))
}
