//! Sending requests, and how to tell whether a limiter holds us back or the
//! server does not answer.
//!
//! Until twilight knows a channel's bucket, it sends one request at a time for
//! that channel, whatever the method, and it learns buckets from 429s alone. A
//! page, a single message and a typing notice for one channel would wait for each
//! other. So each has a rate-limit pool: a limiter of its own ([`PoolLimiter`]). The pools
//! share Discord's 50 requests a second ([`GlobalLimit`]).
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
use super::global::GlobalLimit;
use super::limiter::{PoolLimiter, reset};
use super::wire::Wire;
use crate::discord::error::RestError;
use crate::model::Fallback;
use crate::outside::Http;

/// Most times a request is sent unless its caller says less: the first attempt and one after
/// each of four 429s, the last at least 15 s later.
pub(super) const MAX_SENDINGS: u32 = 5;
/// Shortest time from the first attempt to the second. `Retry-After` is in whole
/// seconds, and most global limits last one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Requests per second of [`RestReader::client`](super::RestReader::client), which the bot
/// hardly uses.
pub(super) const OTHERS_PER_SECOND: u16 = 1;
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
    pub(super) const ALL: [Self; 4] = [Self::Main, Self::Singles, Self::Aside, Self::Checks];

    /// Requests per second that are kept for the pool at first.
    pub(super) const fn share(self) -> u32 {
        match self {
            Self::Main => 21,
            Self::Singles | Self::Aside => 10,
            Self::Checks => 8,
        }
    }

    /// Whether the pool takes what the others leave of their shares.
    pub(super) const fn borrows(self) -> bool {
        !matches!(self, Self::Checks)
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
    limiters: [Arc<PoolLimiter>; RateLimitPool::ALL.len()],
}

/// How one request is sent.
enum Sender {
    Own(Wire, Arc<PoolLimiter>),
    Handed(Arc<Client>),
}

impl RateLimitPools {
    pub(super) fn new(token: &str, address: Option<&Address>, http: Http) -> Self {
        let client = client(token.trim(), address);
        let wire = client
            .token()
            .and_then(|token| Wire::new(http, token, address));
        let global = Arc::<GlobalLimit>::default();
        let limiters =
            RateLimitPool::ALL.map(|pool| Arc::new(PoolLimiter::new(pool, Arc::clone(&global))));
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

    /// Sends a request, at most `most` times; ends with an answer, a refusal or at `deadline`.
    pub(super) async fn call(
        &self,
        request: Request,
        pool: RateLimitPool,
        deadline: Instant,
        most: u32,
    ) -> Result<Vec<u8>, RestError> {
        let state = RequestState::of(&request);
        let answer = self.start(request, pool, &state, Some(deadline), most);
        match timeout_at(deadline, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late(pool, &state).await),
        }
    }

    /// The request, sent at most `most` times; it owns everything it needs. `deadline` does not
    /// end it, but a wait beyond it fails at once.
    pub(super) fn start(
        &self,
        request: Request,
        pool: RateLimitPool,
        state: &RequestState,
        deadline: Option<Instant>,
        most: u32,
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
                let sent = Arc::<OnceLock<Instant>>::default();
                let answer = match &sender {
                    Sender::Own(wire, limiter) => {
                        let held = |until| state.limit(Some(until));
                        let permit = limiter.acquire(&state.endpoint, held).await;
                        state.limit(None);
                        sent.get_or_init(Instant::now);
                        wire.send(&request, permit).await
                    }
                    Sender::Handed(client) => send(client, request.clone(), &sent).await,
                };
                let (Err(error), Some(sent)) = (&answer, sent.get()) else {
                    return answer;
                };
                if !error.is_limit() || sendings == most {
                    return answer;
                }
                let told = error.retry_after.map(|wait| Instant::now() + wait);
                let again = told.unwrap_or(*sent).max(*sent + pause);
                if deadline.is_some_and(|deadline| again > deadline) {
                    return Err(RestError::limited_until(again));
                }
                state.limit(Some(again));
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
        let route = async {
            match &self.own {
                Some(own) => own.limiter(pool).reset(&state.endpoint).await,
                None => reset(self.client.ratelimiter()?, state.endpoint.clone()).await,
            }
        };
        let until = match state.limited_until() {
            Some(until) => Some(until),
            None => route.await,
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
    fn limiter(&self, pool: RateLimitPool) -> Arc<PoolLimiter> {
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

/// What is known of a request in flight.
#[derive(Debug, Clone)]
pub(super) struct RequestState {
    endpoint: Endpoint,
    /// When it will be sent, while a limit holds it.
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

    fn limit(&self, until: Option<Instant>) {
        *self.limited.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    fn limited_until(&self) -> Option<Instant> {
        *self.limited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
