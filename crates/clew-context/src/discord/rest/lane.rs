//! twilight's clients, and how to tell a limiter that holds us from a server
//! that does not answer.
//!
//! twilight lets one request at a time through for a channel, of whatever
//! method, until it knows the bucket; and it learns buckets from 429s alone.
//! A page, a single message and a typing notice of one channel would wait for
//! each other, so each has a lane: a client with a limiter of its own. The
//! lanes share out Discord's 50 requests a second.
//!
//! A 429 is sent again: after the wait that its headers tell, if they name a
//! bucket, and what is no GET after any other wait that they tell too (see
//! [`Wire`]). Two sendings lie at least [`FIRST_PAUSE`] apart, then twice as
//! long.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::TryFutureExt;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use twilight_http::Client;
use twilight_http::request::{Method, Request};
use twilight_http_ratelimiting::{Endpoint, RateLimiter};

use super::address::Address;
use super::wire::Wire;
use crate::discord::error::RestError;
use crate::model::Fallback;

/// Most that one call is sent: the first time and after four 429s, which is 15
/// seconds later.
const MAX_SENDINGS: u32 = 5;
/// From the first sending to the second, at least. `Retry-After` counts whole
/// seconds, and most global limits last one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// For a caller whose deadline is far away; nothing that we ask takes longer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Which limiter a request passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Pages, and what posts and edits.
    Main,
    /// Single messages, channels, members: asked at the same time as a page.
    Singles,
    /// What nobody waits for: typing and reactions; and answers to
    /// interactions, which have three seconds.
    Aside,
    /// Whether messages and members that something is kept of are still there:
    /// behind all else, and never in its way.
    Checks,
}

impl Lane {
    /// Requests a second; together Discord's global limit, 50.
    const fn per_second(self) -> u16 {
        match self {
            Self::Main => 22,
            Self::Singles | Self::Aside => 10,
            Self::Checks => 8,
        }
    }
}

/// A client for each lane. All are made at the start: each reads the system's
/// root certificates, which takes longer than a turn may.
#[derive(Debug)]
pub(super) struct Lanes {
    main: Arc<Client>,
    singles: Arc<Client>,
    aside: Arc<Client>,
    checks: Arc<Client>,
    /// None of a client that was handed to us: where it sends to, it does not say.
    wire: Option<Wire>,
    refused: CancellationToken,
}

impl Lanes {
    pub(super) fn new(token: &str, address: Option<&Address>, http: reqwest::Client) -> Self {
        let client = |lane| client(token.trim(), address, lane);
        let main = client(Lane::Main);
        let wire = main
            .token()
            .and_then(|token| Wire::new(http, token, address));
        Self {
            main,
            wire,
            singles: client(Lane::Singles),
            aside: client(Lane::Aside),
            checks: client(Lane::Checks),
            refused: CancellationToken::new(),
        }
    }

    /// One client is all of them.
    pub(super) fn of(client: Arc<Client>) -> Self {
        Self {
            main: Arc::clone(&client),
            singles: Arc::clone(&client),
            aside: Arc::clone(&client),
            checks: client,
            wire: None,
            refused: CancellationToken::new(),
        }
    }

    pub(super) const fn client(&self, lane: Lane) -> &Arc<Client> {
        match lane {
            Lane::Main => &self.main,
            Lane::Singles => &self.singles,
            Lane::Aside => &self.aside,
            Lane::Checks => &self.checks,
        }
    }

    /// Waits until Discord refuses the token.
    pub(super) async fn refused(&self) {
        self.refused.cancelled().await;
    }

    /// One request, answered, refused or given up at `deadline`.
    pub(super) async fn call(
        &self,
        request: Request,
        lane: Lane,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let waiting = Waiting::of(&request);
        let answer = self.start(request, lane, &waiting, Some(deadline));
        match timeout_at(deadline, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late(lane, &waiting).await),
        }
    }

    /// The request; it owns all that it needs. The deadline only tells which waits
    /// are too long.
    pub(super) fn start(
        &self,
        request: Request,
        lane: Lane,
        waiting: &Waiting,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Vec<u8>, RestError>> + Send + 'static {
        let client = Arc::clone(self.client(lane));
        let is_get = request.method() == Method::Get;
        let wire = self.wire.clone().filter(|_| !is_get);
        let waiting = waiting.clone();
        let refused = self.refused.clone();
        // Each further one would count towards a ban.
        let hopeless = refused.is_cancelled();
        let answer = async move {
            if hopeless {
                return Err(RestError::unauthorized());
            }
            let mut pause = FIRST_PAUSE;
            let mut sendings = 1;
            loop {
                let sent = Arc::default();
                let answer = match (&wire, client.ratelimiter()) {
                    (Some(wire), Some(limiter)) => {
                        let endpoint = waiting.endpoint.clone();
                        wire.send(limiter, endpoint, &request, &sent).await
                    }
                    _ => send(&client, request.clone(), &sent).await,
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
                waiting.limit(again);
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

    /// Why a request is late: our limiter holds it, or a 429 did, or nothing
    /// has been answered.
    pub(super) async fn late(&self, lane: Lane, waiting: &Waiting) -> RestError {
        let until = match (waiting.limited_until(), self.client(lane).ratelimiter()) {
            (Some(until), _) => Some(until),
            (None, Some(limiter)) => reset(limiter, &waiting.endpoint).await,
            (None, None) => None,
        };
        match until {
            Some(until) => RestError::limited_until(until),
            None => RestError::lasting(Fallback::Timeout),
        }
    }
}

/// One sending, whose moment is noted; twilight would repeat it after a 429.
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

fn client(token: &str, address: Option<&Address>, lane: Lane) -> Arc<Client> {
    let builder = Client::builder()
        .token(token.to_owned())
        .timeout(REQUEST_TIMEOUT)
        // An interaction's token that has expired is a 401 as well, after
        // which twilight would send nothing more.
        .remember_invalid_token(false)
        .ratelimiter(Some(RateLimiter::new(lane.per_second())));
    Arc::new(match address {
        Some(address) => builder
            .proxy(address.authority.clone(), address.plain)
            .build(),
        None => builder.build(),
    })
}

/// When a bucket that is used up is filled again.
async fn reset(limiter: &RateLimiter, endpoint: &Endpoint) -> Option<Instant> {
    let bucket = limiter.bucket(endpoint.clone()).await?;
    (bucket.remaining == 0).then(|| bucket.reset_at.into())
}

/// What is known of a request under way.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    endpoint: Endpoint,
    /// It was answered 429, and is sent again then.
    limited: Arc<Mutex<Option<Instant>>>,
}

impl Waiting {
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
