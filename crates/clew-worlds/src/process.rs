//! One process of the bot, as its seams see it: a kill cuts all of them at once, so that
//! nothing of what is dropped afterwards has an effect.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

/// A process of the bot.
#[derive(Debug)]
pub(crate) struct Process {
    /// Counts the processes of a world, from 1.
    pub(crate) number: u32,
    is_cut: AtomicBool,
    /// How often something went through a seam.
    crossings: AtomicU64,
    /// At which crossing its end begins; 0 for none.
    end_at: AtomicU64,
    /// Whether it is killed there, or asked to stop.
    is_killed: AtomicBool,
    ends: Notify,
}

impl Process {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            is_cut: AtomicBool::new(false),
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
        if self.is_cut() {
            pending::<()>().await;
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
