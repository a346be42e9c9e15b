//! A turn: one trigger and its answer.

use std::sync::Arc;

use serde::Serialize;

use super::{ChannelKind, Interaction, Message, MessageId, RoleId, TurnId, UserId};

/// Everything that starts a turn, as one value.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// The trigger. For a slash command a message made of its question.
    pub trigger: Arc<Message>,
    /// Channel type, where the event said it.
    pub channel_kind: Option<ChannelKind>,
    /// The asker's roles as the event carried them; absent where it did not.
    pub asker_roles: Option<Vec<RoleId>>,
    /// Why it is a turn.
    pub cause: Cause,
}

/// What made a message a trigger.
#[derive(Debug, Clone)]
pub enum Cause {
    /// Our user or managed role was mentioned, or a reply to us.
    Mention,
    /// A direct message.
    Direct,
    /// A message in one of `AUTO_REPLY_CHANNELS`.
    AutoReply,
    /// `/ask`.
    Ask(Box<Interaction>),
    /// The message command "Ask about this message": the message asked about.
    AskAbout(Box<Interaction>, Arc<Message>),
}

impl Cause {
    /// The interaction to answer, for commands.
    pub fn interaction(&self) -> Option<&Interaction> {
        match self {
            Self::Ask(interaction) | Self::AskAbout(interaction, _) => Some(interaction),
            Self::Mention | Self::Direct | Self::AutoReply => None,
        }
    }
}

/// What the trigger is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scene {
    /// In a thread or a forum post.
    Thread,
    /// A reply in an ordinary channel.
    ReplyChain,
    /// A direct message.
    Direct,
    /// Neither.
    Lone,
}

impl Scene {
    /// The word used in telemetry and replay.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::ReplyChain => "reply_chain",
            Self::Direct => "direct",
            Self::Lone => "lone",
        }
    }
}

impl TurnRequest {
    /// A posted trigger of which the event said nothing more.
    pub const fn new(trigger: Arc<Message>, cause: Cause) -> Self {
        Self {
            trigger,
            channel_kind: None,
            asker_roles: None,
            cause,
        }
    }

    /// The turn's name: the trigger's id, claimed once.
    pub fn turn(&self) -> TurnId {
        TurnId(self.trigger.id.get())
    }

    /// The trigger's id, if it is a message: the call of a command is none.
    pub fn posted_trigger(&self) -> Option<MessageId> {
        let is_message = self.cause.interaction().is_none();
        is_message.then_some(self.trigger.id)
    }

    /// Who asks.
    pub fn asker(&self) -> UserId {
        self.trigger.author.id
    }
}
