//! Turns in the queue whose answers are not posted yet.

use std::sync::Arc;

use super::{Unsaved, UnsavedTurn};
use clew_context::model::{MessageId, UnixMillis};
use clew_store::TurnKey;
use clew_store::model::{StoredMessage, StoredRole};

/// What the store has of a turn before its answer was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(in crate::memory) enum EarlyRows {
    #[default]
    None,
    /// Perhaps something: it did not say so in time.
    Unsure,
    Stored,
}

impl UnsavedTurn {
    /// The same before it is answered.
    pub(in crate::memory) fn early(self, early: EarlyRows) -> Self {
        Self {
            is_early: true,
            early,
            ..self
        }
    }
}

impl Unsaved {
    /// The rows of an early turn, which may be in the store from now on; none if nothing
    /// is left of it.
    pub(in crate::memory) fn begin_early(&self, key: &TurnKey) -> Option<Arc<Vec<StoredMessage>>> {
        let mut turns = self.turns.lock();
        let waiting = turns.find(key)?;
        let rows = Arc::clone(&waiting.turn.rows);
        waiting.may_be_stored = true;
        waiting.turn.early = waiting.turn.early.max(EarlyRows::Unsure);
        (!rows.is_empty()).then_some(rows)
    }

    /// The rows of a turn that is still early.
    pub(in crate::memory) fn early_rows(&self, key: &TurnKey) -> Option<Arc<Vec<StoredMessage>>> {
        let mut turns = self.turns.lock();
        let waiting = turns.find(key).filter(|one| one.turn.is_early)?;
        Some(Arc::clone(&waiting.turn.rows))
    }

    /// An early turn turns out to be answered, with these messages: it is to be stored.
    pub(in crate::memory) fn confirm(
        &self,
        key: &TurnKey,
        messages: &[MessageId],
        now: UnixMillis,
    ) {
        let mut turns = self.turns.lock();
        let Some(waiting) = turns.find(key).filter(|one| one.turn.is_early) else {
            return;
        };
        for row in Arc::make_mut(&mut waiting.turn.rows) {
            if row.role == StoredRole::Assistant {
                row.message = messages.first().copied();
                row.parts = messages.iter().skip(1).copied().collect();
            }
        }
        waiting.turn.answered = now;
        waiting.turn.is_early = false;
        turns.tidy();
    }

    /// An early turn was not answered: its rows are to be removed from the store.
    pub(in crate::memory) fn take_back(&self, key: &TurnKey) {
        let mut turns = self.turns.lock();
        if let Some(waiting) = turns.find(key).filter(|one| one.turn.is_early) {
            waiting.turn.rows = Arc::default();
            waiting.turn.is_early = false;
        }
        turns.tidy();
    }
}
