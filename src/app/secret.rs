//! Our keys in the state folder, kept across restarts: one for the nonces of
//! frames, so that the prompts of a conversation keep sharing their prefix,
//! one for what was answered, and one for the pseudonyms in telemetry.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The key for the nonces of frames; a file in the state folder.
pub(super) const FRAME_KEY: &str = "frame.key";
/// The key for what was answered; a file in the state folder.
pub(super) const CLAIM_KEY: &str = "claims.key";
/// The key for pseudonyms; a file in the state folder.
pub(super) const PSEUDONYM_KEY: &str = "telemetry.key";
/// All of them.
pub(super) const KEYS: [&str; 3] = [FRAME_KEY, CLAIM_KEY, PSEUDONYM_KEY];
/// The length of a key in bytes.
const BYTES: usize = 32;

/// Keys of `STATE_DIR`.
pub(super) struct Keys {
    /// For the nonces of frames.
    pub(super) frames: Vec<u8>,
    /// For what was answered.
    pub(super) claims: Vec<u8>,
}

/// Reads a key, or creates one that only its owner can read.
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

/// Random bytes from the generator that TLS uses.
pub(super) fn random() -> io::Result<Vec<u8>> {
    let mut key = vec![0; BYTES];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random
        .fill(&mut key)
        .map_err(|_| io::Error::other("the system gave no random bytes"))?;
    Ok(key)
}
