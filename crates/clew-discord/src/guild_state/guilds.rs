//! All servers by id, who we are, and what is counted and named beside them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::current::Hearing;
use super::guild::KnownGuild;
use super::{CurrentUser, PartialChannel, PartialGuild, PartialMember};
use clew_context::model::{ChannelId, GuildId, UserId};

/// Limit per server for names of members, and again for names of people heard.
const NAMES_PER_GUILD: usize = 500;

/// Threads with a message count; at the limit all counts restart, and gap
/// markers may be off a little.
const THREADS_COUNTED: usize = 10_000;

/// Channels and threads of a server. Discord has at most 500 channels and 1,000 threads that
/// are not archived; the rest is for archived ones, which only grow in number.
const CHANNELS_PER_GUILD: usize = 2_500;

type Names = HashMap<GuildId, HashMap<UserId, Box<str>>>;

#[derive(Debug, Default)]
pub(super) struct Guilds {
    pub(super) us: Option<CurrentUser>,
    pub(super) hearing: Hearing,
    by_id: BTreeMap<GuildId, KnownGuild>,
    /// The server of each channel and thread in `by_id`.
    of_channel: HashMap<ChannelId, GuildId>,
    /// Names of the members Discord reported.
    names: Names,
    /// Names carried by triggers, for mentions in stored messages.
    heard: Names,
    /// Messages posted less messages deleted in each thread since Discord's
    /// last count, which only comes with the thread object.
    posted: HashMap<ChannelId, i64>,
}

impl Guilds {
    pub(super) fn ids(&self) -> Vec<GuildId> {
        self.by_id.keys().copied().collect()
    }

    pub(super) fn guild(&self, guild: GuildId) -> Option<&KnownGuild> {
        self.by_id.get(&guild)
    }

    pub(super) fn guild_mut(&mut self, guild: GuildId) -> Option<&mut KnownGuild> {
        self.by_id.get_mut(&guild)
    }

    pub(super) fn guild_of(&self, channel: ChannelId) -> Option<GuildId> {
        self.of_channel.get(&channel).copied()
    }

    /// A channel or thread.
    pub(super) fn channel(&self, channel: ChannelId) -> Option<&PartialChannel> {
        let guild = self.guild(self.guild_of(channel)?)?;
        guild.channels.get(&channel)
    }

    /// A channel or thread, to be changed in place.
    pub(super) fn channel_mut(&mut self, channel: ChannelId) -> Option<&mut PartialChannel> {
        let guild = self.guild_of(channel)?;
        self.guild_mut(guild)?.channels.get_mut(&channel)
    }

    /// A server with its contents.
    pub(super) fn snapshot(&self, id: GuildId) -> Option<PartialGuild> {
        let guild = self.by_id.get(&id)?;
        Some(guild.to_partial(id, self.ourselves(id, guild)))
    }

    fn ourselves(&self, id: GuildId, guild: &KnownGuild) -> Option<PartialMember> {
        let us = self.us.as_ref()?.user;
        let nick = self.name(id, us).map(ToOwned::to_owned);
        Some(PartialMember::new(us, nick, guild.our_roles.clone()?))
    }

    /// Replaces what was known of a server, except names.
    pub(super) fn put(&mut self, guild: PartialGuild) {
        let id = guild.id;
        self.remove_contents(id);
        let known = KnownGuild::new(guild.name, guild.owner_id, guild.roles);
        self.by_id.insert(id, known);
        for channel in guild.channels.into_iter().chain(guild.threads) {
            self.put_channel(id, channel);
        }
        for member in guild.members {
            self.meet(id, member);
        }
    }

    pub(super) fn remove(&mut self, guild: GuildId) {
        self.names.remove(&guild);
        self.heard.remove(&guild);
        self.remove_contents(guild);
    }

    fn remove_contents(&mut self, guild: GuildId) {
        let gone = self.by_id.remove(&guild).unwrap_or_default();
        for channel in gone.channels.keys() {
            self.of_channel.remove(channel);
        }
    }

    /// Inserts or replaces a channel or thread, and returns the previous one.
    /// An unknown server becomes known by it, without a name or an owner. Where there are too
    /// many, the oldest archived thread is forgotten, as all are by a new session.
    pub(super) fn put_channel(
        &mut self,
        guild: GuildId,
        channel: PartialChannel,
    ) -> Option<PartialChannel> {
        let before = self.remove_channel(channel.id);
        self.of_channel.insert(channel.id, guild);
        let known = self.by_id.entry(guild).or_default();
        known.channels.insert(channel.id, channel);
        let too_many = known.channels.len() > CHANNELS_PER_GUILD;
        if let Some(thread) = too_many.then(|| known.oldest_thread()).flatten() {
            self.remove_channel(thread);
        }
        before
    }

