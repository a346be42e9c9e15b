//! twilight's clients, and how to tell a limiter that holds us from a server
//! that does not answer.
//!
//! twilight lets one request at a time through for a channel, of whatever
//! method, until it knows the bucket; and it learns buckets from 429s alone.
//! A page, a single message and a typing notice of one channel would wait for
//! each other, so each has a lane: a client with a limiter of its own. The
//! lanes share out Discord's 50 requests a second.
//!
//! A 429 is sent again within the client: after the wait that its headers
//! tell, and at once when they tell none (a global limit). The latter is
//! stopped after [`MAX_SENDINGS`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use twilight_http::Client;
use twilight_http::request::Request;
use twilight_http_ratelimiting::{Endpoint, RateLimiter};

use super::address::Address;
use crate::discord::error::RestError;
use crate::model::Fallback;

/// Most that one call is sent: the first time and after two 429s.
const MAX_SENDINGS: u8 = 3;
/// For a caller whose deadline is far away; nothing that we ask takes longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Which limiter a request passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::discord) enum Lane {
    /// Pages, and what posts and edits.
    Main,
    /// Single messages, channels, members: asked at the same time as a page.
    Singles,
    /// What nobody waits for: typing and reactions; and answers to
    /// interactions, which have three seconds.
    Aside,
}

impl Lane {
    /// Requests a second; together Discord's global limit, 50.
    const fn per_second(self) -> u16 {
        match self {
            Self::Main => 26,
            Self::Singles | Self::Aside => 12,
        }
    }
}

/// A client for each lane. All are made at the start: each reads the system's
/// root certificates, which takes longer than a turn may.
#[derive(Debug)]
pub(super) struct Lanes {
    main: Client,
    singles: Client,
    aside: Client,
}

impl Lanes {
    pub(super) fn new(token: &str, address: Option<&Address>) -> Self {
        let client = |lane| client(token.trim(), address, lane);
        Self {
            main: client(Lane::Main),
            singles: client(Lane::Singles),
            aside: client(Lane::Aside),
        }
    }

    pub(super) const fn client(&self, lane: Lane) -> &Client {
        match lane {
            Lane::Main => &self.main,
            Lane::Singles => &self.singles,
            Lane::Aside => &self.aside,
        }
    }

    /// One request, answered, refused or given up at `deadline`.
    pub(super) async fn call(
        &self,
        request: Request,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let waiting = Waiting::of(&request);
        let answer = self.start(request, lane, &waiting);
        match timeout_at(deadline, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late(lane, &waiting).await),
        }
    }

    /// The request without a deadline; it owns all that it needs.
    pub(super) fn start(
        &self,
        request: Request,
        lane: Lane,
        waiting: &Waiting,
    ) -> impl Future<Output = Result<Vec<u8>, RestError>> + Send + 'static {
        let mut response = self.client(lane).request::<()>(request);
        let sendings = Arc::clone(&waiting.sendings);
        response.set_pre_flight(move || sendings.fetch_add(1, Ordering::Relaxed) < MAX_SENDINGS);
        async move {
            let response = response.await;
            let response = response.map_err(|error| RestError::of_twilight(&error))?;
            response.bytes().await.map_err(|_| RestError::broken())
        }
    }

    /// Why a request is late: our limiter holds it, or a 429 did, or nothing
    /// has been answered.
    pub(super) async fn late(&self, lane: Lane, waiting: &Waiting) -> RestError {
        let limited = waiting.sendings.load(Ordering::Relaxed) > 1
            || match self.client(lane).ratelimiter() {
                Some(limiter) => is_exhausted(limiter, &waiting.endpoint).await,
                None => false,
            };
        RestError::lasting(if limited {
            Fallback::RateLimited
        } else {
            Fallback::Timeout
        })
    }
}

fn client(token: &str, address: Option<&Address>, lane: Lane) -> Client {
    let builder = Client::builder()
        .token(token.to_owned())
        .timeout(REQUEST_TIMEOUT)
        .ratelimiter(Some(RateLimiter::new(lane.per_second())));
    match address {
        Some(address) => builder
            .proxy(address.authority.clone(), address.plain)
            .build(),
        None => builder.build(),
    }
}

async fn is_exhausted(limiter: &RateLimiter, endpoint: &Endpoint) -> bool {
    let bucket = limiter.bucket(endpoint.clone()).await;
    bucket.is_some_and(|bucket| bucket.remaining == 0)
}

/// What is known of a request under way.
#[derive(Debug)]
pub(super) struct Waiting {
    endpoint: Endpoint,
    sendings: Arc<AtomicU8>,
}

impl Waiting {
    pub(super) fn of(request: &Request) -> Self {
        let path = request.path().split('?').next().unwrap_or_default();
        Self {
            endpoint: Endpoint {
                method: request.method(),
                path: path.to_owned(),
            },
            sendings: Arc::default(),
        }
    }
}
