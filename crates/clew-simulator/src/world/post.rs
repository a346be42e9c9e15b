//! Turns drafts into stored messages, and changes those.

use serde_json::{Value, json};

use super::{Attachment, Id, Message, World, flag};
use crate::draft::{Draft, File, Reference};
use crate::ids::iso;
use crate::render;

/// The component type of a container.
const CONTAINER: u64 = 17;

impl World {
    /// Posts without an event: a message from before the bot connected.
    pub fn seed(&mut self, channel: Id, author: Id, draft: impl Into<Draft>) -> Id {
        let message = self.compose(channel, author, draft.into());
        self.keep(message)
    }

    /// Changes a message's text without an event.
    pub fn seed_edit(&mut self, channel: Id, message: Id, content: &str) {
        let now = self.clock.now_ms();
        let (users, roles, everyone) = excerpt_ids(content);
        let Some(found) = self.message_mut(channel, message) else {
            return;
        };
        let earlier = std::mem::replace(&mut found.content, content.to_owned());
        found.earlier.push(earlier);
        found.edited_ms = Some(now);
        found.mention(users);
        found.mention_roles = roles;
        found.mention_everyone = everyone;
    }

    /// Deletes a message without an event; returns false if it does not exist.
    pub fn seed_delete(&mut self, channel: Id, message: Id) -> bool {
        let Some(channel) = self.channel_mut(channel) else {
            return false;
        };
        let gone = channel.messages.remove(&message);
        if let (Some(gone), Some(thread)) = (&gone, &mut channel.thread)
            && gone.kind != 21
            && gone.id != channel.id
        {
            thread.message_count = thread.message_count.saturating_sub(1);
        }
        gone.is_some()
    }

    /// A stored message.
    pub fn message(&self, channel: Id, message: Id) -> Option<&Message> {
        self.channels.get(&channel)?.messages.get(&message)
    }

    /// A message of a channel, or an ephemeral one.
    pub(crate) fn any_message(&self, channel: Id, message: Id) -> Option<&Message> {
        let hidden = self.ephemeral.get(&message);
        hidden.or_else(|| self.message(channel, message))
    }

    /// An interaction that was sent to the bot.
    pub fn interaction(&self, id: Id) -> Option<&super::Interaction> {
        self.interactions.get(&id)
    }

    /// The messages that answered an interaction, the first answer first.
    pub(crate) fn answers_to(&self, interaction: Id) -> impl Iterator<Item = &Message> {
        let found = self.interactions.get(&interaction).into_iter();
        found.flat_map(|found| {
            found
                .messages()
                .filter_map(|id| self.any_message(found.channel, id))
        })
    }

    /// The bot's messages in a channel, oldest first; `None` without such a channel.
    pub(crate) fn answers_in(&self, channel: Id) -> Option<Vec<Message>> {
        let messages = self.channels.get(&channel)?.messages.values();
        let own = messages.filter(|message| message.author == self.bot && message.kind != 21);
        Some(own.cloned().collect())
    }

    /// Builds a message from a draft without storing it.
    pub(crate) fn compose(&mut self, channel: Id, author: Id, draft: Draft) -> Message {
        let id = self.id_for(&draft);
        let (mut mentions, mention_roles, mention_everyone) = excerpt_ids(&draft.content);
        mentions.retain(|user| self.users.contains_key(user));
        let replied = draft
            .reply_to
            .and_then(|message| self.message(channel, message));
        if let Some(replied) = replied.filter(|replied| draft.ping && replied.webhook.is_none()) {
            mentions.push(replied.author);
        }
        let (reference, snapshots) = self.refer(channel, &draft);
        let attachments = draft.attachments;
        let attachments = attachments.into_iter().map(|file| self.store_file(file));
        let attachments = attachments.collect();
        let stickers = draft.stickers.into_iter();
        let stickers = stickers.map(|name| (self.clock.fresh(), name)).collect();
        let kind = draft
            .kind
            .unwrap_or_else(|| draft.reply_to.map_or(0, |_| 19));
        let mut message = Message {
            id,
            channel,
            author,
            webhook: draft.webhook,
            application: draft.application,
            content: draft.content,
            kind,
            edited_ms: draft.edited_ms,
            reference,
            referenced: draft.referenced,
            mention_roles,
            mention_everyone,
            embeds: draft.embeds.into_iter().map(typed_embed).collect(),
            attachments,
            stickers,
            poll: draft.poll.map(|(q, answers)| poll(&q, &answers, id)),
            components: draft.components.into_iter().map(numbered).collect(),
            snapshots,
            flags: draft.flags | draft.forward_of.map_or(0, |_| flag::HAS_SNAPSHOT),
            pinned_ms: draft.pinned.then(|| id.unix_ms()),
            ..Message::default()
        };
        message.mention(mentions);
        message
    }

    /// The id of a message to be posted.
    pub(super) fn id_for(&mut self, draft: &Draft) -> Id {
        match (draft.id, draft.at_ms) {
            (Some(id), _) => id,
            (None, Some(at_ms)) => self.clock.fresh_at(at_ms),
            (None, None) => self.clock.fresh(),
        }
    }

