//! `/block member|list` and `/unblock`: whom the bot does not answer in a server. Needs Moderate
//! Members.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::{Action, Command, Section};
use super::done::{Done, Stop};
use super::server_memory::server;
use clew_context::model::{GuildId, UserId};
use clew_discord::model::{OptionKind, OptionSpec};
use clew_store::model::{GuildSettings, SettingsChange};

pub(super) const BLOCK: Command = Command {
    servers_only: true,
    moderate_members: true,
    help: Some((
        Section::Server,
        "`/block member` · `/block list` · `/unblock` need Moderate Members",
    )),
    ..Command::subs(
        "block",
        "Whom I don't answer in this server",
        &[
            Action::new("member", "I no longer answer them here", run!(change, true))
                .options(&[MEMBER]),
            Action::new("list", "Show whom I don't answer here", run!(list)),
        ],
    )
};

pub(super) const UNBLOCK: Command = Command {
    servers_only: true,
    moderate_members: true,
    ..Command::action(
        Action::new("unblock", "I answer them here again", run!(change, false)).options(&[MEMBER]),
    )
};

/// How many members a field of an embed has room for.
const A_FIELD: usize = 40;

const MEMBER: OptionSpec = OptionSpec::new("member", "Who", OptionKind::User).required();

async fn change(
    services: &CommandServices<'_>,
    call: &Call,
    is_blocked: bool,
) -> Result<Done, Stop> {
    let guild = moderated(call)?;
    let member: Option<UserId> = call.data.id(&MEMBER);
    let member = member.ok_or_else(|| Stop::refused("Say who."))?;
    let change = SettingsChange {
        blocked: Some((member, is_blocked)),
        ..SettingsChange::default()
    };
    let settings = services.memory.change_settings(guild, &change).await?;
    if !is_blocked {
        Ok(Done::say(format!("I answer <@{member}> here again.")))
    } else if settings.blocked.contains(&member) {
        Ok(Done::say(format!("I no longer answer <@{member}> here.")))
    } else {
        let most = GuildSettings::MOST_BLOCKED;
        Err(Stop::refused(format!(
            "At most {most} members can be blocked. `/unblock` somebody first."
        )))
    }
}

async fn list(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let settings = services.memory.guild_settings(moderated(call)?);
    if settings.blocked.is_empty() {
        return Ok(Done::say("I answer everybody here."));
    }
    let members = settings.blocked.iter().map(|id| format!("<@{id}>"));
    let members: Vec<String> = members.collect();
    let fields = members.chunks(A_FIELD);
    let fields = fields.map(|some| ("Members", some.join(" "))).collect();
    Ok(Done::fields("Whom I don't answer here", fields))
}

fn moderated(call: &Call) -> Result<GuildId, Stop> {
    let guild = server(call)?;
    if call.rights.moderate_members {
        Ok(guild)
    } else {
        Err(Stop::refused("You need Moderate Members for this."))
    }
}
