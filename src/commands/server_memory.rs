//! `/server-memory show|remember|forget`: facts about the server. Everyone can see
//! them; changing them takes Manage Server.

use super::call::Call;
use super::done::{Done, Stop};
use super::facts::{self, About};
use super::{Context, words};
use clew_context::model::GuildId;
use clew_discord::model::{Button, Paged, ServerMemoryCommand};
use clew_store::model::{FactId, Origin, Subject};

const OFF: &str = "Remembering things about servers is off here (`MAX_SERVER_MEMORY=0`).";

pub(super) async fn run(
    context: &Context<'_>,
    call: &Call,
    command: &ServerMemoryCommand,
) -> Result<Done, Stop> {
    match command {
        ServerMemoryCommand::Show => show(context, call, 0).await,
        ServerMemoryCommand::Remember { text } => {
            let guild = managed(call)?;
            let (subject, origin) = (Subject::Server(guild), Origin::Guild(guild));
            facts::remember(context, call, subject, text, origin, OFF).await
        }
        ServerMemoryCommand::Forget { fact } => {
            facts::ask_to_forget(context, call, &about(managed(call)?), fact).await
        }
    }
}

/// A page of what is remembered about the server.
pub(super) async fn show(context: &Context<'_>, call: &Call, page: u16) -> Result<Done, Stop> {
    facts::list(context, call, &about(server(call)?), page).await
}

/// "Forget" was pressed.
pub(super) async fn forget(context: &Context<'_>, call: &Call, fact: FactId) -> Result<Done, Stop> {
    facts::forget(context, Subject::Server(managed(call)?), fact).await
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
        none: "I remember nothing about this server. `/server-memory remember` changes that.",
        page: |page| Button::Page(Paged::ServerFacts, page),
        forget: Button::ForgetOfServer,
    }
}
