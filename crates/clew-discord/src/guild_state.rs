//! What we know of servers, channels, roles and ourselves without a request.
//! The gateway feeds it in order; anyone may read it.
//!
//! JSON from the gateway, REST and the session file is read leniently into
//! partial structs, so that one odd channel does not cost a whole server, and
//! those are kept by id. One lock covers all, so that nobody sees a server half
//! replaced; it is held for lookups only, never across an await.

mod apply;
mod current;
mod fill;
mod guild;
mod guilds;
mod partial;
mod readers;
mod start_thread;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use current::shard_of;
pub use partial::{
    PartialChannel, PartialGuild, PartialMember, PartialOverwrite, PartialRole, PartialThreadMember,
};
pub use readers::AnswerPlace;
pub use start_thread::MAX_THREAD_NAME;

use serde::{Deserialize, Serialize};

use clew_context::model::{
    Access, ApplicationId, Channel, ChannelId, ChannelKind, GuildId, Missing, Parent, RoleId,
    ThreadState, UserId,
};
use guilds::Guilds;

/// What the gateway told; shared by reference.
#[derive(Debug, Default)]
pub struct GuildState {
    guilds: RwLock<Guilds>,
    /// How often servers, channels, roles or members may have changed.
    revision: AtomicU64,
}

/// Who we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentUser {
    /// Our user.
    pub user: UserId,
    /// Its name.
    pub name: String,
    /// Our application.
    pub application: ApplicationId,
}

impl GuildState {
    /// Who we are; known after the first READY or from the session file.
    pub fn current_user(&self) -> Option<CurrentUser> {
        self.read().us.clone()
    }

    /// Sets who we are (from READY or the session file).
    pub fn set_current_user(&self, us: CurrentUser) {
        self.write().us = Some(us);
    }

    /// Another number whenever rights or names may have changed.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// What a thread's object does not say about its parent channel.
    pub fn parent(&self, id: ChannelId) -> Option<Parent> {
        self.read().channel(id).map(to_parent)
    }

    /// A server's channel or thread; never a direct message.
    pub fn channel(&self, id: ChannelId) -> Option<Channel> {
        let guilds = self.read();
        let known = guilds.channel(id)?;
        let mut channel = to_channel(guilds.guild_of(id)?, known);
        if let Some(ThreadState {
            message_count: Some(count),
            ..
        }) = &mut channel.thread
        {
            let now = i64::from(*count) + guilds.posted(id);
            *count = u32::try_from(now).unwrap_or(0);
        }
        let parent = known.parent_id.and_then(|parent| guilds.channel(parent));
        Some(match parent {
            Some(parent) => channel.under(to_parent(parent)),
            None => channel,
        })
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
        let guilds = self.read();
        let channel = guilds.channel(id)?;
        Some((channel.kind(), channel.parent_id))
    }

    /// What we may do there; unknown if our roles or the channel are.
    pub fn our_access(&self, channel: ChannelId) -> Access {
        our_access(&self.read(), channel)
    }

    /// What a user may do there, given the roles in their own message or
    /// interaction, if any. Direct messages are always unknown here.
    pub fn access(&self, user: UserId, roles: Option<&[RoleId]>, channel: ChannelId) -> Access {
        let guilds = self.read();
        let known = || {
            let id = guilds.guild_of(channel)?;
            let channel = guilds.channel(channel)?;
            guilds.guild(id)?.access(id, user, roles?, channel, None)
        };
        known().unwrap_or(Access::Unknown(Missing::Facts))
    }

    /// Whether a channel is known to be age-restricted; a thread is with its channel.
    pub fn is_age_restricted(&self, channel: ChannelId) -> bool {
        let guilds = self.read();
        let guild = guilds.guild_of(channel).and_then(|id| guilds.guild(id));
        guild.and_then(|guild| guild.is_age_restricted(channel)) == Some(true)
    }

    /// Takes threads of which the gateway did not tell, such as archived ones, from an
    /// answer of REST; what is known already stays.
    pub fn meet_threads(&self, guild: GuildId, threads: Vec<Channel>) {
        let mut guilds = self.write();
        for thread in threads {
            let parent = thread.parent.and_then(|parent| guilds.guild_of(parent));
            let is_here = thread.kind.is_thread() && parent == Some(guild);
            if is_here && guilds.channel(thread.id).is_none() {
                guilds.put_channel(guild, PartialChannel::of_thread(thread));
            }
        }
    }

    /// People of a server whose name is this, as far as names are known.
    pub fn users_named(&self, guild: GuildId, is_named: impl Fn(&str) -> bool) -> Vec<UserId> {
        self.read().named(guild, is_named)
    }

    /// Our managed role in a server; people mention it by mistake, so it counts
    /// as us.
    pub fn our_role_ids(&self, guild: GuildId) -> Vec<RoleId> {
        let guilds = self.read();
        let ours = || {
            let us = guilds.us.as_ref()?.user;
            let roles = guilds.guild(guild)?.roles.values();
            let ours = roles.filter(|role| role.tags.bot_id == Some(us));
            Some(ours.map(|role| role.id).collect())
        };
        ours().unwrap_or_default()
    }

