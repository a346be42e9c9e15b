//! Stored facts and history, in the form that goes into a prompt.

use super::{MessageId, UnixMillis, UserId};

/// The texts of the facts for one prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiles {
    /// About the asker.
    pub user: Vec<String>,
    /// About the server.
    pub server: Vec<String>,
}

/// One stored message of the conversation with the asker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryMessage {
    /// Whether we said it.
    pub ours: bool,
    /// Who said it, if not us.
    pub author: Option<(UserId, String)>,
    /// The Discord message, to leave out what the block already shows.
    pub message: Option<MessageId>,
    /// When it was said.
    pub timestamp: UnixMillis,
    /// Restored from a snapshot.
    pub restored: bool,
    /// What was said.
    pub text: String,
}
