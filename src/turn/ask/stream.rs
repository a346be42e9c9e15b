//! One request to the model, whose words are shown as they arrive.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use crate::engine::deliver::MAX_MESSAGE_UNITS;
use crate::llm::{self, AnswerEnd, AnswerStep};
use crate::model::ToolDefinition;
use crate::turn::patience;
use clew_context::discord::error::RestError;
use clew_context::engine::echo::Echo;
use clew_context::model::{ChatMessage, Fallback, ToolCall};

use crate::turn::control::{Control, Order};
use crate::turn::deliver::PostedAnswer;

use super::tools::ToolLoop;

/// How long to wait for the whole answer after the first words: a short one
/// is posted once and never edited.
const FIRST_SHOW: Duration = Duration::from_millis(700);
/// The time between edits. Discord allows five edits in five seconds per channel,
/// and other turns in the channel edit too.
const PACE: Duration = Duration::from_millis(1_500);
/// Between what the model says before and after it calls tools.
const PARAGRAPH: &str = "\n\n";
/// The most bytes that UTF-8 needs per UTF-16 code unit.
const MAX_BYTES_A_UNIT: usize = 3;

/// How a request ended.
#[derive(Debug)]
pub(super) enum Streamed {
    /// The model is done; its last words are not shown yet.
    Model {
        said: Said,
        /// The tools that it wants called, if any were offered.
        calls: Vec<ToolCall>,
        end: Result<AnswerEnd, llm::Error>,
    },
    /// The same request would have been repeated after this error, and what it shows may
    /// not be shown any more.
    Changed(llm::Error),
    /// An order came after these words.
    Ordered(Said, Order),
    /// Discord refuses the answer for good.
    Refused(RestError),
}

#[derive(Clone, Copy)]
pub(super) struct TurnRequest<'a> {
    pub(super) messages: &'a [ChatMessage],
    pub(super) tools: &'a [ToolDefinition],
    /// The nonce of the prompt's frames.
    pub(super) nonce: &'a str,
    /// What the model said earlier in the turn.
    pub(super) before: &'a str,
    /// The tools that it called, for what it cites.
    pub(super) called: &'a ToolLoop<'a>,
}

impl TurnRequest<'_> {
    /// Unicode scalars of its messages.
    pub(super) fn chars(&self) -> usize {
        let texts = self.messages.iter().flat_map(ChatMessage::texts);
        texts.map(|text| text.chars().count()).sum()
    }
}

/// What the model has said in a turn.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    /// Where the words of the last request begin.
    own_at: usize,
}

impl Said {
    fn after(before: &str) -> Self {
        Self {
            own_at: before.len(),
            text: before.to_owned(),
        }
    }

    /// Adds words; the first ones begin a paragraph.
    fn add(&mut self, piece: &str) {
        if self.own_at == self.text.len() && self.own_at > 0 {
            self.text.push_str(PARAGRAPH);
            self.own_at = self.text.len();
        }
        self.text.push_str(piece);
    }

    /// The words of the last request.
    pub(super) fn own(&self) -> &str {
        &self.text[self.own_at..]
    }
}

/// The times that telemetry reports: of the last attempt, since a request that failed for a moment
/// is made again.
#[derive(Debug, Clone, Copy)]
pub(in crate::turn) struct AnswerTimes {
    pub(in crate::turn) asked: Instant,
    pub(in crate::turn) first_words: Option<Instant>,
}

