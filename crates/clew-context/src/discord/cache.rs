//! What a bot's own `twilight-cache-inmemory` knows of a turn: names, channels, roles and
//! permissions. What it lacks is looked up, which costs calls.

use serde::Serialize;
use twilight_cache_inmemory::InMemoryCache;
use twilight_model::id::Id;

use super::convert;
use crate::engine::access::judge;
use crate::engine::eligible::Us;
use crate::engine::render::Directory;
use crate::engine::turn::TurnInput;
use crate::engine::window::View;
use crate::model::{
    Access, Channel, ChannelId, Guild, GuildId, Limits, Missing, RoleId, TurnRequest, UserId,
};

/// Nobody's id: what this user may do is what everybody may.
const NOBODY: UserId = UserId::new(1);

/// Reads a cache that is fed every event before a turn begins. It needs the resource types
/// `CHANNEL`, `GUILD`, `MEMBER`, `ROLE`, `USER` and `USER_CURRENT`, and the intent for guilds.
#[derive(Debug, Clone, Copy)]
pub struct Cached<'a>(&'a InMemoryCache);

/// The names that everybody in the trigger's server may see, and that of its own channel.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    cached: Cached<'a>,
    guild: Option<GuildId>,
    channel: ChannelId,
}

impl<'a> Cached<'a> {
    /// What this cache knows.
    pub const fn new(cache: &'a InMemoryCache) -> Self {
        Self(cache)
    }

    /// A turn with all that the cache knows of it; none before READY.
    pub fn input(&self, request: TurnRequest, view: View, limits: Limits) -> Option<TurnInput> {
        let (asker, guild) = (request.asker(), request.trigger.guild);
        let roles = request.asker_roles.clone();
        let us = self.us(guild)?;
        let channel = self.channel(request.trigger.channel);
        let access = |user, roles: Option<&[RoleId]>| match (&channel, guild) {
            (_, None) => Access::FULL,
            (None, Some(_)) => Access::Unknown(Missing::Facts),
            (Some(channel), Some(_)) => self.access(user, roles, channel),
        };
        let our_access = access(us.user, Some(&us.roles));
        let asker_access = access(asker, roles.as_deref());
        Some(TurnInput {
            channel,
            our_access,
            asker_access,
            ..TurnInput::new(request, us, view, limits)
        })
    }

    /// Who we are in a server; none before READY.
    pub fn us(&self, guild: Option<GuildId>) -> Option<Us> {
        let us = convert::us(&self.0.current_user()?);
        let roles = guild.and_then(|guild| self.roles_of(guild, us.user));
        Some(Us {
            roles: roles.unwrap_or_default(),
            ..us
        })
    }

    /// A channel or thread, with its parent's kind and name, and the names of a post's tags.
    pub fn channel(&self, id: ChannelId) -> Option<Channel> {
        let channel = self.0.channel(Id::new_checked(id.get())?)?;
        let parent = channel.parent_id.and_then(|parent| self.0.channel(parent));
        let parent = parent.and_then(|parent| json(parent.value()));
        convert::channel(&json(channel.value())?, parent.as_deref()).ok()
    }

    /// What a user may do in a channel of a server; with these roles, or those of the cached
    /// member. Whether somebody is a member of a private thread is not known.
    pub fn access(&self, user: UserId, roles: Option<&[RoleId]>, channel: &Channel) -> Access {
        let judged = if channel.kind.is_thread() {
            channel.parent.and_then(|parent| self.channel(parent))
        } else {
            Some(channel.clone())
        };
        let found = channel.guild.zip(judged).and_then(|(id, judged)| {
            let cached = || self.roles_of(id, user);
            let roles = roles.map(<[_]>::to_vec).or_else(cached)?;
            Some(judge(&self.guild(id)?, user, &roles, channel, &judged))
        });
        found.unwrap_or(Access::Unknown(Missing::Facts))
    }

    /// The names for the prompt of a turn.
    pub fn names(&self, turn: &TurnInput) -> Names<'a> {
        let trigger = &turn.request.trigger;
        Names {
            cached: *self,
            guild: trigger.guild,
            channel: trigger.channel,
        }
    }

    fn guild(self, id: GuildId) -> Option<Guild> {
        let key = Id::new_checked(id.get())?;
        let owner = self.0.guild(key)?.owner_id();
        let roles = self.0.guild_roles(key)?;
        let bits = |role| {
            let role = self.0.role(role)?;
            Some((RoleId::new(role.id.get()), role.permissions.bits()))
        };
        Some(Guild {
            id,
            owner: Some(UserId::new(owner.get())),
            roles: roles.iter().filter_map(|role| bits(*role)).collect(),
        })
    }

    fn roles_of(self, guild: GuildId, user: UserId) -> Option<Vec<RoleId>> {
        let guild = Id::new_checked(guild.get())?;
        let member = self.0.member(guild, Id::new_checked(user.get())?)?;
        let roles = member.roles().iter();
        Some(roles.map(|role| RoleId::new(role.get())).collect())
    }
}

impl Directory for Names<'_> {
    fn user(&self, id: UserId) -> Option<String> {
        let (cache, id) = (self.cached.0, Id::new_checked(id.get())?);
        let member = cache.member(Id::new_checked(self.guild?.get())?, id)?;
        let user = || cache.user(id);
        let nick = member.nick().map(str::to_owned);
        nick.or_else(|| user()?.global_name.clone())
            .or_else(|| Some(user()?.name.clone()))
    }

    fn role(&self, id: RoleId) -> Option<String> {
        let role = self.cached.0.role(Id::new_checked(id.get())?)?;
        let is_here = self.guild.map(GuildId::get) == Some(role.guild_id().get());
        is_here.then(|| role.name.clone())
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        let channel = self.cached.channel(id)?;
        let is_here = self.guild.is_some() && channel.guild == self.guild;
        let everybody = || self.cached.access(NOBODY, Some(&[]), &channel);
        let is_shown = is_here && (id == self.channel || everybody().may_view());
        is_shown.then_some(channel.name)
    }
}

fn json(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}
