//! The file in the state folder with the agent runs that are under way, so that the next
//! process says of them that they broke off. It holds ids and times.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::state_file;
use crate::runs::{OpenRuns, Runs};

/// The file in the state folder.
pub(super) const FILE: &str = "runs.json";

/// The runs that an earlier process left; none if the file cannot be read.
pub(super) fn load(state_dir: &Path) -> OpenRuns {
    let runs = state_file::read(state_dir, FILE).unwrap_or_else(|error| {
        tracing::warn!(path = %state_dir.join(FILE).display(), %error,
            "the agent runs of the last process cannot be read: their messages stay as they are");
        None
    });
    runs.unwrap_or_default()
}

/// Keeps the file up to date until the end.
pub(super) async fn keep(runs: Runs, state_dir: PathBuf, ends: CancellationToken) {
    let mut changes = runs.changes();
    let mut saved = runs.open();
    loop {
        let changed = ends.run_until_cancelled(changes.changed()).await;
        let open = runs.open();
        if open != saved {
            saved = open;
            if let Err(error) = state_file::write(&state_dir, FILE, &saved).await {
                tracing::warn!(path = %state_dir.join(FILE).display(), %error,
                    "the agent runs under way cannot be written: after a crash nobody is told");
            }
            runs.written(saved.clone());
        }
        if changed.is_none() {
            return;
        }
    }
}
