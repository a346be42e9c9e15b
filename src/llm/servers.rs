//! The model servers in the order in which they are asked: the operator's first one,
//! then those that stand in for it.
//!
//! | what comes from a server before any words | next server | circuit breaker |
//! | --- | --- | --- |
//! | unreachable, 408, 5xx, 429, silence, no chat completion, broken off | yes | a failure |
//! | 401, 402, 403, 404: key, account or model refused | yes | a failure, unless an agent named the model |
//! | the prompt is too long: the caller shortens it for this server | no | an answer |
//! | any other 4xx, images refused, an answer without words: the prompt's own fault | no | an answer |

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, TryStreamExt};
use tokio::time::Instant;

use super::breaker::{Breaker, BreakerPass};
use super::meter::{TokenAccount, TokenMeter};
use super::request::{ModelRequest, RequestLimits};
use super::{AnswerEnd, AnswerStep, Client, Completion, Error, ModelSettings, SetupError};
use crate::model::{Payer, ToolDefinition};
use clew_context::engine::echo::Echo;
use clew_context::model::ChatMessage;
use clew_context::outside::Sending;

/// How many times [`ModelSettings::timeout`] a whole answer may take, including retries,
/// further servers and streaming: a server that sends a byte now and then never counts
/// as stalled.
const OVERALL_TIMEOUTS: u32 = 4;

/// All servers. A clone shares their connections and what is known about them.
#[derive(Debug, Clone)]
pub struct ModelServers {
    /// In order; at least one.
    servers: Vec<ModelServer>,
    /// Counts tokens, if any are limited.
    meter: Option<Arc<TokenMeter>>,
    /// Who pays for requests; known once somebody asks.
    account: Option<TokenAccount>,
}

/// A server, with what was learnt about it alone.
#[derive(Debug, Clone)]
struct ModelServer {
    client: Client,
    breaker: Arc<Breaker>,
    /// Whether an agent named the model, not the operator.
    is_agents_model: bool,
}

/// One question, asked of one server after another until one answers.
#[derive(Debug)]
pub struct ServerAttempts<'a> {
    servers: &'a [ModelServer],
    account: Option<&'a TokenAccount>,
    /// Which servers have been chosen, the current one included.
    tried: Vec<bool>,
    current: usize,
    /// Taken by the first request to the current server.
    pass: Option<BreakerPass>,
    deadline: Instant,
    has_moved_on: bool,
    /// Whether the latest request brought words, calls or an end.
    is_answered: bool,
}

/// Follows the requests of [`ModelServers::complete`]; a closure says whether to ask.
pub trait Follower {
    /// Whether the prompt may be asked, or asked again: called once before each request.
    fn may_ask(&mut self) -> bool;
    /// A request brought no answer; perhaps the same is asked again.
    fn failed(&mut self, _: &Attempt<'_>, _: &Error, _will_retry: bool) {}
    /// A request brought an answer.
    fn answered(&mut self, _: &Attempt<'_>, _: &AnswerEnd) {}
}

impl<F: FnMut() -> bool> Follower for F {
    fn may_ask(&mut self) -> bool {
        self()
    }
}

/// One request of a completion.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The number of the server, from 1.
    pub server: usize,
    /// The model that is asked there.
    pub model: &'a str,
    pub asked: Instant,
    pub first_words: Option<Instant>,
    /// Until its end.
    pub took: Duration,
}

impl ModelServers {
    /// Prepares the connections, without connecting yet. `seed` is for the pauses in
    /// which a server that fails is passed over.
    ///
    /// # Errors
    /// See [`Client::new`].
    pub fn new(
        first: ModelSettings,
        fallbacks: Vec<ModelSettings>,
        seed: u64,
    ) -> Result<Self, SetupError> {
        let settings = std::iter::once(first).chain(fallbacks);
        let servers = settings.zip(seed..).map(|(settings, seed)| {
            Ok(ModelServer {
                client: Client::new(settings)?,
                breaker: Arc::new(Breaker::new(seed)),
                is_agents_model: false,
            })
        });
        Ok(Self {
            servers: servers.collect::<Result<_, SetupError>>()?,
            meter: None,
            account: None,
        })
    }

    /// The same servers, reached in another way.
    #[must_use]
    pub fn through(mut self, sending: &Sending) -> Self {
        for server in &mut self.servers {
            let http = server.client.http.clone();
            server.client.http = http.through(sending.clone());
        }
        self
    }

