//! A turn: one trigger and its answer.

use std::sync::Arc;

use super::{ChannelKind, Interaction, Message, MessageId, RoleId, TurnId, UserId};
use crate::words;

/// Everything that starts a turn.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// The trigger; for a slash command, a message built from its question.
    pub trigger: Arc<Message>,
    /// The channel's type, if the event said so.
    pub channel_kind: Option<ChannelKind>,
    /// The asker's roles, if the event contained them.
    pub asker_roles: Option<Vec<RoleId>>,
    /// Why it became a turn.
    pub cause: Cause,
    /// Whether only the asker will see the answer.
    pub is_private: bool,
}

/// What made a message a trigger.
#[derive(Debug, Clone)]
pub enum Cause {
    /// It mentions our user or managed role, or replies to us.
    Mention,
    /// A direct message.
    Direct,
    /// A message in one of `AUTO_REPLY_CHANNELS`.
    AutoReply,
    /// `/ask`.
    Ask(Box<Interaction>),
    /// The message command "Ask about this message", with that message.
    AskAbout(Box<Interaction>, Arc<Message>),
    /// The task of an agent run, which starts clean: nothing is collected for it.
    AgentRun,
}

impl Cause {
    /// The interaction to answer, if it was a command.
    pub fn interaction(&self) -> Option<&Interaction> {
        match self {
            Self::Ask(interaction) | Self::AskAbout(interaction, _) => Some(interaction),
            Self::Mention | Self::Direct | Self::AutoReply | Self::AgentRun => None,
        }
    }

    /// Whether the trigger is a message on Discord, not one built from a command.
    pub const fn is_posted(&self) -> bool {
        matches!(self, Self::Mention | Self::Direct | Self::AutoReply)
    }
}

words! {
    /// What kind of conversation the trigger belongs to.
    Scene {
        /// In a thread or a forum post.
        Thread = "thread",
        /// A reply in an ordinary channel.
        ReplyChain = "reply_chain",
        /// A direct message.
        Direct = "direct",
        /// Neither.
        Lone = "lone",
    }
}

impl TurnRequest {
    /// A posted trigger about which the event said nothing more.
    pub const fn new(trigger: Arc<Message>, cause: Cause) -> Self {
        Self {
            trigger,
            channel_kind: None,
            asker_roles: None,
            cause,
            is_private: false,
        }
    }

    /// The turn's id, which is the trigger's.
    pub fn turn(&self) -> TurnId {
        TurnId(self.trigger.id.get())
    }

    /// The trigger's id, unless it is a command, which is not a message.
    pub fn posted_trigger(&self) -> Option<MessageId> {
        self.cause.is_posted().then_some(self.trigger.id)
    }

    /// Who is asking.
    pub fn asker(&self) -> UserId {
        self.trigger.author.id
    }
}
