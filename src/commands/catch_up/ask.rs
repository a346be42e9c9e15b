//! What the model makes of what was missed: a portion a request, then all points together.
//!
//! Invariant: no more is asked than [`MAX_REQUESTS`] and [`MAX_TOKENS`], what is tried again
//! included; and a point is told only while all stands that the model was given with it.

use std::collections::BTreeSet;

use tokio::time::{Instant, timeout_at};

use super::super::done::Stop;
use super::read::Missed;
use crate::engine::catch_up::{self, Point};
use crate::llm::{AnswerEnd, Attempt, Error, Follower, ModelServers, tokens};
use crate::telemetry::event::{Event, RequestFailed, RequestOk};
use crate::telemetry::{Ids, Ms, Telemetry, with_sources};
use clew_context::model::{ChatMessage, Role};

/// The most requests.
const MAX_REQUESTS: usize = 8;
/// The most tokens of all requests together, as far as can be told before.
const MAX_TOKENS: u64 = 60_000;
/// Kept for an answer.
const ANSWER_TOKENS: u64 = 1_500;
/// Kept for the last request, which joins the points of the others.
const JOIN_TOKENS: u64 = 9_000;
const FAILED: &str = "The model didn't answer. Try again later.";

/// What the model made of it.
pub(super) struct Summary {
    parts: Vec<Part>,
    /// The points that were made of those of several parts.
    joined: Option<Vec<Point>>,
}

/// What was made of one portion.
struct Part {
    /// The messages that the model was given.
    given: Vec<usize>,
    points: Vec<Point>,
}

/// What is told of a summary.
pub(super) struct Told<'a> {
    pub(super) points: Vec<&'a Point>,
    /// The messages that the model was given.
    pub(super) read: BTreeSet<usize>,
    /// Whether a part is left out, of which something no longer stands.
    pub(super) is_short: bool,
}

/// What may still be asked, and who is told of it.
struct Requests<'a> {
    left: usize,
    tokens: u64,
    telemetry: (&'a Telemetry, Ids),
    /// The number of the latest one.
    attempt: u32,
}

/// One that may be tried again.
struct Request<'a, 'b, S> {
    requests: &'a mut Requests<'b>,
    prompt_tokens: u64,
    prompt_chars: usize,
    stands: S,
}

impl Summary {
    /// What may be told now: of a part nothing if a message that the model was given with it does
    /// not stand, since any of its points may say what that said.
    pub(super) fn told(&self, stands: impl Fn(usize) -> bool) -> Told<'_> {
        let may_tell = |part: &&Part| part.given.iter().all(|at| stands(*at));
        let parts: Vec<&Part> = self.parts.iter().filter(may_tell).collect();
        let is_short = parts.len() < self.parts.len();
        let points: Vec<&Point> = match &self.joined {
            Some(joined) if !is_short => joined.iter().collect(),
            _ => parts.iter().flat_map(|part| &part.points).collect(),
        };
        Told {
            points: points.into_iter().take(catch_up::MAX_POINTS).collect(),
            read: self
                .parts
                .iter()
                .flat_map(|part| part.given.clone())
                .collect(),
            is_short,
        }
    }
}

impl Requests<'_> {
    fn allows(&self, prompt_tokens: u64) -> bool {
        self.left > 0 && self.tokens >= prompt_tokens + ANSWER_TOKENS
    }

    fn tell(&self, event: impl Into<Event>) {
        let (telemetry, ids) = &self.telemetry;
        telemetry.emit(ids, event);
    }
}

impl<S: Fn() -> bool> Follower for Request<'_, '_, S> {
    fn may_ask(&mut self) -> bool {
        let may_ask = (self.stands)() && self.requests.allows(self.prompt_tokens);
        if may_ask {
            self.requests.left -= 1;
            self.requests.tokens -= self.prompt_tokens;
            self.requests.attempt += 1;
        }
        may_ask
    }

    fn failed(&mut self, request: &Attempt<'_>, error: &Error, will_retry: bool) {
        self.requests.tell(RequestFailed {
            reason: error.reason(),
            ms: Ms::from(request.took),
            attempt: self.requests.attempt,
            will_retry,
            server: request.server,
            model: request.model.to_owned(),
            agent: None,
        });
    }

    fn answered(&mut self, request: &Attempt<'_>, end: &AnswerEnd) {
        let first = request.first_words.unwrap_or_else(Instant::now);
        self.requests.tell(RequestOk {
            ms_first: Ms::from(first - request.asked),
            ms: Ms::from(request.took),
            prompt_chars: self.prompt_chars,
            prompt_tokens: end.usage.map(|usage| usage.prompt_tokens),
            cached_tokens: end.usage.and_then(|usage| usage.cached_tokens),
            completion_tokens: end.usage.map(|usage| usage.completion_tokens),
            reasoning_tokens: end.usage.and_then(|usage| usage.reasoning_tokens),
            finish: end.finish_reason,
            attempt: self.requests.attempt,
            server: request.server,
            model: request.model.to_owned(),
            response_model: end.model.clone(),
            agent: None,
            images: 0,
            image_bytes: 0,
        });
    }
}

