//! Asking: gets the words of the turn, from the model, from the inspector if there is
//! no model, or a line that says why there are none.

mod inspector;
mod stream;

use std::borrow::Cow;

use super::control::{Control, Order};
use super::deliver::PostedAnswer;
use super::gather::TurnMaterial;
use super::gather::prompt::{self, FittedPrompt};
use super::{Turn, line};
use crate::llm::{self, Completion};
use crate::telemetry::event::{LlmFailure, Outcome};
use crate::telemetry::with_sources;
use clew_context::discord::error::RestError;
use clew_context::model::Scene;

pub(super) use stream::AnswerTimes;

use stream::{Streamed, stream};

/// The words of a turn, to be delivered.
pub(super) enum TurnAnswer {
    /// One line instead of an answer, and how the turn ends with it.
    Line(&'static str, Outcome),
    /// The inspector's answer.
    Inspected(String),
    /// The model's whole answer.
    Whole(Completion),
    /// What the model said before it failed.
    BrokenOff(String),
    /// Discord refused, for good, what was shown so far.
    Unpostable(RestError),
}

/// A request to the model, and what happened before.
struct NextRequest<'a> {
    prompt: Cow<'a, FittedPrompt>,
    /// Whether the request before brought no text.
    after_nothing: bool,
}

impl<'a> NextRequest<'a> {
    /// The first request to a server.
    fn of(turn: &Turn<'_>, material: &'a TurnMaterial, client: &llm::Client) -> Self {
        Self {
            prompt: prompt::for_server(turn, material, client),
            after_nothing: false,
        }
    }
}

/// Gets the words of a turn. What the model says is shown as it arrives.
pub(super) async fn ask(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
) -> Result<TurnAnswer, Order> {
    if let Some(line) = refusal(material) {
        return Ok(TurnAnswer::Line(line, Outcome::Refused));
    }
    match &material.model {
        Some(model) => ask_model(turn, model, material, posted, control).await,
        None => Ok(TurnAnswer::Inspected(inspector::answer(material))),
    }
}

/// Why there is nothing to ask, if so.
fn refusal(material: &TurnMaterial) -> Option<&'static str> {
    let collected = &material.collected;
    if collected.target.withheld {
        Some(line::WITHHELD)
    } else if !material.prompt.prepared.has_question {
        let unread = collected.scene == Scene::Thread && !material.fallbacks.is_empty();
        Some(if unread {
            line::UNREAD_THREAD
        } else {
            line::INVITATION
        })
    } else if material.background.is_none() {
        Some(line::NO_AGENT)
    } else {
        None
    }
}

/// Asks the model, again or at the next server if that may help. The client retries by
/// itself, too.
async fn ask_model(
    turn: &Turn<'_>,
    model: &llm::ModelServers,
    material: &TurnMaterial,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
) -> Result<TurnAnswer, Order> {
    let mut servers = model.attempts();
    let mut next = NextRequest::of(turn, material, servers.client());
    let mut attempt = 1;
    loop {
        let (model, server) = (servers.client().model(), servers.server());
        turn.report.asks_model(model, server, &next.prompt.prepared);
        let prompt = &next.prompt.prepared.prompt;
        let on_retry = |error: &llm::Error| {
            turn.report.request_failed(failure(error), attempt, true);
            attempt += 1;
        };
        let (streamed, times) = stream(&mut servers, prompt, posted, control, on_retry).await;
        match streamed {
            Streamed::Ordered(order) => {
                turn.report
                    .request_failed(LlmFailure::Cancelled, attempt, false);
                return Err(order);
            }
            Streamed::Refused(error) => {
                turn.report
                    .request_failed(LlmFailure::Cancelled, attempt, false);
                return Ok(TurnAnswer::Unpostable(error));
            }
            Streamed::Model { text, end: Ok(end) } => {
                turn.report.request_ok(&end, prompt.chars, times, attempt);
                return Ok(TurnAnswer::Whole(Completion { text, end }));
            }
            Streamed::Model {
                text,
                end: Err(error),
            } => {
                let again = || again(turn, &mut servers, material, &next, &error);
                let Some(again) = text.is_empty().then(again).flatten() else {
                    return Ok(given_up(turn, text, &error, attempt));
                };
                turn.report.request_failed(failure(&error), attempt, true);
                attempt += 1;
                next = again;
            }
        }
    }
}

/// What came before the failure, or one line that says what to do.
fn given_up(turn: &Turn<'_>, text: String, error: &llm::Error, attempt: u32) -> TurnAnswer {
    tracing::warn!(error = %with_sources(error), "the model gave no answer");
    let reason = failure(error);
    turn.report.request_failed(reason, attempt, false);
    if text.is_empty() {
        TurnAnswer::Line(line::model_failed(reason), Outcome::Failed)
    } else {
        TurnAnswer::BrokenOff(text)
    }
}

/// What to ask next after an error without text, if that may help: another server, less
/// after a prompt that was too long, else the same.
fn again<'a>(
    turn: &Turn<'_>,
    servers: &mut llm::ServerAttempts<'_>,
    material: &'a TurnMaterial,
    tried: &NextRequest<'a>,
    error: &llm::Error,
) -> Option<NextRequest<'a>> {
    if servers.move_on(error) {
        return Some(NextRequest::of(turn, material, servers.client()));
    }
    match error {
        llm::Error::ContextTooLong { limit, .. } => {
            let smaller = prompt::smaller(turn, material, servers.client(), &tried.prompt, *limit)?;
            Some(NextRequest {
                prompt: Cow::Owned(smaller),
                after_nothing: tried.after_nothing,
            })
        }
        llm::Error::Empty { .. } | llm::Error::Truncated { .. } if !tried.after_nothing => {
            Some(NextRequest {
                prompt: tried.prompt.clone(),
                after_nothing: true,
            })
        }
        _ => None,
    }
}

fn failure(error: &llm::Error) -> LlmFailure {
    match error {
        llm::Error::Unauthorized { .. } => LlmFailure::Unauthorized,
        llm::Error::RateLimited { .. } => LlmFailure::RateLimited,
        llm::Error::ContextTooLong { .. } => LlmFailure::ContextTooLong,
        llm::Error::Unavailable { .. } => LlmFailure::Unavailable,
        llm::Error::ModelNotFound { .. } => LlmFailure::NotFound,
        llm::Error::Rejected { .. } | llm::Error::Malformed { .. } => LlmFailure::Malformed,
        llm::Error::Timeout => LlmFailure::Timeout,
        llm::Error::Empty { .. } => LlmFailure::Empty,
        llm::Error::Truncated { .. } => LlmFailure::Truncated,
    }
}
