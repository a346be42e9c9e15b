//! Changes of the world together with their gateway events, used by the bot's
//! REST calls and by the control API.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::gateway::intent;
use super::ids::{Id, iso};
use super::render::{self, Audience};
use super::state::State;
use super::world::Message;

impl State {
    /// Stores a message and dispatches it. A message in an archived thread unarchives it.
    pub(super) fn publish(&mut self, message: Message) -> Id {
        let channel = message.channel;
        let archived = self.thread_flag(channel, |thread| thread.archived);
        if archived {
            self.world.set_archived(channel, false, false);
            self.emit_channel("THREAD_UPDATE", channel);
        }
        let author = message.author;
        let joins = message.webhook.is_none() && !self.is_thread_member(channel, author);
        let id = self.world.keep(message);
        self.emit_message("MESSAGE_CREATE", channel, id);
        if joins && self.is_thread_member(channel, author) {
            self.emit_thread_members(channel, &[author], &[]);
        }
        id
    }

    /// Dispatches a stored message, if the bot sees its channel.
    pub(super) fn emit_message(&mut self, name: &str, channel: Id, id: Id) {
        let Some(message) = self.world.message(channel, id) else {
            return;
        };
        let object = render::message(&self.world, message, Audience::Gateway);
        self.emit_in_channel(name, channel, &object, intent::MESSAGES);
    }

    /// Pins a message, or unpins it, and dispatches both events of that.
    pub(super) fn set_pinned(&mut self, channel: Id, id: Id, pinned_ms: Option<i64>) {
        if let Some(found) = self.world.message_mut(channel, id) {
            found.pinned_ms = pinned_ms;
        }
        self.emit_message("MESSAGE_UPDATE", channel, id);
        let newest = self.pins(channel).first().map(|(at, _)| iso(*at));
        let data = self.located(channel, json!({"last_pin_timestamp": newest}));
        self.emit_in_channel("CHANNEL_PINS_UPDATE", channel, &data, intent::PINS);
    }

    /// The pinned messages of a channel and when they were, the last first.
    pub(super) fn pins(&self, channel: Id) -> Vec<(i64, Id)> {
        let found = self.world.channels.get(&channel).into_iter();
        let messages = found.flat_map(|found| found.messages.values());
        let pinned = messages.filter_map(|one| Some((one.pinned_ms?, one.id)));
        let mut pins: Vec<(i64, Id)> = pinned.collect();
        pins.sort_unstable_by_key(|pin| Reverse(*pin));
        pins
    }

    /// Dispatches an ephemeral message: only the bot gets it, with the channel's id
    /// but without a guild id.
    pub(super) fn emit_ephemeral(&mut self, name: &str, id: Id) {
        let Some(message) = self.world.ephemeral.get(&id) else {
            return;
        };
        let mut object = render::message(&self.world, message, Audience::Gateway);
        if let Some(fields) = object.as_object_mut() {
            for key in ["guild_id", "member"] {
                fields.remove(key);
            }
        }
        let intents = intent::MESSAGES[0] | intent::MESSAGES[1];
        self.emit(name, intents, None, &object);
    }

    /// Removes a message and dispatches that; returns false if it does not exist.
    pub(super) fn remove_message(&mut self, channel: Id, id: Id) -> bool {
        if !self.world.seed_delete(channel, id) {
            return false;
        }
        let data = self.located(channel, json!({"id": id.json()}));
        self.emit_in_channel("MESSAGE_DELETE", channel, &data, intent::MESSAGES);
        true
    }

    /// Removes several messages and dispatches that as one event.
    pub(super) fn remove_messages(&mut self, channel: Id, ids: &[Id]) {
        let gone: Vec<Value> = ids
            .iter()
            .filter(|&&id| self.world.seed_delete(channel, id))
            .map(|id| id.json())
            .collect();
        let data = self.located(channel, json!({"ids": gone}));
        self.emit_in_channel("MESSAGE_DELETE_BULK", channel, &data, intent::MESSAGES);
    }

    pub(super) fn emit_typing(&mut self, channel: Id, user: Id) {
        let seconds = self.world.now_ms() / 1000;
        let mut data = self.located(
            channel,
            json!({"user_id": user.json(), "timestamp": seconds}),
        );
        if let Some(member) = self.world.member_of(self.world.guild_of(channel), user) {
            data["member"] = render::member(&self.world, member, true);
        }
        self.emit_in_channel("TYPING_START", channel, &data, intent::TYPING);
    }

