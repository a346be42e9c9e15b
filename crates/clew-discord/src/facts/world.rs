//! The cache and what we keep beside it, under one lock.
//!
//! The cache locks each of its maps separately, so a reader could see a server
//! half replaced. Under the lock of [`super::Facts`] it sees the whole, and no
//! reader blocks inside the cache. Even so, never hold a guard of the cache
//! while calling the cache again.

use std::collections::{HashMap, HashSet};

use twilight_cache_inmemory::{GuildResource, Reference};
use twilight_model::channel::ChannelType;
use twilight_model::gateway::payload::incoming::{
    ChannelUpdate, GuildCreate, GuildDelete, MemberAdd, RoleDelete, RoleUpdate, ThreadDelete,
};
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, RoleMarker};

use super::build::{self, id};
use super::kept::{self, Cache};
use super::{PartialChannel, PartialGuild, PartialMember, PartialRole, Us};
use clew_context::engine::access::{AccessFacts, Place, Standing, access, permissions_in};
use clew_context::model::{Access, ChannelId, ChannelKind, GuildId, Missing, RoleId, UserId};

/// Limit per server for names of members, and again for names of people heard.
const NAMES_PER_GUILD: usize = 500;

/// Threads with a message count; at the limit all counts restart, and gap
/// markers may be off a little.
const THREADS_COUNTED: usize = 10_000;

/// Everything known.
#[derive(Debug)]
pub(super) struct World {
    /// Us; kept here since twilight's current user has no application id.
    pub(super) us: Option<Us>,
    cache: Cache,
    /// Names of the members Discord reported; the cache has only our own.
    names: HashMap<GuildId, HashMap<UserId, Box<str>>>,
    /// Names carried by triggers, for mentions in stored messages.
    heard: HashMap<GuildId, HashMap<UserId, Box<str>>>,
    /// Messages posted less messages deleted in each thread since Discord's
    /// last count, which only comes with the thread object.
    posted: HashMap<ChannelId, i64>,
}

/// Where to compute permissions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// The server.
    pub(super) guild: GuildId,
    /// The channel whose overwrites apply: for a thread, its parent.
    judged: ChannelId,
    kind: ChannelKind,
    /// Whether we are a member of the thread.
    pub(super) joined: bool,
}

/// A server as the cache takes it, built before the lock is taken. Split into
/// parts, since the cache would clone a whole `GUILD_CREATE`.
pub(super) struct Built {
    id: GuildId,
    bare: GuildCreate,
    roles: Vec<RoleUpdate>,
    channels: Vec<ChannelUpdate>,
    members: Vec<PartialMember>,
}

impl From<PartialGuild> for Built {
    fn from(guild: PartialGuild) -> Self {
        let guild_id = id(guild.id.get());
        let bare = build::guild(guild.id, guild.name, guild.owner_id);
        let roles = guild.roles.into_iter().map(build::role);
        let channels = guild.channels.into_iter().chain(guild.threads);
        let channels = channels.map(|channel| ChannelUpdate(build::channel(guild.id, channel)));
        Self {
            id: guild.id,
            bare: GuildCreate::Available(bare),
            roles: roles.map(|role| RoleUpdate { guild_id, role }).collect(),
            channels: channels.collect(),
            members: guild.members,
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self {
            us: None,
            cache: kept::cache(),
            names: HashMap::new(),
            heard: HashMap::new(),
            posted: HashMap::new(),
        }
    }
}

impl World {
    /// A server without its contents.
    pub(super) fn guild(&self, guild: GuildId) -> Option<PartialGuild> {
        Some(self.cache.guild(id(guild.get()))?.value().clone())
    }

    pub(super) fn guilds(&self) -> Vec<GuildId> {
        let guilds = self.cache.iter().guilds();
        guilds.map(|guild| guild.id).collect()
    }

    /// A channel or thread.
    pub(super) fn channel(
        &self,
        channel: ChannelId,
    ) -> Option<Reference<'_, Id<ChannelMarker>, PartialChannel>> {
        self.cache.channel(id(channel.get()))
    }

