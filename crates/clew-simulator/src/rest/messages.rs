//! Messages: pages, single messages, edits, deletions.

use serde_json::{Value, json};

use super::answer::{Answer, Refusal, Reply};
use super::body::{self, Call};
use super::given;
use crate::gateway::intent;
use crate::ids::Id;
use crate::permissions::Permissions;
use crate::render::{self, Audience};
use crate::state::State;
use crate::world::{Message, excerpt_ids, flag, numbered};

/// Messages older than this cannot be deleted in bulk.
const BULK_MAX_AGE_MS: i64 = 14 * 86_400_000;

impl State {
    pub(super) fn message_routes(
        &mut self,
        call: &mut Call,
        channel: &str,
        rest: &[&str],
    ) -> Answer {
        let channel = self.seen_channel(channel)?;
        match (call.method.as_str(), rest) {
            ("GET", []) => self.list_messages(call, channel),
            ("POST", []) => self.create_message(call, channel),
            ("GET", ["pins"]) => self.pin_page(call, channel),
            ("POST", ["bulk-delete"]) => self.bulk_delete(call, channel),
            ("GET", [message]) => {
                self.need(channel, Permissions::READ_MESSAGE_HISTORY)?;
                let message = self.known_message(channel, message)?;
                let object = self.served_message(channel, message);
                Ok(Reply::json(object))
            }
            ("PATCH", [message]) => self.edit_message(call, channel, message),
            ("DELETE", [message]) => self.delete_message(channel, message),
            _ => Err(Refusal::no_route()),
        }
    }

    /// The id of a message that exists (else 10008).
    pub(super) fn known_message(&self, channel: Id, segment: &str) -> Result<Id, Refusal> {
        let id = body::id(segment)?;
        match self.world.message(channel, id) {
            Some(_) => Ok(id),
            None => Err(Refusal::unknown_message()),
        }
    }

    /// A message as REST returns it: overridden by a test, blanked if the portal
    /// forbids message content, else whole.
    pub(super) fn served_message(&self, channel: Id, id: Id) -> Value {
        if let Some(object) = self.world.overrides.get(&id) {
            return object.clone();
        }
        let Some(message) = self.world.message(channel, id) else {
            return Value::Null;
        };
        let mut object = render::message(&self.world, message, Audience::Rest);
        if self.world.settings.disallowed_intents & intent::MESSAGE_CONTENT != 0 {
            let direct = self.world.guild_of(channel).is_none();
            render::blank_unless_allowed(self.world.bot, &mut object, direct);
        }
        object
    }

    /// A page, newest first. Empty without Read Message History.
    fn list_messages(&self, call: &Call, channel: Id) -> Answer {
        let limit = call.within("limit", 50, 1..=100)?;
        let around = call.number("around")?;
        let (before, after) = (call.number("before")?, call.number("after")?);
        let found = self.world.channels.get(&channel);
        let Some(found) = found.filter(|found| !found.kind.is_forum()) else {
            return Err(Refusal::wrong_channel_type());
        };
        if !self.may_read(channel) {
            return Ok(Reply::json(json!([])));
        }
        let messages = &found.messages;
        let older = |end: u64, count: usize| {
            let range = messages.range(..Id(end)).rev();
            range.take(count).map(|(id, _)| *id).collect::<Vec<Id>>()
        };
        let newer = |start: u64, count: usize| {
            let range = messages.range(Id(start)..);
            let mut ids: Vec<Id> = range.take(count).map(|(id, _)| *id).collect();
            ids.reverse();
            ids
        };
        let ids = match (around, before, after) {
            (Some(center), _, _) => {
                let mut ids = newer(center, limit.div_ceil(2));
                ids.extend(older(center, limit - ids.len()));
                ids
            }
            (None, Some(before), _) => older(before, limit),
            (None, None, Some(after)) => newer(after.saturating_add(1), limit),
            (None, None, None) => older(u64::MAX, limit),
        };
        let page: Vec<Value> = ids
            .iter()
            .map(|&id| self.served_message(channel, id))
            .collect();
        Ok(Reply::json(page.into()))
    }

