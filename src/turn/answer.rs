//! One answer: the model's words, shown as they arrive.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::engine::deliver::MAX_MESSAGE_UNITS;
use crate::llm::{self, Completion};
use clew_context::discord::error::RestError;
use clew_context::engine::assemble::Prompt;
use clew_context::engine::echo::Echo;
use clew_context::model::Fallback;

use super::control::{Control, Order};
use super::reply::Posted;

/// How long to wait for the whole answer after the first words: a short one
/// is posted once and never edited.
const FIRST_SHOW: Duration = Duration::from_millis(700);
/// The time between edits. Discord allows five edits in five seconds per channel,
/// and other turns in the channel edit too.
const PACE: Duration = Duration::from_millis(1_500);

/// The pause after Discord failed to take a whole answer.
const LATER: Duration = Duration::from_secs(3);
/// The most tries to show a whole answer; each call makes a few quick ones.
const SHOWS: u32 = 3;
/// How long to keep trying while Discord limits a whole answer.
const PATIENCE: Duration = Duration::from_mins(2);
/// The pause after a limit that does not say how long it lasts.
const UNTOLD_LIMIT: Duration = Duration::from_secs(30);

/// The most bytes that UTF-8 needs per UTF-16 code unit.
const MAX_BYTES_A_UNIT: usize = 3;

/// How an answer ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The model is done; its last words are not shown yet.
    Model(Result<Completion, llm::Error>),
    /// An order came.
    Ordered(Order),
    /// Discord refused what was shown so far.
    Refused(RestError),
}

/// The times that telemetry reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) asked: Instant,
    pub(super) first_words: Option<Instant>,
}

/// Asks the model and shows its words at a steady pace.
pub(super) async fn stream(
    client: &llm::Client,
    prompt: &Prompt,
    posted: &mut Posted<'_>,
    control: &mut Control,
    on_retry: impl FnMut(&llm::Error) + Send,
) -> (Ended, Times) {
    let words = Words::of_at_most(posted.max_messages());
    let asked = Instant::now();
    let echo = Echo::of(&prompt.nonce);
    let on_delta = |delta: &str| words.add(delta);
    let mut model = Box::pin(client.answer(&prompt.messages, echo, on_delta, on_retry));
    let mut next_show: Option<Instant> = None;
    let ended = loop {
        tokio::select! {
            biased;
            order = control.ordered() => break Ended::Ordered(order),
            result = &mut model => break Ended::Model(result),
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
                        break Ended::Ordered(order);
                    }
                };
                match shown {
                    Err(error) if is_final(error.reason) => break Ended::Refused(error),
                    // The next edit or the whole answer will show it.
                    Err(error) => tracing::info!(%error, "part of an answer was not shown"),
                    Ok(()) => {}
                }
                next_show = Some(Instant::now() + PACE);
            }
        }
    };
    let first_words = words.since();
    (ended, Times { asked, first_words })
}

/// Shows a whole answer; without its file if only the file fails.
pub(super) async fn show(posted: &mut Posted<'_>, text: &str) -> Result<(), RestError> {
    posted.give_up_at(Instant::now() + PATIENCE);
    match persist(posted, text).await {
        Err(error) if posted.gives_up_file(&error) => persist(posted, text).await,
        shown => shown,
    }
}

/// Tries until neither an outage of seconds nor a limit of minutes can lose an
/// answer. The nonce keeps a message whose response was lost from being posted twice.
async fn persist(posted: &mut Posted<'_>, text: &str) -> Result<(), RestError> {
    let mut faults = 0;
    loop {
        let Err(error) = posted.show(text, true).await else {
            return Ok(());
        };
        let is_limit = error.reason == Fallback::RateLimited && error.code.is_none();
        let wait = if is_limit {
            Some(error.retry_after.unwrap_or(UNTOLD_LIMIT))
        } else {
            faults += 1;
            (error.transient && faults < SHOWS).then_some(LATER)
        };
        let Some(wait) = wait.filter(|wait| posted.has_until(Instant::now() + *wait)) else {
            return Err(error);
        };
        tracing::info!(%error, seconds = wait.as_secs(), "an answer is shown later");
        sleep(wait).await;
    }
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
struct Words {
    text: Mutex<(String, Option<Instant>)>,
    max_bytes: usize,
    came: tokio::sync::Notify,
}

impl Words {
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
