//! The circuit breaker of a model server: after failures in a row the server is passed
//! over for a while, then a single request tests it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// So many failures in a row open the breaker.
const MAX_FAILURES: u32 = 3;
/// The first pause. Each test that fails doubles it...
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// ...up to this, which also limits the wait that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The breaker of one server.
#[derive(Debug)]
pub(super) struct Breaker {
    /// Pauses are drawn from this.
    seed: u64,
    state: Mutex<BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    /// Since the server last answered, while the breaker is closed.
    failures: u32,
    /// Pauses since the server last answered.
    pauses: u32,
    /// While the breaker is open: when a request may test the server.
    test_at: Option<Instant>,
    /// Whether a request is testing the server.
    is_testing: bool,
}

/// A request's right to ask the server. If it tests the server, no other request does
/// until this is dropped.
#[derive(Debug)]
pub(super) struct BreakerPass {
    breaker: Arc<Breaker>,
    is_test: bool,
}

impl Breaker {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            state: Mutex::default(),
        }
    }

    /// An earlier process found that the server does not answer: so it is until it has.
    pub(super) fn suspect(&self) {
        self.state.lock().pauses = 1;
    }

    /// Whether [`Breaker::pass`] would let a request through.
    pub(super) fn lets_through(&self, now: Instant) -> bool {
        self.state.lock().lets_through(now)
    }

    /// Whether the server has failed so often, and not answered since; one that only asked for a
    /// pause has not.
    pub(super) fn is_open(&self) -> bool {
        self.state.lock().pauses > 0
    }

    /// Lets a request through: any while closed, after the pause one at a time.
    pub(super) fn pass(self: &Arc<Self>, now: Instant) -> Option<BreakerPass> {
        let mut state = self.state.lock();
        if !state.lets_through(now) {
            return None;
        }
        let is_test = state.test_at.is_some();
        state.is_testing |= is_test;
        drop(state);
        Some(self.pass_as(is_test))
    }

    /// Lets a request through that has no other server to ask.
    pub(super) fn pass_anyway(self: &Arc<Self>) -> BreakerPass {
        self.pass_as(false)
    }

    fn pass_as(self: &Arc<Self>, is_test: bool) -> BreakerPass {
        BreakerPass {
            breaker: Arc::clone(self),
            is_test,
        }
    }

    /// A pause after so many others. Half of it is random, so that bots do not come
    /// back to a server all at once.
    fn pause(&self, pauses: u32) -> Duration {
        let full = FIRST_PAUSE
            .saturating_mul(1 << pauses.min(16))
            .min(LONGEST_PAUSE);
        let mut hasher = DefaultHasher::new();
        (self.seed, pauses).hash(&mut hasher);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a chance needs no more than a float's digits"
        )]
        let chance = hasher.finish() as f64 / u64::MAX as f64;
        full / 2 + (full / 2).mul_f64(chance)
    }
}

impl BreakerState {
    fn lets_through(&self, now: Instant) -> bool {
        self.test_at
            .is_none_or(|test_at| test_at <= now && !self.is_testing)
    }
}

impl BreakerPass {
    /// The server answered: closes the breaker. Returns whether it was open.
    pub(super) fn answered(self) -> bool {
        let mut state = self.breaker.state.lock();
        let was_open = state.test_at.is_some();
        *state = BreakerState::default();
        was_open
    }

    /// The server failed, and may have said how long to wait. Returns the pause if one
    /// begins.
    pub(super) fn failed(self, retry_after: Option<Duration>, now: Instant) -> Option<Duration> {
        let mut state = self.breaker.state.lock();
        if state.test_at.is_some() && !self.is_test {
            // Sent before the breaker opened, or for want of another server.
            return None;
        }
        state.failures += 1;
        let asked = retry_after.map(|wait| wait.min(LONGEST_PAUSE));
        let own = (self.is_test || state.failures >= MAX_FAILURES).then(|| {
            state.pauses += 1;
            self.breaker.pause(state.pauses - 1)
        });
        let pause = asked.max(own)?;
        state.test_at = Some(now + pause);
        Some(pause)
    }
}

