//! One answer: the model's words, shown while they come.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::engine::deliver::{self, Delivery};
use crate::llm::{self, Completion};
use clew_context::discord::error::RestError;
use clew_context::model::{ChatMessage, Fallback};

use super::control::{Control, Order};
use super::outlet::Posted;

/// After the first words, this long is waited for the whole answer: a short
/// one is posted once and never edited.
const FIRST_SHOW: Duration = Duration::from_millis(700);
/// Between edits. Discord allows five edits in five seconds a channel; other
/// turns of the channel edit too.
const PACE: Duration = Duration::from_millis(1_500);

/// After Discord failed to take a whole answer.
const LATER: Duration = Duration::from_secs(3);
/// Tries to show a whole answer, each with the few quick ones of a call.
const SHOWS: u32 = 3;

/// How an answer ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The model is done; the last words are not shown yet.
    Model(Result<Completion, llm::Error>),
    /// Something else has to be done.
    Ordered(Order),
    /// Discord refused what was shown so far.
    Refused(RestError),
}

/// When things happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) asked: Instant,
    pub(super) first_words: Option<Instant>,
}

/// Asks the model and shows what comes, at a pace.
pub(super) async fn stream(
    client: &llm::Client,
    prompt: &[ChatMessage],
    posted: &mut Posted<'_>,
    control: &mut Control,
    max_messages: usize,
) -> (Ended, Times) {
    let words = Words::default();
    let asked = Instant::now();
    let model = client.answer(prompt, |delta| words.add(delta));
    tokio::pin!(model);
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
                let delivery = deliver::split(&words.so_far(), max_messages);
                match posted.show(&delivery, false).await {
                    Err(error) if is_final(error.reason) => break Ended::Refused(error),
                    // The next edit shows it, or the whole answer does.
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

/// Shows a whole answer. An outage of some seconds does not lose it; the nonce
/// keeps a message that was posted unseen from being posted twice.
pub(super) async fn show(posted: &mut Posted<'_>, delivery: &Delivery) -> Result<(), RestError> {
    for _ in 1..SHOWS {
        match posted.show(delivery, true).await {
            Err(error) if error.transient => {
                tracing::info!(%error, "an answer is shown later");
                sleep(LATER).await;
            }
            shown => return shown,
        }
    }
    posted.show(delivery, true).await
}

/// Waits for that time; without one, for ever.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What a later try will not cure: the answer can never be shown there.
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

/// What the model has said so far.
#[derive(Debug, Default)]
struct Words {
    text: Mutex<(String, Option<Instant>)>,
    came: tokio::sync::Notify,
}

impl Words {
    fn add(&self, delta: &str) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.0.push_str(delta);
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
