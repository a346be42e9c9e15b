//! What we know of servers, channels, roles and ourselves without a request.
//! The gateway feeds it in order; anyone may read it.
//!
//! It lives in twilight's in-memory cache, as partial models. JSON from the
//! gateway, REST and the session file is read leniently, so that one odd
//! channel does not cost a whole server, and then passed to the cache as
//! twilight events. Locks are held for lookups only, never across an await.

mod apply;
mod build;
mod fill;
mod kept;
mod partial;
mod world;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use apply::unreadable;
pub use partial::{PartialChannel, PartialGuild, PartialMember, PartialOverwrite, PartialRole};
pub(super) use partial::{each, lenient};

use clew_context::model::{
    Access, ApplicationId, Channel, ChannelId, ChannelKind, GuildId, Missing, Parent, RoleId,
    ThreadState, UserId,
};
use world::{World, kind};

/// All known facts; shared by reference.
#[derive(Debug, Default)]
pub struct Facts {
    world: RwLock<World>,
}

/// Who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Us {
    /// Our user.
    pub user: UserId,
    /// Its name.
    pub name: String,
    /// Our application.
    pub application: ApplicationId,
}

impl Facts {
    /// Who we are; known after the first READY or from the session file.
    pub fn us(&self) -> Option<Us> {
        self.read().us.clone()
    }

    /// Sets who we are (from READY or the session file).
    pub fn set_us(&self, us: Us) {
        self.write().us = Some(us);
    }

    /// What a thread's object does not say about its parent channel.
    pub fn parent(&self, id: ChannelId) -> Option<Parent> {
        self.read().channel(id).as_deref().map(to_parent)
    }

    /// A server's channel or thread; never a direct message.
    pub fn channel(&self, id: ChannelId) -> Option<Channel> {
        let world = self.read();
        let channel = world.channel(id)?.value().clone();
        let parent = channel.parent_id.and_then(|parent| world.channel(parent));
        let mut channel = to_channel(channel, parent.as_deref());
        if let Some(ThreadState {
            message_count: Some(count),
            ..
        }) = &mut channel.thread
        {
            let now = i64::from(*count) + world.posted(id);
            *count = u32::try_from(now).unwrap_or(0);
        }
        Some(channel)
    }

    /// Counts messages posted in a thread, or deleted (`change` below zero).
    /// Ignores other channels.
    pub(super) fn count_messages(&self, channel: ChannelId, change: i64) {
        let thread = self
            .kind_and_parent(channel)
            .is_some_and(|(kind, _)| kind.is_thread());
        if thread {
            self.write().count(channel, change);
        }
    }

    /// A channel's type, and a thread's parent: all that routing needs for each
    /// message.
    pub fn kind_and_parent(&self, id: ChannelId) -> Option<(ChannelKind, Option<ChannelId>)> {
        let world = self.read();
        let channel = world.channel(id)?;
        Some((kind(channel.value()), channel.parent_id))
    }

    /// What we may do there; unknown if our roles or the channel are.
    pub fn our_access(&self, channel: ChannelId) -> Access {
        let world = self.read();
        let known = || {
            let us = world.us.as_ref()?.user;
            let spot = world.spot(channel)?;
            let roles = world.our_roles(spot.guild)?;
            Some(world.access(us, &roles, &spot, Some(spot.joined)))
        };
        known().unwrap_or(Access::Unknown(Missing::Facts))
    }

    /// What a user may do there, given the roles in their own message or
    /// interaction, if any. Direct messages are always unknown here.
    pub fn access(&self, user: UserId, roles: Option<&[RoleId]>, channel: ChannelId) -> Access {
        let world = self.read();
        let known = || Some(world.access(user, roles?, &world.spot(channel)?, None));
        known().unwrap_or(Access::Unknown(Missing::Facts))
    }

    /// Our managed role in a server; people mention it by mistake, so it counts
    /// as us.
    pub fn our_role_ids(&self, guild: GuildId) -> Vec<RoleId> {
        let world = self.read();
        let Some(us) = world.us.as_ref() else {
            return Vec::new();
        };
        let ours = |id: &RoleId| {
            let role = world.role(guild, *id);
            role.is_some_and(|role| role.tags.bot_id == Some(us.user))
        };
        world.roles(guild).into_iter().filter(ours).collect()
    }

    /// A role's name.
    pub fn role_name(&self, guild: GuildId, role: RoleId) -> Option<String> {
        Some(self.read().role(guild, role)?.name.clone())
    }

