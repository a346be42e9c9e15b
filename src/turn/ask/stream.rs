//! One request to the model, whose words are shown as they arrive.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::engine::deliver::MAX_MESSAGE_UNITS;
use crate::llm::{self, Completion};
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
    Model(Result<Completion, llm::Error>),
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
    client: &llm::Client,
    prompt: &Prompt,
    posted: &mut PostedAnswer<'_>,
    control: &mut Control,
    on_retry: impl FnMut(&llm::Error) + Send,
) -> (Streamed, AnswerTimes) {
    let words = WordsSoFar::of_at_most(posted.max_messages());
    let asked = Instant::now();
    let echo = Echo::of(&prompt.nonce);
    let on_delta = |delta: &str| words.add(delta);
    let mut model = Box::pin(client.answer(&prompt.messages, echo, on_delta, on_retry));
    let mut next_show: Option<Instant> = None;
    let ended = loop {
        tokio::select! {
            biased;
            order = control.ordered() => break Streamed::Ordered(order),
            result = &mut model => break Streamed::Model(result),
            () = words.first(), if next_show.is_none() => {
                next_show = Some(Instant::now() + FIRST_SHOW);
            }
            () = due(next_show) => {
                let so_far = words.so_far();
                let mut showing = Box::pin(posted.show(&so_far, false));
                let shown = match control.unless_ordered(&mut showing).await {
                    Ok(shown) => shown,
                    Err(order) => {
                        // The model is dropped at once; a message on its way to
                        // Discord must arrive first, so that it can be taken back.
                        drop(model);
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
    let first_words = words.since();
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

/// What the model has said so far, as far as messages can show it.
#[derive(Debug)]
struct WordsSoFar {
    text: Mutex<(String, Option<Instant>)>,
    max_bytes: usize,
    came: tokio::sync::Notify,
}

impl WordsSoFar {
    /// As much as this many messages hold, plus one more, which shows that a file
    /// will follow. Anything beyond is only in the whole answer.
    fn of_at_most(messages: usize) -> Self {
        Self {
            text: Mutex::default(),
            max_bytes: (messages + 1) * MAX_MESSAGE_UNITS * MAX_BYTES_A_UNIT,
            came: tokio::sync::Notify::new(),
        }
    }

    fn add(&self, delta: &str) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if text.0.len() < self.max_bytes {
            text.0.push_str(delta);
        }
        if text.1.is_none() {
            text.1 = Some(Instant::now());
            self.came.notify_one();
        }
    }

    fn so_far(&self) -> String {
        self.text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .clone()
    }

    fn since(&self) -> Option<Instant> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    async fn first(&self) {
        self.came.notified().await;
    }
}
