//! One process of the bot, as its seams see it: a kill cuts all of them at once, so that
//! nothing of what is dropped afterwards has an effect.
//!
//! In worlds of several machines a process is the bot at times. Its number is that of the tenure, so
//! that history and rules have one process after the other there, too.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::clock::WorldClock;
use crate::world::lock;

/// What a process may lack for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It does nothing.
    Time,
    /// It does not reach its database.
    Database,
    /// It does not reach Discord.
    Discord,
}

impl Lack {
    pub(crate) const ALL: [Self; 3] = [Self::Time, Self::Database, Self::Discord];
}

/// A process of the bot.
#[derive(Debug)]
pub(crate) struct Process {
    clock: Arc<WorldClock>,
    number: AtomicU32,
    is_cut: AtomicBool,
    /// Until when it lacks each, in milliseconds since the world's beginning.
    lacks_until: [AtomicI64; 3],
    lack_changed: Notify,
    /// How often something went through a seam.
    crossings: AtomicU64,
    /// At which crossing its end begins; 0 for none.
    end_at: AtomicU64,
    /// Whether it is killed there, or asked to stop.
    is_killed: AtomicBool,
    ends: Notify,
    /// Of how many shards the bot is; 0 while it has none. Those beside them are heard once they go on in
    /// their place.
    shards: AtomicU32,
    /// How many links there are, by the number of shards that they are of.
    links: Mutex<BTreeMap<u32, usize>>,
}

impl Process {
    pub(crate) fn new(number: u32, clock: Arc<WorldClock>) -> Self {
        Self {
            clock,
            number: AtomicU32::new(number),
            is_cut: AtomicBool::new(false),
            lacks_until: Default::default(),
            lack_changed: Notify::new(),
            crossings: AtomicU64::new(0),
            end_at: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
            ends: Notify::new(),
            shards: AtomicU32::new(0),
            links: Mutex::default(),
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
            match u64::try_from(self.left_without(Lack::Time)) {
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

    /// A link of one of so many shards begins, or is gone.
    pub(crate) fn dials(&self, shards: u32, change: isize) {
        let mut links = lock(&self.links);
        let left = links.entry(shards).or_default();
        *left = left.saturating_add_signed(change);
        if *left == 0 {
            links.remove(&shards);
        }
        if !links.contains_key(&self.shards.load(Ordering::Relaxed)) {
            let next = links.keys().next().copied().unwrap_or_default();
            self.shards.store(next, Ordering::Relaxed);
        }
    }

    /// Whether it is heard what comes to one of so many shards.
    pub(crate) fn hears(&self, shards: u32) -> bool {
        self.shards.load(Ordering::Relaxed) == shards
    }

    /// It lacks this until then.
    pub(crate) fn lack(&self, lack: Lack, until: i64) {
        self.lacks_until[lack as usize].store(until, Ordering::Relaxed);
        self.lack_changed.notify_waiters();
    }

    pub(crate) fn lacks(&self, lack: Lack) -> bool {
        self.left_without(lack) > 0
    }

    fn left_without(&self, lack: Lack) -> i64 {
        self.lacks_until[lack as usize].load(Ordering::Relaxed) - self.clock.elapsed_ms()
    }

    /// Waits until it lacks this.
    pub(crate) async fn lacking(&self, lack: Lack) {
        loop {
            let changed = self.lack_changed.notified();
            if self.lacks(lack) {
                return;
            }
            changed.await;
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