    /// A channel's name, or a thread's title.
    pub fn channel_name(&self, channel: ChannelId) -> Option<String> {
        Some(self.read().channel(channel)?.name.clone())
    }

    /// A member's name, for the few members the gateway reports. Messages carry
    /// the names of authors and mentioned users themselves.
    pub fn user_name(&self, guild: GuildId, user: UserId) -> Option<String> {
        self.read().name(guild, user).map(ToOwned::to_owned)
    }

    /// Remembers the names of people seen in a server.
    pub fn hear<'a>(&self, guild: GuildId, people: impl IntoIterator<Item = (UserId, &'a str)>) {
        let world = self.read();
        let is_new = |(user, name): &(UserId, &str)| world.heard(guild, *user) != Some(*name);
        let new: Vec<(UserId, &str)> = people.into_iter().filter(is_new).collect();
        drop(world);
        if !new.is_empty() {
            let mut world = self.write();
            for (user, name) in new {
                world.hear(guild, user, name);
            }
        }
    }

    /// The name a user was last seen with in a server.
    pub fn heard_name(&self, guild: GuildId, user: UserId) -> Option<String> {
        self.read().heard(guild, user).map(ToOwned::to_owned)
    }

    /// A server's name.
    pub fn guild_name(&self, guild: GuildId) -> Option<String> {
        Some(self.read().guild(guild)?.name)
    }

    /// A server's owner.
    #[cfg(test)]
    fn owner(&self, guild: GuildId) -> Option<UserId> {
        self.read().guild(guild)?.owner_id
    }

    /// The server a channel belongs to.
    pub fn guild_of(&self, channel: ChannelId) -> Option<GuildId> {
        self.read().channel(channel)?.guild_id
    }

    /// The servers that we are in.
    pub fn guilds(&self) -> Vec<GuildId> {
        self.read().guilds()
    }

    /// The channels of a server, threads included.
    pub fn channels_of(&self, guild: GuildId) -> Vec<ChannelId> {
        self.read().channels(guild)
    }

    /// The server's channels that we may not view, or do not know we may.
    pub(super) fn hidden_of(&self, guild: GuildId) -> Vec<ChannelId> {
        let is_hidden = |channel: &ChannelId| !self.our_access(*channel).may_view();
        self.channels_of(guild)
            .into_iter()
            .filter(is_hidden)
            .collect()
    }

    /// All facts for the session file, sorted by id.
    pub fn snapshot(&self) -> Vec<PartialGuild> {
        let world = self.read();
        let mut guilds = world.guilds();
        guilds.sort_unstable();
        let whole = |guild| world.whole(guild);
        guilds.into_iter().filter_map(whole).collect()
    }

    /// Restores a snapshot; call [`Facts::set_us`] first.
    pub fn restore(&self, guilds: Vec<PartialGuild>) {
        let mut world = self.write();
        for guild in guilds {
            world.put(guild.into());
        }
    }

    /// Forgets a shard's servers that its READY does not list: we left them
    /// while disconnected. A server belongs to shard `(id >> 22) % shards`
    /// (Discord's reference, "Sharding").
    pub fn keep_only(&self, shard: u32, shards: u32, guilds: &[GuildId]) {
        let mut world = self.write();
        for guild in world.guilds() {
            let ours = (guild.get() >> 22) % u64::from(shards.max(1)) == u64::from(shard);
            if ours && !guilds.contains(&guild) {
                world.remove(guild);
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, World> {
        self.world.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, World> {
        self.world.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn to_channel(channel: PartialChannel, parent: Option<&PartialChannel>) -> Channel {
    let kind = kind(&channel);
    let overwrites = channel.overwrites();
    let thread = kind.is_thread().then_some(ThreadState {
        owner: channel.owner_id,
        archived: channel.thread_metadata.archived,
        locked: channel.thread_metadata.locked,
        message_count: channel.message_count,
        applied_tags: channel.applied_tags,
    });
    let alone = Channel {
        id: channel.id,
        guild: channel.guild_id,
        kind,
        name: channel.name,
        parent: channel.parent_id,
        parent_kind: None,
        parent_name: None,
        tags: Vec::new(),
        overwrites,
        thread,
    };
    match parent {
        Some(parent) => alone.under(to_parent(parent)),
        None => alone,
    }
}

fn to_parent(channel: &PartialChannel) -> Parent {
    let tags = channel.available_tags.iter();
    Parent {
        kind: kind(channel),
        name: channel.name.clone(),
        tags: tags.map(|tag| (tag.id, tag.name.clone())).collect(),
    }
}

#[cfg(test)]
mod tests;
