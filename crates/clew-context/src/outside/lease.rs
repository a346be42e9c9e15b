//! Until when this process may act, where others stand by to go on in its place.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// A lease by this machine's monotonic clock; clones share it. Once it is over it stays so:
/// somebody else may have begun.
#[derive(Debug, Clone)]
pub struct Lease {
    /// None once it is over.
    until: Arc<watch::Sender<Option<Instant>>>,
}

impl Lease {
    /// Holds until then, unless it is renewed.
    pub fn new(until: Instant) -> Self {
        let (until, _) = watch::channel(Some(until));
        Self {
            until: Arc::new(until),
        }
    }

    /// It holds until then, at least as long as before. Returns false if it was over already.
    pub fn renew(&self, until: Instant) -> bool {
        let now = Instant::now();
        self.until.send_modify(|held| {
            *held = held.filter(|held| now < *held).map(|held| held.max(until));
        });
        !self.is_over()
    }

    /// It is over now.
    pub fn give_up(&self) {
        self.until.send_replace(None);
    }

    /// Whether it is over. By the clock, not by a timer: a process that was stopped for a while
    /// learns it before it sends anything. A machine that sleeps stops the clock, too.
    pub fn is_over(&self) -> bool {
        self.until
            .borrow()
            .is_none_or(|until| Instant::now() >= until)
    }

    /// Does something that breaks off once it is over; none if it did not end.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        if self.is_over() {
            return None;
        }
        let (over, work) = (pin!(self.over()), pin!(work));
        match select(over, work).await {
            Either::Left(_) => None,
            Either::Right((done, _)) => Some(done),
        }
    }

    /// Waits until it is over.
    pub async fn over(&self) {
        let mut changes = self.until.subscribe();
        while !self.is_over() {
            let until = *changes.borrow_and_update();
            let Some(until) = until else { return };
            // Until it is renewed or given up, or its time has come.
            let _ = timeout_at(until, changes.changed()).await;
        }
    }
}

#[cfg(test)]
mod tests;
