//! A prompt in the form that language models take: a list of messages with roles.

use super::Image;
use crate::words;

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatMessage {
    /// Plain text.
    Text {
        /// Who speaks.
        role: Role,
        /// What is said.
        content: String,
    },
    /// A text of the people whom the bot answers, with images.
    WithImages {
        /// What is said.
        content: String,
        /// The images, in order.
        images: Vec<Image>,
    },
    /// The model asks for tools to be called.
    ToolCalls {
        /// What it said before; may be empty.
        content: String,
        /// The calls, in its order; each needs a [`ChatMessage::ToolResult`].
        calls: Vec<ToolCall>,
    },
    /// What a tool returned.
    ToolResult {
        /// The [`ToolCall::id`] that it answers.
        call_id: String,
        /// The tool's output, as plain text.
        content: String,
    },
}

/// A model's request to call a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The server's name for the call; a result refers to it.
    pub id: String,
    /// The tool's name, which need not exist: models make names up.
    pub name: String,
    /// The arguments as the model wrote them: should be a JSON object, but models
    /// make mistakes.
    pub arguments: String,
    /// What else its server said of it, as the text of a JSON object. Some servers want it
    /// back with the call; others would refuse it.
    pub extra: Option<Box<str>>,
}

impl ChatMessage {
    /// A plain text of the given role.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self::Text {
            role,
            content: content.into(),
        }
    }

    /// The name that chat completion endpoints give its role.
    pub fn role(&self) -> &'static str {
        match self {
            Self::Text { role, .. } => role.as_str(),
            Self::WithImages { .. } => Role::User.as_str(),
            Self::ToolCalls { .. } => Role::Assistant.as_str(),
            Self::ToolResult { .. } => "tool",
        }
    }

    /// What is said; without the calls.
    pub fn content(&self) -> &str {
        match self {
            Self::Text { content, .. }
            | Self::WithImages { content, .. }
            | Self::ToolCalls { content, .. }
            | Self::ToolResult { content, .. } => content,
        }
    }

    /// The calls of tools; none unless it is [`ChatMessage::ToolCalls`].
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::ToolCalls { calls, .. } => calls,
            Self::Text { .. } | Self::WithImages { .. } | Self::ToolResult { .. } => &[],
        }
    }

    /// Its images; none unless it is [`ChatMessage::WithImages`].
    pub fn images(&self) -> &[Image] {
        match self {
            Self::WithImages { images, .. } => images,
            Self::Text { .. } | Self::ToolCalls { .. } | Self::ToolResult { .. } => &[],
        }
    }

    /// All texts that the model reads of it: the content, then the names and
    /// arguments of its calls.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let calls = self.tool_calls().iter();
        let of_calls = calls.flat_map(|call| [call.name.as_str(), call.arguments.as_str()]);
        std::iter::once(self.content()).chain(of_calls)
    }
}

words! {
    /// Who speaks in a [`ChatMessage::Text`].
    Role {
        /// The operator's instructions.
        System = "system",
        /// The people the bot answers.
        User = "user",
        /// The bot itself.
        Assistant = "assistant",
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
