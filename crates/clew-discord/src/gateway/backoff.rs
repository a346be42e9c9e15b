//! How long to wait before the next connection.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Wait before the second connection in a row; the first is at once, since
/// Discord asks for reconnects every few hours.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait.
const LONGEST: Duration = Duration::from_mins(1);
/// A connection that lasted this long was a good one.
const STABLE: Duration = Duration::from_mins(1);

/// Counts connections that did not last.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait after a connection that lasted so long (`None`: it never got
    /// a session): none, then doubling from [`FIRST`] to [`LONGEST`], half of
    /// it by chance so that shards do not come back together.
    pub(super) fn after(&mut self, lasted: Option<Duration>) -> Duration {
        if lasted.is_some_and(|lasted| lasted >= STABLE) {
            self.failures = 0;
        }
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        let Some(doublings) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let full = FIRST.saturating_mul(1 << doublings.min(16)).min(LONGEST);
        full / 2 + (full / 2).mul_f64(chance())
    }

    /// Connections in a row that did not last.
    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }
}

/// Between 0 and 1; std's per-map random keys are random enough for jitter.
fn chance() -> f64 {
    let random = RandomState::new().hash_one(0) >> 32;
    f64::from(u32::try_from(random).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_a_good_connection_resets_them() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.after(None), Duration::ZERO);
        for full in [1, 2, 4, 8, 16, 32, 60, 60, 60].map(Duration::from_secs) {
            let wait = backoff.after(Some(STABLE / 2));
            assert!(wait >= full / 2 && wait <= full, "{wait:?} of {full:?}");
        }
        for _ in 0..100 {
            assert!(backoff.after(None) <= LONGEST);
        }
        assert_eq!(backoff.after(Some(STABLE)), Duration::ZERO);
        assert!(backoff.after(None) > Duration::ZERO);
    }
}
