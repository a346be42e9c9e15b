//! Threads, posts of forums, and direct conversations.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;

use super::{Answer, Body, Caller, SharedState, id, messages};
use crate::playground::error::ApiError;
use clew_simulator::{Channel, ChannelKind, Id, Permissions, World};

/// The longest name of a thread, in characters, as on Discord.
const MOST_NAME_CHARS: usize = 100;
/// The most tags of a post, as on Discord.
const MOST_TAGS: usize = 5;

/// A thread or post to be opened.
#[derive(Debug, Deserialize)]
pub(super) struct NewThread {
    author: String,
    name: String,
    content: Option<String>,
    message: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

/// What kind of thread it will be.
enum Opened {
    Post(Vec<Id>, String),
    FromMessage(Id),
    Thread,
}

pub(super) async fn open(
    State(shared): SharedState,
    Path(channel): Path<String>,
    Body(thread): Body<NewThread>,
) -> Answer {
    let (channel, author) = (id(&channel)?, id(&thread.author)?);
    let name = messages::name("a thread", &thread.name, MOST_NAME_CHARS)?;
    let content = thread.content.as_deref().unwrap_or_default().trim();
    messages::text(content)?;
    let discord = &shared.discord;
    let opened = discord.world(|world| plan(world, channel, author, &thread))?;
    let id = match opened {
        Opened::Post(tags, content) => discord.forum_post(channel, author, name, &tags, content),
        Opened::FromMessage(message) => discord.thread_from(channel, message, name, author),
        Opened::Thread => discord.thread(channel, ChannelKind::PublicThread, name, author),
    };
    let is_post = discord.world(|world| world.message(id, id).is_some());
    if !is_post && !content.is_empty() {
        discord.post(id, author, content);
    }
    Ok(Json(discord.channel_object(id)))
}

fn plan(world: &World, parent: Id, author: Id, thread: &NewThread) -> Answer<Opened> {
    let found = world.get_channel(parent);
    let found = found.ok_or_else(|| ApiError::missing("this channel is gone"))?;
    messages::person(world, author)?;
    let held = world.permissions(author, parent);
    if !world.sees(author, parent) || !held.contains(Permissions::CREATE_PUBLIC_THREADS) {
        return Err(ApiError::forbidden("this person may not open threads here"));
    }
    if found.kind.is_forum() {
        return post(found, thread);
    }
    if !matches!(found.kind, ChannelKind::Text | ChannelKind::Announcement) || found.guild.is_none()
    {
        return Err(ApiError::bad(
            "threads are opened in text channels of servers",
        ));
    }
    let Some(message) = &thread.message else {
        return Ok(Opened::Thread);
    };
    let message = id(message)?;
    if world.message(parent, message).is_none() {
        return Err(ApiError::missing("the message is gone"));
    }
    if world.get_channel(message).is_some() {
        return Err(ApiError::bad(
            "this message has a thread already: open that one",
        ));
    }
    Ok(Opened::FromMessage(message))
}

fn post(forum: &Channel, thread: &NewThread) -> Answer<Opened> {
    let content = thread.content.as_deref().unwrap_or_default().trim();
    if content.is_empty() {
        return Err(ApiError::bad("a post begins with a message: write one"));
    }
    let tags = thread.tags.iter().map(|tag| id(tag));
    let tags = tags.collect::<Result<Vec<Id>, _>>()?;
    let is_known = |tag: &Id| forum.tags.iter().any(|known| known.id == *tag);
    if tags.len() > MOST_TAGS || !tags.iter().all(is_known) {
        return Err(ApiError::bad(format!(
            "a post has at most {MOST_TAGS} tags, and they are the forum's"
        )));
    }
    Ok(Opened::Post(tags, content.to_owned()))
}

pub(super) async fn direct(State(shared): SharedState, Body(caller): Body<Caller>) -> Answer {
    let author = id(&caller.author)?;
    let channel = shared.discord.world(|world| {
        messages::person(world, author)?;
        Ok::<_, ApiError>(world.direct(author))
    })?;
    Ok(Json(shared.discord.channel_object(channel)))
}
