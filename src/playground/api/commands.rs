//! Slash commands: which there are, calling one, choices for what is typed, and buttons.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::messages::NewFile;
use super::{Answer, Body, Caller, SharedState, changes, id, messages};
use crate::playground::Shared;
use crate::playground::error::ApiError;
use clew_simulator::{Id, Invocation, Permissions, WaitError};

/// How long the bot may take to respond, as on Discord.
const RESPONDING: Duration = Duration::from_secs(3);

/// A call of a command, such as `memory remember`.
#[derive(Debug, Deserialize)]
pub(super) struct NewCall {
    author: String,
    command: String,
    /// Values by the names of options.
    #[serde(default)]
    options: Map<String, Value>,
    /// What is uploaded for which option.
    #[serde(default)]
    files: BTreeMap<String, NewFile>,
    /// In whose menu it is called.
    message: Option<String>,
}

/// An option that is being typed.
#[derive(Debug, Deserialize)]
pub(super) struct Typing {
    author: String,
    command: String,
    option: String,
    typed: String,
}

/// A button that is pressed.
#[derive(Debug, Deserialize)]
pub(super) struct Press {
    author: String,
    button: String,
}

pub(super) async fn offered(
    State(shared): SharedState,
    Path(channel): Path<String>,
    Query(Caller { author }): Query<Caller>,
) -> Answer {
    let (channel, author) = may_call(&shared, &channel, &author)?;
    let mut offered = shared.discord.offered(author, channel);
    offered.extend(shared.discord.offered_on_messages(author, channel));
    Ok(Json(offered.into()))
}

pub(super) async fn call(
    State(shared): SharedState,
    Path(channel): Path<String>,
    Body(mut call): Body<NewCall>,
) -> Answer {
    let (channel, author) = may_call(&shared, &channel, &call.author)?;
    let discord = &shared.discord;
    if let Some(message) = call.message {
        let message = id(&message)?;
        is_one_of(&discord.offered_on_messages(author, channel), &call.command)?;
        discord.world(|world| changes::known(world, channel, message).map(drop))?;
        let called = discord.call_on(author, channel, &call.command, message);
        return responded(&shared, called).await;
    }
    is_offered(&shared, author, channel, &call.command)?;
    for (option, file) in call.files {
        let file = file.file()?;
        let uploaded = discord.world(|world| world.upload(channel, author, file));
        let uploaded = json!(uploaded.map(|id| id.to_string()));
        call.options.insert(option, uploaded);
    }
    let called = discord.call(author, channel, &call.command, call.options.into());
    responded(&shared, called.await.map_err(refused)?).await
}

pub(super) async fn choices(
    State(shared): SharedState,
    Path(channel): Path<String>,
    Body(typing): Body<Typing>,
) -> Answer {
    let (channel, author) = may_call(&shared, &channel, &typing.author)?;
    let (command, option) = (&typing.command, &typing.option);
    is_offered(&shared, author, channel, command)?;
    let discord = &shared.discord;
    let choices = discord.complete(author, channel, command, option, &typing.typed);
    let choices = timeout(RESPONDING, choices).await.map_err(|_| silent())?;
    let choices = choices.map_err(refused)?.into_iter();
    let choices = choices.map(|(name, value)| json!({"name": name, "value": value}));
    Ok(Json(choices.collect()))
}

pub(super) async fn press(
    State(shared): SharedState,
    Path((_, message)): Path<(String, String)>,
    Body(Press { author, button }): Body<Press>,
) -> Answer {
    let (message, author) = (id(&message)?, id(&author)?);
    let pressed = shared.discord.press_id(author, message, &button);
    let pressed = pressed.map_err(|_| ApiError::missing("this button is gone"))?;
    responded(&shared, pressed).await
}

/// Waits for the first response to a call, which may be that the bot thinks.
async fn responded(shared: &Shared, called: Invocation<'_>) -> Answer {
    let first = shared.discord.wait_interaction(called.id, |_| true);
    match timeout(RESPONDING, first).await {
        Ok(Ok(_)) => Ok(Json(json!({"id": called.id.to_string()}))),
        Ok(Err(_)) | Err(_) => Err(silent()),
    }
}

fn silent() -> ApiError {
    ApiError::busy("the bot did not respond in time: it may be disconnected, try again")
}

/// The channel and the person, if a person may call commands there.
fn may_call(shared: &Shared, channel: &str, author: &str) -> Answer<(Id, Id)> {
    let (channel, author) = (id(channel)?, id(author)?);
    shared.discord.world(|world| {
        messages::may_write(world, channel, author)?;
        let held = world.permissions(author, channel);
        let direct = world
            .get_channel(channel)
            .is_some_and(|one| one.guild.is_none());
        if direct || held.contains(Permissions::USE_APPLICATION_COMMANDS) {
            Ok((channel, author))
        } else {
            Err(ApiError::forbidden("this person may not use commands here"))
        }
    })
}

fn is_offered(shared: &Shared, author: Id, channel: Id, command: &str) -> Answer<()> {
    let name = command.split(' ').next().unwrap_or_default();
    is_one_of(&shared.discord.offered(author, channel), name)
}

fn is_one_of(offered: &[Value], name: &str) -> Answer<()> {
    if offered.iter().any(|one| one["name"] == name) {
        Ok(())
    } else {
        Err(ApiError::missing(format!(
            "there is no command `/{name}` here"
        )))
    }
}

/// What no client would send, with its reason.
fn refused(error: WaitError) -> ApiError {
    match error {
        WaitError::Script(wrong) => ApiError::bad(wrong.what()),
        WaitError::TimedOut(_) => silent(),
    }
}
