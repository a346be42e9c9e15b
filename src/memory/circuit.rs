//! A circuit breaker in front of each store, for reading and writing separately: a
//! store that hangs delays one turn for its patience and later turns not at all.
//! [`recovery`](super::recovery) finds out whether it is back. Telemetry reports
//! changes of state, not every failed turn.

use std::sync::{Arc, Mutex, PoisonError};

use super::Memory;
use crate::telemetry::Ids;
use crate::telemetry::event::{CircuitChanged, CircuitState, StoreOperation};
use clew_store::Store;

/// The kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

/// A store's breaker.
#[derive(Debug, Default)]
pub(super) struct Circuit(Mutex<Sides>);

/// The state of a store, for each kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) read: CircuitState,
    pub(super) write: CircuitState,
}

impl Default for Sides {
    fn default() -> Self {
        let closed = CircuitState::Closed;
        Self {
            read: closed,
            write: closed,
        }
    }
}

/// Why a store did not do what it was asked to.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It did not answer within [`Settings::patience`](super::Settings).
    Hung,
    /// It is locked, full or gone.
    Gone(clew_store::Error),
    /// It answers, but refuses this request.
    Refused(clew_store::Error),
}

impl Sides {
    /// A hang opens both sides, since the other would hang as well. A failure that
    /// comes at once costs no time, so turns keep asking.
    pub(super) fn after(self, side: Side, trouble: &Trouble) -> Self {
        match (trouble, side) {
            (Trouble::Hung, _) => Self {
                read: CircuitState::Open,
                write: CircuitState::Open,
            },
            (Trouble::Gone(_), Side::Read) => Self {
                read: CircuitState::Failing,
                ..self
            },
            (Trouble::Gone(_), Side::Write) => Self {
                write: CircuitState::Failing,
                ..self
            },
            (Trouble::Refused(_), _) => self,
        }
    }
}

impl Circuit {
    pub(super) fn now(&self) -> Sides {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_open(&self, side: Side) -> bool {
        let now = self.now();
        let state = match side {
            Side::Read => now.read,
            Side::Write => now.write,
        };
        state == CircuitState::Open
    }

    /// Applies a change and returns the new state if it differs.
    fn change(&self, change: impl FnOnce(Sides) -> Sides) -> Option<Sides> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *held;
        *held = change(before);
        (*held != before).then_some(*held)
    }
}

impl Memory {
    pub(super) fn circuit(&self, store: &Arc<Store>) -> &Circuit {
        let at = usize::from(!Arc::ptr_eq(store, &self.stores.lasting));
        &self.circuits[at]
    }

    /// The state of the store that is worse off, and how many turns wait.
    pub fn store_state(&self) -> CircuitChanged {
        let [lasting, conversations] = self.circuits.each_ref().map(Circuit::now);
        CircuitChanged {
            read: lasting.read.max(conversations.read),
            write: lasting.write.max(conversations.write),
            unsaved: self.unsaved.len(),
        }
    }

    /// Reads from a store for a turn. `None` if that failed or the circuit is
    /// open: the turn goes on without.
    pub(super) async fn ask<T>(
        &self,
        ids: &Ids,
        store: &Arc<Store>,
        work: impl Future<Output = Result<T, clew_store::Error>>,
    ) -> Option<T> {
        if self.circuit(store).is_open(Side::Read) {
            return None;
        }
        match self.attempt(work).await {
            Ok(answer) => Some(answer),
            Err(trouble) => {
                self.trouble(ids, StoreOperation::Read, store, Side::Read, &trouble);
                None
            }
        }
    }

    /// Tries regardless of the circuit, for [`Settings::patience`](super::Settings)
    /// at most.
    pub(super) async fn attempt<T>(
        &self,
        work: impl Future<Output = Result<T, clew_store::Error>>,
    ) -> Result<T, Trouble> {
        match tokio::time::timeout(self.settings.patience, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if error.is_passing() => Err(Trouble::Gone(error)),
            Ok(Err(error)) => Err(Trouble::Refused(error)),
            Err(_) => Err(Trouble::Hung),
        }
    }

    /// Notes a failure. Further failures in the same state are not reported.
    pub(super) fn trouble(
        &self,
        ids: &Ids,
        operation: StoreOperation,
        store: &Arc<Store>,
        side: Side,
        trouble: &Trouble,
    ) {
        let changed = self.circuit(store).change(|now| now.after(side, trouble));
        match trouble {
            Trouble::Refused(error) => self.failed(ids, operation, error),
            Trouble::Gone(error) if changed.is_some() => self.failed(ids, operation, error),
            Trouble::Hung if changed.is_some() => {
                let seconds = self.settings.patience.as_secs_f64();
                tracing::warn!(
                    seconds,
                    operation = operation.as_str(),
                    "the store does not answer"
                );
                self.tell_failed(ids, operation, true);
            }
            Trouble::Gone(_) | Trouble::Hung => {}
        }
        if let Some(now) = changed {
            tracing::warn!(
                "turns go on without what the store holds; what they add is kept in memory until \
                 it is back"
            );
            self.tell_circuit(now);
            self.recovery.notify_one();
        }
    }

    /// Notes the state that a check of a store found.
    pub(super) fn found(&self, store: &Arc<Store>, sides: Sides) {
        let Some(now) = self.circuit(store).change(|_| sides) else {
            return;
        };
        if now == Sides::default() {
            tracing::info!("the store is back");
        }
        self.tell_circuit(now);
    }

    fn tell_circuit(&self, now: Sides) {
        let changed = CircuitChanged {
            read: now.read,
            write: now.write,
            unsaved: self.unsaved.len(),
        };
        self.telemetry.emit(&Ids::default(), changed);
    }
}

#[cfg(test)]
mod tests;
