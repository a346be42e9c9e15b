//! What a restart must not lose: how far each shard's events are dealt with,
//! which messages were answered, and the file that carries both over.

mod claims;
mod file;
mod lock;
mod progress;

pub use claims::Claims;
pub use file::{SessionFile, load, save};
pub use lock::{LockError, SessionLock};
pub use progress::{Mark, Progress};

use serde::{Deserialize, Serialize};

/// A gateway session that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSession {
    /// Number of the shard.
    pub shard: u32,
    /// How many shards there were; a session fits no other number.
    pub shards: u32,
    /// Discord's id of the session.
    pub id: String,
    /// Where to resume it.
    pub resume_url: Option<String>,
    /// The last event that counts as received: Discord replays what follows.
    pub sequence: u64,
}