    /// Dispatches that a reaction was added or removed.
    pub(super) fn emit_reaction(
        &mut self,
        name: &str,
        channel: Id,
        message: Id,
        user: Id,
        emoji: &str,
    ) {
        let data = json!({
            "user_id": user.json(), "message_id": message.json(), "burst": false, "type": 0,
            "emoji": render::reaction_emoji(emoji),
        });
        let data = self.located(channel, data);
        self.emit_in_channel(name, channel, &data, intent::REACTIONS);
    }

    /// Dispatches a channel or thread in its present state, if the bot sees it.
    pub(super) fn emit_channel(&mut self, name: &str, channel: Id) {
        if !self.world.sees(self.world.bot, channel) {
            return;
        }
        let Some(found) = self.world.channels.get(&channel) else {
            return;
        };
        let data = render::thread_seen(&self.world, found);
        self.emit_guild_event(name, found.guild, &data);
    }

    /// Dispatches a new thread.
    pub(super) fn emit_thread_create(&mut self, thread: Id) {
        let Some(found) = self.world.channels.get(&thread) else {
            return;
        };
        let mut data = render::thread_seen(&self.world, found);
        data["newly_created"] = true.into();
        let guild = found.guild;
        if self.world.sees(self.world.bot, thread) {
            self.emit_guild_event("THREAD_CREATE", guild, &data);
        }
    }

    /// Dispatches members who joined or left a thread. Without the members intent
    /// the bot only hears of itself.
    pub(super) fn emit_thread_members(&mut self, thread: Id, added: &[Id], removed: &[Id]) {
        let bot = self.world.bot;
        let Some(found) = self.world.channels.get(&thread) else {
            return;
        };
        let members = added.iter().filter_map(|&user| {
            let mut object = render::thread_member(found, user)?;
            let member = self.world.member_of(found.guild, user)?;
            object["member"] = render::member(&self.world, member, true);
            object["presence"] = Value::Null;
            Some(object)
        });
        let members: Vec<Value> = members.collect();
        let count = found.thread.as_ref().map_or(0, |t| t.members.len().min(50));
        let guild = found.guild;
        let removed_ids: Vec<Value> = removed.iter().map(|user| user.json()).collect();
        let data = json!({
            "id": thread.json(), "guild_id": guild.map(Id::json), "member_count": count,
            "added_members": members, "removed_member_ids": removed_ids,
        });
        let own = added.contains(&bot) || removed.contains(&bot);
        let intents = if own {
            intent::GUILDS
        } else {
            intent::GUILD_MEMBERS
        };
        if own || self.world.sees(bot, thread) {
            self.emit("THREAD_MEMBERS_UPDATE", intents, guild, &data);
        }
    }

    /// Dispatches an event about a guild.
    pub(super) fn emit_guild_event(&mut self, name: &str, guild: Option<Id>, data: &Value) {
        self.emit(name, intent::GUILDS, guild, data);
    }

    /// Dispatches an event about a guild's member. It needs the members intent,
    /// unless it is about the bot.
    pub(super) fn emit_member_event(&mut self, name: &str, guild: Id, user: Id, data: &Value) {
        let own = user == self.world.bot;
        let intents = if own { 0 } else { intent::GUILD_MEMBERS };
        self.emit(name, intents, Some(guild), data);
    }

    /// A property of a thread; false for channels that are not threads.
    pub(super) fn thread_flag(
        &self,
        channel: Id,
        flag: impl Fn(&super::world::Thread) -> bool,
    ) -> bool {
        let found = self.world.channels.get(&channel);
        found
            .and_then(|channel| channel.thread.as_ref())
            .is_some_and(flag)
    }

    /// Whether a user is a member of a thread.
    pub(super) fn is_thread_member(&self, channel: Id, user: Id) -> bool {
        self.thread_flag(channel, |thread| thread.members.contains_key(&user))
    }

    /// Dispatches an event of a channel, if the bot sees it. The intents are those
    /// in a guild and in a direct message.
    fn emit_in_channel(&mut self, name: &str, channel: Id, data: &Value, intents: [u64; 2]) {
        if !self.world.sees(self.world.bot, channel) {
            return;
        }
        let guild = self.world.guild_of(channel);
        let intents = intents[usize::from(guild.is_none())];
        self.emit(name, intents, guild, data);
    }

    /// Adds the channel's id and, if there is one, the guild's.
    fn located(&self, channel: Id, mut data: Value) -> Value {
        data["channel_id"] = channel.json();
        if let Some(guild) = self.world.guild_of(channel) {
            data["guild_id"] = guild.json();
        }
        data
    }
}
