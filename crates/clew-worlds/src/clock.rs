//! A world's time: it goes on while no process runs, and stands still while one works.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::time::Instant;

use crate::world::lock;

/// When every world begins, in Unix milliseconds.
const BEGINNING: i64 = 1_790_000_000_000;

/// The time of a world.
#[derive(Debug, Default)]
pub(crate) struct WorldClock {
    /// Milliseconds since the beginning, up to the start of the runtime that runs.
    before_ms: AtomicI64,
    /// When that runtime started, by its own clock.
    started: Mutex<Option<Instant>>,
    /// How far the bot's clock is off, in milliseconds.
    off_ms: AtomicI64,
}

impl WorldClock {
    /// Milliseconds since the beginning.
    pub(crate) fn elapsed_ms(&self) -> i64 {
        let started = *lock(&self.started);
        let running = started.map_or(0, |started| started.elapsed().as_millis());
        self.before_ms.load(Ordering::Relaxed) + i64::try_from(running).unwrap_or(i64::MAX)
    }

    /// The world's time of day, in Unix milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        BEGINNING + self.elapsed_ms()
    }

    /// The time of day as the bot's machine has it.
    pub(crate) fn of_bot_ms(&self) -> i64 {
        self.now_ms() + self.off_ms.load(Ordering::Relaxed)
    }

    /// Sets the bot's clock: so far off from now on.
    pub(crate) fn set_off(&self, ms: i64) {
        self.off_ms.store(ms, Ordering::Relaxed);
    }

    /// A runtime begins; must be called within it.
    pub(crate) fn follow_runtime(&self) {
        *lock(&self.started) = Some(Instant::now());
    }

    /// The runtime is about to end; must be called within it.
    pub(crate) fn leave_runtime(&self) {
        let elapsed = self.elapsed_ms();
        *lock(&self.started) = None;
        self.before_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Time passes while nothing runs.
    pub(crate) fn advance_to(&self, ms: i64) {
        self.before_ms.fetch_max(ms, Ordering::Relaxed);
    }
}