    /// Removes a channel or thread. The threads of a channel stay.
    pub(super) fn remove_channel(&mut self, channel: ChannelId) -> Option<PartialChannel> {
        self.posted.remove(&channel);
        let guild = self.of_channel.remove(&channel)?;
        self.guild_mut(guild)?.channels.remove(&channel)
    }

    /// Removes the threads of these channels, or all threads for `None`.
    /// Returns them, sorted.
    pub(super) fn remove_threads(
        &mut self,
        guild: GuildId,
        parents: Option<&[ChannelId]>,
    ) -> Vec<ChannelId> {
        let threads = self.guild(guild).map(|guild| guild.threads(parents));
        let threads = threads.unwrap_or_default();
        for thread in &threads {
            self.remove_channel(*thread);
        }
        threads
    }

    /// Adds to a thread's count of messages posted (or deleted).
    pub(super) fn count(&mut self, thread: ChannelId, change: i64) {
        if self.posted.len() >= THREADS_COUNTED {
            self.posted.clear();
        }
        *self.posted.entry(thread).or_default() += change;
    }

    /// The sum of [`Guilds::count`] since Discord's last count.
    pub(super) fn posted(&self, thread: ChannelId) -> i64 {
        self.posted.get(&thread).copied().unwrap_or(0)
    }

    pub(super) fn name(&self, guild: GuildId, user: UserId) -> Option<&str> {
        self.names.get(&guild)?.get(&user).map(AsRef::as_ref)
    }

    /// The name a user was last heard with in a server.
    pub(super) fn heard(&self, guild: GuildId, user: UserId) -> Option<&str> {
        self.heard.get(&guild)?.get(&user).map(AsRef::as_ref)
    }

    /// Users with such a name, as members or as people heard.
    pub(super) fn named(&self, guild: GuildId, is_named: impl Fn(&str) -> bool) -> Vec<UserId> {
        let names = [&self.names, &self.heard].into_iter();
        let names = names.filter_map(|names| names.get(&guild)).flatten();
        let named = names.filter(|(_, name)| is_named(name));
        let named: BTreeSet<UserId> = named.map(|(user, _)| *user).collect();
        named.into_iter().collect()
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

    /// Remembers a member's name and, if it is us, the roles.
    pub(super) fn meet(&mut self, guild: GuildId, member: PartialMember) {
        let user = member.user;
        let is_us = self.us.as_ref().is_some_and(|us| us.user == user.id);
        let shown = member.nick.or(user.global_name).unwrap_or(user.username);
        let names = self.names.entry(guild).or_default();
        let room = names.len() < NAMES_PER_GUILD || names.contains_key(&user.id);
        if room && !shown.is_empty() {
            names.insert(user.id, shown.into());
        }
        if is_us && let Some(known) = self.guild_mut(guild) {
            known.our_roles = Some(member.roles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(id: u64, kind: u8, archived: bool) -> PartialChannel {
        let text =
            format!(r#"{{"id":"{id}","type":{kind},"thread_metadata":{{"archived":{archived}}}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    /// Discord never deletes archived threads, and tells of them for ever.
    #[test]
    fn old_archived_threads_are_forgotten() {
        let (mut guilds, guild) = (Guilds::default(), GuildId::new(1));
        let mut put = |id, kind, archived| {
            guilds.put_channel(guild, channel(id, kind, archived));
            guilds.guild(guild).unwrap().channels.len()
        };
        put(2, 0, false);
        put(3, 11, false);
        let last = 2 + CHANNELS_PER_GUILD as u64;
        for id in 4..last {
            put(id, 11, true);
        }
        assert_eq!(put(last, 11, false), CHANNELS_PER_GUILD);
        assert_eq!(put(last, 11, true), CHANNELS_PER_GUILD, "known");
        assert_eq!(put(last + 1, 0, false), CHANNELS_PER_GUILD);
        let is_known = |id| guilds.guild_of(ChannelId::new(id)).is_some();
        assert!(is_known(2) && is_known(3) && is_known(last) && is_known(last + 1));
        assert!(!is_known(4) && !is_known(5) && is_known(6));
    }
}
