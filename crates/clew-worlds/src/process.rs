//! One process of the bot, as its seams see it: a kill cuts all of them at once, so that
//! nothing of what is dropped afterwards has an effect.
//!
//! In worlds of several machines a process is the bot at times. Its number is that of the tenure, so
//! that history and rules have one process after the other there, too.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::clock::WorldClock;

/// A process of the bot.
#[derive(Debug)]
pub(crate) struct Process {
    clock: Arc<WorldClock>,
    number: AtomicU32,
    is_cut: AtomicBool,
    /// Until when it does nothing, in milliseconds since the world's beginning.
    paused_until: AtomicI64,
    /// Until when it does not reach its database.
    parted_until: AtomicI64,
    /// Until when it does not reach Discord.
    offline_until: AtomicI64,
    went_offline: Notify,
    /// How often something went through a seam.
    crossings: AtomicU64,
    /// At which crossing its end begins; 0 for none.
    end_at: AtomicU64,
    /// Whether it is killed there, or asked to stop.
    is_killed: AtomicBool,
    ends: Notify,
}

impl Process {
    pub(crate) fn new(number: u32, clock: Arc<WorldClock>) -> Self {
        Self {
            clock,
            number: AtomicU32::new(number),
            is_cut: AtomicBool::new(false),
            paused_until: AtomicI64::new(0),
            parted_until: AtomicI64::new(0),
            offline_until: AtomicI64::new(0),
            went_offline: Notify::new(),
            crossings: AtomicU64::new(0),
            end_at: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
            ends: Notify::new(),
        }
    }

    /// Something goes through a seam, unless the process is killed here or was before.
    pub(crate) async fn cross(&self) {
        let crossing = self.crossings.fetch_add(1, Ordering::Relaxed) + 1;
        if crossing == self.end_at.load(Ordering::Relaxed) {
            if self.is_killed.load(Ordering::Relaxed) {
                self.cut();
            }
            self.ends.notify_one();
        }
        loop {
            let left = self.paused_until.load(Ordering::Relaxed) - self.clock.elapsed_ms();
            match u64::try_from(left) {
                Ok(left @ 1..) if !self.is_cut() => sleep(Duration::from_millis(left)).await,
                _ => break,
            }
        }
        if self.is_cut() {
            pending::<()>().await;
        }
    }

    /// Counts those of a world that were the bot, from 1; 0 while it is not.
    pub(crate) fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }

    /// From here on it is the bot as the one of this number; 0: no more.
    pub(crate) fn becomes(&self, number: u32) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// It does nothing until then.
    pub(crate) fn pause(&self, until: i64) {
        self.paused_until.store(until, Ordering::Relaxed);
    }

    /// It does not reach its database until then.
    pub(crate) fn part(&self, until: i64) {
        self.parted_until.store(until, Ordering::Relaxed);
    }

    pub(crate) fn is_parted(&self) -> bool {
        self.clock.elapsed_ms() < self.parted_until.load(Ordering::Relaxed)
    }

    /// It does not reach Discord until then.
    pub(crate) fn go_offline(&self, until: i64) {
        self.offline_until.store(until, Ordering::Relaxed);
        self.went_offline.notify_waiters();
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.clock.elapsed_ms() < self.offline_until.load(Ordering::Relaxed)
    }

    /// Waits until it does not.
    pub(crate) async fn offline(&self) {
        let went = self.went_offline.notified();
        if !self.is_offline() {
            went.await;
        }
    }

    /// Waits until it has gone through its seams so many times more. Then it is killed, or may be
    /// asked to stop.
    pub(crate) async fn ends_after(&self, crossings: u64, is_killed: bool) {
        let now = self.crossings.load(Ordering::Relaxed);
        self.is_killed.store(is_killed, Ordering::Relaxed);
        self.end_at.store(now + crossings.max(1), Ordering::Relaxed);
        self.ends.notified().await;
    }

    /// Cuts all seams.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    pub(crate) fn crossings(&self) -> u64 {
        self.crossings.load(Ordering::Relaxed)
    }
}
