//! The names that the asker of a turn may know.

use crate::turn::Turn;
use clew_context::engine::render::Directory;
use clew_context::model::{Access, Channel, ChannelId, OptedOut, RoleId, UserId};
use clew_discord::guild_state::GuildState;

/// What the asker may do in a channel, given the roles in the trigger.
pub(super) fn access_to(turn: &Turn<'_>, channel: ChannelId) -> Access {
    let request = &turn.job.request;
    let roles = request.asker_roles.as_deref();
    let guild_state = &turn.services.guild_state;
    guild_state.access(request.asker(), roles, channel)
}

/// Names that the gateway told, only from the trigger's server: channels and
/// threads that the asker may view at this moment. Anything unknown, or not
/// known to be visible to the asker, has no name. In a direct message,
/// nothing of a server has one.
pub(in crate::turn) struct AskerNames<'a> {
    turn: &'a Turn<'a>,
    guild_state: &'a GuildState,
    /// Threads of these users have no titles.
    opted_out: OptedOut,
    /// The trigger's channel, as the turn shows it.
    here: Option<&'a Channel>,
}

impl<'a> AskerNames<'a> {
    /// Names for the turn's asker; `here` is the trigger's channel, if the asker may
    /// view it.
    pub(in crate::turn) fn new(turn: &'a Turn<'a>, here: Option<&'a Channel>) -> Self {
        Self {
            turn,
            guild_state: &turn.services.guild_state,
            opted_out: turn.services.opt_outs.current(),
            here,
        }
    }
}

impl Directory for AskerNames<'_> {
    fn user(&self, id: UserId) -> Option<String> {
        self.guild_state.user_name(self.turn.ids.guild?, id)
    }

    fn heard(&self, id: UserId) -> Option<String> {
        self.guild_state.heard_name(self.turn.ids.guild?, id)
    }

    fn role(&self, id: RoleId) -> Option<String> {
        self.guild_state.role_name(self.turn.ids.guild?, id)
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        let guild = self.turn.ids.guild?;
        if let Some(here) = self.here.filter(|here| here.id == id) {
            return Some(here.name.clone()).filter(|name| !name.is_empty());
        }
        let channel = self.guild_state.channel(id)?;
        let owner = channel.thread.as_ref().and_then(|thread| thread.owner);
        let is_private = owner.is_some_and(|owner| self.opted_out.contains(owner));
        let is_told =
            channel.guild == Some(guild) && !is_private && access_to(self.turn, id).may_view();
        is_told.then_some(channel.name)
    }
}
