//! What must survive a restart or a kill: how far each shard's events are handled, which
//! questions were answered, and the files that say so.

mod claims;
mod file;
mod lock;
mod progress;

pub use claims::{ClaimRows, Claims, KEPT, Unfinished, claims_in};
pub use file::{
    Absent, GUILD_FILE, Heard, Lasts, Left, SessionFile, begin, forget, load, note_alive, save,
    save_guilds,
};
pub use lock::{LockError, SessionLock};
pub use progress::{Mark, ShardProgress};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use clew_context::model::{ChannelId, GuildId};

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
    /// Since when, in Unix milliseconds, something of it may be unfinished: an event, a
    /// connection that broke, or what is newer than the newest message that came (Discord's
    /// clock; ours may be ahead). None if nothing is, and no message came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_since: Option<i64>,
    /// Servers that are in an outage, since when, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outages: BTreeMap<GuildId, i64>,
}

/// Where events were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Everywhere.
    Everything,
    /// In the servers of a shard; direct messages are those of shard 0.
    Shard {
        /// The shard.
        shard: u32,
        /// The total number of shards.
        shards: u32,
    },
    /// In a server.
    Guild(GuildId),
    /// In a channel.
    Channel {
        /// Its server; none of a direct conversation, or if it is not known.
        guild: Option<GuildId>,
        /// The channel.
        channel: ChannelId,
    },
}

/// A time at which events were missed: what was stored before it may have been deleted or
/// edited unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// In Unix milliseconds.
    pub at: i64,
    /// Where.
    pub missed: Missed,
}
