//! What the model makes of what was missed: a portion a request, then all points together.
//!
//! Invariant: no more is asked than [`MAX_REQUESTS`] and [`MAX_TOKENS`], what is tried again
//! included; and a point is told only while all stands that the model was given with it.

use std::collections::BTreeSet;

use tokio::time::{Instant, timeout_at};

use super::super::done::Stop;
use super::read::Missed;
use crate::engine::catch_up::{self, Point};
use crate::llm::{ModelServers, tokens};
use crate::telemetry::with_sources;
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
    /// Messages that it was made of.
    pub(super) read: usize,
    /// Whether a part is left out, of which something no longer stands.
    pub(super) is_short: bool,
}

/// What may still be asked.
struct Budget {
    requests: usize,
    tokens: u64,
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
        let read: BTreeSet<usize> = parts.iter().flat_map(|part| part.given.clone()).collect();
        Told {
            points: points.into_iter().take(catch_up::MAX_POINTS).collect(),
            read: read.len(),
            is_short,
        }
    }
}

impl Budget {
    fn allows(&self, prompt: u64) -> bool {
        self.requests > 0 && self.tokens >= prompt + ANSWER_TOKENS
    }

    /// Counts a request, the first or one that is tried again, if there may be one more.
    fn take(&mut self, prompt: u64) -> bool {
        let is_allowed = self.allows(prompt);
        if is_allowed {
            self.requests -= 1;
            self.tokens -= prompt;
        }
        is_allowed
    }
}

/// Asks about a portion after the other while budget and time last, anew without what no longer
/// stands, then about all points together. What was made by then stays if a request fails.
pub(super) async fn ask(
    model: &ModelServers,
    missed: &Missed<'_>,
    may_ask: impl Fn() -> bool,
    deadline: Instant,
) -> Result<Summary, Stop> {
    let mut parts: Vec<Part> = Vec::new();
    let mut budget = Budget {
        requests: MAX_REQUESTS - 1,
        tokens: MAX_TOKENS - JOIN_TOKENS,
    };
    'portions: for portion in catch_up::portions(&missed.said) {
        loop {
            let (data, given) = portion.data(&missed.said, |at| missed.stands(at));
            if given.is_empty() {
                break;
            }
            let prompt = prompt(catch_up::SUMMARISE, data);
            if !budget.allows(tokens(&prompt) as u64) || !may_ask() {
                break 'portions;
            }
            let stands = || given.iter().all(|at| missed.stands(*at));
            match complete(model, &prompt, stands, &mut budget, deadline).await {
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
        budget.requests += 1;
        budget.tokens += JOIN_TOKENS;
        let points = parts.iter().flat_map(|part| part.points.clone()).collect();
        let stands = || parts.iter().all(stand);
        joined = join(model, points, stands, &mut budget, deadline).await;
    }
    Ok(Summary { parts, joined })
}

/// The points that a last request makes of several portions'; none if it fails.
async fn join(
    model: &ModelServers,
    mut points: Vec<Point>,
    stands: impl Fn() -> bool,
    budget: &mut Budget,
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
    let joined = complete(model, &prompt, stands, budget, deadline).await;
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
    budget: &mut Budget,
    deadline: Instant,
) -> Result<Option<String>, Stop> {
    let asks = tokens(prompt) as u64;
    let may_send = || stands() && budget.take(asks);
    let asked = timeout_at(deadline, model.complete(prompt, may_send)).await;
    let answered = asked.map_err(|_| Stop::refused(FAILED))?.map_err(|error| {
        tracing::warn!(error = %with_sources(&error), "a summary could not be made");
        Stop::refused(FAILED)
    })?;
    Ok(answered.map(|answer| {
        let used = answer.end.tokens(prompt, &answer.text, &[]);
        budget.tokens = budget.tokens.saturating_sub(used.saturating_sub(asks));
        answer.text
    }))
}
