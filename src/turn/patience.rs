//! Asking again after what may pass.

use std::time::Duration;

use tokio::time::sleep;

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
