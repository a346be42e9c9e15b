//! The rate limiter of a pool: twilight's for the routes, and the global limit. twilight's keeps
//! an entry for each endpoint and each channel it has seen, and drops none that was never
//! limited; so it has a bound here.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use twilight_http_ratelimiting::{Endpoint, Permit, RateLimiter};

use super::global::GlobalLimit;
use super::pool::RateLimitPool;

/// The most endpoints of one limiter, about 250 bytes each. With one more a new limiter begins:
/// what the old one learnt from 429s is learnt again.
const MOST_ENDPOINTS: usize = 2_048;

/// A rate limiter that begins anew once it has seen too many endpoints.
#[derive(Debug)]
pub(super) struct PoolLimiter {
    pool: RateLimitPool,
    global: Arc<GlobalLimit>,
    held: Mutex<Limits>,
}

#[derive(Debug)]
struct Limits {
    limiter: RateLimiter,
    endpoints: HashSet<Endpoint>,
}

impl Limits {
    fn new() -> Self {
        Self {
            // The global limit is left to `GlobalLimit`.
            limiter: RateLimiter::new(u16::MAX),
            endpoints: HashSet::new(),
        }
    }
}

impl PoolLimiter {
    pub(super) fn new(pool: RateLimitPool, global: Arc<GlobalLimit>) -> Self {
        Self {
            pool,
            global,
            held: Mutex::new(Limits::new()),
        }
    }

    /// Waits until the request may be sent. `held` is told until when the global limit holds it
    /// at least.
    pub(super) async fn acquire(&self, request: &Endpoint, held: impl Fn(Instant)) -> Permit {
        let (limiter, endpoint) = self.of(request);
        let permit = limiter.acquire(endpoint).await;
        if !is_interaction(&request.path) {
            self.global.take(self.pool, held).await;
        }
        permit
    }

    /// When the bucket of a request's route will be refilled, if it is used up.
    pub(super) async fn reset(&self, request: &Endpoint) -> Option<Instant> {
        let (limiter, endpoint) = self.of(request);
        reset(&limiter, endpoint).await
    }

    /// The limiter to ask about a request, and as what it knows it. Requests that wait in an
    /// earlier limiter stay there.
    fn of(&self, request: &Endpoint) -> (RateLimiter, Endpoint) {
        let endpoint = Endpoint {
            method: request.method,
            path: route(&request.path),
        };
        let mut held = self.held();
        if !held.endpoints.contains(&endpoint) {
            if held.endpoints.len() >= MOST_ENDPOINTS {
                *held = Limits::new();
            }
            held.endpoints.insert(endpoint.clone());
        }
        (held.limiter.clone(), endpoint)
    }

    fn held(&self) -> MutexGuard<'_, Limits> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the bucket will be refilled, if it is used up.
pub(super) async fn reset(limiter: &RateLimiter, endpoint: Endpoint) -> Option<Instant> {
    let bucket = limiter.bucket(endpoint).await?;
    (bucket.remaining == 0).then(|| bucket.reset_at.into())
}

/// Whether the global limit leaves the request alone (Discord's reference, "Global Rate Limit").
fn is_interaction(path: &str) -> bool {
    path.starts_with("interactions/") || path.starts_with("webhooks/")
}

/// The path by which a limit is known: for a channel or a server without the ids of what is in
/// it, since Discord limits routes by channel and server (its reference, "Rate Limits").
fn route(path: &str) -> String {
    if !path.starts_with("channels/") && !path.starts_with("guilds/") {
        return path.to_owned();
    }
    let is_id = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
    let segments = path.split('/').enumerate();
    let segments = segments.map(|(at, segment)| match at {
        0 | 1 => segment,
        _ if is_id(segment) => "id",
        _ => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use twilight_http_ratelimiting::Method;

    fn limiter() -> PoolLimiter {
        PoolLimiter::new(RateLimitPool::Main, Arc::default())
    }

    fn endpoint(path: &str) -> Endpoint {
        Endpoint {
            method: Method::Patch,
            path: path.to_owned(),
        }
    }

    #[test]
    fn a_route_is_known_by_its_channel_or_server() {
        #[track_caller]
        fn check(path: &str, expected: &str) {
            assert_eq!(route(path), expected);
        }
        check("channels/12/messages", "channels/12/messages");
        check("channels/12/messages/34", "channels/12/messages/id");
        check("channels/12", "channels/12");
        check("guilds/5/members/7", "guilds/5/members/id");
        check("webhooks/1/token/messages/2", "webhooks/1/token/messages/2");
        check("users/@me", "users/@me");
    }

    #[tokio::test]
    async fn messages_of_a_channel_take_one_entry() {
        let limiter = limiter();
        for id in 0..10_000 {
            limiter.of(&endpoint(&format!("channels/1/messages/{id}")));
        }
        assert_eq!(limiter.held().endpoints.len(), 1);
    }

    #[tokio::test]
    async fn channels_and_calls_take_no_more_than_their_room() {
        let limiter = limiter();
        for id in 0..10_000 {
            limiter.of(&endpoint(&format!("channels/{id}/messages")));
            limiter.of(&endpoint(&format!("webhooks/1/token{id}")));
            assert!(limiter.held().endpoints.len() <= MOST_ENDPOINTS);
        }
    }

    #[tokio::test]
    async fn a_request_that_waits_is_not_lost_when_a_new_limiter_begins() {
        let limiter = limiter();
        let first = endpoint("channels/1/messages");
        let (before, endpoint_of) = limiter.of(&first);
        let running = before.acquire(endpoint_of.clone()).await;
        let waits = before.acquire(endpoint_of);
        drop(before);
        for id in 0..=MOST_ENDPOINTS {
            limiter.of(&endpoint(&format!("channels/{id}")));
        }
        running.complete(None);
        waits.await.complete(None);
    }
}
