//! What is remembered, as it goes into a prompt.

use super::{MessageId, UnixMillis, UserId};

/// The texts of the facts that go into one prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiles {
    /// Of the asker.
    pub user: Vec<String>,
    /// Of the server.
    pub server: Vec<String>,
}

/// One stored message of the conversation with the asker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryMessage {
    /// We said it.
    pub ours: bool,
    /// Who said it, if it was not us.
    pub author: Option<(UserId, String)>,
    /// Discord's message, for leaving out what the block shows already.
    pub message: Option<MessageId>,
    /// When.
    pub timestamp: UnixMillis,
    /// Brought back from a snapshot.
    pub restored: bool,
    /// What.
    pub text: String,
}
