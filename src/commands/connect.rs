//! `/connect new|add|list|revoke`: the caller's own programs, which read servers as they may.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::CommandServices;
use super::call::{Call, run};
use super::definition::{Action, Command, Section};
use super::done::{Done, Stop};
use super::server_memory::server;
use super::words;
use crate::runs::{Connection, Connections, MOST_CONNECTIONS};
use clew_context::engine::sanitise;
use clew_context::model::GuildId;
use clew_discord::model::OptionSpec;

pub(super) const CONNECT: Command = Command {
    help: Some((
        Section::Caller,
        "`/connect new` lets a program of yours read a server as you may · `/connect add` · \
         `/connect list` · `/connect revoke`",
    )),
    // Whoever may not ask any more may still take back.
    for_everybody: true,
    ..Command::subs(
        "connect",
        "Programs of yours that read a server as you may",
        &[
            Action::new(
                "new",
                "Get a token for a program, for this server",
                run!(connect),
            )
            .options(&[CLIENT]),
            Action::new(
                "add",
                "Let a program that has a token read this server, too",
                run!(add),
            )
            .options(&[CLIENT]),
            Action::new("list", "Show your programs in all servers", run!(list)),
            Action::new("revoke", "Take a program's tokens back", run!(revoke)).options(&[CLIENT]),
        ],
    )
};

/// The most servers of a program that are listed.
const MOST_SHOWN: usize = 10;
const NO_PROGRAM: &str = "No program of yours has that name. `/connect list` shows them.";
/// What may happen to what was taken back.
pub(super) const AGAIN: &str = "tokens hold again";
/// What may happen to what was given.
const FORGOTTEN: &str = "I don't know of it any more";

const CLIENT: OptionSpec =
    OptionSpec::text("client", "What you call the program", 1, 40).required();

/// The server, if the caller's programs may read it, and where they come.
fn may_connect(services: &CommandServices<'_>, call: &Call) -> Result<(GuildId, SocketAddr), Stop> {
    let guild = server(call)?;
    let Some(listen) = services.mcp_listen else {
        return Err(Stop::refused("Programs can't read through this bot."));
    };
    if services.memory.guild_settings(guild).programs != Some(true) {
        return Err(Stop::refused(
            "Programs can't read this server: whoever manages it may change that by `/settings set \
             programs`.",
        ));
    }
    if services.memory.opted_out(call.caller()) {
        return Err(Stop::refused(words::OPTED_OUT));
    }
    Ok((guild, listen))
}

async fn connect(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (guild, listen) = may_connect(services, call)?;
    let now = services.memory.now();
    let new = Connection {
        user: call.caller(),
        guilds: BTreeSet::from([guild]),
        client: client(call),
        made: now.0,
    };
    let (client, ends) = (new.client.clone(), words::moment(new.ends()));
    let token = services.connections.connect(new, now).ok_or_else(|| {
        Stop::refused(format!(
            "You have {MOST_CONNECTIONS} programs already. `/connect revoke` one first."
        ))
    })?;
    let saved = saved(services.connections, FORGOTTEN).await;
    Ok(Done::say(format!(
        "Whoever has this token reads here what you may read, until {ends}. I show it only now:\n\
         ```\n{token}\n```\n\
         **{client}** sends it as `Authorization: Bearer` to `http://{listen}/mcp`, or where my \
         operator says. `/connect add` in another server lets it read there, too; `/connect revoke` \
         takes it back.{saved}"
    )))
}

async fn add(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (guild, _) = may_connect(services, call)?;
    let client = client(call);
    let connections = services.connections;
    if !connections.add(call.caller(), &client, guild, services.memory.now()) {
        return Err(Stop::refused(NO_PROGRAM));
    }
    let saved = saved(connections, FORGOTTEN).await;
    Ok(Done::say(format!(
        "**{client}** reads what you may read here, too, by the token that it has.{saved}"
    )))
}

async fn list(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let found = services
        .connections
        .of(call.caller(), services.memory.now());
    if found.is_empty() {
        return Ok(Done::say("No program reads as you."));
    }
    let fields = found.iter().map(|one| {
        let guilds = one.guilds.iter().map(|guild| {
            let name = services.guild_state.guild_name(*guild);
            sanitise::name(&name.unwrap_or_else(|| guild.to_string()))
        });
        let guilds: Vec<String> = guilds.collect();
        let ends = words::moment(one.ends());
        (&*one.client, format!("{} · until {ends}", shown(&guilds)))
    });
    let fields = fields.collect();
    Ok(Done::fields("Programs that read as you", fields))
}

async fn revoke(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let client = client(call);
    let is_meant = |one: &Connection| (one.user, &one.client) == (call.caller(), &client);
    if services.connections.revoke(is_meant) == 0 {
        return Err(Stop::refused(NO_PROGRAM));
    }
    let saved = saved(services.connections, AGAIN).await;
    Ok(Done::say(format!(
        "**{client}** reads nothing any more, in no server.{saved}"
    )))
}

/// What is to be said where the next process may not know of a change.
pub(super) async fn saved(connections: &Connections, otherwise: &str) -> String {
    if connections.are_saved().await {
        String::new()
    } else {
        format!(
            "\nThat is not saved yet: if I stop before I can write my files, {otherwise}. Tell my \
             operator."
        )
    }
}

/// Some of many servers, by their names.
fn shown(guilds: &[String]) -> String {
    let first = guilds.iter().take(MOST_SHOWN).map(String::as_str);
    let first = first.collect::<Vec<_>>().join(", ");
    match guilds.len().saturating_sub(MOST_SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The program's name, in one line.
fn client(call: &Call) -> String {
    sanitise::name(call.text(&CLIENT).unwrap_or_default().trim())
}
