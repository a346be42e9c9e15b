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
    /// At which crossing it is killed; 0 for never.
    kill_at: AtomicU64,
    killed: Notify,
}

impl Process {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            is_cut: AtomicBool::new(false),
            crossings: AtomicU64::new(0),
            kill_at: AtomicU64::new(0),
            killed: Notify::new(),
        }
    }

    /// Something goes through a seam, unless the process is killed here or was before.
    pub(crate) async fn cross(&self) {
        let crossing = self.crossings.fetch_add(1, Ordering::Relaxed) + 1;
        if crossing == self.kill_at.load(Ordering::Relaxed) {
            self.cut();
        }
        if self.is_cut() {
            pending::<()>().await;
        }
    }

    /// Kills it so many crossings from now.
    pub(crate) fn kill_after(&self, crossings: u64) {
        let now = self.crossings.load(Ordering::Relaxed);
        self.kill_at
            .store(now + crossings.max(1), Ordering::Relaxed);
    }

    /// Cuts all seams.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        self.killed.notify_one();
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    pub(crate) fn crossings(&self) -> u64 {
        self.crossings.load(Ordering::Relaxed)
    }

    /// Waits until it is killed.
    pub(crate) async fn killed(&self) {
        self.killed.notified().await;
    }
}
