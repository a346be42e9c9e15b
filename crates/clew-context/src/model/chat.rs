//! A prompt as a language model takes it: a list of messages with roles.

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said, as plain text.
    pub content: String,
}

impl ChatMessage {
    /// A message of the given role.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }
}

/// Who speaks in a [`ChatMessage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions of the operator.
    System,
    /// The people whom the bot answers.
    User,
    /// The bot itself.
    Assistant,
}

impl Role {
    /// The name that chat completion endpoints give the role.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A text of the operator's own: trusted as the system prompt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDoc {
    /// The file's name, as `prices.md`.
    pub name: String,
    /// The file's text, trimmed, not empty.
    pub text: String,
}
