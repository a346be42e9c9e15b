//! The state shared by REST, gateway and control, behind one lock that is never
//! held across an await, and the signal that it changed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::faults::Faults;
use super::gateway::Hub;
use super::ids::Id;
use super::limits::Limits;
use super::log::{GatewayEvent, GatewayRecord, RequestRecord};
use super::world::World;

/// Shared by the whole server.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

/// Everything that changes while the server runs.
#[derive(Debug)]
pub(super) struct State {
    pub(super) world: World,
    pub(super) hub: Hub,
    pub(super) faults: Faults,
    pub(super) limits: Limits,
    pub(super) latency: Duration,
    pub(super) requests: Vec<RequestRecord>,
    /// The bot's latest messages with a nonce: each with its channel.
    pub(super) nonces: VecDeque<(Id, Id, Value)>,
    /// How many older calls the log no longer holds.
    dropped: usize,
    /// How many of the newest calls and gateway records the logs hold at least.
    pub(super) keep: usize,
    /// How many of the first calls have been cleared from the log.
    pub(super) forgotten: usize,
    pub(super) gateway_log: Vec<GatewayRecord>,
    pub(super) in_flight: usize,
    pub(super) stopped: bool,
    started: Instant,
    /// The same by the source of time that the world follows, in Unix milliseconds.
    started_ms: Option<i64>,
}

impl Shared {
    pub(super) fn new(world: World) -> Self {
        let started_ms = world.clock.followed_ms();
        let state = State {
            world,
            hub: Hub::default(),
            faults: Faults::default(),
            limits: Limits::default(),
            latency: Duration::ZERO,
            requests: Vec::new(),
            nonces: VecDeque::new(),
            dropped: 0,
            keep: usize::MAX,
            forgotten: 0,
            gateway_log: Vec::new(),
            in_flight: 0,
            stopped: false,
            started: Instant::now(),
            started_ms,
        };
        Self {
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
        }
    }

    /// Changes the state and wakes everything that waits for a change.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.send_modify(|version| *version += 1);
        result
    }

    pub(super) fn read<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.lock())
    }

    /// Receives every change from now on.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    // A panic in a test's predicate must not bring down the server.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The calls that have not been cleared from the log.
    pub(super) fn known_requests(&self) -> &[RequestRecord] {
        self.requests.get(self.forgotten..).unwrap_or_default()
    }

    /// The number of the next call.
    pub(super) fn next_ordinal(&self) -> usize {
        self.dropped + self.requests.len()
    }

    /// Adds a call to the log and returns its number.
    pub(super) fn record(&mut self, call: RequestRecord) -> usize {
        let ordinal = call.ordinal;
        self.requests.push(call);
        let old = too_old(self.requests.len(), self.keep);
        self.requests.drain(..old);
        self.dropped += old;
        self.forgotten = self.forgotten.saturating_sub(old);
        ordinal
    }

    /// The call with this number, if the log still holds it.
    pub(super) fn recorded(&mut self, ordinal: usize) -> Option<&mut RequestRecord> {
        self.requests.get_mut(ordinal.checked_sub(self.dropped)?)
    }

    /// Time since the server started.
    pub(super) fn elapsed(&self) -> Duration {
        let followed = self.world.clock.followed_ms().zip(self.started_ms);
        followed.map_or_else(
            || self.started.elapsed(),
            |(now, started)| {
                Duration::from_millis(now.saturating_sub(started).max(0).cast_unsigned())
            },
        )
    }

    /// Records an event on a gateway connection.
    pub(super) fn note(&mut self, link: u64, event: GatewayEvent) {
        let at = self.elapsed();
        self.gateway_log.push(GatewayRecord { at, link, event });
        let old = too_old(self.gateway_log.len(), self.keep);
        self.gateway_log.drain(..old);
    }
}

/// How many records a log drops: all but the newest, once there are twice as many.
fn too_old(records: usize, keep: usize) -> usize {
    if records > keep.saturating_mul(2) {
        records - keep
    } else {
        0
    }
}
