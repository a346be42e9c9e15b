//! One pass over a recording.

use super::timeline::timeline;
use super::turn::{ReplayOutcome, ReplayTurns, Warm};
use super::{ReplayError, ReplayStep, Start};
use clew_context::model::{Cause, Message};

/// The number of messages between two calls of the progress function.
pub(super) const PROGRESS_EVERY: u64 = 1_000;

/// Replays all messages in order, as the gateway would deliver them, until `take` of a
/// trigger's outcome says that it was the last.
pub(super) async fn pass(
    turns: ReplayTurns<'_>,
    start: Start,
    mut cause: impl FnMut(&Message) -> Result<Option<Cause>, ReplayError>,
    mut take: impl FnMut(&ReplayOutcome) -> Result<bool, ReplayError>,
    progress: &dyn Fn(ReplayStep, u64, u64),
) -> Result<(), ReplayError> {
    let total = turns.recording.report().messages;
    let mut warm = Warm::new(turns);
    let mut done = 0;
    for event in timeline(turns.recording) {
        let event = event?;
        let cause = cause(&event.message)?;
        let outcome = match (start, cause) {
            (Start::Cold, None) => None,
            (Start::Cold, Some(cause)) => Some(turns.cold(event.message, cause).await?),
            (Start::Warm, cause) => {
                let trigger = warm.feed(event)?;
                match cause {
                    Some(cause) => Some(warm.turn(trigger, cause).await?),
                    None => None,
                }
            }
        };
        if let Some(outcome) = outcome
            && take(&outcome)?
        {
            break;
        }
        done += 1;
        if done % PROGRESS_EVERY == 0 {
            progress(ReplayStep::Replaying, done, total);
        }
    }
    Ok(())
}