/// Asks about a portion after the other while budget and time last, anew without what no longer
/// stands, then about all points together. What was made by then stays if a request fails.
pub(super) async fn ask(
    model: &ModelServers,
    missed: &Missed<'_>,
    may_ask: impl Fn() -> bool,
    (telemetry, deadline): ((&Telemetry, Ids), Instant),
) -> Result<Summary, Stop> {
    let mut parts: Vec<Part> = Vec::new();
    let mut requests = Requests {
        left: MAX_REQUESTS - 1,
        tokens: MAX_TOKENS - JOIN_TOKENS,
        telemetry,
        attempt: 0,
    };
    'portions: for portion in catch_up::portions(&missed.said) {
        loop {
            let (data, given) = portion.data(&missed.said, |at| missed.stands(at));
            if given.is_empty() {
                break;
            }
            let prompt = prompt(catch_up::SUMMARISE, data);
            if !requests.allows(tokens(&prompt) as u64) || !may_ask() {
                break 'portions;
            }
            let stands = || given.iter().all(|at| missed.stands(*at));
            match complete(model, &prompt, stands, &mut requests, deadline).await {
                Ok(Some(text)) if stands() => {
                    let is_given: BTreeSet<usize> = given.iter().copied().collect();
                    let points = catch_up::points(&text, |at| is_given.contains(&at));
                    parts.extend(points.map(|points| Part { given, points }));
                    break;
                }
                Ok(_) => {}
                Err(_) => break 'portions,
            }
        }
    }
    if parts.is_empty() {
        return Err(Stop::refused(FAILED));
    }
    let stand = |part: &Part| part.given.iter().all(|at| missed.stands(*at));
    let mut joined = None;
    if parts.len() > 1 && parts.iter().all(stand) && may_ask() {
        requests.left += 1;
        requests.tokens += JOIN_TOKENS;
        let points = parts.iter().flat_map(|part| part.points.clone()).collect();
        let stands = || parts.iter().all(stand);
        joined = join(model, points, stands, &mut requests, deadline).await;
    }
    Ok(Summary { parts, joined })
}

/// The points that a last request makes of several portions'; none if it fails.
async fn join(
    model: &ModelServers,
    mut points: Vec<Point>,
    stands: impl Fn() -> bool,
    requests: &mut Requests<'_>,
    deadline: Instant,
) -> Option<Vec<Point>> {
    let prompt = loop {
        let prompt = prompt(catch_up::JOIN, catch_up::joined(points.clone()));
        if tokens(&prompt) as u64 + ANSWER_TOKENS <= JOIN_TOKENS {
            break prompt;
        }
        points.truncate(points.len() * 3 / 4);
    };
    let cited: BTreeSet<usize> = points.iter().flat_map(|point| point.from.clone()).collect();
    let joined = complete(model, &prompt, stands, requests, deadline).await;
    let joined = catch_up::points(&joined.ok()??, |at| cited.contains(&at))?;
    Some(joined).filter(|joined| !joined.is_empty())
}

fn prompt(told: &str, data: String) -> [ChatMessage; 2] {
    [
        ChatMessage::new(Role::System, told.to_owned()),
        ChatMessage::new(Role::User, data),
    ]
}

/// The answer, paid for; none if what was asked no longer stands or the budget is spent.
async fn complete(
    model: &ModelServers,
    prompt: &[ChatMessage],
    stands: impl Fn() -> bool,
    requests: &mut Requests<'_>,
    deadline: Instant,
) -> Result<Option<String>, Stop> {
    let prompt_tokens = tokens(prompt) as u64;
    let texts = prompt.iter().flat_map(ChatMessage::texts);
    let request = Request {
        requests: &mut *requests,
        prompt_tokens,
        prompt_chars: texts.map(|text| text.chars().count()).sum(),
        stands,
    };
    let asked = timeout_at(deadline, model.complete(prompt, request)).await;
    let answered = asked.map_err(|_| Stop::refused(FAILED))?.map_err(|error| {
        tracing::warn!(error = %with_sources(&error), "a summary could not be made");
        Stop::refused(FAILED)
    })?;
    Ok(answered.map(|answer| {
        let used = answer.end.tokens(prompt, &answer.text, &[]);
        let more = used.saturating_sub(prompt_tokens);
        requests.tokens = requests.tokens.saturating_sub(more);
        answer.text
    }))
}
