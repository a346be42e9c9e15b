//! Tools as the model, the operator and the telemetry name them.

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolName {
    /// Reads one message.
    GetMessage,
    /// Reads the messages of a thread or channel, page by page.
    ListThread,
    /// Finds messages by words.
    SearchMessages,
    /// Notes a fact about the asker.
    Remember,
    /// Forgets a fact about the asker.
    Forget,
    /// Finds what tools gave earlier in the conversation.
    SearchOutputs,
    /// Reads it.
    ReadOutput,
}

impl ToolName {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::GetMessage,
        Self::ListThread,
        Self::SearchMessages,
        Self::Remember,
        Self::Forget,
        Self::SearchOutputs,
        Self::ReadOutput,
    ];

    /// The name that models call.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GetMessage => "get_message",
            Self::ListThread => "list_thread",
            Self::SearchMessages => "search_messages",
            Self::Remember => "remember",
            Self::Forget => "forget",
            Self::SearchOutputs => "search_outputs",
            Self::ReadOutput => "read_output",
        }
    }

    /// Whether it reads messages, and nothing that is kept.
    pub const fn reads_messages(self) -> bool {
        match self {
            Self::GetMessage | Self::ListThread | Self::SearchMessages => true,
            Self::Remember | Self::Forget | Self::SearchOutputs | Self::ReadOutput => false,
        }
    }

    /// The tool of that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }
}

/// What a model is told of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: ToolName,
    /// What it does and when to call it.
    pub about: &'static str,
    /// What it can be called with.
    pub parameters: &'static [ToolParameter],
}

/// A parameter of a tool: always a text, since models write ids as either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolParameter {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Whether the tool needs it.
    pub is_required: bool,
}