    /// A role's name.
    pub fn role_name(&self, guild: GuildId, role: RoleId) -> Option<String> {
        Some(self.read().guild(guild)?.roles.get(&role)?.name.clone())
    }

    /// Whether a server's roles are known, and this is none of them.
    pub fn lacks_role(&self, guild: GuildId, role: RoleId) -> bool {
        let everyone = RoleId::new(guild.get());
        let guilds = self.read();
        guilds.guild(guild).is_some_and(|known| {
            known.roles.contains_key(&everyone) && !known.roles.contains_key(&role)
        })
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
        let guilds = self.read();
        let is_new = |(user, name): &(UserId, &str)| guilds.heard(guild, *user) != Some(*name);
        let new: Vec<(UserId, &str)> = people.into_iter().filter(is_new).collect();
        drop(guilds);
        if !new.is_empty() {
            let mut guilds = self.write();
            for (user, name) in new {
                guilds.hear(guild, user, name);
            }
        }
    }

    /// The name a user was last seen with in a server.
    pub fn heard_name(&self, guild: GuildId, user: UserId) -> Option<String> {
        self.read().heard(guild, user).map(ToOwned::to_owned)
    }

    /// A server's name.
    pub fn guild_name(&self, guild: GuildId) -> Option<String> {
        Some(self.read().guild(guild)?.name.clone())
    }

    /// The server a channel belongs to.
    pub fn guild_of(&self, channel: ChannelId) -> Option<GuildId> {
        self.read().guild_of(channel)
    }

    /// The servers that we are in.
    pub fn guilds(&self) -> Vec<GuildId> {
        self.read().ids()
    }

    /// The channels of a server, threads included.
    pub fn channels_of(&self, guild: GuildId) -> Vec<ChannelId> {
        let guilds = self.read();
        let channels = guilds.guild(guild).map(|guild| guild.channels.keys());
        channels.into_iter().flatten().copied().collect()
    }

    /// The server's channels that we may not view, or do not know we may.
    pub(super) fn hidden_of(&self, guild: GuildId) -> Vec<ChannelId> {
        let guilds = self.read();
        let channels = guilds.guild(guild).map(|guild| guild.channels.keys());
        let channels = channels.into_iter().flatten().copied();
        channels
            .filter(|channel| !our_access(&guilds, *channel).may_view())
            .collect()
    }

    /// A server for the guild file.
    pub fn snapshot(&self, id: GuildId) -> Option<PartialGuild> {
        self.read().snapshot(id)
    }

    /// Restores a snapshot; call [`GuildState::set_current_user`] first.
    /// Of a channel of an older file it is not known whether it is age-restricted, until the
    /// gateway tells of it.
    pub fn restore(&self, snapshot: Vec<PartialGuild>) {
        let mut guilds = self.write();
        for guild in snapshot {
            guilds.put(guild);
        }
    }

    /// Forgets a shard's servers that its READY does not list: we left them
    /// while disconnected.
    pub fn keep_only(&self, shard: u32, shards: u32, listed: &[GuildId]) {
        let mut guilds = self.write();
        for guild in guilds.ids() {
            let is_ours = shard_of(guild, shards) == Some(shard);
            if is_ours && !listed.contains(&guild) {
                guilds.remove(guild);
            }
        }
        self.changed();
    }

    fn changed(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    fn read(&self) -> RwLockReadGuard<'_, Guilds> {
        self.guilds.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Guilds> {
        self.guilds.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn our_access(guilds: &Guilds, channel: ChannelId) -> Access {
    let known = || {
        let us = guilds.us.as_ref()?.user;
        let id = guilds.guild_of(channel)?;
        let guild = guilds.guild(id)?;
        let channel = guild.channels.get(&channel)?;
        let roles = guild.our_roles.as_deref()?;
        guild.access(id, us, roles, channel, Some(channel.member.is_some()))
    };
    known().unwrap_or(Access::Unknown(Missing::Facts))
}

/// Without what only the parent says.
fn to_channel(guild: GuildId, channel: &PartialChannel) -> Channel {
    let thread = channel.kind().is_thread().then(|| ThreadState {
        owner: channel.owner_id,
        archived: channel.thread_metadata.archived,
        locked: channel.thread_metadata.locked,
        message_count: channel.message_count,
        applied_tags: channel.applied_tags.clone(),
    });
    Channel {
        guild: Some(guild),
        name: channel.name.clone(),
        topic: channel.topic.clone(),
        parent: channel.parent_id,
        overwrites: channel.overwrites(),
        thread,
        ..Channel::new(channel.id, channel.kind())
    }
}

fn to_parent(channel: &PartialChannel) -> Parent {
    let tags = channel.available_tags.iter();
    Parent {
        kind: channel.kind(),
        name: channel.name.clone(),
        topic: channel.topic.clone(),
        tags: tags.map(|tag| (tag.id, tag.name.clone())).collect(),
    }
}

#[cfg(test)]
mod tests;
