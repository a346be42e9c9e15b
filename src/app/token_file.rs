//! The file in the state folder with the tokens used today, so that a restart gives
//! nobody their share again. It holds ids and numbers, of one day.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::engine::daily_tokens::UsedTokens;
use crate::llm::TokenMeter;

/// The file in the state folder.
const FILE: &str = "tokens.json";
/// How often it is written, if anything has changed: a process that is killed forgets
/// what was used since.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// What was kept; nothing if the file cannot be read.
pub(super) fn load(state_dir: &Path) -> UsedTokens {
    let path = state_dir.join(FILE);
    let read = || Ok(serde_json::from_slice(&fs::read(&path)?)?);
    read().unwrap_or_else(|error: io::Error| {
        if error.kind() != io::ErrorKind::NotFound {
            tracing::warn!(path = %path.display(), %error,
                "today's tokens cannot be read: they are counted from zero");
        }
        UsedTokens::default()
    })
}

/// Keeps the file up to date until the end.
pub(super) async fn keep(meter: Arc<TokenMeter>, state_dir: PathBuf, ends: CancellationToken) {
    let mut saved = UsedTokens::default();
    loop {
        let is_last = ends.run_until_cancelled(sleep(SAVE_EVERY)).await.is_none();
        let used = meter.used();
        if used != saved {
            saved = used;
            save(saved.clone(), state_dir.clone()).await;
        }
        if is_last {
            return;
        }
    }
}

async fn save(used: UsedTokens, state_dir: PathBuf) {
    let shown = state_dir.display().to_string();
    let writing = tokio::task::spawn_blocking(move || write(&used, &state_dir));
    if let Ok(Err(error)) = writing.await {
        tracing::warn!(path = shown, %error,
            "today's tokens cannot be written: after a restart they are counted from zero");
    }
}

fn write(used: &UsedTokens, state_dir: &Path) -> io::Result<()> {
    let (path, new) = (state_dir.join(FILE), state_dir.join("tokens.json.new"));
    fs::create_dir_all(state_dir)?;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(&serde_json::to_vec(used)?)?;
    file.sync_all()?;
    fs::rename(&new, &path)
}
