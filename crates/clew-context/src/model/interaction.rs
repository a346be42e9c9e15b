//! A command call, reduced to what is needed to answer it.

use std::fmt;

use super::{ApplicationId, ChannelId, GuildId, InteractionId, Secret, UserId};

/// What is needed to answer an interaction.
#[derive(Clone, PartialEq, Eq)]
pub struct Interaction {
    /// Its id.
    pub id: InteractionId,
    /// Our application.
    pub application: ApplicationId,
    /// The token to answer with, valid for 15 minutes.
    pub token: Secret,
    /// Where it was called.
    pub channel: ChannelId,
    /// The server it was called in.
    pub guild: Option<GuildId>,
    /// Who called.
    pub user: UserId,
    /// Whether it was called in a place the bot serves.
    pub place: InteractionPlace,
}

/// Where the command was called, as far as the bot's answer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteractionPlace {
    /// A server that has the bot.
    Guild,
    /// A direct message with the bot.
    BotDm,
    /// Anywhere else: refused with one line.
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
