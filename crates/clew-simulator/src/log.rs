//! What the bot did, as the server saw it.

use std::time::Duration;

use serde_json::Value;

/// One REST call.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// Its number, in order of arrival, from 0.
    pub ordinal: usize,
    /// Method.
    pub method: String,
    /// Path without `/api/v10`.
    pub path: String,
    /// Query without the question mark.
    pub query: String,
    /// Body, of a multipart one its `payload_json`; null without a body.
    pub body: Value,
    /// Names of the files sent.
    pub files: Vec<String>,
    /// Status answered; absent while open, or when no answer was sent.
    pub status: Option<u16>,
    /// Error code of the answer's body.
    pub code: Option<u64>,
    /// How many calls were open when it arrived, itself included.
    pub in_flight: usize,
    /// Arrival, since the server's start.
    pub at: Duration,
}

/// What happened on a gateway connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayRecord {
    /// Since the server's start.
    pub at: Duration,
    /// Which connection, from 1.
    pub link: u64,
    /// What happened.
    pub event: GatewayEvent,
}

/// What happened on a gateway connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// The socket opened and HELLO was sent.
    Opened {
        /// Whether it asked for zstd.
        compressed: bool,
    },
    /// IDENTIFY was accepted.
    Identified {
        /// The session that began.
        session: String,
        /// Intents asked for.
        intents: u64,
        /// Shard id and count.
        shard: (u64, u64),
    },
    /// RESUME was accepted.
    Resumed {
        /// The session that goes on.
        session: String,
        /// The last sequence number the client had read.
        seq: u64,
        /// How many events it had missed.
        replayed: usize,
    },
    /// A session was refused with op 9.
    Invalidated {
        /// Whether it can be resumed.
        resumable: bool,
    },
    /// A heartbeat came.
    Heartbeat {
        /// The last sequence number the client has read.
        seq: Option<u64>,
    },
    /// Another command came, such as a presence update.
    Command {
        /// Its opcode.
        op: u64,
    },
    /// The client closed.
    ClosedByClient {
        /// Its close code; absent when the connection just ended.
        code: Option<u16>,
    },
    /// The server closed.
    ClosedByServer {
        /// Its close code; absent when it just dropped the connection.
        code: Option<u16>,
    },
}
