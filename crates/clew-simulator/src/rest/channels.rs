//! Channels: read, edit, delete, typing, overwrites, pins; and the checks that
//! every route about a channel starts with.

use serde_json::{Value, json};

use super::answer::{Answer, Refusal, Reply};
use super::body::{self, Call};
use super::given;
use crate::ids::{Id, iso, parse_iso};
use crate::permissions::Permissions;
use crate::render;
use crate::state::State;
use crate::world::{Channel, ChannelKind, OverwriteOf};

/// The most pins that a channel may list at once (Get Channel Pins, `limit`).
const MOST_PINS: usize = 50;

impl State {
    pub(super) fn channel_routes(
        &mut self,
        call: &mut Call,
        channel: &str,
        rest: &[&str],
    ) -> Answer {
        let channel = self.seen_channel(channel)?;
        match (call.method.as_str(), rest) {
            ("GET", []) => Ok(Reply::json(self.channel_object(channel))),
            ("PATCH", []) => self.edit_channel(call, channel),
            ("DELETE", []) => self.delete_channel_route(channel),
            ("POST", ["typing"]) => {
                self.check_sendable(channel)?;
                self.check_not_archived(channel)?;
                self.emit_typing(channel, self.world.bot);
                Ok(Reply::nothing())
            }
            ("PUT" | "DELETE", ["permissions", target]) => {
                self.edit_overwrite(call, channel, target)
            }
            ("GET", ["pins"]) => Ok(self.first_pins(channel)),
            _ => Err(Refusal::no_route()),
        }
    }

    /// The id of a channel that exists (else 10003) and that the bot sees (else 50001).
    pub(super) fn seen_channel(&self, segment: &str) -> Result<Id, Refusal> {
        let id = body::id(segment)?;
        if !self.world.channels.contains_key(&id) {
            return Err(Refusal::unknown_channel());
        }
        if self.world.sees(self.world.bot, id) {
            Ok(id)
        } else {
            Err(Refusal::missing_access())
        }
    }

    /// Refuses with 50013 unless the bot holds these permissions.
    pub(super) fn need(&self, channel: Id, wanted: Permissions) -> Result<(), Refusal> {
        if self.world.bot_may(channel, wanted) {
            Ok(())
        } else {
            Err(Refusal::missing_permissions())
        }
    }

    /// Whether the bot may read the history of a channel.
    pub(super) fn may_read(&self, channel: Id) -> bool {
        self.world
            .bot_may(channel, Permissions::READ_MESSAGE_HISTORY)
    }

    /// The channel, which is refused if it does not exist.
    fn known_channel(&self, channel: Id) -> Result<&Channel, Refusal> {
        let found = self.world.channels.get(&channel);
        found.ok_or_else(Refusal::unknown_channel)
    }

    /// The same, to be changed.
    fn channel_mut(&mut self, channel: Id) -> Result<&mut Channel, Refusal> {
        let found = self.world.channel_mut(channel);
        found.ok_or_else(Refusal::unknown_channel)
    }

    /// Refuses in an archived thread (50083).
    pub(super) fn check_not_archived(&self, channel: Id) -> Result<(), Refusal> {
        if self.thread_flag(channel, |thread| thread.archived) {
            return Err(Refusal::archived());
        }
        Ok(())
    }

    /// Refuses unless the bot may send here: it needs the permission for this kind
    /// of channel; forums and locked threads refuse. Archived threads do not.
    pub(super) fn check_sendable(&self, channel: Id) -> Result<(), Refusal> {
        let found = self.known_channel(channel)?;
        if found.kind.is_forum() || found.kind == ChannelKind::Category {
            return Err(Refusal::no_text_channel());
        }
        if found.guild.is_none() {
            let closed = &self.world.settings.closed_to_dms;
            if found.recipients.iter().any(|user| closed.contains(user)) {
                return Err(Refusal::closed_to_direct_messages());
            }
            return Ok(());
        }
        let wanted = if found.thread.is_some() {
            Permissions::SEND_MESSAGES_IN_THREADS
        } else {
            Permissions::SEND_MESSAGES
        };
        self.need(channel, wanted)?;
        match &found.thread {
            Some(thread)
                if thread.locked && !self.world.bot_may(channel, Permissions::MANAGE_THREADS) =>
            {
                self.check_not_archived(channel)?;
                Err(Refusal::locked())
            }
            _ => Ok(()),
        }
    }

    /// A channel object; a thread's includes the bot's membership.
    pub(crate) fn channel_object(&self, channel: Id) -> Value {
        let found = self.world.channels.get(&channel);
        found.map_or(Value::Null, |found| render::thread_seen(&self.world, found))
    }

