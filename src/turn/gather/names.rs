//! The names that whoever reads the answer of a turn may know.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::turn::Turn;
use clew_context::engine::render::Directory;
use clew_context::model::{Access, Channel, ChannelId, GuildId, OptedOut, Readers, RoleId, UserId};
use clew_discord::guild_state::GuildState;

/// The most channels elsewhere of which one prompt, or one round of tools, may show the
/// names: to judge one takes up to some milliseconds.
const MAX_JUDGED: usize = 64;

/// What the asker may do in a channel, given their roles.
pub(super) fn access_to(turn: &Turn<'_>, channel: ChannelId) -> Access {
    let guild_state = &turn.services.guild_state;
    let asker = turn.job.request.asker();
    turn.with_roles(|roles| guild_state.access(asker, roles, channel))
}

/// Names that the gateway told, only from the trigger's server: channels and threads
/// that everybody who will read the answer may read at this moment; those that the asker
/// may view if nobody else will. Anything else, or not known to be so, has no name. In a
/// direct message, nothing of a server has one.
pub(in crate::turn) struct TurnNames<'a> {
    turn: &'a Turn<'a>,
    guild_state: &'a GuildState,
    /// Threads of these users have no titles.
    opted_out: OptedOut,
    /// The trigger's channel, as the turn shows it.
    here: Option<&'a Channel>,
    found: Mutex<FoundNames>,
}

/// The names of channels elsewhere, as far as they were asked for.
#[derive(Default)]
struct FoundNames {
    names: HashMap<ChannelId, Option<String>>,
    judged: usize,
}

impl<'a> TurnNames<'a> {
    /// Names for the turn's answer; `here` is the trigger's channel, if the asker may
    /// view it.
    pub(in crate::turn) fn new(turn: &'a Turn<'a>, here: Option<&'a Channel>) -> Self {
        Self {
            turn,
            guild_state: &turn.services.guild_state,
            opted_out: turn.services.opt_outs.current(),
            here,
            found: Mutex::default(),
        }
    }

    /// The name of a channel elsewhere, if it may be told. `judged` counts those that
    /// had to be judged for all readers.
    fn elsewhere(&self, guild: GuildId, id: ChannelId, judged: &mut usize) -> Option<String> {
        let channel = self.guild_state.channel(id)?;
        let owner = channel.thread.as_ref().and_then(|thread| thread.owner);
        let is_withheld = owner.is_some_and(|owner| self.opted_out.contains(owner));
        let is_told =
            channel.guild == Some(guild) && !is_withheld && access_to(self.turn, id).may_view();
        if !is_told || self.turn.job.request.is_private {
            return is_told.then_some(channel.name);
        }
        *judged += 1;
        let is_open = *judged <= MAX_JUDGED && self.turn.readers(id) == Readers::Everybody;
        is_open.then_some(channel.name)
    }
}

impl Directory for TurnNames<'_> {
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
        let mut found = self.found.lock();
        let FoundNames { names, judged } = &mut *found;
        let name = names.entry(id);
        name.or_insert_with(|| self.elsewhere(guild, id, judged))
            .clone()
    }
}
