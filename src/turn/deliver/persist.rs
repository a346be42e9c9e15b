//! Keeps trying: to show a whole answer, and to take one back.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::PostedAnswer;
use clew_context::discord::error::RestError;
use clew_context::model::Fallback;

/// The pause after Discord failed to take a whole answer; each further one is twice as long.
const LATER: Duration = Duration::from_secs(3);
/// The most tries to show an answer with a file, which may be why it fails; each call makes a few quick ones.
const SHOWS_WITH_FILE: u32 = 3;
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

/// Tries until neither an outage nor a limit of a minute can lose an answer. The nonce keeps a message whose response was lost from being posted twice; it is posted
/// though the question was deleted meanwhile, since only so is it known what to take back.
async fn persist(posted: &mut PostedAnswer<'_>, text: &str) -> Result<(), RestError> {
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
            let may_be_taken = !posted.file_failed || faults < SHOWS_WITH_FILE;
            (error.transient && may_be_taken).then(|| LATER * (1 << (faults - 1).min(8)))
        };
        let Some(wait) = wait.filter(|wait| posted.has_until(Instant::now() + *wait)) else {
            return Err(error);
        };
        tracing::info!(%error, seconds = wait.as_secs(), "an answer is shown later");
        sleep(wait).await;
    }
}