/// Asks the model and shows its words at a steady pace. After an error that may pass the
/// request is repeated if it may be.
pub(super) async fn stream(
    servers: &mut llm::ServerAttempts<'_>,
    request: &TurnRequest<'_>,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
    mut may_repeat: impl FnMut(&llm::Error, Duration) -> bool,
) -> (Streamed, AnswerTimes) {
    let max_shown = max_shown(posted);
    let mut asked = Instant::now();
    let echo = Echo::of(request.nonce);
    let mut steps = Box::pin(servers.answer(request.messages, request.tools, echo));
    let mut said = Said::after(request.before);
    let mut calls = Vec::new();
    let mut first_words: Option<Instant> = None;
    let mut next_show: Option<Instant> = None;
    let ended = loop {
        tokio::select! {
            biased;
            order = control.ordered() => break Streamed::Ordered(said, order),
            Some(step) = steps.next() => match step {
                Ok(AnswerStep::Retry(error, failed)) => {
                    if !may_repeat(&error, failed - asked) {
                        break Streamed::Changed(error);
                    }
                    asked = Instant::now();
                }
                Ok(AnswerStep::Text(piece)) => {
                    said.add(&piece);
                    if first_words.is_none() {
                        let now = Instant::now();
                        first_words = Some(now);
                        next_show = posted.grows().then(|| now + FIRST_SHOW);
                    }
                }
                Ok(AnswerStep::ToolCall(call)) if !request.tools.is_empty() => calls.push(call),
                // Names and arguments may repeat people's words.
                Ok(AnswerStep::ToolCall(call)) => {
                    let bytes = call.arguments.len();
                    tracing::debug!(bytes, "the model called a tool, and none was offered");
                }
                Ok(AnswerStep::End(end)) => {
                    let end = if calls.is_empty() { end.with_text(said.own()) } else { Ok(end) };
                    break Streamed::Model { said, calls, end };
                }
                Err(error) => {
                    let end = Err(error);
                    break Streamed::Model { said, calls: Vec::new(), end };
                }
            },
            () = patience::at(next_show) => {
                let shown = request.called.shown(part(&said.text, max_shown));
                let mut showing = Box::pin(posted.show(&shown, false));
                let shown = match control.unless_ordered(&mut showing).await {
                    Ok(shown) => shown,
                    Err(order) => {
                        // The model is dropped at once; a message on its way to
                        // Discord must arrive first, so that it can be taken back.
                        drop(steps);
                        let _ = showing.await;
                        break Streamed::Ordered(said, order);
                    }
                };
                if let Some(error) = refusal(shown) {
                    break Streamed::Refused(error);
                }
                next_show = Some(Instant::now() + PACE);
            }
        }
    };
    (ended, AnswerTimes { asked, first_words })
}

/// Shows what was said while no model is asked. Gives the error if it can never be shown.
pub(super) async fn show(
    text: &str,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
) -> Result<Option<RestError>, Order> {
    let text = part(text, max_shown(posted));
    let mut showing = Box::pin(posted.show(text, false));
    match control.unless_ordered(&mut showing).await {
        Ok(shown) => Ok(refusal(shown)),
        Err(order) => {
            // As above: it must arrive first.
            let _ = showing.await;
            Err(order)
        }
    }
}

/// The bytes that are shown while an answer grows: as much as the messages hold, plus one
/// more, which shows that a file will follow.
fn max_shown(posted: &PostedAnswer<'_>) -> usize {
    (posted.max_messages() + 1) * MAX_MESSAGE_UNITS * MAX_BYTES_A_UNIT
}

fn part(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// The error if what is to be shown can never be shown there; after any other the next
/// edit or the whole answer will show it.
fn refusal(shown: Result<(), RestError>) -> Option<RestError> {
    let error = shown.err()?;
    if is_final(error.reason) {
        return Some(error);
    }
    tracing::info!(%error, "part of an answer was not shown");
    None
}

/// Whether trying again is useless: the answer can never be shown there.
fn is_final(reason: Fallback) -> bool {
    match reason {
        Fallback::Forbidden
        | Fallback::NotFound
        | Fallback::Deleted
        | Fallback::Archived
        | Fallback::Locked => true,
        Fallback::Timeout
        | Fallback::RateLimited
        | Fallback::Unavailable
        | Fallback::FetchBudget
        | Fallback::Malformed
        | Fallback::NoContent => false,
    }
}
