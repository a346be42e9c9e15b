//! `/server-memory show|remember|forget`: facts about the server. Everyone can see
//! them; changing them takes Manage Server.

use super::call::{Call, run};
use super::definition::{Action, Button, Command, Section};
use super::done::{Done, Stop};
use super::facts::{self, About, FACT, TEXT};
use super::{CommandServices, words};
use clew_context::model::GuildId;
use clew_store::model::{Origin, Subject};

pub(super) const SERVER_MEMORY: Command = Command {
    servers_only: true,
    buttons: &[PAGE, FORGET],
    help: Some((
        Section::Server,
        "`/server-memory show` · `/server-memory remember` · `/server-memory forget`",
    )),
    ..Command::subs(
        "server-memory",
        "What I remember about this server",
        &[
            Action::new("show", "Show what I remember about this server", run!(show)),
            Action::new(
                "remember",
                "Remember something about this server (needs Manage Server)",
                run!(remember),
            )
            .options(&[TEXT]),
            Action::new(
                "forget",
                "Forget something about this server (needs Manage Server)",
                run!(ask_to_forget),
            )
            .options(&[FACT])
            .complete(run!(propose)),
        ],
    )
};

const PAGE: Button = Button::new("page:server-facts:", run!(show));
pub(super) const FORGET: Button = Button::new("forget-of-server:", run!(forget));

/// A page of what is remembered about the server.
async fn show(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::list(services, call, about(server(call)?)).await
}

async fn remember(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let guild = managed(call)?;
    facts::remember(services, call, about(guild), Origin::Guild(guild)).await
}

async fn ask_to_forget(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::ask_to_forget(services, call, about(managed(call)?)).await
}

async fn propose(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::propose(services, call, Subject::Server(managed(call)?)).await
}

async fn forget(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::forget(services, call, Subject::Server(managed(call)?)).await
}

fn server(call: &Call) -> Result<GuildId, Stop> {
    call.guild()
        .ok_or_else(|| Stop::refused(words::SERVERS_ONLY))
}

/// The server, if the caller manages it.
pub(super) fn managed(call: &Call) -> Result<GuildId, Stop> {
    let guild = server(call)?;
    if call.rights.manage_server {
        Ok(guild)
    } else {
        Err(Stop::refused(words::MANAGE_SERVER))
    }
}

const fn about(guild: GuildId) -> About {
    About {
        subject: Subject::Server(guild),
        title: "What I remember about this server",
        none: "I remember nothing about this server yet. Use `/server-memory remember`.",
        off: "Memory about servers is off here (`MAX_SERVER_MEMORY=0`).",
        page: &PAGE,
        forget: &FORGET,
    }
}
