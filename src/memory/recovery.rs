//! Recovery after a store failed: checks whether it is back. Once it answers, the
//! deletions that waited go first, then the turns answered meanwhile are stored,
//! and only then do turns use it again.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Memory;
use super::circuit::{Side, Sides, Trouble};
use crate::telemetry::event::{CircuitState, StoreOperation};
use clew_context::model::{UnixMillis, UserId};
use clew_store::model::{AgentName, Scope, Subject};
use clew_store::{Asker, Store, WindowQuery};

/// The pause between two checks of a store that failed grows from this...
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// ...to this...
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// ...or to this while the store works but refuses some turns.
const LONGEST_PAUSE_WELL: Duration = Duration::from_secs(10);
/// How long the last attempt at shutdown may take.
const LAST_TRY: Duration = Duration::from_secs(10);
/// A user id that nobody has, so the conversation is empty.
const NOBODY: UserId = UserId::new(1);

impl Memory {
    /// Whether every store does what it is asked, as far as is known.
    pub(super) fn is_well(&self) -> bool {
        let mut circuits = self.circuits.iter();
        circuits.all(|circuit| circuit.now() == Sides::default())
    }

    /// Looks after failed stores until `shutdown`.
    pub(super) async fn recover(&self, shutdown: &CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let due = async {
                if self.is_well() && self.unsaved.is_empty() {
                    self.recovery.notified().await;
                    FIRST_PAUSE
                } else {
                    tokio::time::sleep(pause).await;
                    let longest = if self.is_well() {
                        LONGEST_PAUSE_WELL
                    } else {
                        LONGEST_PAUSE
                    };
                    (pause * 2).min(longest)
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                next = due => pause = next,
            }
            // Not cancelled: a change dropped halfway is lost.
            self.look_after().await;
        }
    }

    pub(super) async fn look_after(&self) {
        for (_, store) in self.stores.all() {
            let before = self.circuit(store).seen();
            let mut sides = Sides::default();
            if before.sides != sides {
                if let Err(still) = self.look(store, before.sides).await {
                    self.found(store, before, still);
                    continue;
                }
                self.reconcile_all().await;
            }
            if Arc::ptr_eq(store, &self.stores.conversations)
                && let Err(trouble) = self.save_turns(|_| true).await
            {
                sides = sides.after(Side::Write, &trouble);
            }
            self.found(store, before, sides);
        }
    }

    /// Reads what turns read, where there is nothing to find, and writes if writing failed.
    /// Returns what still does not work.
    pub(super) async fn look(&self, store: &Arc<Store>, before: Sides) -> Result<(), Sides> {
        let query = WindowQuery {
            scope: Scope::Direct(NOBODY),
            agent: AgentName::default_agent(),
            since: UnixMillis(0),
            cleared: Some(Asker {
                guild: None,
                user: NOBODY,
            }),
            with_tools: false,
            limit: 1,
        };
        let reading = async {
            store.window(&query).await?;
            store.facts(Subject::User(NOBODY), 1).await.map(drop)
        };
        if let Err(trouble @ (Trouble::Hung | Trouble::Gone(_))) = self.attempt(reading).await {
            return Err(before.after(Side::Read, &trouble));
        }
        if before.write == CircuitState::Closed {
            return Ok(());
        }
        match self.attempt(store.try_writing()).await {
            Err(trouble @ (Trouble::Hung | Trouble::Gone(_))) => {
                Err(Sides::default().after(Side::Write, &trouble))
            }
            _ => Ok(()),
        }
    }

    /// Returns once the shutdown has waited long enough: less for a failing store.
    pub(super) async fn gives_up(&self, shutdown: &CancellationToken) {
        shutdown.cancelled().await;
        tokio::time::sleep(LAST_TRY).await;
        if self.is_well() {
            tokio::time::sleep(LAST_TRY).await;
        }
    }

    /// Finishes what is being written and closes the stores. What a failing store
    /// does not take now is lost, and counted.
    pub async fn close(&self) {
        let saved = tokio::time::timeout(LAST_TRY, self.save_turns(|_| true)).await;
        let finish = async {
            if matches!(saved, Ok(Ok(()))) {
                // Of changes that are cut off, the session file names the channels.
                self.reconcile_all().await;
            }
            self.flush().await;
        };
        let _ = tokio::time::timeout(LAST_TRY, finish).await;
        self.drop_unsaved();
        if let Some(outputs) = self.outputs() {
            self.done(StoreOperation::Close, outputs.close().await);
        }
        for (_, store) in self.stores.all() {
            self.done(StoreOperation::Close, store.close().await);
        }
    }
}
