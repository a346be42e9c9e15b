//! How long to wait before reconnecting.

use std::time::Duration;

/// Wait before the second reconnect in a row. The first is immediate, since
/// Discord asks for a reconnect every few hours.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);
/// A connection that lasted this long counts as good.
const STABLE: Duration = Duration::from_mins(1);

/// Discord's wait after an invalid session, before the next IDENTIFY or RESUME
/// (Discord's reference, "Gateway", "Resuming": random, 1 to 5 s).
const INVALID_SESSION: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Counts connections that did not last.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    chance: u64,
}

impl Backoff {
    /// Waits are drawn from this seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            failures: 0,
            chance: seed,
        }
    }

    /// The wait after a connection that lasted this long (`None`: it never got
    /// a session): first none, then doubling from [`FIRST`] to [`LONGEST`].
    /// Half of it is random, so that shards do not reconnect together.
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
        full / 2 + (full / 2).mul_f64(self.chance())
    }

    /// The wait after an invalid session. Discord asks for it, so it does not
    /// count as a failure.
    pub(super) fn after_invalid_session(&mut self) -> Duration {
        let [least, most] = INVALID_SESSION;
        least + most.saturating_sub(least).mul_f64(self.chance())
    }

    /// A session started or resumed, which clears earlier failures but one. So
    /// a session that keeps ending at once still gets a wait.
    pub(super) fn connected(&mut self) {
        self.failures = self.failures.min(1);
    }

    /// A number from 0 to 1, by `SplitMix64` (Steele, Lea and Flood 2014).
    fn chance(&mut self) -> f64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(0);
        f64::from(high) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_a_good_connection_resets_them() {
        let mut backoff = Backoff::new(1);
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

    #[test]
    fn a_session_lowers_what_failed_before() {
        let mut backoff = Backoff::new(2);
        for _ in 0..10 {
            backoff.after(None);
        }
        for _ in 0..3 {
            backoff.connected();
            let wait = backoff.after(Some(Duration::ZERO));
            assert!(wait <= FIRST && wait >= FIRST / 2, "{wait:?}");
        }
    }

    #[test]
    fn an_invalid_session_waits_as_discord_says_and_is_no_failure() {
        let waits: Vec<Duration> = (0..1_000)
            .map(|seed| Backoff::new(seed).after_invalid_session())
            .collect();
        let [least, most] = INVALID_SESSION;
        assert!(waits.iter().all(|wait| *wait >= least && *wait <= most));
        assert!(
            waits
                .iter()
                .any(|wait| *wait < Duration::from_millis(1_100))
        );
        assert!(
            waits
                .iter()
                .any(|wait| *wait > Duration::from_millis(4_900))
        );
        let mut backoff = Backoff::new(3);
        for _ in 0..20 {
            backoff.after_invalid_session();
        }
        assert_eq!(backoff.failures, 0);
        assert_eq!(backoff.after(None), Duration::ZERO);
    }
}
