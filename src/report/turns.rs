//! Turns that have begun and not ended.

use std::collections::{BTreeMap, HashMap};

/// The most turns that are followed at once. Beyond it the oldest counts as unfinished,
/// as does what a bot that was killed left.
const OPEN: usize = 16_384;
/// The most different fallbacks of one turn that are counted.
const FALLBACKS: usize = 16;

/// What is known of a turn so far. Times are in tenths of a millisecond.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenTurn {
    pub(super) scene: Option<String>,
    pub(super) cause: Option<String>,
    pub(super) queued: Option<u64>,
    /// Of the last time its context was collected.
    pub(super) collect: Option<u64>,
    pub(super) fetches: u64,
    /// Requests that the model answered, and those that it did not.
    pub(super) requests: u64,
    pub(super) failed_requests: u64,
    /// In answered requests.
    pub(super) model: u64,
    /// In calls of tools.
    pub(super) tools: u64,
    /// Each kind, by its number, with its reason.
    fallbacks: Vec<(usize, String)>,
}

/// The turns that have begun.
#[derive(Debug, Default)]
pub(super) struct OpenTurns {
    by_id: HashMap<u64, (u64, OpenTurn)>,
    /// By the order in which they began.
    by_age: BTreeMap<u64, u64>,
    begun: u64,
}

impl OpenTurns {
    /// A turn begins, perhaps again; returns whether it is new.
    pub(super) fn begin(&mut self, id: u64) -> bool {
        if self.by_id.contains_key(&id) {
            return false;
        }
        if self.by_id.len() >= OPEN
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_id.remove(&oldest);
        }
        self.begun += 1;
        self.by_age.insert(self.begun, id);
        self.by_id.insert(id, (self.begun, OpenTurn::default()));
        true
    }

    /// A turn that has begun; none if its beginning is not in the files.
    pub(super) fn get(&mut self, id: Option<u64>) -> Option<&mut OpenTurn> {
        self.by_id.get_mut(&id?).map(|(_, turn)| turn)
    }

    /// A turn is over; an unknown one is as if it had just begun.
    pub(super) fn end(&mut self, id: Option<u64>) -> OpenTurn {
        let Some((age, turn)) = id.and_then(|id| self.by_id.remove(&id)) else {
            return OpenTurn::default();
        };
        self.by_age.remove(&age);
        turn
    }
}

impl OpenTurn {
    /// Whether the turn has not met this fallback before.
    pub(super) fn is_first(&mut self, kind: usize, reason: &str) -> bool {
        let mut known = self.fallbacks.iter();
        let is_known = known.any(|(other, word)| *other == kind && word == reason);
        let is_first = !is_known && self.fallbacks.len() < FALLBACKS;
        if is_first {
            self.fallbacks.push((kind, reason.to_owned()));
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_that_never_end_are_bounded() {
        let mut turns = OpenTurns::default();
        for id in 0..100_000 {
            assert!(turns.begin(id));
        }
        assert!(!turns.begin(99_999));
        assert_eq!((turns.by_id.len(), turns.by_age.len()), (OPEN, OPEN));
        assert!(turns.get(Some(99_999)).is_some());
        assert!(turns.get(Some(1)).is_none());
        turns.end(Some(99_999));
        turns.end(Some(1));
        assert_eq!(
            (turns.by_id.len(), turns.by_age.len()),
            (OPEN - 1, OPEN - 1)
        );
    }
}
