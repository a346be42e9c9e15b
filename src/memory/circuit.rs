//! A circuit breaker in front of each store, for reading and writing separately: a
//! store that hangs delays one turn for its patience and later turns not at all.
//! [`recovery`](super::recovery) finds out whether it is back. Telemetry reports
//! changes of state, not every failed turn.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Memory, Result};
use crate::telemetry::Ids;
use crate::telemetry::event::{CircuitChanged, CircuitState, StoreOperation};
use clew_store::Store;

/// The kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

impl Side {
    const BOTH: &[Self] = &[Self::Read, Self::Write];

    /// What may have failed in an operation; nothing of a store for files beside it.
    pub(super) const fn of(operation: StoreOperation) -> &'static [Self] {
        match operation {
            StoreOperation::Transcript => &[],
            StoreOperation::Read => &[Self::Read],
            StoreOperation::Append | StoreOperation::Close => &[Self::Write],
            // What is to be changed is looked for first.
            StoreOperation::Flush
            | StoreOperation::Purge
            | StoreOperation::Sweep
            | StoreOperation::Learn => Self::BOTH,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Circuit(Mutex<Seen>);

/// What a check finds a store to be when it begins.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) sides: Sides,
    /// How often reading and writing have failed by then.
    failures: [u64; 2],
}

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
    /// It is locked, full, broken, gone or another process's.
    Gone(clew_store::Error),
    /// It answers, but refuses this request.
    Refused(clew_store::Error),
}

impl Sides {
    /// A hang opens both sides, since the other would hang as well. A failure that
    /// comes at once costs no time, so turns keep asking.
    pub(super) fn after(mut self, side: Side, trouble: &Trouble) -> Self {
        match trouble {
            Trouble::Hung => {
                return Self {
                    read: CircuitState::Open,
                    write: CircuitState::Open,
                };
            }
            Trouble::Gone(_) => *self.of(side) = CircuitState::Failing,
            Trouble::Refused(_) => {}
        }
        self
    }

    /// After a failure beside turns: it opens and closes nothing.
    fn failing(mut self, side: Side) -> Self {
        let state = self.of(side);
        *state = CircuitState::Failing.max(*state);
        self
    }

    const fn of(&mut self, side: Side) -> &mut CircuitState {
        match side {
            Side::Read => &mut self.read,
            Side::Write => &mut self.write,
        }
    }
}

impl Seen {
    /// What a check found, but for sides that failed while it ran.
    fn found(self, before: Self, found: Sides) -> Sides {
        let side = |side: Side, now, found| {
            let at = side as usize;
            let has_failed = self.failures[at] != before.failures[at];
            if has_failed { now } else { found }
        };
        Sides {
            read: side(Side::Read, self.sides.read, found.read),
            write: side(Side::Write, self.sides.write, found.write),
        }
    }
}

impl Circuit {
    pub(super) fn now(&self) -> Sides {
        self.seen().sides
    }

    pub(super) fn seen(&self) -> Seen {
        *self.0.lock()
    }

    pub(super) fn is_open(&self, side: Side) -> bool {
        *self.now().of(side) == CircuitState::Open
    }

    /// Applies a change and returns the new state if it differs; these sides have failed.
    fn change(&self, failed: &[Side], change: impl FnOnce(Seen) -> Sides) -> Option<Sides> {
        let mut held = self.0.lock();
        let before = held.sides;
        held.sides = change(*held);
        for side in failed {
            held.failures[*side as usize] += 1;
        }
        (held.sides != before).then_some(held.sides)
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
        work: impl Future<Output = Result<T>>,
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
        work: impl Future<Output = Result<T>>,
    ) -> Result<T, Trouble> {
        match tokio::time::timeout(self.patience, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.trouble_of(error)),
            Err(_) => Err(Trouble::Hung),
        }
    }

    /// What an error of a store means.
    pub(super) fn trouble_of(&self, error: clew_store::Error) -> Trouble {
        self.look_for_holder(&error);
        if error.is_of_store() {
            Trouble::Gone(error)
        } else {
            Trouble::Refused(error)
        }
    }

    /// Notes that a command or a tool failed by what its store did. Whether reading fails, or
    /// writing, is found out by the next check.
    pub fn note_failed_request(&self, error: &clew_store::Error) {
        self.note_failure(&self.stores.lasting, Side::BOTH, error);
    }

    /// Notes the failure of what did not go through [`Memory::attempt`]. Returns whether it is
    /// news.
    pub(super) fn note_failure(
        &self,
        store: &Arc<Store>,
        sides: &[Side],
        error: &clew_store::Error,
    ) -> bool {
        self.look_for_holder(error);
        if !error.is_of_store() {
            return false;
        }
        let circuit = self.circuit(store);
        let failing = |now: Seen| sides.iter().fold(now.sides, |now, side| now.failing(*side));
        let changed = circuit.change(sides, failing);
        if let Some(now) = changed {
            self.tell_circuit(now);
            self.recovery.notify_one();
        }
        changed.is_some()
    }

    fn look_for_holder(&self, error: &clew_store::Error) {
        if let clew_store::Error::Held { place, holder } = error {
            let held = (place.clone(), holder.clone());
            self.lost.send_if_modified(|lost| {
                let is_news = lost.is_none();
                lost.get_or_insert(held);
                is_news
            });
        }
    }

    /// Whether no other process has taken the stores from us. One that just failed is asked:
    /// what broke its connections may have let another process in.
    pub async fn is_ours(&self) -> bool {
        for (_, store) in self.stores.all() {
            let before = self.circuit(store).seen();
            let Sides { read, write } = before.sides;
            if read.max(write) != CircuitState::Failing {
                continue;
            }
            let reads = Sides {
                write: CircuitState::Closed,
                ..before.sides
            };
            if let Err(still) = self.look(store, reads).await {
                let write = still.write.max(write);
                self.found(store, before, Sides { write, ..still });
                self.recovery.notify_one();
            }
        }
        !self.is_lost()
    }

    /// Whether another process is known to have taken the store from us.
    pub fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Waits until another process has taken the store from us. It is not given back.
    pub async fn lost(&self) -> clew_store::Error {
        let mut lost = self.lost.subscribe();
        let held = lost.wait_for(Option::is_some).await;
        match held.ok().and_then(|held| held.clone()) {
            Some((place, holder)) => clew_store::Error::Held { place, holder },
            // The sender is our own.
            None => std::future::pending().await,
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
        let failed = match trouble {
            Trouble::Hung => Side::BOTH,
            Trouble::Gone(_) => std::slice::from_ref(&side),
            Trouble::Refused(_) => &[],
        };
        let circuit = self.circuit(store);
        let changed = circuit.change(failed, |now| now.sides.after(side, trouble));
        match trouble {
            Trouble::Refused(error) => self.failed(ids, operation, error),
            Trouble::Gone(error) if changed.is_some() => self.failed(ids, operation, error),
            Trouble::Hung if changed.is_some() => {
                let seconds = self.patience.as_secs_f64();
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

    /// Notes what a check of a store found that began when it was as `before`.
    pub(super) fn found(&self, store: &Arc<Store>, before: Seen, sides: Sides) {
        let found = |now: Seen| now.found(before, sides);
        let Some(now) = self.circuit(store).change(&[], found) else {
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
