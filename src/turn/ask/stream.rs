//! One request to the model, whose words are shown as they arrive.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use crate::engine::deliver::MAX_MESSAGE_UNITS;
use crate::llm::{self, AnswerEnd, AnswerStep};
use clew_context::discord::error::RestError;
use clew_context::engine::assemble::Prompt;
use clew_context::engine::echo::Echo;
use clew_context::model::Fallback;

use crate::turn::control::{Control, Order};
use crate::turn::deliver::PostedAnswer;

/// How long to wait for the whole answer after the first words: a short one
/// is posted once and never edited.
const FIRST_SHOW: Duration = Duration::from_millis(700);
/// The time between edits. Discord allows five edits in five seconds per channel,
/// and other turns in the channel edit too.
const PACE: Duration = Duration::from_millis(1_500);
/// The most bytes that UTF-8 needs per UTF-16 code unit.
const MAX_BYTES_A_UNIT: usize = 3;

/// How a request ended.
#[derive(Debug)]
pub(super) enum Streamed {
    /// The model is done; its last words are not shown yet.
    Model {
        /// All that it said.
        text: String,
        end: Result<AnswerEnd, llm::Error>,
    },
    /// An order came.
    Ordered(Order),
    /// Discord refuses the answer for good.
    Refused(RestError),
}

/// The times that telemetry reports.
#[derive(Debug, Clone, Copy)]
pub(in crate::turn) struct AnswerTimes {
    pub(in crate::turn) asked: Instant,
    pub(in crate::turn) first_words: Option<Instant>,
}

/// Asks the model and shows its words at a steady pace.
pub(super) async fn stream(
    servers: &mut llm::ServerAttempts<'_>,
    prompt: &Prompt,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
    mut on_retry: impl FnMut(&llm::Error),
) -> (Streamed, AnswerTimes) {
    // As much as the messages hold, plus one more, which shows that a file will follow.
    let max_shown = (posted.max_messages() + 1) * MAX_MESSAGE_UNITS * MAX_BYTES_A_UNIT;
    let asked = Instant::now();
    let echo = Echo::of(&prompt.nonce);
    let mut steps = Box::pin(servers.answer(&prompt.messages, echo));
    let mut text = String::new();
    let mut first_words: Option<Instant> = None;
    let mut next_show: Option<Instant> = None;
    let ended = loop {
        tokio::select! {
            biased;
            order = control.ordered() => break Streamed::Ordered(order),
            Some(step) = steps.next() => match step {
                Ok(AnswerStep::Retry(error)) => on_retry(&error),
                Ok(AnswerStep::Text(piece)) => {
                    text.push_str(&piece);
                    if first_words.is_none() {
                        let now = Instant::now();
                        first_words = Some(now);
                        next_show = Some(now + FIRST_SHOW);
                    }
                }
                // No tools are offered. Names and arguments may repeat people's words.
                Ok(AnswerStep::ToolCall(call)) => {
                    let bytes = call.arguments.len();
                    tracing::debug!(bytes, "the model called a tool, and none was offered");
                }
                Ok(AnswerStep::End(end)) => {
                    let end = end.with_text(&text);
                    break Streamed::Model { text, end };
                }
                Err(error) => break Streamed::Model { text, end: Err(error) },
            },
            () = due(next_show) => {
                let so_far = &text[..text.floor_char_boundary(max_shown)];
                let mut showing = Box::pin(posted.show(so_far, false));
                let shown = match control.unless_ordered(&mut showing).await {
                    Ok(shown) => shown,
                    Err(order) => {
                        // The model is dropped at once; a message on its way to
                        // Discord must arrive first, so that it can be taken back.
                        drop(steps);
                        let _ = showing.await;
                        break Streamed::Ordered(order);
                    }
                };
                match shown {
                    Err(error) if is_final(error.reason) => break Streamed::Refused(error),
                    // The next edit or the whole answer will show it.
                    Err(error) => tracing::info!(%error, "part of an answer was not shown"),
                    Ok(()) => {}
                }
                next_show = Some(Instant::now() + PACE);
            }
        }
    };
    (ended, AnswerTimes { asked, first_words })
}

/// Waits until that time; without one, for ever.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
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
