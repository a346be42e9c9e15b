//! Tools as the model, the operator and the telemetry name them.

use clew_context::words;

words! {
    /// A built-in tool.
    ToolName {
        /// Reads one message.
        GetMessage = "get_message",
        /// Reads the messages of a thread or channel, page by page.
        ListThread = "list_thread",
        /// Finds messages by words.
        SearchMessages = "search_messages",
        /// Reads what the asker missed, in conversations.
        CatchUp = "catch_up",
        /// Notes a fact about the asker.
        Remember = "remember",
        /// Forgets a fact about the asker.
        Forget = "forget",
        /// Finds what tools gave earlier in the conversation.
        SearchOutputs = "search_outputs",
        /// Reads it.
        ReadOutput = "read_output",
        /// Reads a document of the agent's.
        ReadDoc = "read_doc",
    }
}

impl ToolName {
    /// Whether it only reads, and nothing that is kept.
    pub const fn only_reads(self) -> bool {
        match self {
            Self::GetMessage
            | Self::ListThread
            | Self::SearchMessages
            | Self::CatchUp
            | Self::ReadDoc => true,
            Self::Remember | Self::Forget | Self::SearchOutputs | Self::ReadOutput => false,
        }
    }
}

/// What a model is told of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolDefinition {
    pub name: ToolName,
    /// What it does and when to call it.
    pub about: &'static str,
    /// What it can be called with.
    pub parameters: &'static [ToolParameter],
}

/// A parameter of a tool: always a text, since models write ids as either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolParameter {
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Whether the tool needs it.
    pub is_required: bool,
}
