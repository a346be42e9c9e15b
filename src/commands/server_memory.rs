//! `/server-memory show|remember|forget`: facts about the server. Everyone can see
//! them; changing them takes Manage Server.

use super::call::{Call, run};
use super::definition::{Action, Button, Command, Section};
use super::done::{Done, Stop};
use super::facts::{self, About, AboutOf, FACT, TEXT};
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
            Action::new(
                "show",
                "Show what I remember about this server",
                run!(facts::list, SHOWN),
            ),
            Action::new(
                "remember",
                "Remember something about this server (needs Manage Server)",
                run!(remember),
            )
            .options(&[TEXT]),
            Action::new(
                "forget",
                "Forget something about this server (needs Manage Server)",
                run!(facts::ask_to_forget, CHANGED),
            )
            .options(&[FACT])
            .complete(run!(facts::propose, CHANGED)),
        ],
    )
};

const PAGE: Button = Button::new("page:server-facts:", run!(facts::list, SHOWN));
pub(super) const FORGET: Button = Button::new("forget-of-server:", run!(facts::forget, CHANGED));

/// For everybody to see.
const SHOWN: AboutOf = |call| Ok(about(server(call)?));
/// For those who manage the server to change.
const CHANGED: AboutOf = |call| Ok(about(managed(call)?));

async fn remember(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let origin = Origin::Guild(managed(call)?);
    facts::remember(services, call, CHANGED, origin).await
}

pub(super) fn server(call: &Call) -> Result<GuildId, Stop> {
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
