//! Until when this process may act, where others stand by to go on in its place.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

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
    /// learns it before it sends anything.
    pub fn is_over(&self) -> bool {
        self.until
            .borrow()
            .is_none_or(|until| Instant::now() >= until)
    }

    /// Waits until it is over.
    pub async fn over(&self) {
        let mut changes = self.until.subscribe();
        while !self.is_over() {
            let until = *changes.borrow_and_update();
            let Some(until) = until else { return };
            tokio::select! {
                // The sender is ours.
                _ = changes.changed() => {}
                () = sleep_until(until) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{advance, timeout};

    use super::*;

    const TERM: Duration = Duration::from_secs(9);

    #[tokio::test(start_paused = true)]
    async fn a_lease_holds_as_long_as_it_is_renewed() {
        let lease = Lease::new(Instant::now() + TERM);
        for _ in 0..3 {
            advance(Duration::from_secs(6)).await;
            assert!(lease.renew(Instant::now() + TERM));
        }
        assert!(timeout(Duration::from_secs(8), lease.over()).await.is_err());
        assert!(!lease.is_over());
        lease.over().await;
        assert!(!lease.renew(Instant::now() + TERM) && lease.is_over());
    }

    /// An answer to an earlier renewal does not shorten it.
    #[tokio::test(start_paused = true)]
    async fn it_never_gets_shorter_but_may_be_given_up() {
        let lease = Lease::new(Instant::now() + TERM);
        assert!(lease.renew(Instant::now() + Duration::from_secs(1)));
        advance(Duration::from_secs(2)).await;
        assert!(!lease.is_over());
        let other = lease.clone();
        other.give_up();
        lease.over().await;
        assert!(lease.is_over() && !lease.renew(Instant::now() + TERM));
    }
}
