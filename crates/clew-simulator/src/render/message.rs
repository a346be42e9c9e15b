//! Messages in the API's format.

use serde_json::{Map, Value, json};

use super::super::draft::Referenced;
use crate::ids::{Id, iso};
use crate::world::{Attachment, Message, World, flag};

/// Who gets the object: events contain members and the guild's id, REST answers do not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Rest,
    Gateway,
}

/// A message object, with the referenced message one level deep.
pub(crate) fn message(world: &World, found: &Message, audience: Audience) -> Value {
    let mut object = bare(world, found);
    add_references(world, found, &mut object);
    if audience == Audience::Gateway {
        add_gateway_fields(world, found, &mut object);
    } else if let Some(thread) = world.channels.get(&found.id)
        && thread.parent == Some(found.channel)
        && found.flags & flag::HAS_THREAD != 0
    {
        object.insert("thread".to_owned(), super::channel(world, thread));
    }
    object.into()
}

/// Blanks what the bot may not read without the message content intent. Its own
/// messages, direct messages and those that mention it are left whole.
pub(crate) fn blank_unless_allowed(bot: Id, object: &mut Value, direct: bool) {
    let id = bot.json();
    if let Some(inner) = object.get_mut("referenced_message")
        && inner.is_object()
    {
        blank_unless_allowed(bot, inner, direct);
    }
    let mentions = |object: &Value| {
        let users = object["mentions"].as_array();
        users.is_some_and(|users| users.iter().any(|user| user["id"] == id))
    };
    if direct || object["author"]["id"] == id || mentions(object) {
        return;
    }
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    fields.insert("content".to_owned(), "".into());
    for key in ["embeds", "attachments", "components"] {
        fields.insert(key.to_owned(), json!([]));
    }
    fields.remove("poll");
    fields.remove("message_snapshots");
}

/// The part of a message that a forward's snapshot contains.
pub(crate) fn snapshot(world: &World, found: &Message) -> Value {
    const KEPT: [&str; 11] = [
        "type",
        "content",
        "mentions",
        "mention_roles",
        "attachments",
        "embeds",
        "timestamp",
        "edited_timestamp",
        "flags",
        "components",
        "sticker_items",
    ];
    let mut fields = bare(world, found);
    fields.retain(|key, _| KEPT.contains(&key.as_str()));
    fields.into()
}

/// The object of the file of any message, or uploaded, with this id.
pub(crate) fn file(world: &World, id: Id) -> Option<Value> {
    let channels = world.channels.values();
    let messages = channels.flat_map(|channel| channel.messages.values());
    let messages = messages.chain(world.ephemeral.values());
    let mut files = messages.flat_map(|one| one.attachments.iter().map(|file| (one.channel, file)));
    let (channel, found) = files.find(|(_, file)| file.id == id)?;
    Some(attachment(world, channel, found))
}

/// An attachment object; its URL is one of the simulator's CDN routes.
fn attachment(world: &World, channel: Id, found: &Attachment) -> Value {
    let base = world.settings.cdn_base.as_ref().unwrap_or(&world.base_url);
    let name = &found.file.name;
    let url = format!(
        "{base}/attachments/{channel}/{}/{name}?ex=7fffffff&is=0&hm=0&",
        found.id
    );
    let mut object = json!({
        "id": found.id.json(), "filename": name, "size": found.file.bytes.len(),
        "url": url, "proxy_url": url, "content_type": found.file.content_type,
    });
    if let Some(description) = &found.file.description {
        object["description"] = description.as_str().into();
    }
    object
}

/// The emoji object for the emoji in a reaction's path: `name:id` or the emoji itself.
pub(crate) fn reaction_emoji(emoji: &str) -> Value {
    match emoji.split_once(':') {
        Some((name, id)) => json!({"id": id, "name": name}),
        None => json!({"id": null, "name": emoji}),
    }
}

fn bare(world: &World, found: &Message) -> Map<String, Value> {
    let users = found.mentions.iter();
    let users: Vec<Value> = users.map(|&id| super::user(world, id)).collect();
    let roles: Vec<Value> = found.mention_roles.iter().map(|id| id.json()).collect();
    let files = found.attachments.iter();
    let files: Vec<Value> = files.map(|f| attachment(world, found.channel, f)).collect();
    let object = json!({
        "type": found.kind, "content": found.content, "mentions": users, "mention_roles": roles,
        "attachments": files, "embeds": found.embeds, "timestamp": iso(found.id.unix_ms()),
        "edited_timestamp": found.edited_ms.map(iso), "flags": found.flags,
        "components": found.components, "id": found.id.json(), "channel_id": found.channel.json(),
        "author": author(world, found), "pinned": found.pinned_ms.is_some(),
        "mention_everyone": found.mention_everyone, "tts": false,
    });
    let mut fields = match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    add_extras(world, found, &mut fields);
    fields
}

