//! Agents: the personas under which the bot answers.

use std::collections::BTreeSet;
use std::time::Duration;

use clew_context::model::{AgentDoc, ChannelId};
use clew_store::model::{AgentName, ScopeKind};

/// A persona: what the model is told, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name, that of its folder.
    pub name: AgentName,
    /// The operator's prompt for it, trimmed.
    pub system: String,
    /// What else it knows, sorted by name; part of every prompt.
    pub docs: Vec<AgentDoc>,
    /// The model that answers, if not `LLM_MODEL`.
    pub model: Option<String>,
    /// How far back it remembers, if not `CONTEXT_ROLLING_WINDOW_S`.
    pub rolling_window: Option<Duration>,
    /// Whose history a conversation is, if not `CONTEXT_SCOPE`.
    pub scope: Option<ScopeKind>,
    /// Where it answers.
    pub channels: AgentChannels,
}

/// Where an agent answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentChannels {
    /// Wherever no other agent is named; direct messages too.
    Everywhere,
    /// In these and the threads of these. In none: it is only called by name.
    Only(BTreeSet<ChannelId>),
}

impl AgentChannels {
    /// Whether it is named for exactly this channel.
    pub fn names(&self, channel: ChannelId) -> bool {
        matches!(self, Self::Only(channels) if channels.contains(&channel))
    }
}