impl Drop for BreakerPass {
    fn drop(&mut self) {
        if self.is_test {
            self.breaker.state.lock().is_testing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Arc<Breaker> {
        Arc::new(Breaker::new(7))
    }

    /// Fails once at this time, and returns the pause that begins.
    fn fail(breaker: &Arc<Breaker>, now: Instant) -> Option<Duration> {
        let pass = breaker.pass(now).unwrap();
        pass.failed(None, now)
    }

    /// A breaker that opened now, and its pause.
    fn opened(now: Instant) -> (Arc<Breaker>, Duration) {
        let breaker = breaker();
        let pauses = [(); MAX_FAILURES as usize].map(|()| fail(&breaker, now));
        let pause = pauses[MAX_FAILURES as usize - 1].unwrap();
        assert!(pauses.iter().filter(|pause| pause.is_some()).count() == 1);
        (breaker, pause)
    }

    #[tokio::test(start_paused = true)]
    async fn failures_in_a_row_open_it_for_a_pause() {
        let (breaker, pause) = opened(Instant::now());
        assert!(
            FIRST_PAUSE / 2 <= pause && pause <= FIRST_PAUSE,
            "{pause:?}"
        );
        tokio::time::advance(pause.saturating_sub(Duration::from_millis(1))).await;
        assert!(breaker.pass(Instant::now()).is_none());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(breaker.pass(Instant::now()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_the_row() {
        let (breaker, now) = (breaker(), Instant::now());
        for _ in 0..MAX_FAILURES {
            assert_eq!(fail(&breaker, now), None);
            assert_eq!(fail(&breaker, now), None);
            assert!(!breaker.pass(now).unwrap().answered());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_at_a_time_tests_the_server() {
        let (breaker, pause) = opened(Instant::now());
        tokio::time::advance(pause).await;
        let test = breaker.pass(Instant::now()).unwrap();
        assert!(!breaker.lets_through(Instant::now()));
        assert!(breaker.pass(Instant::now()).is_none());
        drop(test);
        assert!(breaker.lets_through(Instant::now()), "it was given up");
        assert!(breaker.pass(Instant::now()).unwrap().answered());
        let both = [breaker.pass(Instant::now()), breaker.pass(Instant::now())];
        assert!(both.iter().all(Option::is_some), "closed");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_bound_and_begin_anew_after_an_answer() {
        let (breaker, mut pause) = opened(Instant::now());
        for doublings in 1..10 {
            tokio::time::advance(pause).await;
            pause = fail(&breaker, Instant::now()).unwrap();
            let full = FIRST_PAUSE.saturating_mul(1 << doublings);
            let full = full.min(LONGEST_PAUSE);
            assert!(full / 2 <= pause && pause <= full, "{doublings} {pause:?}");
        }
        tokio::time::advance(pause).await;
        assert!(breaker.pass(Instant::now()).unwrap().answered());
        assert_eq!(fail(&breaker, Instant::now()), None);
        assert_eq!(fail(&breaker, Instant::now()), None);
        let first = fail(&breaker, Instant::now()).unwrap();
        assert!(first <= FIRST_PAUSE, "{first:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_ask_for_a_wait_within_bounds() {
        let (breaker, now) = (breaker(), Instant::now());
        let wait = Duration::from_secs(20);
        let pass = breaker.pass(now).unwrap();
        assert_eq!(pass.failed(Some(wait), now), Some(wait));
        assert!(
            breaker
                .pass(now + wait - Duration::from_millis(1))
                .is_none()
        );
        let pass = breaker.pass(now + wait).unwrap();
        let day = Some(Duration::from_hours(24));
        assert_eq!(pass.failed(day, now + wait), Some(LONGEST_PAUSE));
    }

    /// Requests that were on their way when it opened.
    #[tokio::test(start_paused = true)]
    async fn late_failures_prolong_nothing_and_a_late_answer_closes_it() {
        let (breaker, now) = (breaker(), Instant::now());
        let late = [(); 2].map(|()| breaker.pass(now).unwrap());
        for _ in 0..MAX_FAILURES {
            fail(&breaker, now);
        }
        let [fails, answers] = late;
        assert_eq!(fails.failed(Some(LONGEST_PAUSE), now), None);
        assert!(breaker.pass(now + FIRST_PAUSE).is_some());
        assert!(answers.answered());
        assert!(breaker.pass(now).is_some());
    }

    #[test]
    fn servers_and_processes_pause_differently() {
        let pauses = (0..20).map(|seed| Breaker::new(seed).pause(0));
        let different: std::collections::BTreeSet<_> = pauses.collect();
        assert!(different.len() > 15, "{different:?}");
    }
}
