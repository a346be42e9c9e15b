//! Messages: pages of them, and what people post.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Body, SharedState, id};
use crate::playground::error::ApiError;
use crate::playground::{Shared, shown};
use clew_simulator::{ChannelKind, Draft, File, Id, Permissions, World};

/// The longest message, in characters, as on Discord.
const MOST_CHARS: usize = 2_000;
/// The most files of a message, as on Discord.
const MOST_FILES: usize = 10;
/// The largest file, in bytes.
pub(super) const MOST_FILE_BYTES: usize = 200_000;
/// The longest name of a file, in characters.
const MOST_NAME_CHARS: usize = 100;
/// The most messages on a page, as on Discord.
const MOST_ON_PAGE: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    before: Option<String>,
    limit: Option<usize>,
}

/// What somebody posts.
#[derive(Debug, Deserialize)]
pub(super) struct NewMessage {
    author: String,
    #[serde(default)]
    content: String,
    reply_to: Option<String>,
    #[serde(default)]
    attachments: Vec<NewFile>,
}

#[derive(Debug, Deserialize)]
pub(super) struct NewFile {
    filename: String,
    text: String,
}

impl NewFile {
    /// The file, if its name and size are such as are taken.
    pub(super) fn file(self) -> Answer<File> {
        let Self { filename, text } = self;
        let is_name = !filename.is_empty()
            && filename.chars().count() <= MOST_NAME_CHARS
            && !filename.contains(['/', '\\', '?', '#', '%'])
            && !filename.chars().any(char::is_control);
        if !is_name {
            return Err(ApiError::bad(format!(
                "`{filename}` is no name for a file: 1 to {MOST_NAME_CHARS} characters, no slashes"
            )));
        }
        if text.len() > MOST_FILE_BYTES {
            return Err(ApiError::bad(format!(
                "`{filename}` has {} bytes; a file has at most {MOST_FILE_BYTES} here",
                text.len()
            )));
        }
        Ok(File::text(&filename, &text))
    }
}

pub(super) async fn page(
    State(shared): SharedState,
    Path(channel): Path<String>,
    Query(query): Query<PageQuery>,
) -> Answer {
    let channel = id(&channel)?;
    let before = query.before.as_deref().map(id).transpose()?;
    let limit = query.limit.unwrap_or(50).clamp(1, MOST_ON_PAGE);
    let mut page = shared.discord.message_objects(channel, before, limit);
    for message in &mut page {
        shown::for_page(&shared.discord, message);
    }
    Ok(Json(page.into()))
}

pub(super) async fn post(
    State(shared): SharedState,
    Path(channel): Path<String>,
    Body(message): Body<NewMessage>,
) -> Answer {
    let (channel, author) = (id(&channel)?, id(&message.author)?);
    let reply_to = message.reply_to.as_deref().map(id).transpose()?;
    shared.discord.world(|world| {
        may_write(world, channel, author)?;
        match reply_to {
            Some(to) if world.message(channel, to).is_none() => Err(ApiError::missing(
                "the message to reply to is gone: reply to another, or write without a reply",
            )),
            _ => Ok(()),
        }
    })?;
    let mut draft = draft(message.content, message.attachments)?;
    if let Some(to) = reply_to {
        draft = draft.reply_to(to);
    }
    let posted = shared.discord.post(channel, author, draft);
    Ok(Json(object(&shared, channel, posted)))
}

/// A message as the page shows it.
pub(super) fn object(shared: &Shared, channel: Id, message: Id) -> Value {
    let mut message = shared.discord.message_object(channel, message);
    shown::for_page(&shared.discord, &mut message);
    message
}

/// Whether there is such a person; a bot is none.
pub(super) fn person(world: &World, id: Id) -> Answer<()> {
    match world.get_user(id) {
        Some(user) if !user.bot => Ok(()),
        _ => Err(ApiError::missing("there is no such person")),
    }
}

/// Whether a person may write in a channel.
pub(super) fn may_write(world: &World, channel: Id, author: Id) -> Answer<()> {
    let found = world.get_channel(channel);
    let found = found.ok_or_else(|| ApiError::missing("this channel is gone"))?;
    person(world, author)?;
    if found.kind.is_forum() {
        return Err(ApiError::bad("a forum has posts only: open one"));
    }
    if found.kind == ChannelKind::Category {
        return Err(ApiError::bad("a category has no messages"));
    }
    if found.thread.as_ref().is_some_and(|thread| thread.locked) {
        return Err(ApiError::forbidden("this thread is locked"));
    }
    let needed = if found.kind.is_thread() {
        Permissions::SEND_MESSAGES_IN_THREADS
    } else {
        Permissions::SEND_MESSAGES
    };
    let may = world.sees(author, channel) && world.permissions(author, channel).contains(needed);
    if may {
        Ok(())
    } else {
        Err(ApiError::forbidden("this person may not write here"))
    }
}

/// A text as long as Discord takes it.
pub(super) fn text(content: &str) -> Answer<()> {
    let chars = content.chars().count();
    if chars <= MOST_CHARS {
        return Ok(());
    }
    Err(ApiError::bad(format!(
        "a message has at most {MOST_CHARS} characters; this one has {chars}"
    )))
}

/// The name of something, without space around it, if it is not too long.
pub(super) fn name<'a>(of: &str, name: &'a str, most: usize) -> Answer<&'a str> {
    if name.trim().is_empty() || name.chars().count() > most {
        let sentence = format!("{of}'s name has 1 to {most} characters");
        return Err(ApiError::bad(sentence));
    }
    Ok(name.trim())
}

fn draft(content: String, files: Vec<NewFile>) -> Answer<Draft> {
    text(&content)?;
    if content.trim().is_empty() && files.is_empty() {
        return Err(ApiError::bad("write something first"));
    }
    if files.len() > MOST_FILES {
        return Err(ApiError::bad(format!(
            "a message has at most {MOST_FILES} files"
        )));
    }
    let mut draft = Draft::new(content);
    let mut names = BTreeSet::new();
    for file in files {
        let file = file.file()?;
        if names.insert(file.name.clone()) {
            draft = draft.attachment(file);
        }
    }
    Ok(draft)
}
