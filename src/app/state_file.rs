//! Small files in the state folder.

use std::fs;
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::state_folder::StateFolder;
use crate::runs::StateFile;
use clew_context::outside::blocking;

/// The agent runs that are under way, so that the next process says of them that they broke
/// off: ids and times.
pub(super) const RUNS: &str = "runs.json";
/// The calls of tools that wait for consent, so that the next process says of them that they
/// were not done: ids, times and hashes.
pub(super) const APPROVALS: &str = "approvals.json";
/// Which programs read as members, by the hashes of their tokens.
pub(super) const CONNECTIONS: &str = "connections.json";
/// After which time a file that could not be written is written again.
const AGAIN: Duration = Duration::from_secs(1);

/// The content of a file; none if it is not there.
pub(super) fn read<T: DeserializeOwned>(state_dir: &Path, file: &str) -> io::Result<Option<T>> {
    match fs::read(state_dir.join(file)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// By tool of an MCP server, a hash of what its server said of it, to tell of changes.
pub(super) const TOOLS: &str = "mcp_tools.json";

/// What an earlier process left in a file; nothing if it cannot be read.
pub(super) fn left<T: DeserializeOwned + Default>(state_dir: &Path, file: &str) -> T {
    let read = read(state_dir, file).unwrap_or_else(|error| {
        tracing::warn!(path = %state_dir.join(file).display(), %error,
            "what the last process left cannot be read: messages that speak of it stay as they are");
        None
    });
    read.unwrap_or_default()
}

/// Keeps a file up to date until the end; what cannot be written is tried again.
pub(super) async fn keep<S>(
    state: S,
    file: &'static str,
    folder: StateFolder,
    ends: CancellationToken,
) where
    S: StateFile,
    S::Content: Serialize + DeserializeOwned + Default + Clone + PartialEq,
{
    let mut changes = state.changes();
    let mut saved: S::Content = read(folder.dir(), file).ok().flatten().unwrap_or_default();
    let mut failed = false;
    loop {
        let is_over = ends.is_cancelled();
        let content = state.content();
        if content == saved {
            failed = false;
        } else {
            let written = write(&folder, file, &content).await;
            state.written(content.clone(), written.is_ok());
            match written {
                Ok(()) => (saved, failed) = (content, false),
                Err(error) => {
                    if !mem::replace(&mut failed, true) {
                        tracing::warn!(path = %folder.path(file).display(), %error,
                            "a file cannot be written: after a crash the next process knows what it knew before");
                    }
                }
            }
        }
        if is_over {
            return;
        }
        let changed = ends.run_until_cancelled(changes.changed());
        if failed {
            // It comes sooner if there is more to write.
            let _ = timeout(AGAIN, changed).await;
        } else {
            changed.await;
        }
    }
}

/// Writes a file, on a thread that may block. A reader finds the old one or the new one;
/// only its owner may read it.
pub(super) async fn write(
    folder: &StateFolder,
    file: &'static str,
    content: &impl Serialize,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(content)?;
    folder.keep_content(file, &bytes).await?;
    let dir = folder.dir().to_owned();
    let writing = blocking(move || replace(&dir, file, &bytes));
    writing
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

pub(super) fn replace(state_dir: &Path, file: &str, bytes: &[u8]) -> io::Result<()> {
    let new = state_dir.join(format!("{file}.new"));
    fs::create_dir_all(state_dir)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut written = options.open(&new)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    fs::rename(&new, state_dir.join(file))
}
