//! What is known of servers, channels, roles and ourselves without asking:
//! fed by the gateway in its order, read by everybody.
//!
//! A store of our own instead of twilight's cache: its models do not
//! deserialise, so nothing refills it after a RESUME in a new process, and
//! one channel it rejects costs the whole server. Locks are held for look-ups
//! only, never across an await.

mod apply;
mod fill;
mod lean;

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use lean::{Bits, LeanChannel, LeanGuild, LeanMember, LeanOverwrite, LeanRole};

use crate::engine::access::{
    AccessFacts, Overwrite, Place, Standing, Target, access, permissions_in,
};
use crate::model::{
    Access, ApplicationId, Channel, ChannelId, ChannelKind, GuildId, RoleId, ThreadState, UserId,
};

/// Names of members kept for one server, beside those that messages carry.
const NAMES_PER_GUILD: usize = 500;

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

/// What somebody may do, as far as the facts tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// This.
    Known(Access),
    /// A private thread, and the person has no Manage Threads: Get Thread
    /// Member tells (404: no member).
    AskMembership {
        /// For a member of the thread; nobody else may do anything.
        member: Access,
    },
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

    /// A channel or thread of a server; direct messages are never known here.
    pub fn channel(&self, id: ChannelId) -> Option<Channel> {
        let world = self.read();
        let (guild, facts, channel) = world.find(id)?;
        let parent = channel
            .parent_id
            .and_then(|parent| facts.channels.get(&parent));
        Some(to_channel(guild, channel, parent))
    }

    /// What we may do there; absent while our roles or the channel are unknown.
    pub fn our_access(&self, channel: ChannelId) -> Option<Access> {
        let world = self.read();
        let us = world.us.as_ref()?.user;
        let (guild, facts, found) = world.find(channel)?;
        let roles = facts.our_roles.as_deref()?;
        let permissions = facts.permissions(guild, us, roles, found)?;
        let place = place(found, found.member.is_some());
        Some(access(&AccessFacts { permissions, place }))
    }

    /// What a person may do there with the roles that the person's own
    /// message or interaction carried; absent while the channel is unknown.
    pub fn access(&self, user: UserId, roles: &[RoleId], channel: ChannelId) -> Option<Verdict> {
        let world = self.read();
        let (guild, facts, found) = world.find(channel)?;
        let permissions = facts.permissions(guild, user, roles, found)?;
        let judge = |member| {
            let place = place(found, member);
            access(&AccessFacts { permissions, place })
        };
        let (member, other) = (judge(true), judge(false));
        Some(if member == other {
            Verdict::Known(member)
        } else {
            Verdict::AskMembership { member }
        })
    }

    /// Our managed role in a server: people mention it by mistake, and it
    /// counts as us.
    pub fn our_role_ids(&self, guild: GuildId) -> Vec<RoleId> {
        let world = self.read();
        let Some(us) = world.us.as_ref() else {
            return Vec::new();
        };
        let Some(facts) = world.guilds.get(&guild) else {
            return Vec::new();
        };
        let ours = |role: &&LeanRole| role.tags.bot_id == Some(us.user);
        facts
            .roles
            .values()
            .filter(ours)
            .map(|role| role.id)
            .collect()
    }

    /// Name of a role.
    pub fn role_name(&self, guild: GuildId, role: RoleId) -> Option<String> {
        let world = self.read();
        let role = world.guilds.get(&guild)?.roles.get(&role)?;
        Some(role.name.clone())
    }

    /// Name of a channel or title of a thread.
    pub fn channel_name(&self, channel: ChannelId) -> Option<String> {
        let world = self.read();
        let (_, _, channel) = world.find(channel)?;
        Some(channel.name.clone())
    }

    /// Name of a member, of those few that the gateway tells of; messages
    /// carry the names of authors and mentioned users themselves.
    pub fn user_name(&self, guild: GuildId, user: UserId) -> Option<String> {
        let world = self.read();
        let name = world.guilds.get(&guild)?.names.get(&user)?;
        Some(name.to_string())
    }

    /// Name of a server.
    pub fn guild_name(&self, guild: GuildId) -> Option<String> {
        Some(self.read().guilds.get(&guild)?.name.clone())
    }

    /// Owner of a server.
    pub fn owner(&self, guild: GuildId) -> Option<UserId> {
        self.read().guilds.get(&guild)?.owner
    }

    /// The server of a channel.
    pub fn guild_of(&self, channel: ChannelId) -> Option<GuildId> {
        self.read().homes.get(&channel).copied()
    }

    /// The channels of a server, threads included.
    pub fn channels_of(&self, guild: GuildId) -> Vec<ChannelId> {
        let world = self.read();
        let channels = world.guilds.get(&guild).map(|facts| facts.channels.keys());
        channels.into_iter().flatten().copied().collect()
    }

    /// The channels of a server that we may not view.
    pub(super) fn hidden_of(&self, guild: GuildId) -> Vec<ChannelId> {
        let is_hidden = |channel: &ChannelId| {
            let access = self.our_access(*channel);
            access.is_some_and(|access| !access.view)
        };
        self.channels_of(guild)
            .into_iter()
            .filter(is_hidden)
            .collect()
    }

    /// Everything, for the session file.
    pub fn snapshot(&self) -> Vec<LeanGuild> {
        let world = self.read();
        let us = world.us.as_ref();
        let guilds = world.guilds.iter();
        guilds.map(|(id, facts)| facts.to_lean(*id, us)).collect()
    }

    /// Takes a snapshot back; [`Facts::set_us`] comes first.
    pub fn restore(&self, guilds: Vec<LeanGuild>) {
        let mut world = self.write();
        for guild in guilds {
            world.put(guild);
        }
    }

    /// Forgets the servers of a shard that its READY does not name: we left
    /// them while nobody listened. A server belongs to shard `(id >> 22) %
    /// shards` (Discord's reference, "Sharding").
    pub fn keep_only(&self, shard: u32, shards: u32, guilds: &[GuildId]) {
        let mut world = self.write();
        let gone: Vec<GuildId> = world
            .guilds
            .keys()
            .filter(|id| (id.get() >> 22) % u64::from(shards.max(1)) == u64::from(shard))
            .filter(|id| !guilds.contains(id))
            .copied()
            .collect();
        for guild in gone {
            world.remove(guild);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, World> {
        self.world.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, World> {
        self.world.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct World {
    us: Option<Us>,
    guilds: HashMap<GuildId, GuildFacts>,
    /// The server of each channel.
    homes: HashMap<ChannelId, GuildId>,
}

#[derive(Debug, Default)]
struct GuildFacts {
    name: String,
    owner: Option<UserId>,
    roles: HashMap<RoleId, LeanRole>,
    channels: HashMap<ChannelId, LeanChannel>,
    our_roles: Option<Vec<RoleId>>,
    names: HashMap<UserId, Box<str>>,
}

impl World {
    fn find(&self, channel: ChannelId) -> Option<(GuildId, &GuildFacts, &LeanChannel)> {
        let guild = *self.homes.get(&channel)?;
        let facts = self.guilds.get(&guild)?;
        Some((guild, facts, facts.channels.get(&channel)?))
    }

    /// Puts a server in the place of what was known of it.
    fn put(&mut self, guild: LeanGuild) {
        self.remove(guild.id);
        let mut facts = GuildFacts {
            name: guild.name,
            owner: guild.owner_id,
            roles: by_id(guild.roles, |role| role.id),
            ..GuildFacts::default()
        };
        for channel in guild.channels.into_iter().chain(guild.threads) {
            self.homes.insert(channel.id, guild.id);
            facts.channels.insert(channel.id, channel);
        }
        for member in guild.members {
            facts.meet(member, self.us.as_ref());
        }
        self.guilds.insert(guild.id, facts);
    }

    fn remove(&mut self, guild: GuildId) {
        if let Some(facts) = self.guilds.remove(&guild) {
            for channel in facts.channels.keys() {
                self.homes.remove(channel);
            }
        }
    }

    fn put_channel(&mut self, guild: GuildId, channel: LeanChannel) -> Option<LeanChannel> {
        self.homes.insert(channel.id, guild);
        let facts = self.guilds.entry(guild).or_default();
        facts.channels.insert(channel.id, channel)
    }

    /// Removes a channel, and the threads in it.
    fn remove_channel(&mut self, id: ChannelId) -> Option<LeanChannel> {
        let guild = self.homes.remove(&id)?;
        let facts = self.guilds.get_mut(&guild)?;
        let removed = facts.channels.remove(&id);
        let homes = &mut self.homes;
        facts.channels.retain(|thread, channel| {
            let inside = channel.parent_id == Some(id) && kind(channel).is_thread();
            if inside {
                homes.remove(thread);
            }
            !inside
        });
        removed
    }
}

impl GuildFacts {
    /// Permissions of somebody in a channel, in a thread those of its parent;
    /// absent when a part of the sum is.
    fn permissions(
        &self,
        guild: GuildId,
        user: UserId,
        roles: &[RoleId],
        channel: &LeanChannel,
    ) -> Option<u64> {
        let judged = if kind(channel).is_thread() {
            self.channels.get(&channel.parent_id?)?
        } else {
            channel
        };
        let everyone = self.roles.get(&RoleId::new(guild.get()))?;
        let roles: Vec<(RoleId, u64)> = roles
            .iter()
            .filter_map(|id| Some((*id, self.roles.get(id)?.permissions.0)))
            .collect();
        let standing = Standing {
            guild,
            user,
            owner: self.owner == Some(user),
            everyone: everyone.permissions.0,
            roles: &roles,
        };
        Some(permissions_in(&standing, &overwrites(guild, judged)))
    }

    /// Remembers a member's name, and of ourselves the roles.
    fn meet(&mut self, member: LeanMember, us: Option<&Us>) {
        let user = member.user;
        let shown = member.nick.or(user.global_name).unwrap_or(user.username);
        let room = self.names.len() < NAMES_PER_GUILD || self.names.contains_key(&user.id);
        if room && !shown.is_empty() {
            self.names.insert(user.id, shown.into());
        }
        if us.is_some_and(|us| us.user == user.id) {
            self.our_roles = Some(member.roles);
        }
    }

    fn to_lean(&self, id: GuildId, us: Option<&Us>) -> LeanGuild {
        let ourselves = us.zip(self.our_roles.as_ref()).map(|(us, roles)| {
            let nick = self.names.get(&us.user).map(ToString::to_string);
            LeanMember::new(us.user, nick, roles.clone())
        });
        LeanGuild {
            id,
            name: self.name.clone(),
            owner_id: self.owner,
            roles: self.roles.values().cloned().collect(),
            channels: self.channels.values().cloned().collect(),
            threads: Vec::new(),
            members: ourselves.into_iter().collect(),
        }
    }
}

fn kind(channel: &LeanChannel) -> ChannelKind {
    ChannelKind::from_number(channel.kind)
}

fn place(channel: &LeanChannel, member: bool) -> Place {
    match kind(channel) {
        ChannelKind::PrivateThread => Place::PrivateThread { member },
        ChannelKind::PublicThread | ChannelKind::AnnouncementThread => Place::OpenThread,
        ChannelKind::Voice | ChannelKind::Stage => Place::Voice,
        _ => Place::Channel,
    }
}

/// The overwrites in the core's words. Where they could not be read, the
/// channel is hidden from everybody but administrators and the owner.
fn overwrites(guild: GuildId, channel: &LeanChannel) -> Vec<Overwrite> {
    let Some(lean) = &channel.permission_overwrites else {
        return vec![Overwrite {
            target: Target::Role(RoleId::new(guild.get())),
            allow: 0,
            deny: u64::MAX,
        }];
    };
    lean.iter()
        .filter_map(LeanOverwrite::to_overwrite)
        .collect()
}

fn to_channel(guild: GuildId, channel: &LeanChannel, parent: Option<&LeanChannel>) -> Channel {
    let kind = kind(channel);
    let tag_name = |id| {
        let tags = &parent?.available_tags;
        Some(tags.iter().find(|tag| tag.id == id)?.name.clone())
    };
    let thread = kind.is_thread().then_some(ThreadState {
        owner: channel.owner_id,
        archived: channel.thread_metadata.archived,
        locked: channel.thread_metadata.locked,
        message_count: channel.message_count,
    });
    Channel {
        id: channel.id,
        guild: Some(guild),
        kind,
        name: channel.name.clone(),
        parent: channel.parent_id,
        parent_kind: parent.map(self::kind),
        parent_name: parent.map(|parent| parent.name.clone()),
        tags: channel
            .applied_tags
            .iter()
            .filter_map(|id| tag_name(*id))
            .collect(),
        thread,
    }
}

fn by_id<K: std::hash::Hash + Eq, V>(items: Vec<V>, id: impl Fn(&V) -> K) -> HashMap<K, V> {
    items.into_iter().map(|item| (id(&item), item)).collect()
}

#[cfg(test)]
mod tests;
