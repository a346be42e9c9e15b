//! Sending requests, and how to tell whether a limiter holds us back or the
//! server does not answer.
//!
//! Until twilight knows a channel's bucket, it sends one request at a time for
//! that channel, whatever the method, and it learns buckets from 429s alone. A
//! page, a single message and a typing notice for one channel would wait for each
//! other. So each has a rate-limit pool: a limiter of its own ([`BoundedLimiter`]). The pools
//! share Discord's 50 requests a second.
//!
//! A request is resent after a 429, once the wait given in its headers is over (a client
//! handed to us tells it only with a bucket, see [`Wire`]). The first two attempts are at
//! least [`FIRST_PAUSE`] apart, and that pause doubles each time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::TryFutureExt;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use twilight_http::Client;
use twilight_http::request::Request;
use twilight_http_ratelimiting::{Endpoint, RateLimiter};

use super::address::Address;
use super::limiter::BoundedLimiter;
use super::wire::Wire;
use crate::discord::error::RestError;
use crate::model::Fallback;
use crate::outside::Http;

/// Most times a request is sent: the first attempt and one after each of four
/// 429s, the last at least 15 s later.
const MAX_SENDINGS: u32 = 5;
/// Shortest time from the first attempt to the second. `Retry-After` is in whole
/// seconds, and most global limits last one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Requests per second of [`RestReader::client`](super::RestReader::client), which the bot
/// hardly uses.
const OTHERS_PER_SECOND: u16 = 1;
/// Limit for callers with a distant deadline; none of our requests takes longer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Which rate limiter a request goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimitPool {
    /// Pages, posts and edits.
    Main,
    /// Single messages, channels and members: asked for at the same time as a page.
    Singles,
    /// Requests that nothing waits for (typing, reactions), and responses to
    /// interactions, which are due within three seconds.
    Aside,
    /// Whether stored messages and members still exist, and what was missed; must never delay
    /// anything else.
    Checks,
}

impl RateLimitPool {
    const ALL: [Self; 4] = [Self::Main, Self::Singles, Self::Aside, Self::Checks];

    /// Requests per second; with [`OTHERS_PER_SECOND`] they add up to Discord's global limit
    /// of 50.
    const fn per_second(self) -> u16 {
        match self {
            Self::Main => 21,
            Self::Singles | Self::Aside => 10,
            Self::Checks => 8,
        }
    }
}

/// A limiter per pool, and how requests are sent.
#[derive(Debug)]
pub(super) struct RateLimitPools {
    client: Arc<Client>,
    /// `None` for a client handed to us, which does not say where it sends to: it sends by
    /// itself, through its one limiter.
    own: Option<OwnSending>,
    refused: CancellationToken,
}

#[derive(Debug)]
struct OwnSending {
    wire: Wire,
    /// In the order of [`RateLimitPool::ALL`].
    limiters: [Arc<BoundedLimiter>; RateLimitPool::ALL.len()],
}

/// How one request is sent.
enum Sender {
    Own(Wire, Arc<BoundedLimiter>),
    Handed(Arc<Client>),
}

impl RateLimitPools {
    pub(super) fn new(token: &str, address: Option<&Address>, http: Http) -> Self {
        let client = client(token.trim(), address);
        let wire = client
            .token()
            .and_then(|token| Wire::new(http, token, address));
        let limiters =
            RateLimitPool::ALL.map(|pool| Arc::new(BoundedLimiter::new(pool.per_second())));
        Self {
            client,
            own: wire.map(|wire| OwnSending { wire, limiters }),
            refused: CancellationToken::new(),
        }
    }

    /// Uses one client for all pools.
    pub(super) fn of(client: Arc<Client>) -> Self {
        Self {
            client,
            own: None,
            refused: CancellationToken::new(),
        }
    }

    pub(super) const fn client(&self) -> &Arc<Client> {
        &self.client
    }

    fn sender(&self, pool: RateLimitPool) -> Sender {
        match &self.own {
            Some(own) => Sender::Own(own.wire.clone(), own.limiter(pool)),
            None => Sender::Handed(Arc::clone(&self.client)),
        }
    }

    /// Waits until Discord refuses the token.
    pub(super) async fn refused(&self) {
        self.refused.cancelled().await;
    }

