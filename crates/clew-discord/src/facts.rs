//! What is known of servers, channels, roles and ourselves without asking:
//! fed by the gateway in its order, read by everybody.
//!
//! Kept in twilight's in-memory cache, in lean models: JSON from the gateway,
//! from REST and from the session file is read leniently into these, so that
//! one odd channel does not cost a server, and given to the cache as twilight's
//! events. Locks are held for look-ups only, never across an await.

mod apply;
mod build;
mod fill;
mod kept;
mod lean;
mod world;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use apply::unreadable;
pub use lean::{LeanChannel, LeanGuild, LeanMember, LeanOverwrite, LeanRole};
pub(super) use lean::{each, lenient};

use clew_context::model::{
    Access, ApplicationId, Channel, ChannelId, ChannelKind, GuildId, Missing, Parent, RoleId,
    ThreadState, UserId,
};
use world::{World, kind};

/// The facts; shared by reference.
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
    /// Ourselves, from the first READY or the session file on.
    pub fn us(&self) -> Option<Us> {
        self.read().us.clone()
    }

    /// Says who we are (READY, or the session file).
    pub fn set_us(&self, us: Us) {
        self.write().us = Some(us);
    }

    /// What a thread's object does not tell of the channel it stands in.
    pub fn parent(&self, id: ChannelId) -> Option<Parent> {
        self.read().channel(id).as_deref().map(to_parent)
    }

    /// A channel or thread of a server; direct messages are never known here.
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

    /// Messages were posted in a channel, or deleted (`change` below zero):
    /// threads say how many they hold.
    pub(super) fn count_messages(&self, channel: ChannelId, change: i64) {
        let thread = self
            .kind_and_parent(channel)
            .is_some_and(|(kind, _)| kind.is_thread());
        if thread {
            self.write().count(channel, change);
        }
    }

    /// The type of a channel, and what a thread stands in: all that routing
    /// asks of every message.
    pub fn kind_and_parent(&self, id: ChannelId) -> Option<(ChannelKind, Option<ChannelId>)> {
        let world = self.read();
        let channel = world.channel(id)?;
        Some((kind(channel.value()), channel.parent_id))
    }

    /// What we may do there; unknown while our roles or the channel are.
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

    /// What a person may do there with the roles that the person's own message
    /// or interaction carried, if it carried them. Direct messages are never
    /// known here.
    pub fn access(&self, user: UserId, roles: Option<&[RoleId]>, channel: ChannelId) -> Access {
        let world = self.read();
        let known = || Some(world.access(user, roles?, &world.spot(channel)?, None));
        known().unwrap_or(Access::Unknown(Missing::Facts))
    }

    /// Our managed role in a server: people mention it by mistake, and it
    /// counts as us.
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

    /// Name of a role.
    pub fn role_name(&self, guild: GuildId, role: RoleId) -> Option<String> {
        Some(self.read().role(guild, role)?.name.clone())
    }

    /// Name of a channel or title of a thread.
    pub fn channel_name(&self, channel: ChannelId) -> Option<String> {
        Some(self.read().channel(channel)?.name.clone())
    }

    /// Name of a member, of those few that the gateway tells of; messages
    /// carry the names of authors and mentioned users themselves.
    pub fn user_name(&self, guild: GuildId, user: UserId) -> Option<String> {
        self.read().name(guild, user).map(ToOwned::to_owned)
    }

    /// People were heard of in a server, under these names.
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

    /// The name that somebody was last heard under in a server.
    pub fn heard_name(&self, guild: GuildId, user: UserId) -> Option<String> {
        self.read().heard(guild, user).map(ToOwned::to_owned)
    }

    /// Name of a server.
    pub fn guild_name(&self, guild: GuildId) -> Option<String> {
        Some(self.read().guild(guild)?.name)
    }

    /// Owner of a server.
    #[cfg(test)]
    fn owner(&self, guild: GuildId) -> Option<UserId> {
        self.read().guild(guild)?.owner_id
    }

    /// The server of a channel.
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

    /// The channels of a server that we may not view for all that is known.
    pub(super) fn hidden_of(&self, guild: GuildId) -> Vec<ChannelId> {
        let is_hidden = |channel: &ChannelId| !self.our_access(*channel).may_view();
        self.channels_of(guild)
            .into_iter()
            .filter(is_hidden)
            .collect()
    }

    /// Everything, for the session file, in the order of ids.
    pub fn snapshot(&self) -> Vec<LeanGuild> {
        let world = self.read();
        let mut guilds = world.guilds();
        guilds.sort_unstable();
        let whole = |guild| world.whole(guild);
        guilds.into_iter().filter_map(whole).collect()
    }

    /// Takes a snapshot back; [`Facts::set_us`] comes first.
    pub fn restore(&self, guilds: Vec<LeanGuild>) {
        let mut world = self.write();
        for guild in guilds {
            world.put(guild.into());
        }
    }

    /// Forgets the servers of a shard that its READY does not name: we left
    /// them while nobody listened. A server belongs to shard `(id >> 22) %
    /// shards` (Discord's reference, "Sharding").
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

fn to_channel(channel: LeanChannel, parent: Option<&LeanChannel>) -> Channel {
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

fn to_parent(channel: &LeanChannel) -> Parent {
    let tags = channel.available_tags.iter();
    Parent {
        kind: kind(channel),
        name: channel.name.clone(),
        tags: tags.map(|tag| (tag.id, tag.name.clone())).collect(),
    }
}

#[cfg(test)]
mod tests;
