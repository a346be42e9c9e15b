//! Building a world: users, guilds, roles, channels, threads.

use std::collections::BTreeMap;

use super::{
    Channel, ChannelKind, Guild, Id, Member, Message, Overwrite, OverwriteOf, Permissions, Role,
    ScriptError, Settings, Tag, Thread, User, World, flag,
};
use crate::draft::{Draft, Reference};
use crate::ids::{Clock, TimeSource};

/// The token a new world accepts.
const TOKEN: &str = "MTAwMDAwMDAwMDAwMDAwMDAw.simulator.not-a-secret";

/// The bot's id in a new world.
const BOT: Id = Id(100_000_000_000_000_000);

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// An empty world with the bot, named "Clew".
    pub fn new() -> Self {
        let mut world = Self {
            bot: BOT,
            token: TOKEN.to_owned(),
            settings: Settings::default(),
            users: BTreeMap::new(),
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            ephemeral: BTreeMap::new(),
            interactions: BTreeMap::new(),
            commands: Vec::new(),
            overrides: BTreeMap::new(),
            search_index: None,
            clock: Clock::default(),
            base_url: String::new(),
            mistake: None,
        };
        world.set_bot(BOT, "Clew");
        world
    }

    /// Sets the bot's id and name; call it before adding guilds.
    pub fn set_bot(&mut self, id: impl Into<Id>, name: &str) {
        self.users.remove(&self.bot);
        self.bot = id.into();
        self.named(self.bot, name, true);
    }

    /// Makes ids and times deterministic: starting at `start_ms` (Unix), with
    /// `step_ms` between one id and the next.
    pub fn set_clock(&mut self, start_ms: i64, step_ms: i64) {
        self.clock.choose(start_ms, step_ms);
    }

    /// Takes all times from a source, rate limits and the log's included.
    pub fn follow_clock(&mut self, source: TimeSource) {
        self.clock.follow(source);
    }

    /// Moves a deterministic clock forward.
    pub fn advance(&mut self, by_ms: i64) {
        self.clock.advance(by_ms);
    }

    /// The world's time in Unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// A new id for the current time.
    pub fn fresh_id(&mut self) -> Id {
        self.clock.fresh()
    }

    /// Adds a person who is in no guild yet.
    pub fn user(&mut self, name: &str) -> Id {
        let id = self.clock.fresh();
        self.named(id, name, false)
    }

    /// Adds another bot, in no guild yet.
    pub fn other_bot(&mut self, name: &str) -> Id {
        let id = self.clock.fresh();
        self.named(id, name, true)
    }

    /// Adds a user with all fields given.
    pub fn add_user(&mut self, user: User) -> Id {
        let id = user.id;
        self.users.insert(id, user);
        id
    }

    fn named(&mut self, id: Id, name: &str, bot: bool) -> Id {
        self.add_user(User {
            id,
            name: name.to_owned(),
            global_name: None,
            bot,
        })
    }

    /// Adds a person who is a member of a guild.
    pub fn member(&mut self, guild: Id, name: &str) -> Id {
        let user = self.user(name);
        self.join(guild, user);
        user
    }

    /// Makes a user a member of a guild, without roles.
    pub fn join(&mut self, guild: Id, user: Id) {
        let joined_ms = self.clock.now_ms();
        let member = Member {
            user,
            joined_ms,
            ..Member::default()
        };
        if let Some(guild) = self.guild_mut(guild) {
            guild.members.insert(user, member);
        }
    }

    /// Adds a guild with its own owner and the bot, which has its managed role.
    pub fn guild(&mut self, name: &str) -> Id {
        let owner = self.user(&format!("owner-of-{}", name.to_lowercase()));
        let id = self.clock.fresh();
        let everyone = Role {
            id,
            name: "@everyone".to_owned(),
            permissions: Permissions::EVERYONE,
            position: 0,
            managed_by: None,
        };
        let guild = Guild {
            id,
            name: name.to_owned(),
            owner,
            roles: BTreeMap::from([(id, everyone)]),
            members: BTreeMap::new(),
            unavailable: false,
        };
        self.guilds.insert(id, guild);
        self.join(id, owner);
        self.add_bot(id);
        id
    }

    /// Adds the bot to a guild, with the role managed by its integration.
    pub fn add_bot(&mut self, guild: Id) {
        let bot = self.bot;
        self.join(guild, bot);
        let name = self.users.get(&bot).map(|user| user.name.clone());
        let role = self.role(guild, &name.unwrap_or_default(), Permissions::NONE);
        if let Some(role) = self.role_mut(guild, role) {
            role.managed_by = Some(bot);
        }
        self.give_role(guild, bot, role);
    }

    /// The role in a guild that is managed by the bot's integration.
    pub fn bot_role(&self, guild: Id) -> Option<Id> {
        let roles = &self.guilds.get(&guild)?.roles;
        let managed = roles
            .values()
            .find(|role| role.managed_by == Some(self.bot))?;
        Some(managed.id)
    }

    /// Adds a role that nobody has yet.
    pub fn role(&mut self, guild: Id, name: &str, permissions: Permissions) -> Id {
        let id = self.clock.fresh();
        let Some(guild) = self.guild_mut(guild) else {
            return id;
        };
        let position = i64::try_from(guild.roles.len()).unwrap_or(i64::MAX);
        let role = Role {
            id,
            name: name.to_owned(),
            permissions,
            position,
            managed_by: None,
        };
        guild.roles.insert(id, role);
        id
    }

    /// Gives a member a role.
    pub fn give_role(&mut self, guild: Id, user: Id, role: Id) {
        if let Some(member) = self.member_mut(guild, user) {
            member.roles.push(role);
        }
    }

    /// Puts a member in a timeout, or ends it.
    pub fn time_out(&mut self, guild: Id, user: Id, until_ms: Option<i64>) {
        if let Some(member) = self.member_mut(guild, user) {
            member.timed_out_until_ms = until_ms;
        }
    }

    /// Sets a role's permissions; `@everyone` has the guild's id.
    pub fn set_role_permissions(&mut self, guild: Id, role: Id, permissions: Permissions) {
        if let Some(role) = self.role_mut(guild, role) {
            role.permissions = permissions;
        }
    }

    /// Adds a channel to a guild.
    pub fn channel(&mut self, guild: Id, kind: ChannelKind, name: &str) -> Id {
        let id = self.clock.fresh();
        self.channels
            .insert(id, Channel::new(id, kind, Some(guild), name));
        id
    }

    /// The direct message channel with a user, created if necessary.
    pub fn direct(&mut self, user: Id) -> Id {
        let known = self
            .channels
            .values()
            .find(|channel| channel.guild.is_none() && channel.recipients == [user]);
        if let Some(channel) = known {
            return channel.id;
        }
        let id = self.clock.fresh();
        let mut channel = Channel::new(id, ChannelKind::Direct, None, "");
        channel.recipients = vec![user];
        self.channels.insert(id, channel);
        id
    }

    /// Puts a channel in a category, whose overwrites do not apply to it.
    pub fn set_category(&mut self, channel: Id, category: Id) {
        if let Some(channel) = self.channel_mut(channel) {
            channel.parent = Some(category);
        }
    }

    /// Adds a tag that posts of a forum can have.
    pub fn tag(&mut self, forum: Id, name: &str) -> Id {
        let id = self.clock.fresh();
        let name = name.to_owned();
        if let Some(forum) = self.channel_mut(forum) {
            forum.tags.push(Tag { id, name });
        }
        id
    }

    /// Sets the overwrite for a role or member, replacing an existing one.
    pub fn overwrite(
        &mut self,
        channel: Id,
        of: OverwriteOf,
        allow: Permissions,
        deny: Permissions,
    ) {
        if let Some(channel) = self.channel_mut(channel) {
            channel.overwrites.retain(|overwrite| overwrite.of != of);
            channel.overwrites.push(Overwrite { of, allow, deny });
        }
    }

    /// Makes a channel age-restricted.
    pub fn restrict_age(&mut self, channel: Id) {
        if let Some(channel) = self.channel_mut(channel) {
            channel.nsfw = true;
        }
    }

    /// From now on a search finds what is there now, as it reads now; with false again
    /// what is there.
    pub fn hold_search_index(&mut self, held: bool) {
        let messages = self.channels.values().flat_map(|one| one.messages.values());
        self.search_index = held.then(|| messages.cloned().collect());
    }

    /// Denies `@everyone` some permissions in a channel.
    pub fn deny_everyone(&mut self, channel: Id, deny: Permissions) {
        let guild = self.channel_mut(channel).and_then(|channel| channel.guild);
        if let Some(guild) = guild {
            self.overwrite(channel, OverwriteOf::Role(guild), Permissions::NONE, deny);
        }
    }

    /// Adds a thread started from a message (with the message's id) and its starter of type 21.
    pub fn thread_from(&mut self, channel: Id, message: Id, title: &str, owner: Id) -> Id {
        self.thread_and_starter(channel, message, title, owner).0
    }

    /// Like [`World::thread_from`], but also returns the starter's id.
    pub(crate) fn thread_and_starter(
        &mut self,
        channel: Id,
        message: Id,
        title: &str,
        owner: Id,
    ) -> (Id, Id) {
        let parent = self.channel_mut(channel);
        let kind = match parent.as_ref().map(|parent| parent.kind) {
            Some(ChannelKind::Announcement) => ChannelKind::AnnouncementThread,
            _ => ChannelKind::PublicThread,
        };
        let first = parent.and_then(|parent| parent.messages.get_mut(&message));
        let author = first.map_or(owner, |first| {
            first.flags |= flag::HAS_THREAD;
            first.author
        });
        let thread = self.insert_thread(message, channel, kind, title, owner);
        let reference = Reference::to(channel, Some(message));
        let at_ms = message.unix_ms();
        let draft = Draft::system(21).reference(reference).at_ms(at_ms);
        let starter = self.seed(thread, author, draft);
        (thread, starter)
    }

    /// Adds a public or private thread that is not started from a message.
    pub fn thread(&mut self, channel: Id, kind: ChannelKind, title: &str, owner: Id) -> Id {
        let id = self.clock.fresh();
        self.insert_thread(id, channel, kind, title, owner)
    }

    /// Gives a channel a topic, or a forum its guidelines.
    pub fn set_topic(&mut self, channel: Id, topic: &str) {
        if let Some(channel) = self.channel_mut(channel) {
            channel.topic = Some(topic.to_owned());
        }
    }

    /// Adds a post to a forum or media channel; its first message has the same id.
    pub fn forum_post(
        &mut self,
        forum: Id,
        author: Id,
        title: &str,
        tags: &[Id],
        draft: impl Into<Draft>,
    ) -> Id {
        let draft = draft.into();
        let id = self.id_for(&draft);
        self.insert_thread(id, forum, ChannelKind::PublicThread, title, author);
        if let Some(thread) = self.thread_mut(id) {
            thread.applied_tags = tags.to_vec();
        }
        self.seed(id, author, draft.id(id));
        id
    }

    /// Archives or unarchives, locks or unlocks a thread.
    pub fn set_archived(&mut self, thread: Id, archived: bool, locked: bool) {
        let now = self.clock.now_ms();
        let Some(thread) = self.thread_mut(thread) else {
            return;
        };
        if thread.archived != archived {
            thread.archive_ms = now;
        }
        thread.archived = archived;
        thread.locked = locked;
    }

    /// Makes a user a member of a thread.
    pub fn join_thread(&mut self, thread: Id, user: Id) {
        let now = self.clock.now_ms();
        if let Some(thread) = self.thread_mut(thread) {
            thread.members.insert(user, now);
        }
    }

    /// All guilds, by id.
    pub fn guilds(&self) -> impl Iterator<Item = &Guild> {
        self.guilds.values()
    }

    /// All channels, threads and direct messages, by id.
    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.values()
    }

    /// All users, by id.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values()
    }

    /// The current state of a channel or thread.
    pub fn get_channel(&self, channel: Id) -> Option<&Channel> {
        self.channels.get(&channel)
    }

    /// The current state of a user.
    pub fn get_user(&self, user: Id) -> Option<&User> {
        self.users.get(&user)
    }

    fn insert_thread(
        &mut self,
        id: Id,
        parent: Id,
        kind: ChannelKind,
        title: &str,
        owner: Id,
    ) -> Id {
        let Some(found) = self.channel_mut(parent) else {
            return id;
        };
        let guild = found.guild;
        if found.kind.is_forum() {
            found.last_message = Some(id);
        }
        let mut channel = Channel::new(id, kind, guild, title);
        channel.parent = Some(parent);
        channel.thread = Some(Thread {
            owner,
            members: BTreeMap::from([(owner, id.unix_ms())]),
            archive_ms: id.unix_ms(),
            auto_archive_minutes: 1_440,
            ..Thread::default()
        });
        self.channels.insert(id, channel);
        id
    }

    /// The script's first mistake, if any.
    pub const fn mistake(&self) -> Option<&ScriptError> {
        self.mistake.as_ref()
    }

    pub(crate) fn guild_of(&self, channel: Id) -> Option<Id> {
        self.channels.get(&channel)?.guild
    }

    /// A user's membership in a guild, if there is a guild.
    pub(crate) fn member_of(&self, guild: Option<Id>, user: Id) -> Option<&Member> {
        self.guilds.get(&guild?)?.members.get(&user)
    }

    pub(crate) fn guild_mut(&mut self, id: Id) -> Option<&mut Guild> {
        expect(self.guilds.get_mut(&id), &mut self.mistake, "guild", id)
    }

    pub(crate) fn role_mut(&mut self, guild: Id, id: Id) -> Option<&mut Role> {
        let (found, mistake) = (self.guilds.get_mut(&guild), &mut self.mistake);
        let found = expect(found, mistake, "guild", guild)?;
        expect(found.roles.get_mut(&id), mistake, "role", id)
    }

    pub(crate) fn member_mut(&mut self, guild: Id, id: Id) -> Option<&mut Member> {
        let (found, mistake) = (self.guilds.get_mut(&guild), &mut self.mistake);
        let found = expect(found, mistake, "guild", guild)?;
        expect(found.members.get_mut(&id), mistake, "member", id)
    }

    pub(crate) fn channel_mut(&mut self, id: Id) -> Option<&mut Channel> {
        expect(self.channels.get_mut(&id), &mut self.mistake, "channel", id)
    }

    pub(crate) fn thread_mut(&mut self, id: Id) -> Option<&mut Thread> {
        let found = self.channels.get_mut(&id);
        let thread = found.and_then(|channel| channel.thread.as_mut());
        expect(thread, &mut self.mistake, "thread", id)
    }

    pub(crate) fn message_mut(&mut self, channel: Id, id: Id) -> Option<&mut Message> {
        let (found, mistake) = (self.channels.get_mut(&channel), &mut self.mistake);
        let found = expect(found, mistake, "channel", channel)?;
        expect(found.messages.get_mut(&id), mistake, "message", id)
    }

    pub(crate) fn note_mistake(&mut self, mistake: String) {
        self.mistake.get_or_insert(ScriptError(mistake));
    }
}

/// Notes a mistake if there is no such thing.
fn expect<'a, T>(
    found: Option<&'a mut T>,
    mistake: &mut Option<ScriptError>,
    what: &str,
    id: Id,
) -> Option<&'a mut T> {
    if found.is_none() {
        mistake.get_or_insert_with(|| ScriptError(format!("the simulator knows no {what} {id}")));
    }
    found
}

impl Channel {
    fn new(id: Id, kind: ChannelKind, guild: Option<Id>, name: &str) -> Self {
        Self {
            id,
            kind,
            guild,
            name: name.to_owned(),
            ..Self::default()
        }
    }
}
