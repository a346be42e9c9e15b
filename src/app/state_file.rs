//! Small files in the state folder.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use clew_context::outside::blocking;

/// The content of a file; none if it is not there.
pub(super) fn read<T: DeserializeOwned>(state_dir: &Path, file: &str) -> io::Result<Option<T>> {
    match fs::read(state_dir.join(file)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file, on a thread that may block. A reader finds the old one or the new one;
/// only its owner may read it.
pub(super) async fn write(
    state_dir: &Path,
    file: &'static str,
    content: &impl Serialize,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(content)?;
    let folder = state_dir.to_owned();
    let writing = blocking(move || replace(&folder, file, &bytes));
    writing
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn replace(state_dir: &Path, file: &str, bytes: &[u8]) -> io::Result<()> {
    let new = state_dir.join(format!("{file}.new"));
    fs::create_dir_all(state_dir)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut written = options.open(&new)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    fs::rename(&new, state_dir.join(file))
}
