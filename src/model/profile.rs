//! What is remembered, as it goes into a prompt.

use super::{MessageId, UnixMillis, UserId};

/// A remembered fact of a user or a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What is remembered, one sentence.
    pub text: String,
}

/// The facts that go into one prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiles {
    /// Of the asker.
    pub user: Vec<Fact>,
    /// Of the server.
    pub server: Vec<Fact>,
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
    /// What.
    pub text: String,
}
