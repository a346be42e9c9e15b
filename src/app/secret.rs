//! The key behind frame nonces: kept over restarts, so that prompts of one
//! conversation go on sharing their prefix.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Within the state folder.
const FILE: &str = "frame.key";
/// Bytes of the key.
const BYTES: usize = 32;

/// Reads the key, or makes one.
pub(super) fn load(state_dir: &Path) -> io::Result<Vec<u8>> {
    let path = state_dir.join(FILE);
    match fs::read(&path) {
        Ok(key) if key.len() == BYTES => return Ok(key),
        Ok(_) => {
            tracing::warn!(path = %path.display(), "the frame key is damaged: a new one is made");
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
