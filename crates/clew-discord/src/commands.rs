//! Commands: registering their definitions, and reading calls of them. Which there
//! are and what they do is the bot's.

mod definitions;
mod interaction;
mod same;

use twilight_model::id::Id;

pub use interaction::parse;

use self::same::same;
use super::rest::Rest;
use crate::model::CommandSpec;
use clew_context::discord::error::RestError;
use clew_context::model::{ApplicationId, GuildId};

/// Registers these commands, and no others, if they differ from those registered, in one server
/// (`DISCORD_COMMAND_GUILD`, takes effect at once) or everywhere. Returns
/// whether they differed.
///
/// # Errors
/// Discord's refusal; the bot carries on without commands.
pub async fn register(
    rest: &Rest,
    application: ApplicationId,
    guild: Option<GuildId>,
    commands: &[CommandSpec],
) -> Result<bool, RegisterError> {
    let Some(interaction) = rest.interaction(application) else {
        return Ok(false);
    };
    let guild = guild.and_then(|guild| Id::new_checked(guild.get()));
    let everywhere = guild.is_none();
    let wanted = commands.iter();
    let wanted = wanted.map(|spec| definitions::command(spec, everywhere));
    let wanted: Vec<_> = wanted.collect();
    let registered = match guild {
        Some(guild) => interaction.guild_commands(guild).await,
        None => interaction.global_commands().await,
    };
    // A list we cannot read counts as different.
    let registered = registered
        .map_err(|error| RegisterError::List(RestError::of_twilight(&error)))?
        .model()
        .await
        .unwrap_or_default();
    if same(&registered, &wanted, everywhere) {
        return Ok(false);
    }
    match guild {
        Some(guild) => interaction.set_guild_commands(guild, &wanted).await,
        None => interaction.set_global_commands(&wanted).await,
    }
    .map_err(|error| RegisterError::Set(RestError::of_twilight(&error)))?;
    Ok(true)
}

/// Why the commands could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Listing the registered commands failed.
    #[error("cannot list the registered commands")]
    List(#[source] RestError),
    /// Replacing them failed.
    #[error("cannot register the commands")]
    Set(#[source] RestError),
}
