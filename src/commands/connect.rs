//! `/connect new|list|revoke`: the caller's own programs, which read this server as they may.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::{Action, Command, Section};
use super::done::{Done, Stop};
use super::server_memory::server;
use super::words;
use crate::runs::{Connection, Connections, MOST_CONNECTIONS};
use clew_context::engine::sanitise;
use clew_discord::model::OptionSpec;

pub(super) const CONNECT: Command = Command {
    help: Some((
        Section::Caller,
        "`/connect new` lets a program of yours read a server as you may · `/connect list` · \
         `/connect revoke`",
    )),
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
            Action::new("list", "Show your programs in all servers", run!(list)),
            Action::new("revoke", "Take a program's tokens back", run!(revoke)).options(&[CLIENT]),
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
    if services.memory.guild_settings(guild).programs != Some(true) {
        return Err(Stop::refused(
            "Programs can't read this server: whoever manages it may change that by `/settings set \
             programs`.",
        ));
    }
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
    let client = client(call);
    let is_meant = |one: &Connection| (one.user, &one.client) == (call.caller(), &client);
    if services.connections.revoke(is_meant) == 0 {
        return Err(Stop::refused(
            "No program of yours has that name. `/connect list` shows them.",
        ));
    }
    let saved = saved(services.connections).await;
    Ok(Done::say(format!(
        "**{client}** reads nothing any more, in no server.{saved}"
    )))
}

/// What is to be said where the next process may know again what was taken back.
pub(super) async fn saved(connections: &Connections) -> &'static str {
    if connections.are_saved().await {
        ""
    } else {
        "\nThat is not saved yet: if I stop before I can write my files, tokens hold again. Tell my \
         operator."
    }
}

/// The program's name, in one line.
fn client(call: &Call) -> String {
    sanitise::name(call.text(&CLIENT).unwrap_or_default().trim())
}
