//! The names that the asker of a turn may know.

use super::Turn;
use clew_context::engine::render::Directory;
use clew_context::model::{Channel, ChannelId, GuildId, OptedOut, RoleId, UserId};
use clew_discord::guild_state::GuildState;

/// Names that the gateway told, only from the trigger's server: channels and
/// threads that the asker may view at this moment. Anything unknown, or not
/// known to be visible to the asker, has no name. In a direct message,
/// nothing of a server has one.
pub(super) struct Names<'a> {
    turn: &'a Turn<'a>,
    guild_state: &'a GuildState,
    /// Threads of these users have no titles.
    opted_out: OptedOut,
    guild: Option<GuildId>,
    /// The trigger's channel, as the turn shows it.
    here: Option<&'a Channel>,
}

impl Turn<'_> {
    /// Names for this turn's asker; `here` is the trigger's channel, if the
    /// asker may view it.
    pub(super) fn names<'a>(&'a self, here: Option<&'a Channel>) -> Names<'a> {
        Names {
            turn: self,
            guild_state: &self.services.guild_state,
            opted_out: self.services.opt_outs.current(),
            guild: self.ids.guild,
            here,
        }
    }
}

impl Directory for Names<'_> {
    fn user(&self, id: UserId) -> Option<String> {
        self.guild_state.user_name(self.guild?, id)
    }

    fn heard(&self, id: UserId) -> Option<String> {
        self.guild_state.heard_name(self.guild?, id)
    }

    fn role(&self, id: RoleId) -> Option<String> {
        self.guild_state.role_name(self.guild?, id)
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        let guild = self.guild?;
        if let Some(here) = self.here.filter(|here| here.id == id) {
            return Some(here.name.clone()).filter(|name| !name.is_empty());
        }
        let channel = self.guild_state.channel(id)?;
        let owner = channel.thread.as_ref().and_then(|thread| thread.owner);
        let is_private = owner.is_some_and(|owner| self.opted_out.contains(owner));
        let is_told =
            channel.guild == Some(guild) && !is_private && self.turn.access_to(id).may_view();
        is_told.then_some(channel.name)
    }
}