    /// The same servers, whose tokens are counted.
    #[must_use]
    pub fn metered(mut self, meter: Arc<TokenMeter>) -> Self {
        self.meter = Some(meter);
        self
    }

    /// The same servers for somebody's questions, of which the first is asked for an
    /// agent's model. The others keep theirs: they may not know the agent's.
    #[must_use]
    pub fn asked_by(&self, payer: Payer, model: Option<&str>) -> Self {
        let mut servers = self.servers.clone();
        if let Some(first) = servers.first_mut() {
            first.client = first.client.with_model(model);
            first.is_agents_model = model.is_some();
        }
        let meter = self.meter.clone();
        Self {
            servers,
            account: meter.map(|meter| TokenAccount { meter, payer }),
            meter: self.meter.clone(),
        }
    }

    /// All servers in order.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.servers.iter().map(|server| &server.client)
    }

    /// The server that a question would be asked of first now.
    pub fn first(&self) -> &Client {
        let now = Instant::now();
        let mut ready = self.servers.iter();
        let first = ready.find(|server| server.breaker.lets_through(now));
        &first.unwrap_or(&self.servers[0]).client
    }

    /// Whether no server has answered lately.
    pub fn none_answers(&self) -> bool {
        self.servers.iter().all(|server| server.breaker.is_open())
    }

    /// An earlier process found that none answers.
    pub fn suspect(&self) {
        let servers = self.servers.iter();
        servers.for_each(|server| server.breaker.suspect());
    }