    /// Sends a request; ends with an answer, a refusal or at `deadline`.
    pub(super) async fn call(
        &self,
        request: Request,
        pool: RateLimitPool,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let state = RequestState::of(&request);
        let answer = self.start(request, pool, &state, Some(deadline));
        match timeout_at(deadline, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late(pool, &state).await),
        }
    }

    /// The request; it owns everything it needs. `deadline` does not end it, but a
    /// wait beyond it fails at once.
    pub(super) fn start(
        &self,
        request: Request,
        pool: RateLimitPool,
        state: &RequestState,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Vec<u8>, RestError>> + Send + 'static {
        let sender = self.sender(pool);
        let state = state.clone();
        let refused = self.refused.clone();
        // Each further request would count towards a ban.
        let hopeless = refused.is_cancelled();
        let answer = async move {
            if hopeless {
                return Err(RestError::unauthorized());
            }
            let mut pause = FIRST_PAUSE;
            let mut sendings = 1;
            loop {
                let sent = Arc::default();
                let answer = match &sender {
                    Sender::Own(wire, limiter) => {
                        let (limiter, endpoint) = limiter.of(&state.endpoint);
                        wire.send(&limiter, endpoint, &request, &sent).await
                    }
                    Sender::Handed(client) => send(client, request.clone(), &sent).await,
                };
                let (Err(error), Some(sent)) = (&answer, sent.get()) else {
                    return answer;
                };
                if !error.is_limit() || sendings == MAX_SENDINGS {
                    return answer;
                }
                let told = error.retry_after.map(|wait| Instant::now() + wait);
                let again = told.unwrap_or(*sent).max(*sent + pause);
                if deadline.is_some_and(|deadline| again > deadline) {
                    return Err(RestError::limited_until(again));
                }
                state.limit(again);
                sleep_until(again).await;
                pause *= 2;
                sendings += 1;
            }
        };
        answer.inspect_err(move |error| {
            if error.unauthorized {
                refused.cancel();
            }
        })
    }

    /// Why a request is late: our limiter holds it, it got a 429, or there was no answer.
    pub(super) async fn late(&self, pool: RateLimitPool, state: &RequestState) -> RestError {
        let limiter = || match &self.own {
            Some(own) => Some(own.limiter(pool).of(&state.endpoint)),
            None => Some((self.client.ratelimiter()?.clone(), state.endpoint.clone())),
        };
        let until = match state.limited_until() {
            Some(until) => Some(until),
            None => match limiter() {
                Some((limiter, endpoint)) => reset(&limiter, endpoint).await,
                None => None,
            },
        };
        match until {
            Some(until) => RestError::limited_until(until),
            None => RestError::lasting(Fallback::Timeout),
        }
    }
}

/// One attempt of a client handed to us; notes when it was sent. Keeps twilight from resending it after a 429.
async fn send(
    client: &Client,
    request: Request,
    sent: &Arc<OnceLock<Instant>>,
) -> Result<Vec<u8>, RestError> {
    let mut response = client.request::<()>(request);
    let sent = Arc::clone(sent);
    response.set_pre_flight(move || sent.set(Instant::now()).is_ok());
    let response = response.await;
    let response = response.map_err(|error| RestError::of_twilight(&error))?;
    response.bytes().await.map_err(|_| RestError::broken())
}

impl OwnSending {
    fn limiter(&self, pool: RateLimitPool) -> Arc<BoundedLimiter> {
        Arc::clone(&self.limiters[pool as usize])
    }
}

fn client(token: &str, address: Option<&Address>) -> Arc<Client> {
    let builder = Client::builder()
        .token(token.to_owned())
        .timeout(REQUEST_TIMEOUT)
        // Expired interaction tokens also give a 401, after which twilight would
        // refuse to send anything.
        .remember_invalid_token(false)
        .ratelimiter(Some(RateLimiter::new(OTHERS_PER_SECOND)));
    Arc::new(match address {
        Some(address) => builder
            .proxy(address.authority.clone(), address.plain)
            .build(),
        None => builder.build(),
    })
}

/// When the bucket will be refilled, if it is used up.
async fn reset(limiter: &RateLimiter, endpoint: Endpoint) -> Option<Instant> {
    let bucket = limiter.bucket(endpoint).await?;
    (bucket.remaining == 0).then(|| bucket.reset_at.into())
}

/// What is known of a request in flight.
#[derive(Debug, Clone)]
pub(super) struct RequestState {
    endpoint: Endpoint,
    /// After a 429, when it will be resent.
    limited: Arc<Mutex<Option<Instant>>>,
}

impl RequestState {
    pub(super) fn of(request: &Request) -> Self {
        let path = request.path().split('?').next().unwrap_or_default();
        Self {
            endpoint: Endpoint {
                method: request.method(),
                path: path.to_owned(),
            },
            limited: Arc::default(),
        }
    }

    fn limit(&self, until: Instant) {
        *self.limited.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    fn limited_until(&self) -> Option<Instant> {
        *self.limited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