    /// Stores a message; in a thread, its author becomes a member.
    pub(crate) fn keep(&mut self, mut message: Message) -> Id {
        let (id, author, kind) = (message.id, message.author, message.kind);
        let person = message.webhook.is_none() && kind != 21;
        let Some(channel) = self.channel_mut(message.channel) else {
            return id;
        };
        channel.last_message = channel.last_message.max(Some(id));
        if let Some(thread) = &mut channel.thread {
            message.position = thread.total_sent;
            if kind != 21 && channel.id != id {
                thread.total_sent += 1;
                thread.message_count += 1;
            }
            if person {
                thread.members.entry(author).or_insert(id.unix_ms());
            }
        }
        channel.messages.insert(id, message);
        id
    }

    /// Replaces a stored message by its changed form.
    pub(crate) fn keep_changed(&mut self, message: Message) {
        if let Some(found) = self.message_mut(message.channel, message.id) {
            *found = message;
        }
    }

    /// Keeps a file that somebody uploads with a command, where nobody sees it; returns its id.
    pub fn upload(&mut self, channel: Id, author: Id, file: File) -> Option<Id> {
        let message = self.compose(channel, author, Draft::new("").attachment(file));
        let id = message.attachments.first()?.id;
        self.ephemeral.insert(message.id, message);
        Some(id)
    }

    /// The stored form of a file.
    pub(crate) fn store_file(&mut self, file: File) -> Attachment {
        let id = self.clock.fresh();
        Attachment { id, file }
    }

    /// The reference that a draft asks for, and a forward's snapshots.
    fn refer(&self, channel: Id, draft: &Draft) -> (Option<Reference>, Vec<Value>) {
        if let Some((from, message)) = draft.forward_of {
            let reference = Reference {
                kind: 1,
                channel: from,
                message: Some(message),
            };
            let source = self.message(from, message).into_iter();
            let snapshots = source.map(|source| json!({"message": render::snapshot(self, source)}));
            return (Some(reference), snapshots.collect());
        }
        let reply = draft.reply_to;
        let reply = reply.map(|message| Reference::to(channel, Some(message)));
        (draft.reference.or(reply), Vec::new())
    }
}

impl Message {
    /// Mentions more users; each is listed once.
    pub(crate) fn mention(&mut self, users: impl IntoIterator<Item = Id>) {
        self.mentions.extend(users);
        self.mentions.sort_unstable();
        self.mentions.dedup();
    }
}

/// The users and roles that a text mentions, and whether it mentions everyone.
/// Code is not recognised: Discord ignores mentions in it, but no test depends on
/// that.
pub(crate) fn excerpt_ids(content: &str) -> (Vec<Id>, Vec<Id>, bool) {
    let (mut users, mut roles) = (Vec::new(), Vec::new());
    for piece in content.split("<@").skip(1) {
        let Some((inside, _)) = piece.split_once('>') else {
            continue;
        };
        let (list, digits) = match inside.strip_prefix('&') {
            Some(digits) => (&mut roles, digits),
            None => (&mut users, inside.strip_prefix('!').unwrap_or(inside)),
        };
        if let Ok(id) = digits.parse::<u64>() {
            list.push(Id(id));
        }
    }
    let everyone = content.contains("@everyone") || content.contains("@here");
    roles.sort_unstable();
    roles.dedup();
    (users, roles, everyone)
}

fn typed_embed(mut embed: Value) -> Value {
    if let Some(fields) = embed.as_object_mut() {
        fields.entry("type").or_insert_with(|| "rich".into());
    }
    embed
}

/// Adds the ids that Discord gives to components, and the fields it fills in for containers.
pub(crate) fn numbered(component: Value) -> Value {
    fn walk(component: &mut Value, next: &mut u64) {
        let Some(fields) = component.as_object_mut() else {
            return;
        };
        if fields.contains_key("type") {
            *next += 1;
            let id = *next;
            fields.entry("id").or_insert_with(|| id.into());
        }
        if fields.get("type") == Some(&Value::from(CONTAINER)) {
            fields.entry("accent_color").or_insert(Value::Null);
            fields.entry("spoiler").or_insert(Value::Bool(false));
        }
        for key in ["components", "accessory", "component"] {
            match fields.get_mut(key) {
                Some(Value::Array(inner)) => inner.iter_mut().for_each(|one| walk(one, next)),
                Some(inner) => walk(inner, next),
                None => {}
            }
        }
    }
    let mut component = component;
    walk(&mut component, &mut 0);
    component
}

fn poll(question: &str, answers: &[String], id: Id) -> Value {
    const DAY_MS: i64 = 86_400_000;
    let answers: Vec<Value> = answers
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"answer_id": index + 1, "poll_media": {"text": text}}))
        .collect();
    json!({
        "question": {"text": question},
        "answers": answers,
        "expiry": iso(id.unix_ms() + DAY_MS),
        "allow_multiselect": false,
        "layout_type": 1,
        "results": {"answer_counts": [], "is_finalized": false},
    })
}
