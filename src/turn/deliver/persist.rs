//! Keeps trying: to show a whole answer, and to take one back.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::PostedAnswer;
use clew_context::discord::error::RestError;
use clew_context::model::Fallback;

/// The pause after Discord failed to take a whole answer: each is twice as long as the one before, up to the
/// longest.
const PAUSE: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// The most tries of what may be the fault itself, as a file, or may be posted twice, as what follows the answer to
/// a command; each call makes a few quick ones.
const MOST_TRIES: u32 = 3;
/// How long to keep trying while Discord does not take a whole answer, or limits it.
const PATIENCE: Duration = Duration::from_mins(2);
/// The pause after a limit that does not say how long it lasts.
const UNTOLD_LIMIT: Duration = Duration::from_secs(30);

/// Shows a whole answer; without its file if only the file fails.
pub(super) async fn show(posted: &mut PostedAnswer<'_>, text: &str) -> Result<(), RestError> {
    posted.give_up_at(Instant::now() + PATIENCE);
    loop {
        match persist(posted, text).await {
            Err(error) if posted.gives_up_file(&error) => {}
            shown => return shown,
        }
    }
}

/// Tries until neither an outage nor a limit of a minute can lose an answer. The nonce keeps a message of a channel
/// whose response was lost from being posted twice; it is posted though the question was deleted meanwhile,
/// since only so is it known what to take back.
async fn persist(posted: &mut PostedAnswer<'_>, text: &str) -> Result<(), RestError> {
    let (mut pause, mut bounded) = (PAUSE, 0);
    loop {
        let Err(error) = posted.show(text, true).await else {
            return Ok(());
        };
        let wait = if error.is_limit() {
            Some(error.retry_after.unwrap_or(UNTOLD_LIMIT))
        } else {
            bounded += u32::from(posted.is_tried_seldom());
            let may_pass = error.transient || error.reason == Fallback::Timeout;
            let wait = pause;
            pause = (pause * 2).min(LONGEST_PAUSE);
            (may_pass && bounded < MOST_TRIES).then_some(wait)
        };
        let Some(wait) = wait.filter(|wait| posted.has_until(Instant::now() + *wait)) else {
            return Err(error);
        };
        tracing::info!(%error, seconds = wait.as_secs(), "an answer is shown later");
        sleep(wait).await;
    }
}