    /// The channels and threads of a server.
    pub(super) fn channels(&self, guild: GuildId) -> Vec<ChannelId> {
        let ids = self.cache.guild_channels(id(guild.get()));
        ids.map_or_else(Vec::new, |ids| {
            ids.iter().map(|id| ChannelId::new(id.get())).collect()
        })
    }

    /// A role.
    pub(super) fn role(
        &self,
        guild: GuildId,
        role: RoleId,
    ) -> Option<Reference<'_, Id<RoleMarker>, GuildResource<PartialRole>>> {
        let role = self.cache.role(id(role.get()))?;
        (role.guild_id().get() == guild.get()).then_some(role)
    }

    /// The roles of a server.
    pub(super) fn roles(&self, guild: GuildId) -> Vec<RoleId> {
        let ids = self.cache.guild_roles(id(guild.get()));
        ids.map_or_else(Vec::new, |ids| {
            ids.iter().map(|id| RoleId::new(id.get())).collect()
        })
    }

    /// Our roles in a server, once our member is known.
    pub(super) fn our_roles(&self, guild: GuildId) -> Option<Vec<RoleId>> {
        let us = self.us.as_ref()?.user;
        let member = self.cache.member(id(guild.get()), id(us.get()))?;
        let roles = member.roles().iter();
        Some(roles.map(|role| RoleId::new(role.get())).collect())
    }

    /// A member's name.
    pub(super) fn name(&self, guild: GuildId, user: UserId) -> Option<&str> {
        self.names.get(&guild)?.get(&user).map(AsRef::as_ref)
    }

    /// A server with its contents, sorted by id.
    pub(super) fn whole(&self, guild: GuildId) -> Option<PartialGuild> {
        let mut whole = self.guild(guild)?;
        let mut roles = self.roles(guild);
        roles.sort_unstable();
        let role = |id: RoleId| Some(self.role(guild, id)?.resource().clone());
        whole.roles = roles.into_iter().filter_map(role).collect();
        let mut channels = self.channels(guild);
        channels.sort_unstable();
        let channel = |id: ChannelId| {
            let mut channel = self.channel(id)?.value().clone();
            channel.guild_id = None;
            Some(channel)
        };
        whole.channels = channels.into_iter().filter_map(channel).collect();
        let ourselves = self.us.as_ref().zip(self.our_roles(guild));
        let ourselves = ourselves.map(|(us, roles)| {
            let nick = self.name(guild, us.user).map(ToOwned::to_owned);
            PartialMember::new(us.user, nick, roles)
        });
        whole.members.extend(ourselves);
        Some(whole)
    }

    /// Replaces what was known of a server.
    pub(super) fn put(&mut self, built: Built) {
        self.clear(built.id);
        self.cache.update(&built.bare);
        for role in &built.roles {
            self.cache.update(role);
        }
        for channel in &built.channels {
            self.posted.remove(&ChannelId::new(channel.id.get()));
            self.cache.update(channel);
        }
        for member in built.members {
            self.meet(built.id, member);
        }
    }

    /// Updates a server's name and owner.
    pub(super) fn rename(&mut self, guild: GuildId, name: String, owner: Option<UserId>) {
        self.cache.update(&build::guild_update(guild, name, owner));
    }

    /// Forgets a server.
    pub(super) fn remove(&mut self, guild: GuildId) {
        self.names.remove(&guild);
        self.heard.remove(&guild);
        self.clear(guild);
    }

    fn clear(&mut self, guild: GuildId) {
        self.cache.update(&GuildDelete {
            id: id(guild.get()),
            unavailable: None,
        });
    }

    /// Inserts or replaces a channel or thread, and returns the previous one.
    /// The cache treats both alike.
    pub(super) fn put_channel(
        &mut self,
        guild: GuildId,
        channel: PartialChannel,
    ) -> Option<PartialChannel> {
        let before = self.channel(channel.id).map(|known| known.value().clone());
        self.posted.remove(&channel.id);
        if self.cache.guild(id(guild.get())).is_none() {
            let bare = build::guild(guild, String::new(), None);
            self.cache.update(&GuildCreate::Available(bare));
        }
        let channel = build::channel(guild, channel);
        self.cache.update(&ChannelUpdate(channel));
        before
    }

    /// Adds to a thread's count of messages posted (or deleted).
    pub(super) fn count(&mut self, thread: ChannelId, change: i64) {
        if self.posted.len() >= THREADS_COUNTED {
            self.posted.clear();
        }
        *self.posted.entry(thread).or_default() += change;
    }

    /// The sum of [`World::count`] since Discord's last count.
    pub(super) fn posted(&self, thread: ChannelId) -> i64 {
        self.posted.get(&thread).copied().unwrap_or(0)
    }

    /// Removes a channel and its threads; returns those threads.
    pub(super) fn remove_channel(&mut self, channel: ChannelId) -> Vec<ChannelId> {
        self.posted.remove(&channel);
        let known = self.channel(channel);
        let known = known.and_then(|known| Some((known.guild_id?, kind(&known))));
        let Some((guild, kind_of_it)) = known else {
            return Vec::new();
        };
        if kind_of_it.is_thread() {
            // A thread contains nothing, so there is nothing to search for.
            self.forget_one(guild, channel);
            return Vec::new();
        }
        let mut gone = self.forget(guild, |known| {
            let inside = known.parent_id == Some(channel) && kind(known).is_thread();
            known.id == channel || inside
        });
        gone.retain(|one| *one != channel);
        gone
    }

    /// Forgets the threads of these channels, or all threads for `None`; a
    /// complete list of them follows.
    pub(super) fn forget_threads(&mut self, guild: GuildId, parents: Option<&[ChannelId]>) {
        self.forget(guild, |known| {
            let listed = |parents: &[ChannelId]| {
                let parent = known.parent_id;
                parent.is_some_and(|parent| parents.contains(&parent))
            };
            kind(known).is_thread() && parents.is_none_or(listed)
        });
    }

    /// Returns what was removed.
    fn forget(&mut self, guild: GuildId, gone: impl Fn(&PartialChannel) -> bool) -> Vec<ChannelId> {
        let mut forgotten = Vec::new();
        for channel in self.channels(guild) {
            let gone = self.channel(channel).is_some_and(|known| gone(&known));
            if gone {
                forgotten.push(channel);
                self.forget_one(guild, channel);
            }
        }
        forgotten
    }

    fn forget_one(&mut self, guild: GuildId, channel: ChannelId) {
        // The cache reads only the id, and removes channels this way too.
        self.cache.update(&ThreadDelete {
            guild_id: id(guild.get()),
            id: id(channel.get()),
            kind: ChannelType::PublicThread,
            parent_id: id(channel.get()),
        });
    }

    /// Inserts or replaces a role, and returns the previous one; `None` for an
    /// unknown server.
    pub(super) fn put_role(&mut self, guild: GuildId, role: PartialRole) -> Option<PartialRole> {
        self.guild(guild)?;
        let before = self
            .role(guild, role.id)
            .map(|role| role.resource().clone());
        self.cache.update(&RoleUpdate {
            guild_id: id(guild.get()),
            role: build::role(role),
        });
        before
    }

    /// Replaces a server's roles. Returns whether any changed.
    pub(super) fn put_roles(&mut self, guild: GuildId, roles: Vec<PartialRole>) -> bool {
        let given: HashSet<RoleId> = roles.iter().map(|role| role.id).collect();
        let mut changed = false;
        for role in self.roles(guild) {
            if !given.contains(&role) {
                changed |= self.remove_role(guild, role).is_some();
            }
        }
        for role in roles {
            let known = self.role(guild, role.id);
            if known.is_none_or(|known| *known.resource() != role) {
                changed = true;
                self.put_role(guild, role);
            }
        }
        changed
    }

    /// Removes a role; `None` if it was not known.
    pub(super) fn remove_role(&mut self, guild: GuildId, role: RoleId) -> Option<()> {
        // Drops the cache's guard before removing.
        self.role(guild, role).map(drop)?;
        self.cache.update(&RoleDelete {
            guild_id: id(guild.get()),
            role_id: id(role.get()),
        });
        Some(())
    }

    /// Remembers a user's name. At the limit all names of the server are
    /// forgotten, to be learnt again.
    pub(super) fn hear(&mut self, guild: GuildId, user: UserId, name: &str) {
        let heard = self.heard.entry(guild).or_default();
        if heard.len() >= NAMES_PER_GUILD && !heard.contains_key(&user) {
            heard.clear();
        }
        if !name.is_empty() {
            heard.insert(user, name.into());
        }
    }

    /// The name a user was last heard with in a server.
    pub(super) fn heard(&self, guild: GuildId, user: UserId) -> Option<&str> {
        self.heard.get(&guild)?.get(&user).map(AsRef::as_ref)
    }

    /// Remembers a member's name and, if it is us, the roles.
    pub(super) fn meet(&mut self, guild: GuildId, member: PartialMember) {
        let user = &member.user;
        let shown = member.nick.as_ref().or(user.global_name.as_ref());
        let shown = shown.unwrap_or(&user.username).as_str();
        let names = self.names.entry(guild).or_default();
        let room = names.len() < NAMES_PER_GUILD || names.contains_key(&user.id);
        if room && !shown.is_empty() {
            names.insert(user.id, shown.into());
        }
        if self.us.as_ref().is_some_and(|us| us.user == user.id) {
            self.cache.update(&MemberAdd {
                guild_id: id(guild.get()),
                member: build::member(member),
            });
        }
    }

    /// Where to compute permissions; `None` for an unknown channel or a thread
    /// without a parent.
    pub(super) fn spot(&self, channel: ChannelId) -> Option<Spot> {
        let found = self.channel(channel)?;
        let kind = kind(&found);
        Some(Spot {
            guild: found.guild_id?,
            judged: if kind.is_thread() {
                found.parent_id?
            } else {
                channel
            },
            kind,
            joined: found.member.is_some(),
        })
    }

    /// What a user with these roles may do in a channel; `member` says whether
    /// they are in the private thread, if known. Unknown when any input is.
    ///
    /// Computed by `clew-context`, not by twilight's calculator, which takes
    /// roles from cached members while the asker's come with the event; knows
    /// no private-thread membership; takes Attach Files away where Send
    /// Messages is denied, which means nothing in threads; and grants neither
    /// Manage Server nor Send Messages in the chat of voice and stage channels.
    pub(super) fn access(
        &self,
        user: UserId,
        roles: &[RoleId],
        spot: &Spot,
        member: Option<bool>,
    ) -> Access {
        let place = Place::of(spot.kind, member);
        self.permissions(user, roles, spot)
            .map_or(Access::Unknown(Missing::Facts), |permissions| {
                access(&AccessFacts { permissions, place })
            })
    }

    fn permissions(&self, user: UserId, roles: &[RoleId], spot: &Spot) -> Option<u64> {
        let guild = spot.guild;
        let bits = |role: RoleId| Some(self.role(guild, role)?.permissions.0);
        let everyone = bits(RoleId::new(guild.get()))?;
        let roles: Option<Vec<(RoleId, u64)>> = roles
            .iter()
            .map(|role| Some((*role, bits(*role)?)))
            .collect();
        let standing = Standing {
            guild,
            user,
            owner: self.cache.guild(id(guild.get()))?.owner_id == Some(user),
            everyone,
            roles: &roles?,
        };
        let judged = self.channel(spot.judged)?;
        permissions_in(&standing, judged.overwrites().as_deref())
    }
}

/// A channel's type.
pub(super) const fn kind(channel: &PartialChannel) -> ChannelKind {
    ChannelKind::from_number(channel.kind)
}