    fn edit_channel(&mut self, call: &Call, channel: Id) -> Answer {
        let Some(thread) = &self.known_channel(channel)?.thread else {
            self.need(channel, Permissions::MANAGE_CHANNELS)?;
            let found = self.channel_mut(channel)?;
            if let Some(name) = given(&call.body, "name").and_then(Value::as_str) {
                name.clone_into(&mut found.name);
            }
            if let Some(topic) = call.body.get("topic") {
                found.topic = topic.as_str().map(str::to_owned);
            }
            self.emit_channel("CHANNEL_UPDATE", channel);
            return Ok(Reply::json(self.channel_object(channel)));
        };
        let flag = |key: &str, old: bool| {
            let new = given(&call.body, key).and_then(Value::as_bool);
            new.unwrap_or(old)
        };
        let archived = flag("archived", thread.archived);
        let locked = flag("locked", thread.locked);
        let own = thread.owner == self.world.bot;
        let only_unarchives = thread.archived && !archived && !thread.locked && !locked;
        let may = self.world.bot_may(channel, Permissions::MANAGE_THREADS);
        if thread.archived && archived && !may {
            return Err(Refusal::archived());
        }
        if !(may || (own && locked == thread.locked && !thread.locked) || only_unarchives) {
            return Err(Refusal::missing_permissions());
        }
        self.world.set_archived(channel, archived, locked);
        if let Some(name) = given(&call.body, "name").and_then(Value::as_str) {
            name.clone_into(&mut self.channel_mut(channel)?.name);
        }
        if let Some(tags) = given(&call.body, "applied_tags").and_then(Value::as_array) {
            let tags = tags.iter().filter_map(Id::parse).collect();
            let thread = self.world.thread_mut(channel);
            thread.ok_or_else(Refusal::unknown_channel)?.applied_tags = tags;
        }
        self.emit_channel("THREAD_UPDATE", channel);
        Ok(Reply::json(self.channel_object(channel)))
    }

    fn delete_channel_route(&mut self, channel: Id) -> Answer {
        let found = self.world.channels.get(&channel);
        let wanted = match found {
            Some(found) if found.thread.is_some() => Permissions::MANAGE_THREADS,
            Some(found) if found.guild.is_some() => Permissions::MANAGE_CHANNELS,
            _ => Permissions::NONE,
        };
        self.need(channel, wanted)?;
        let object = self.channel_object(channel);
        self.remove_channel(channel);
        Ok(Reply::json(object))
    }

    /// Removes a channel with its threads, or a thread, and dispatches that.
    pub(crate) fn remove_channel(&mut self, channel: Id) {
        let Some(found) = self.world.channels.get(&channel) else {
            return;
        };
        let guild = found.guild;
        let (name, data) = if found.thread.is_some() {
            let data = json!({
                "id": channel.json(), "guild_id": guild.map(Id::json),
                "parent_id": found.parent.map(Id::json), "type": found.kind as u8,
            });
            ("THREAD_DELETE", data)
        } else {
            ("CHANNEL_DELETE", render::channel(&self.world, found))
        };
        if self.world.sees(self.world.bot, channel) {
            self.emit_guild_event(name, guild, &data);
        }
        self.world.channels.remove(&channel);
        self.world
            .channels
            .retain(|_, other| other.thread.is_none() || other.parent != Some(channel));
    }

    fn edit_overwrite(&mut self, call: &Call, channel: Id, target: &str) -> Answer {
        self.need(channel, Permissions::MANAGE_ROLES)?;
        let target = body::id(target)?;
        let bits = |key: &str| {
            let text = given(&call.body, key).and_then(Value::as_str);
            Permissions(text.and_then(|text| text.parse().ok()).unwrap_or(0))
        };
        if call.method == "DELETE" {
            let found = self.channel_mut(channel)?;
            found.overwrites.retain(|o| {
                o.of != OverwriteOf::Role(target) && o.of != OverwriteOf::Member(target)
            });
        } else {
            let of = match call.body["type"].as_u64() {
                Some(1) => OverwriteOf::Member(target),
                _ => OverwriteOf::Role(target),
            };
            self.world
                .overwrite(channel, of, bits("allow"), bits("deny"));
        }
        self.emit_channel("CHANNEL_UPDATE", channel);
        Ok(Reply::nothing())
    }

    /// The first 50 pinned messages, in the format of `/pins`.
    fn first_pins(&self, channel: Id) -> Reply {
        let pins = self.readable_pins(channel).into_iter().take(MOST_PINS);
        let objects = pins.map(|(_, id)| self.served_message(channel, id));
        Reply::json(objects.collect())
    }

    /// The pins with their times, the last first, in the format of `/messages/pins`.
    pub(super) fn pin_page(&self, call: &Call, channel: Id) -> Answer {
        let limit = call.within("limit", 50, 1..=MOST_PINS as u64)?;
        let before = call.query("before").and_then(|text| parse_iso(&text));
        let mut pins = self.readable_pins(channel);
        pins.retain(|(at, _)| before.is_none_or(|before| *at < before));
        let has_more = pins.len() > limit;
        pins.truncate(limit);
        let item = |(at, id): (i64, Id)| {
            let message = self.served_message(channel, id);
            json!({"pinned_at": iso(at), "message": message})
        };
        let items: Vec<Value> = pins.into_iter().map(item).collect();
        Ok(Reply::json(json!({"items": items, "has_more": has_more})))
    }

    /// None without Read Message History.
    fn readable_pins(&self, channel: Id) -> Vec<(i64, Id)> {
        let mut pins = self.pins(channel);
        pins.retain(|_| self.may_read(channel));
        pins
    }
}
