//! Telemetry that stays in memory, for tests.

use std::sync::Arc;

use parking_lot::Mutex;

use super::event::Event;
use super::line::Ids;

/// The events emitted so far. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<RecordedLine>>>);

/// One emitted event.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedLine {
    /// What it belongs to.
    pub ids: Ids,
    pub event: Event,
    /// The line as in a file, including its line break.
    pub line: String,
}

impl Lines {
    /// Everything so far, without removing it.
    pub fn all(&self) -> Vec<RecordedLine> {
        self.0.lock().clone()
    }

    /// Everything so far, removing it.
    pub fn take(&self) -> Vec<RecordedLine> {
        std::mem::take(&mut *self.0.lock())
    }

    /// The lines as one text.
    pub fn text(&self) -> String {
        let all = self.0.lock();
        all.iter().map(|recorded| recorded.line.as_str()).collect()
    }

    /// The number of events with this name.
    pub fn count(&self, name: &str) -> usize {
        let all = self.0.lock();
        all.iter()
            .filter(|recorded| recorded.event.name() == name)
            .count()
    }

    pub(super) fn push(&self, ids: Ids, event: Event, line: String) {
        self.0.lock().push(RecordedLine { ids, event, line });
    }
}
