//! A prompt in the form that language models take: a list of messages with roles.

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
    /// The operator's instructions.
    System,
    /// The people the bot answers.
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

/// A text written by the operator, trusted like the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDoc {
    /// The file's name, such as `prices.md`.
    pub name: String,
    /// The file's text, trimmed, not empty.
    pub text: String,
}