    /// A question, for which a server is chosen at once.
    pub fn attempts(&self) -> ServerAttempts<'_> {
        let mut attempts = ServerAttempts {
            servers: &self.servers,
            account: self.account.as_ref(),
            tried: vec![false; self.servers.len()],
            current: 0,
            pass: None,
            deadline: Instant::now(),
            has_moved_on: false,
            is_answered: false,
        };
        attempts.choose();
        attempts
    }

    /// Asks and waits for the whole answer; none once the follower lets nothing be asked any more.
    ///
    /// # Errors
    /// The last server's; [`Error::Empty`] also if the model called tools instead of
    /// answering.
    pub async fn complete(
        &self,
        prompt: &[ChatMessage],
        mut follower: impl Follower,
    ) -> Result<Option<Completion>, Error> {
        let mut attempts = self.attempts();
        while follower.may_ask() {
            let mut attempt = Attempt {
                server: attempts.server(),
                model: attempts.client().model(),
                asked: Instant::now(),
                first_words: None,
                took: Duration::ZERO,
            };
            let completed = attempts.complete(prompt, &mut attempt, &mut follower);
            match completed.await {
                Err(error) => {
                    attempt.took = attempt.asked.elapsed();
                    let moves_on = attempts.move_on(&error);
                    follower.failed(&attempt, &error, moves_on);
                    if !moves_on {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
        Ok(None)
    }
}

impl<'a> ServerAttempts<'a> {
    /// The server that is asked now.
    pub fn client(&self) -> &'a Client {
        &self.servers[self.current].client
    }

    /// The number of that server, from 1, the operator's first one.
    pub fn server(&self) -> usize {
        self.current + 1
    }

    /// A further question to the server that answered the one before; the others may
    /// be asked again.
    pub fn ask_again(&mut self) {
        self.tried.fill(false);
        self.tried[self.current] = true;
        let breaker = &self.servers[self.current].breaker;
        self.pass = breaker
            .pass(Instant::now())
            .or_else(|| Some(breaker.pass_anyway()));
        self.has_moved_on = false;
    }

    /// Asks the current server, which may call the tools. The answer's text is without what `echo` removes. To
    /// cancel, drop the stream: the connection is closed, and servers stop generating.
    ///
    /// The stream ends after [`AnswerStep::End`] or an error; see [`Error`]. Steps
    /// that came before an error are valid.
    pub fn answer<'s>(
        &'s mut self,
        prompt: &'s [ChatMessage],
        tools: &'s [ToolDefinition],
        echo: Echo,
    ) -> impl Stream<Item = Result<AnswerStep, Error>> + Send + 's {
        if !self.has_moved_on {
            let overall = self
                .client()
                .settings
                .timeout
                .saturating_mul(OVERALL_TIMEOUTS);
            self.deadline = Instant::now() + overall;
        }
        self.is_answered = false;
        let limits = RequestLimits {
            deadline: self.deadline,
            is_last_server: !self.tried.contains(&false),
        };
        let steps = ModelRequest::ask(self.client(), prompt, tools, echo, limits, self.account);
        steps.inspect(|step| self.note(step))
    }

    /// Turns to the next server after an error, if another one may answer: none has
    /// answered yet, one is left, and there is time.
    pub fn move_on(&mut self, error: &Error) -> bool {
        let may = !self.is_answered && is_servers_fault(error) && Instant::now() < self.deadline;
        let moves_on = may && self.choose();
        self.has_moved_on |= moves_on;
        moves_on
    }

    async fn complete(
        &mut self,
        prompt: &[ChatMessage],
        attempt: &mut Attempt<'_>,
        follower: &mut impl Follower,
    ) -> Result<Option<Completion>, Error> {
        let mut steps = Box::pin(self.answer(prompt, &[], Echo::default()));
        let mut text = String::new();
        while let Some(step) = steps.try_next().await? {
            match step {
                AnswerStep::Text(piece) => {
                    attempt.first_words.get_or_insert_with(Instant::now);
                    text.push_str(&piece);
                }
                AnswerStep::Retry(error, failed) => {
                    attempt.took = failed - attempt.asked;
                    follower.failed(attempt, &error, true);
                    if !follower.may_ask() {
                        return Ok(None);
                    }
                    attempt.asked = Instant::now();
                }
                AnswerStep::ToolCall(_) => {}
                AnswerStep::End(end) => {
                    let end = end.with_text(&text)?;
                    attempt.took = attempt.asked.elapsed();
                    follower.answered(attempt, &end);
                    return Ok(Some(Completion { text, end }));
                }
            }
        }
        Err(Error::broken_off(None))
    }

    /// Chooses the next server: the first that its breaker lets through. Those that
    /// are passed over come last, so that a breaker costs nobody an answer.
    fn choose(&mut self) -> bool {
        let now = Instant::now();
        let left = || (0..self.servers.len()).filter(|at| !self.tried[*at]);
        let breaker = |at: usize| &self.servers[at].breaker;
        let ready = left().find_map(|at| Some((at, breaker(at).pass(now)?)));
        let Some((next, pass)) = ready.or_else(|| {
            let at = left().next()?;
            Some((at, breaker(at).pass_anyway()))
        }) else {
            return false;
        };
        self.tried[next] = true;
        self.current = next;
        self.pass = Some(pass);
        true
    }

    /// Tells the breaker of the first thing that comes from the server.
    fn note(&mut self, step: &Result<AnswerStep, Error>) {
        if matches!(step, Ok(AnswerStep::Retry(..))) {
            return;
        }
        self.is_answered |= step.is_ok();
        let Some(pass) = self.pass.take() else {
            return;
        };
        let server = &self.servers[self.current];
        let error = step.as_ref().err().filter(|error| is_servers_fault(error));
        let failure = error.filter(|error| server.fails_by(error));
        let (number, model) = (self.server(), server.client.model());
        let has_others = self.servers.len() > 1;
        if let Some(error) = failure {
            let pause = pass.failed(retry_after(error), Instant::now());
            if let Some(pause) = pause.filter(|_| has_others) {
                let seconds = pause.as_secs_f32();
                tracing::warn!(server = number, model, seconds, %error,
                    "a model server fails: others are asked first for a while");
            }
        } else if error.is_none() && pass.answered() && has_others {
            tracing::info!(server = number, model, "a model server answers again");
        }
    }
}

impl ModelServer {
    /// Whether an error counts as the server's failure. That an agent's own model is
    /// refused says nothing about the server's other models.
    fn fails_by(&self, error: &Error) -> bool {
        let is_refused = matches!(
            error,
            Error::Unauthorized { .. } | Error::ModelNotFound { .. }
        );
        is_servers_fault(error) && !(is_refused && self.is_agents_model)
    }
}

/// Whether another server may answer the same prompt.
fn is_servers_fault(error: &Error) -> bool {
    match error {
        Error::Unauthorized { .. }
        | Error::RateLimited { .. }
        | Error::Unavailable { .. }
        | Error::ModelNotFound { .. }
        | Error::Timeout
        | Error::Malformed { .. }
        | Error::Truncated { .. } => true,
        Error::ContextTooLong { .. }
        | Error::Rejected { .. }
        | Error::ImagesRefused { .. }
        | Error::Empty { .. } => false,
    }
}

/// The wait that a server asks for.
fn retry_after(error: &Error) -> Option<Duration> {
    match error {
        Error::RateLimited { retry_after, .. } | Error::Unavailable { retry_after, .. } => {
            *retry_after
        }
        _ => None,
    }
}
