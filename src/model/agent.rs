//! Agents: the personas under which the bot answers.

use std::collections::BTreeSet;
use std::time::Duration;

use super::ToolName;
use clew_context::engine::docs::Docs;
use clew_context::model::ChannelId;
use clew_store::model::{AgentName, ScopeKind};

/// A persona: what the model is told, and where it answers.
#[derive(Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name, which is also that of its folder.
    pub name: AgentName,
    /// The system prompt that the operator wrote for it, trimmed.
    pub system: String,
    /// Further documents that it knows, sorted by name; each prompt has them, or what of them
    /// matches.
    pub docs: Docs,
    /// The model to use instead of `LLM_MODEL`.
    pub model: Option<String>,
    /// How far back it remembers, instead of `CONTEXT_ROLLING_WINDOW_S`.
    pub rolling_window: Option<Duration>,
    /// How its history is scoped, instead of `CONTEXT_SCOPE`.
    pub scope: Option<ScopeKind>,
    pub channels: AgentChannels,
    /// The tools that it is offered; all of them if it names none.
    pub tools: Option<BTreeSet<ToolName>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentChannels {
    /// Wherever no other agent is named, also in direct messages.
    Everywhere,
    /// In these channels and their threads. If empty, it answers only when
    /// called by name.
    Only(BTreeSet<ChannelId>),
}

impl AgentChannels {
    /// Whether the agent is named for exactly this channel.
    pub fn names(&self, channel: ChannelId) -> bool {
        matches!(self, Self::Only(channels) if channels.contains(&channel))
    }
}