    fn edit_message(&mut self, call: &mut Call, channel: Id, message: &str) -> Answer {
        let id = self.known_message(channel, message)?;
        let found = self.world.message(channel, id).cloned();
        let mut changed = found.ok_or_else(Refusal::unknown_message)?;
        if changed.author != self.world.bot || changed.webhook.is_some() {
            return Err(Refusal::foreign_message());
        }
        self.check_not_archived(channel)?;
        self.change_message(call, &mut changed)?;
        self.world.keep_changed(changed);
        self.emit_message("MESSAGE_UPDATE", channel, id);
        Ok(Reply::json(self.served_message(channel, id)))
    }

    /// Applies the body of an edit.
    pub(super) fn change_message(
        &mut self,
        call: &mut Call,
        message: &mut Message,
    ) -> Result<(), Refusal> {
        super::parts::check(&call.body)?;
        if let Some(content) = call.body.get("content") {
            let content = content.as_str().unwrap_or_default();
            super::send::check_length(content)?;
            let earlier = std::mem::replace(&mut message.content, content.to_owned());
            message.earlier.push(earlier);
            let (mut users, roles, _) = excerpt_ids(content);
            users.retain(|id| self.world.users.contains_key(id));
            message.mentions.clear();
            message.mention(users);
            message.mention_roles = roles;
        }
        if let Some(embeds) = call.body.get("embeds") {
            message.embeds = super::send::embeds(embeds);
        }
        if let Some(components) = call.body.get("components") {
            let components = components.as_array().cloned().unwrap_or_default();
            message.components = components.into_iter().map(numbered).collect();
        }
        if let Some(flags) = given(&call.body, "flags").and_then(Value::as_u64) {
            message.flags = (message.flags & !flag::SUPPRESS_EMBEDS)
                | (flags & (flag::SUPPRESS_EMBEDS | flag::COMPONENTS_V2));
        }
        if let Some(allowed) = given(&call.body, "allowed_mentions") {
            message.allowed_mentions = Some(allowed.clone());
        }
        if let Some(kept) = given(&call.body, "attachments").and_then(Value::as_array) {
            let kept: Vec<Id> = kept.iter().filter_map(|a| Id::parse(&a["id"])).collect();
            message.attachments.retain(|a| kept.contains(&a.id));
        }
        for file in call.files.drain(..) {
            message.attachments.push(self.world.store_file(file));
        }
        if message.is_empty() {
            return Err(Refusal::empty_message());
        }
        message.edited_ms = Some(self.world.now_ms());
        Ok(())
    }

    fn delete_message(&mut self, channel: Id, message: &str) -> Answer {
        let id = self.known_message(channel, message)?;
        let found = self.world.message(channel, id);
        if found.is_none_or(|message| message.author != self.world.bot) {
            if self.world.guild_of(channel).is_none() {
                return Err(Refusal::direct_channel());
            }
            self.need(channel, Permissions::MANAGE_MESSAGES)?;
        }
        self.remove_message(channel, id);
        Ok(Reply::nothing())
    }

    fn bulk_delete(&mut self, call: &Call, channel: Id) -> Answer {
        self.need(channel, Permissions::MANAGE_MESSAGES)?;
        let ids = call.body["messages"].as_array();
        let ids: Vec<Id> = ids.into_iter().flatten().filter_map(Id::parse).collect();
        if !(2..=100).contains(&ids.len()) {
            return Err(Refusal::wrong_bulk());
        }
        let oldest = self.world.now_ms() - BULK_MAX_AGE_MS;
        if ids.iter().any(|id| id.unix_ms() < oldest) {
            return Err(Refusal::old_bulk());
        }
        self.remove_messages(channel, &ids);
        Ok(Reply::nothing())
    }
}

impl Message {
    /// Whether it has nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty()
            && self.embeds.is_empty()
            && self.attachments.is_empty()
            && self.components.is_empty()
            && self.stickers.is_empty()
            && self.poll.is_none()
            && self.snapshots.is_empty()
    }
}
