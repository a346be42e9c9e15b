//! Keys of ours in the state folder, kept over restarts: one behind frame nonces,
//! so that prompts of one conversation go on sharing their prefix, and one behind
//! pseudonyms in the telemetry.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Behind the nonces of frames; within the state folder, as the next.
pub(super) const FRAMES: &str = "frame.key";
/// Behind pseudonyms.
pub(super) const PSEUDONYMS: &str = "telemetry.key";
/// Bytes of the key.
const BYTES: usize = 32;

/// Reads a key, or makes one that nobody else may read.
pub(super) fn load(state_dir: &Path, file: &str) -> io::Result<Vec<u8>> {
    let path = state_dir.join(file);
    match fs::read(&path) {
        Ok(key) if key.len() == BYTES => return Ok(key),
        Ok(_) => {
            tracing::warn!(path = %path.display(), "a key is damaged: a new one is made");
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let key = random()?;
    fs::create_dir_all(state_dir)?;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(&key)?;
    file.sync_all()?;
    Ok(key)
}

/// From the generator that TLS uses.
fn random() -> io::Result<Vec<u8>> {
    let mut key = vec![0; BYTES];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random
        .fill(&mut key)
        .map_err(|_| io::Error::other("the system gave no random bytes"))?;
    Ok(key)
}
