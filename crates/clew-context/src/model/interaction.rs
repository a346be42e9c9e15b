//! A command's call, as far as it is needed to answer it.

use std::fmt;

use super::{ApplicationId, ChannelId, GuildId, InteractionId, Secret, UserId};

/// What is needed to answer an interaction.
#[derive(Clone, PartialEq, Eq)]
pub struct Interaction {
    /// Its id.
    pub id: InteractionId,
    /// Our application.
    pub application: ApplicationId,
    /// What lets us answer for 15 minutes.
    pub token: Secret,
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

impl fmt::Debug for Interaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interaction")
            .field("id", &self.id)
            .field("channel", &self.channel)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
