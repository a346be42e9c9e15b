//! Asking again after what may pass.

use std::iter::{repeat_n, successors};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use clew_context::discord::error::RestError;

/// Waits until then; for ever without a time.
pub async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Pauses, each twice as long as the one before, while the next ends before that time.
pub fn doubling(first: Duration, until: Instant) -> impl Iterator<Item = Duration> {
    let pauses = successors(Some(first), |pause| Some(*pause * 2));
    pauses.take_while(move |pause| Instant::now() + *pause < until)
}

/// Asks until there is an answer.
///
/// # Errors
/// That which does not pass, or the last once no pause is left.
pub async fn patiently<T, E, F: Future<Output = Result<T, E>>>(
    pauses: impl IntoIterator<Item = Duration>,
    ask: impl Fn() -> F,
    may_pass: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut pauses = pauses.into_iter();
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(pause) = pauses.next().filter(|_| may_pass(&error)) else {
            return Err(error);
        };
        sleep(pause).await;
    }
}

/// How often a request is made that Discord does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tries {
    /// There is no time for more.
    One,
    /// Whether a question gets one answer depends on it.
    All,
}

/// The tries of [`Tries::All`], and the pause between two.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_secs(3);

/// Makes a call again while Discord does not answer.
pub(super) async fn insist<T, F: Future<Output = Result<T, RestError>>>(
    tries: Tries,
    call: impl Fn() -> F,
) -> Result<T, RestError> {
    let more = match tries {
        Tries::One => 0,
        Tries::All => TRIES - 1,
    };
    let is_unanswered = |error: &RestError| error.reason.is_unanswered();
    patiently(repeat_n(PAUSE, more), call, is_unanswered).await
}
