//! Leases by virtual time.

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
    assert_eq!(lease.during(async { 7 }).await, Some(7));
    assert_eq!(lease.during(std::future::pending::<u8>()).await, None);
    assert_eq!(lease.during(async { 7 }).await, None);
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