fn author(world: &World, found: &Message) -> Value {
    let Some(name) = &found.webhook else {
        return super::user(world, found.author);
    };
    json!({
        "id": found.author.json(), "username": name, "avatar": null, "discriminator": "0000",
        "public_flags": 0, "flags": 0, "bot": true, "global_name": null, "primary_guild": null,
    })
}

fn add_extras(world: &World, found: &Message, fields: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    if !found.stickers.is_empty() {
        let stickers = found.stickers.iter();
        let stickers =
            stickers.map(|(id, name)| json!({"id": id.json(), "name": name, "format_type": 1}));
        set("sticker_items", stickers.collect());
    }
    if found.webhook.is_some() {
        set("webhook_id", found.author.json());
        if let Some(application) = found.application {
            set("application_id", application.json());
        }
    }
    if let Some(poll) = &found.poll {
        set("poll", poll.clone());
    }
    if !found.snapshots.is_empty() {
        set("message_snapshots", found.snapshots.clone().into());
    }
    if !found.reactions.is_empty() {
        let reactions = found.reactions.iter();
        let reactions = reactions.map(|(emoji, users)| reaction(world, emoji, users));
        set("reactions", reactions.collect());
    }
    let interaction = found.interaction.and_then(|id| world.interactions.get(&id));
    if let Some(interaction) = interaction {
        set("application_id", world.bot.json());
        set("webhook_id", world.bot.json());
        let metadata = super::interaction_metadata(world, interaction);
        set("interaction_metadata", metadata);
    }
    let channel = world.channels.get(&found.channel);
    if channel.is_some_and(|channel| channel.thread.is_some()) {
        set("position", found.position.into());
    }
}

fn reaction(world: &World, emoji: &str, users: &[Id]) -> Value {
    json!({
        "emoji": reaction_emoji(emoji), "count": users.len(),
        "count_details": {"burst": 0, "normal": users.len()}, "burst_colors": [],
        "me_burst": false, "burst_me": false, "burst_count": 0, "me": users.contains(&world.bot),
    })
}

fn add_reference_only(world: &World, found: &Message, fields: &mut Map<String, Value>) {
    let Some(reference) = found.reference else {
        return;
    };
    let mut object = json!({"type": reference.kind, "channel_id": reference.channel.json()});
    if let Some(message) = reference.message {
        object["message_id"] = message.json();
    }
    if let Some(guild) = world.guild_of(reference.channel) {
        object["guild_id"] = guild.json();
    }
    fields.insert("message_reference".to_owned(), object);
}

/// The reference, and `referenced_message` for replies, thread starters and
/// context-menu answers: the only types that include it.
fn add_references(world: &World, found: &Message, fields: &mut Map<String, Value>) {
    add_reference_only(world, found, fields);
    let Some(reference) = found.reference.filter(|r| r.kind == 0) else {
        return;
    };
    let carries = matches!(found.kind, 19 | 21 | 23);
    let Some(message) = reference.message.filter(|_| carries) else {
        return;
    };
    // Nested in another, a message is without its own referenced message.
    let nested = |id: Id| {
        let target = world.message(reference.channel, id);
        target.map_or(Value::Null, |target| {
            let mut object = bare(world, target);
            add_reference_only(world, target, &mut object);
            object.into()
        })
    };
    let value = match found.referenced {
        Referenced::Absent => return,
        Referenced::Null => Value::Null,
        Referenced::Derived => nested(message),
        Referenced::Other(other) => nested(other),
    };
    fields.insert("referenced_message".to_owned(), value);
}

fn add_gateway_fields(world: &World, found: &Message, fields: &mut Map<String, Value>) {
    let channel = world.channels.get(&found.channel);
    if let Some(channel) = channel {
        fields.insert("channel_type".to_owned(), (channel.kind as u8).into());
    }
    if let Some(nonce) = &found.nonce {
        fields.insert("nonce".to_owned(), nonce.clone());
    }
    let guild = channel.and_then(|channel| channel.guild);
    let Some(guild) = guild.and_then(|guild| world.guilds.get(&guild)) else {
        return;
    };
    fields.insert("guild_id".to_owned(), guild.id.json());
    let member = |user: Id| {
        let member = guild.members.get(&user)?;
        Some(super::member(world, member, false))
    };
    if found.webhook.is_none()
        && let Some(own) = member(found.author)
    {
        fields.insert("member".to_owned(), own);
    }
    if let Some(mentions) = fields.get_mut("mentions").and_then(Value::as_array_mut) {
        for (mention, &user) in mentions.iter_mut().zip(&found.mentions) {
            if let Some(member) = member(user) {
                mention["member"] = member;
            }
        }
    }
}
