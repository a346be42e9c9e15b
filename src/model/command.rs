//! A call of one of our commands, after parsing.

use super::{ApplicationId, ChannelId, GuildId, InteractionId, MessageId, UserId};

/// What is needed to answer an interaction.
#[derive(Clone, PartialEq, Eq)]
pub struct Interaction {
    /// Its id.
    pub id: InteractionId,
    /// Our application.
    pub application: ApplicationId,
    /// The token that lets us answer for 15 minutes; redacted in `Debug`.
    pub token: String,
    /// Where it was called.
    pub channel: ChannelId,
    /// The server it was called in.
    pub guild: Option<GuildId>,
    /// Who called.
    pub user: UserId,
    /// Where the command was installed and called.
    pub kind: InteractionKind,
}

/// Whether the call comes from a place the bot serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteractionKind {
    /// A server that the bot is in.
    Guild,
    /// A direct message with the bot.
    BotDm,
    /// Anything else: refused in one line.
    Elsewhere,
}

impl std::fmt::Debug for Interaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interaction")
            .field("id", &self.id)
            .field("channel", &self.channel)
            .field("user", &self.user)
            .field("token", &"[redacted]")
            .finish_non_exhaustive()
    }
}

/// One of our commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `/ask question:`
    Ask {
        /// What is asked.
        question: String,
    },
    /// The message command "Ask about this message".
    AskAbout {
        /// The message.
        message: MessageId,
    },
    /// A command this version does not know (an old registration).
    Unknown(String),
}
