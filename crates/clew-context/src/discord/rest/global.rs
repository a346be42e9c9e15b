//! Discord's global limit, shared among the rate-limit pools.

use std::sync::{Mutex as Lock, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::pool::{OTHERS_PER_SECOND, RateLimitPool};

/// Requests a second of all pools: with [`OTHERS_PER_SECOND`] they are the 50 that Discord lets a
/// bot send (its reference, "Global Rate Limit").
const SHARED: u32 = 50 - OTHERS_PER_SECOND as u32;
/// How long the limit counts, from the first request on.
const WINDOW: Duration = Duration::from_secs(1);
/// A window has so many steps; with each one as large a part of the unused shares is lent.
const STEPS: u32 = 20;

const POOLS: usize = RateLimitPool::ALL.len();

/// Each pool has its share of every second. What it has not used is lent to the others as the
/// second passes: a burst of one kind finds its share free, and a long queue of one kind takes
/// nearly all there is.
#[derive(Debug, Default)]
pub(super) struct GlobalLimit {
    window: Lock<Window>,
    /// First come, first served within a pool; only the first one waits for the window.
    lines: [Mutex<()>; POOLS],
}

#[derive(Debug, Default)]
struct Window {
    began: Option<Instant>,
    used: [u32; POOLS],
}

impl GlobalLimit {
    /// Waits until the pool may send one more request. `held` is told until when it waits at
    /// least.
    pub(super) async fn take(&self, pool: RateLimitPool, held: impl Fn(Instant)) {
        let line = &self.lines[pool as usize];
        if line.try_lock().is_err() {
            held(Instant::now() + WINDOW);
        }
        let _first = line.lock().await;
        while let Err(until) = self.try_take(pool, Instant::now()) {
            held(until);
            sleep_until(until).await;
        }
    }

    fn try_take(&self, pool: RateLimitPool, now: Instant) -> Result<(), Instant> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.try_take(pool, now)
    }
}

impl Window {
    /// Counts one request of the pool, or says when to try again.
    fn try_take(&mut self, pool: RateLimitPool, now: Instant) -> Result<(), Instant> {
        let began = match self.began {
            Some(began) if now < began + WINDOW => began,
            _ => {
                *self = Self {
                    began: Some(now),
                    used: [0; POOLS],
                };
                now
            }
        };
        let step = WINDOW / STEPS;
        let passed = (now - began).as_millis() / step.as_millis();
        let passed = u32::try_from(passed).unwrap_or(STEPS);
        if !self.has_room(pool, passed) {
            return Err(began + step * (passed + 1));
        }
        self.used[pool as usize] += 1;
        Ok(())
    }

    /// Whether the pool may send once `passed` steps are over: what is kept for the other pools
    /// must not become less.
    fn has_room(&self, pool: RateLimitPool, passed: u32) -> bool {
        if !pool.borrows() && self.used[pool as usize] >= pool.share() {
            return false;
        }
        let kept = |other: RateLimitPool| {
            let share = (other.share() * (STEPS - passed)).div_ceil(STEPS);
            share.saturating_sub(self.used[other as usize])
        };
        let others = RateLimitPool::ALL
            .into_iter()
            .filter(|other| *other != pool);
        self.used.iter().sum::<u32>() + others.map(kept).sum::<u32>() < SHARED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends as many as there is room for.
    fn fill(window: &mut Window, pool: RateLimitPool, now: Instant) -> u32 {
        let mut sent = 0;
        while window.try_take(pool, now).is_ok() {
            sent += 1;
        }
        sent
    }

    #[test]
    fn shares_are_all_there_is() {
        let shares = RateLimitPool::ALL.map(RateLimitPool::share);
        assert_eq!(shares.iter().sum::<u32>(), SHARED);
    }

    #[tokio::test]
    async fn each_pool_finds_its_share_in_a_burst_of_all() {
        let now = Instant::now();
        let mut window = Window::default();
        for pool in RateLimitPool::ALL {
            assert_eq!(fill(&mut window, pool, now), pool.share(), "{pool:?}");
        }
    }

    #[tokio::test]
    async fn one_pool_takes_nearly_all_that_nobody_else_wants() {
        let began = Instant::now();
        let mut window = Window::default();
        let mut sent = 0;
        for millis in (0..1_000).step_by(10) {
            let now = began + Duration::from_millis(millis);
            sent += fill(&mut window, RateLimitPool::Main, now);
        }
        // The last step is not over: a request a pool is kept for the others.
        assert_eq!(sent, SHARED - 3);
        assert_eq!(
            fill(&mut window, RateLimitPool::Main, began + WINDOW),
            RateLimitPool::Main.share()
        );
    }

    #[tokio::test]
    async fn no_second_has_more_than_the_limit() {
        let began = Instant::now();
        let mut window = Window::default();
        let mut sent = 0;
        for millis in (0..1_000).step_by(10) {
            let now = began + Duration::from_millis(millis);
            let pools = RateLimitPool::ALL.into_iter();
            sent += pools.map(|pool| fill(&mut window, pool, now)).sum::<u32>();
        }
        assert_eq!(sent, SHARED);
    }

    #[tokio::test]
    async fn checks_borrow_nothing() {
        let began = Instant::now();
        let mut window = Window::default();
        fill(&mut window, RateLimitPool::Checks, began);
        let late = began + Duration::from_millis(990);
        assert_eq!(fill(&mut window, RateLimitPool::Checks, late), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_in_the_next_second_in_order() {
        let limit = std::sync::Arc::<GlobalLimit>::default();
        let began = Instant::now();
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..100 {
            let (limit, sender) = (std::sync::Arc::clone(&limit), sender.clone());
            tokio::spawn(async move {
                limit.take(RateLimitPool::Main, |_| {}).await;
                sender.send((number, began.elapsed())).unwrap();
            });
        }
        drop(sender);
        let mut expected = 0;
        while let Some((number, after)) = order.recv().await {
            assert_eq!(number, expected);
            assert!(after < Duration::from_secs(3), "{number} after {after:?}");
            expected += 1;
        }
        assert_eq!(expected, 100);
    }
}
