//! What must survive a restart: how far each shard's events are handled, which
//! messages were answered, and the file that stores both.

mod claims;
mod file;
mod lock;
mod progress;

pub use claims::Claims;
pub use file::{SessionFile, load, save};
pub use lock::{LockError, SessionLock};
pub use progress::{Mark, ShardProgress};

use serde::{Deserialize, Serialize};

/// A gateway session that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSession {
    /// Shard number.
    pub shard: u32,
    /// Number of shards; a session cannot be resumed with another number.
    pub shards: u32,
    /// Discord's id of the session.
    pub id: String,
    /// Where to resume it.
    pub resume_url: Option<String>,
    /// Last event that counts as received: Discord replays those after it.
    pub sequence: u64,
}
