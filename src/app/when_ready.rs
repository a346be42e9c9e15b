//! A start waits for its store.

use std::time::Duration;

use tokio::time::sleep;

use crate::telemetry::with_sources;

/// The pause between two tries to open a store grows from this...
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// ...to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Uses a store, waiting while it is locked, starting, full or unreachable: a bot may start
/// along with its database. Problems that only a person can fix are returned at once.
pub(super) async fn when_ready<T, F>(mut attempt: impl FnMut() -> F) -> F::Output
where
    F: Future<Output = Result<T, clew_store::Error>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match attempt().await {
            Err(error) if error.is_passing() => error,
            done => return done,
        };
        tracing::warn!(error = %with_sources(&error), seconds = pause.as_secs(),
            "the store is not ready: trying again");
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
