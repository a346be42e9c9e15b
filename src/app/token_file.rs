//! The file in the state folder with the tokens used today, so that a restart gives
//! nobody their share again. It holds ids and numbers, of one day.

use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::state_file;
use super::state_folder::StateFolder;
use crate::engine::daily_tokens::UsedTokens;
use crate::llm::TokenMeter;

/// The file in the state folder.
pub(super) const FILE: &str = "tokens.json";
/// How often it is written, if anything has changed: a process that is killed forgets
/// what was used since.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// What was kept; nothing if the file cannot be read.
pub(super) fn load(state_dir: &Path) -> UsedTokens {
    let used = state_file::read(state_dir, FILE).unwrap_or_else(|error| {
        tracing::warn!(path = %state_dir.join(FILE).display(), %error,
            "today's tokens cannot be read: they are counted from zero");
        None
    });
    used.unwrap_or_default()
}

/// Keeps the file up to date until the end.
pub(super) async fn keep(meter: Arc<TokenMeter>, folder: StateFolder, ends: CancellationToken) {
    let mut saved = load(folder.dir());
    let mut failed = false;
    loop {
        let is_last = ends.run_until_cancelled(sleep(SAVE_EVERY)).await.is_none();
        let used = meter.used();
        // No file without a count; but what is over leaves it.
        if used != saved && !(used.is_empty() && saved.is_empty()) {
            match state_file::write(&folder, FILE, &used).await {
                Ok(()) => (saved, failed) = (used, false),
                Err(error) if !mem::replace(&mut failed, true) => {
                    tracing::warn!(path = %folder.path(FILE).display(), %error,
                        "today's tokens cannot be written: after a restart they are counted from the last that were");
                }
                Err(_) => {}
            }
        }
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use clew_context::model::{UnixMillis, fixed_clock};
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::model::TokenLimits;

    /// Nobody asks again before the end.
    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_written_is_written_once_it_can() {
        let folder = TempDir::new().unwrap();
        let dir = folder.path().join("state");
        std::fs::write(&dir, "no folder").unwrap();
        let used = json!({"day": 0, "users": {}, "guilds": {}, "total": 7});
        let used: UsedTokens = serde_json::from_value(used).unwrap();
        let (limits, clock) = (TokenLimits::default(), fixed_clock(UnixMillis(0)));
        let meter = Arc::new(TokenMeter::new(limits, used, clock));
        let ends = CancellationToken::new();
        let keeping = keep(
            Arc::clone(&meter),
            StateFolder::local(dir.clone()),
            ends.clone(),
        );
        let keeping = tokio::spawn(keeping);
        sleep(2 * SAVE_EVERY).await;
        std::fs::remove_file(&dir).unwrap();
        sleep(2 * SAVE_EVERY).await;
        assert_eq!(load(&dir), meter.used());
        ends.cancel();
        keeping.await.unwrap();
    }
}
