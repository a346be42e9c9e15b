//! How often a person is served: turns per minute, refusals per minute.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Spender;

/// The span that rates are counted over.
const MINUTE: Duration = Duration::from_mins(1);
/// How many people are remembered before those without recent activity are removed.
const MANY: usize = 1_024;

/// Counts events within the last minute, by person.
#[derive(Debug)]
pub(super) struct RateLimiter {
    most: usize,
    times: HashMap<Spender, VecDeque<Instant>>,
}

impl RateLimiter {
    /// Allows at most `most` per minute.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            times: HashMap::new(),
        }
    }

    /// Counts one more and returns true, unless that would be too many.
    pub(super) fn take(&mut self, spender: Spender, now: Instant) -> bool {
        if self.times.len() >= MANY {
            self.times
                .retain(|_, times| times.back().is_some_and(|last| now - *last < MINUTE));
        }
        let times = self.times.entry(spender).or_default();
        while times.front().is_some_and(|first| now - *first >= MINUTE) {
            times.pop_front();
        }
        let allowed = times.len() < self.most;
        if allowed {
            times.push_back(now);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use clew_context::model::UserId;

    use super::*;

    #[test]
    fn a_minute_slides() {
        let (mut rate, start) = (RateLimiter::new(2), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let user = Spender::User(UserId::new(1));
        assert!(rate.take(user, at(0)) && rate.take(user, at(30)));
        assert!(!rate.take(user, at(59)));
        assert!(
            rate.take(Spender::User(UserId::new(2)), at(59)),
            "others have their own"
        );
        assert!(rate.take(user, at(60)));
        assert!(!rate.take(user, at(61)));
    }
}
