//! Why people were last refused, for `/usage`.
//!
//! Invariant: this is held in memory only, of so many people at most.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::telemetry::event::Refusal;
use clew_context::model::{GuildId, UnixMillis, UserId};

/// How many are held before all are forgotten.
const MANY: usize = 10_000;

/// A person in a server, or in direct messages.
type Whom = (UserId, Option<GuildId>);

/// The last refusal of each person in each server.
#[derive(Debug, Default)]
pub struct LastRefusals(Mutex<HashMap<Whom, (Refusal, UnixMillis)>>);

impl LastRefusals {
    /// Somebody was refused.
    pub fn note(&self, whom: Whom, reason: Refusal, at: UnixMillis) {
        let mut last = self.0.lock();
        if last.len() >= MANY {
            last.clear();
        }
        last.insert(whom, (reason, at));
    }

    /// Why and when somebody was last refused.
    pub fn of(&self, whom: Whom) -> Option<(Refusal, UnixMillis)> {
        self.0.lock().get(&whom).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_each_server_is_held_and_so_many_at_most() {
        let (last, at) = (LastRefusals::default(), UnixMillis(1));
        let whom = |user, guild| (UserId::new(user), Some(GuildId::new(guild)));
        last.note(whom(1, 1), Refusal::UserRate, at);
        last.note(whom(1, 1), Refusal::Busy, UnixMillis(2));
        assert_eq!(last.of(whom(1, 1)), Some((Refusal::Busy, UnixMillis(2))));
        assert_eq!(last.of(whom(1, 2)), None);
        for user in 0..3 * MANY as u64 {
            last.note(whom(2 + user, 1), Refusal::Busy, at);
        }
        assert!(last.0.lock().len() <= MANY);
    }
}
