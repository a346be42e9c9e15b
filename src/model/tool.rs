//! Tools as the model, the operator and the telemetry name them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use clew_context::words;
use serde_json::{Map, Value};

words! {
    /// A tool of ours.
    BuiltIn {
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

impl BuiltIn {
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

/// The `custom_id` of the buttons that allow and deny a call, up to their argument: the
/// approval's id.
pub const ALLOW_CALL: &str = "allow-call:";
pub const DENY_CALL: &str = "deny-call:";

words! {
    /// How it came that a tool of another's server was called, or not.
    Consent {
        /// The operator lets it run without asking.
        Auto = "auto",
        /// Somebody allowed this call.
        Allowed = "allowed",
        /// Somebody denied it.
        Denied = "denied",
        /// Nobody answered in time.
        Expired = "expired",
        /// The question changed, or the turn ended, before anybody answered.
        Withdrawn = "withdrawn",
        /// Somebody allowed it, and then rights or the tool were others.
        Overruled = "overruled",
        /// A restart had cut it off.
        CutOff = "cut_off",
        /// Nobody could be asked.
        NotAsked = "not_asked",
    }
}

/// A tool: ours, or one of another's server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolName {
    BuiltIn(BuiltIn),
    /// `server__tool`.
    Server(Arc<str>),
}

impl ToolName {
    pub fn as_str(&self) -> &str {
        match self {
            Self::BuiltIn(tool) => tool.as_str(),
            Self::Server(name) => name,
        }
    }

    /// The tool of ours that it is.
    pub const fn built_in(&self) -> Option<BuiltIn> {
        match self {
            Self::BuiltIn(tool) => Some(*tool),
            Self::Server(_) => None,
        }
    }

    /// One of ours, or what has the form of a server's.
    pub fn from_word(word: &str) -> Option<Self> {
        let of_server = || word.contains("__").then(|| Self::Server(word.into()));
        BuiltIn::from_word(word)
            .map(Self::BuiltIn)
            .or_else(of_server)
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: ToolName,
    /// What it does and when to call it.
    pub about: Cow<'static, str>,
    pub parameters: ToolParameters,
}

/// What a tool can be called with.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolParameters {
    /// Texts: models write ids as texts or numbers.
    Texts(&'static [ToolParameter]),
    /// What a JSON schema says, an object's.
    Schema(Arc<Map<String, Value>>),
}

impl ToolDefinition {
    /// A tool of ours.
    pub const fn built_in(
        name: BuiltIn,
        about: &'static str,
        parameters: &'static [ToolParameter],
    ) -> Self {
        Self {
            name: ToolName::BuiltIn(name),
            about: Cow::Borrowed(about),
            parameters: ToolParameters::Texts(parameters),
        }
    }
}

/// A parameter of a tool of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolParameter {
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Whether the tool needs it.
    pub is_required: bool,
}

impl ToolParameter {
    pub const fn required(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            is_required: true,
        }
    }

    /// One that may be left out.
    pub const fn optional(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            is_required: false,
        }
    }
}
