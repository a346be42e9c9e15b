//! Telemetry that stays in memory, for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::Event;
use super::line::Ids;

/// What was emitted so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<Recorded>>>);

/// One emitted event.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Where it belongs.
    pub ids: Ids,
    /// What it is.
    pub event: Event,
    /// The line as a file would hold it, its end included.
    pub line: String,
}

impl Lines {
    /// All of it, which stays.
    pub fn all(&self) -> Vec<Recorded> {
        self.lock().clone()
    }

    /// All of it, which is then gone.
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut *self.lock())
    }

    /// The lines as one text.
    pub fn text(&self) -> String {
        let all = self.lock();
        all.iter().map(|recorded| recorded.line.as_str()).collect()
    }

    /// How many events of a name there are.
    pub fn count(&self, name: &str) -> usize {
        let all = self.lock();
        all.iter()
            .filter(|recorded| recorded.event.name() == name)
            .count()
    }

    pub(super) fn push(&self, ids: Ids, event: Event, line: String) {
        self.lock().push(Recorded { ids, event, line });
    }

    /// A holder that panicked left whole entries: there is nothing to mend.
    fn lock(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
