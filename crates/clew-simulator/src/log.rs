//! What the bot did, as seen by the server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// One REST call.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// Its number in order of arrival, from 0.
    pub ordinal: usize,
    /// Method.
    pub method: String,
    /// Path without `/api/v10`.
    pub path: String,
    /// Query without the question mark.
    pub query: String,
    /// JSON body, or `payload_json` of a multipart one; null without a body.
    pub body: Value,
    /// Names of the uploaded files.
    pub files: Vec<String>,
    /// Status of the answer; `None` while in progress, or if none was sent.
    pub status: Option<u16>,
    /// Error code in the answer's body.
    pub code: Option<u64>,
    /// How many calls were in progress when it arrived, itself included.
    pub in_flight: usize,
    /// Time of arrival since the server's start.
    pub at: Duration,
}

/// An event of the gateway, as a client with all intents gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// Its name, such as `MESSAGE_CREATE`.
    pub name: Arc<str>,
    /// Its data.
    pub data: Arc<Value>,
}

impl Dispatch {
    pub(super) fn new(name: &str, data: &Value) -> Self {
        Self {
            name: name.into(),
            data: Arc::new(data.clone()),
        }
    }
}

/// Something that happened on a gateway connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayRecord {
    /// Time since the server's start.
    pub at: Duration,
    /// Number of the connection, from 1.
    pub link: u64,
    /// What happened.
    pub event: GatewayEvent,
}

/// What can happen on a gateway connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// The socket opened and HELLO was sent.
    Opened {
        /// Whether it asked for zstd compression.
        compressed: bool,
    },
    /// IDENTIFY was accepted.
    Identified {
        /// The new session.
        session: String,
        /// Intents requested.
        intents: u64,
        /// Shard id and count.
        shard: (u64, u64),
    },
    /// RESUME was accepted.
    Resumed {
        /// The session that was resumed.
        session: String,
        /// The last sequence number the client had read.
        seq: u64,
        /// How many missed events were replayed.
        replayed: usize,
    },
    /// A session was refused with op 9.
    Invalidated {
        /// Whether it can still be resumed.
        resumable: bool,
    },
    /// A heartbeat arrived.
    Heartbeat {
        /// The last sequence number the client has read.
        seq: Option<u64>,
    },
    /// Another command arrived, such as a presence update.
    Command {
        /// Its opcode.
        op: u64,
    },
    /// The client closed the connection.
    ClosedByClient {
        /// Its close code; `None` if the connection just ended.
        code: Option<u16>,
    },
    /// The server closed the connection.
    ClosedByServer {
        /// Its close code; `None` if it just dropped the connection.
        code: Option<u16>,
    },
}
