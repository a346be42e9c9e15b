//! Edits, deletions, reactions, and what webhooks post.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Body, SharedState, id, messages};
use crate::playground::Shared;
use crate::playground::error::ApiError;
use clew_simulator::{Draft, Id, Message, World};

/// The longest emoji, in bytes: some are a family of people.
const MOST_EMOJI_BYTES: usize = 64;
/// The most different reactions of a message, as on Discord.
const MOST_REACTIONS: usize = 20;
/// The longest name of a webhook, in characters, as on Discord.
const MOST_NAME_CHARS: usize = 80;

/// A message's new text.
#[derive(Debug, Deserialize)]
pub(super) struct Edit {
    content: String,
}

/// Who reacts with what.
#[derive(Debug, Deserialize)]
pub(super) struct Reaction {
    author: String,
    emoji: String,
}

/// What a webhook posts.
#[derive(Debug, Deserialize)]
pub(super) struct WebhookMessage {
    name: String,
    content: String,
    /// Whether a person writes it through an app of `PROXY_APPS`.
    #[serde(default)]
    is_proxied: bool,
}

/// A channel and a message in it.
type MessagePath = Path<(String, String)>;

pub(super) async fn edit(
    State(shared): SharedState,
    Path((channel, message)): MessagePath,
    Body(Edit { content }): Body<Edit>,
) -> Answer {
    let (channel, message) = (id(&channel)?, id(&message)?);
    messages::text(&content)?;
    shared.discord.world(|world| {
        let found = known(world, channel, message)?;
        let author = world.get_user(found.author).filter(|user| !user.bot);
        if author.is_none() || !matches!(found.kind, 0 | 19) {
            return Err(ApiError::forbidden(
                "only what a person wrote can be edited",
            ));
        }
        if content.trim().is_empty() && found.attachments.is_empty() {
            return Err(ApiError::bad("write something, or delete the message"));
        }
        Ok(())
    })?;
    shared.discord.edit(channel, message, &content);
    Ok(Json(messages::object(&shared, channel, message)))
}

pub(super) async fn delete(
    State(shared): SharedState,
    Path((channel, message)): MessagePath,
) -> Answer {
    let (channel, message) = (id(&channel)?, id(&message)?);
    let discord = &shared.discord;
    discord.world(|world| known(world, channel, message).map(drop))?;
    discord.delete(channel, message);
    Ok(Json(json!({})))
}

pub(super) async fn react(
    State(shared): SharedState,
    Path((channel, message)): MessagePath,
    Body(Reaction { author, emoji }): Body<Reaction>,
) -> Answer {
    let (channel, message) = (id(&channel)?, id(&message)?);
    let author = may_react(&shared, channel, message, &author, &emoji)?;
    shared.discord.world(|world| {
        let found = known(world, channel, message)?;
        let is_new = found.reactions.iter().all(|(known, _)| *known != emoji);
        if is_new && found.reactions.len() >= MOST_REACTIONS {
            let sentence = format!("a message has at most {MOST_REACTIONS} different reactions");
            return Err(ApiError::bad(sentence));
        }
        Ok(())
    })?;
    shared.discord.react(channel, message, &emoji, author);
    Ok(Json(json!({})))
}

pub(super) async fn unreact(
    State(shared): SharedState,
    Path((channel, message)): MessagePath,
    Body(Reaction { author, emoji }): Body<Reaction>,
) -> Answer {
    let (channel, message) = (id(&channel)?, id(&message)?);
    let author = may_react(&shared, channel, message, &author, &emoji)?;
    shared.discord.unreact(channel, message, &emoji, author);
    Ok(Json(json!({})))
}

pub(super) async fn webhook(
    State(shared): SharedState,
    Path(channel): Path<String>,
    Body(WebhookMessage {
        name,
        content,
        is_proxied,
    }): Body<WebhookMessage>,
) -> Answer {
    let channel = id(&channel)?;
    let name = messages::name("a webhook", &name, MOST_NAME_CHARS)?;
    messages::text(&content)?;
    if content.trim().is_empty() {
        return Err(ApiError::bad("write something first"));
    }
    let webhook = shared.discord.world(|world| {
        let found = world.get_channel(channel);
        let found = found.ok_or_else(|| ApiError::missing("this channel is gone"))?;
        if found.kind.is_forum() || found.guild.is_none() {
            return Err(ApiError::bad(
                "webhooks post in channels and threads of servers",
            ));
        }
        Ok(world.fresh_id())
    })?;
    let mut draft = Draft::new(content).webhook(name);
    if is_proxied {
        let app = shared.config.triggers.proxies.iter().next();
        let app = app.ok_or_else(|| ApiError::bad("PROXY_APPS lists no app"))?;
        draft = draft.application(app.get());
    }
    let posted = shared.discord.post(channel, webhook, draft);
    Ok(Json(messages::object(&shared, channel, posted)))
}

pub(super) fn known(world: &World, channel: Id, message: Id) -> Answer<&Message> {
    let found = world.message(channel, message);
    found.ok_or_else(|| ApiError::missing("the message is gone"))
}

/// The person, if there is one who sees the message.
fn may_react(shared: &Shared, channel: Id, message: Id, author: &str, emoji: &str) -> Answer<Id> {
    let author = id(author)?;
    if emoji.is_empty() || emoji.len() > MOST_EMOJI_BYTES || emoji.is_ascii() {
        return Err(ApiError::bad("react with an emoji"));
    }
    shared.discord.world(|world| {
        known(world, channel, message)?;
        let person = world.get_user(author).filter(|user| !user.bot);
        if person.is_some() && world.sees(author, channel) {
            Ok(author)
        } else {
            Err(ApiError::forbidden("this person does not see the message"))
        }
    })
}
