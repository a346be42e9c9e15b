//! `/connect new|list|revoke`: the caller's own programs, which read this server as they may.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::{Action, Command, Section};
use super::done::{Done, Stop};
use super::server_memory::server;
use super::words;
use crate::runs::{Connection, MOST_CONNECTIONS};
use clew_context::engine::sanitise;
use clew_discord::model::OptionSpec;

pub(super) const CONNECT: Command = Command {
    servers_only: true,
    help: Some((
        Section::Caller,
        "`/connect new` lets a program of yours read this server as you may · `/connect list` · \
         `/connect revoke`",
    )),
    ..Command::subs(
        "connect",
        "Programs of yours that read this server as you may",
        &[
            Action::new("new", "Get a token for a program", run!(connect)).options(&[CLIENT]),
            Action::new("list", "Show your programs in all servers", run!(list)),
            Action::new("revoke", "Take a program's token back here", run!(revoke))
                .options(&[CLIENT]),
        ],
    )
};

const CLIENT: OptionSpec =
    OptionSpec::text("client", "What you call the program", 1, 40).required();

async fn connect(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (guild, now) = (server(call)?, services.memory.now());
    let Some(listen) = services.mcp_listen else {
        return Err(Stop::refused("Programs can't read through this bot."));
    };
    if services.memory.opted_out(call.caller()) {
        return Err(Stop::refused(words::OPTED_OUT));
    }
    let new = Connection {
        user: call.caller(),
        guild,
        client: client(call),
        made: now.0,
    };
    let (client, ends) = (new.client.clone(), words::moment(new.ends()));
    let token = services.connections.connect(new, now).ok_or_else(|| {
        Stop::refused(format!(
            "You have {MOST_CONNECTIONS} programs already. `/connect revoke` one first."
        ))
    })?;
    Ok(Done::say(format!(
        "Whoever has this token reads here what you may read, until {ends}. I show it only now:\n\
         ```\n{token}\n```\n\
         **{client}** sends it as `Authorization: Bearer` to `http://{listen}/mcp`, or where my \
         operator says. `/connect revoke` takes it back."
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
        let guild = services.guild_state.guild_name(one.guild);
        let guild = guild.unwrap_or_else(|| one.guild.to_string());
        let ends = words::moment(one.ends());
        (
            &*one.client,
            format!("{} · until {ends}", sanitise::name(&guild)),
        )
    });
    let fields = fields.collect();
    Ok(Done::fields("Programs that read as you", fields))
}

async fn revoke(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (guild, client) = (server(call)?, client(call));
    let is_meant =
        |one: &Connection| (one.user, one.guild, &one.client) == (call.caller(), guild, &client);
    if services.connections.revoke(is_meant).await == 0 {
        return Err(Stop::refused(
            "No program of yours has that name here. `/connect list` shows them.",
        ));
    }
    Ok(Done::say(format!("**{client}** reads nothing any more.")))
}

/// The program's name, in one line.
fn client(call: &Call) -> String {
    sanitise::name(call.text(&CLIENT).unwrap_or_default().trim())
}
