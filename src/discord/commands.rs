//! Our commands: how Discord shows them, and what a call of one says.

mod call;

use twilight_http::Client;
use twilight_model::application::command::{Command, CommandOption, CommandType};
use twilight_model::application::interaction::InteractionContextType;
use twilight_model::id::Id;
use twilight_model::oauth::ApplicationIntegrationType;
use twilight_util::builder::command::{CommandBuilder, StringBuilder};

pub use call::called;

use crate::model::{ApplicationId, GuildId};

/// `/ask`.
pub(super) const ASK: &str = "ask";
/// The message command.
pub(super) const ASK_ABOUT: &str = "Ask about this message";
/// Longest question, as long as a message.
const MAX_QUESTION: u16 = 2_000;

/// Registers our commands where they differ from what is registered: in one
/// server (`DISCORD_COMMAND_GUILD`, at once) or everywhere. Says whether they
/// differed.
///
/// # Errors
/// What Discord answered; the bot works on without commands.
pub async fn register(
    http: &Client,
    application: ApplicationId,
    guild: Option<GuildId>,
) -> Result<bool, RegisterError> {
    let Some(application) = Id::new_checked(application.get()) else {
        return Ok(false);
    };
    let guild = guild.and_then(|guild| Id::new_checked(guild.get()));
    let interaction = http.interaction(application);
    let wanted = definitions(guild.is_none());
    let registered = match guild {
        Some(guild) => interaction.guild_commands(guild).await,
        None => interaction.global_commands().await,
    };
    // What cannot be read differs from ours.
    let registered = registered
        .map_err(RegisterError::List)?
        .model()
        .await
        .unwrap_or_default();
    if same(&registered, &wanted) {
        return Ok(false);
    }
    match guild {
        Some(guild) => interaction.set_guild_commands(guild, &wanted).await,
        None => interaction.set_global_commands(&wanted).await,
    }
    .map_err(RegisterError::Set)?;
    Ok(true)
}

/// Why the commands could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Reading those registered.
    #[error("cannot list the registered commands")]
    List(#[source] twilight_http::Error),
    /// Replacing them.
    #[error("cannot register the commands")]
    Set(#[source] twilight_http::Error),
}

/// Our commands. Only for servers and direct messages with the bot, which a
/// command registered everywhere has to say.
fn definitions(everywhere: bool) -> Vec<Command> {
    let question = StringBuilder::new("question", "What do you want to know?")
        .required(true)
        .max_length(MAX_QUESTION);
    let ask = CommandBuilder::new(ASK, "Ask a question", CommandType::ChatInput).option(question);
    let about = CommandBuilder::new(ASK_ABOUT, "", CommandType::Message);
    let place = |command: CommandBuilder| {
        if everywhere {
            command
                .contexts([InteractionContextType::Guild, InteractionContextType::BotDm])
                .integration_types([ApplicationIntegrationType::GuildInstall])
        } else {
            command
        }
    };
    [ask, about].map(|command| place(command).build()).into()
}

/// Compares what we define, not what Discord adds (ids, versions).
fn same(registered: &[Command], wanted: &[Command]) -> bool {
    let key = |command: &Command| {
        let options: Vec<_> = command.options.iter().map(option_key).collect();
        let mut contexts: Vec<u8> = of_all(command.contexts.as_ref());
        let mut types: Vec<u8> = of_all(command.integration_types.as_ref());
        contexts.sort_unstable();
        types.sort_unstable();
        (
            command.name.clone(),
            u8::from(command.kind),
            command.description.clone(),
            options,
            contexts,
            types,
        )
    };
    let mut registered: Vec<_> = registered.iter().map(key).collect();
    let mut wanted: Vec<_> = wanted.iter().map(key).collect();
    registered.sort();
    wanted.sort();
    registered == wanted
}

fn of_all<T: Copy + Into<u8>>(items: Option<&Vec<T>>) -> Vec<u8> {
    items
        .into_iter()
        .flatten()
        .map(|item| (*item).into())
        .collect()
}

fn option_key(option: &CommandOption) -> (String, u8, String, bool, Option<u16>) {
    (
        option.name.clone(),
        option.kind as u8,
        option.description.clone(),
        option.required.unwrap_or(false),
        option.max_length,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_registered_again_only_when_they_differ() {
        let wanted = definitions(true);
        let mut echoed = definitions(true);
        echoed.reverse();
        for command in &mut echoed {
            command.id = Some(Id::new(5));
            command.version = Id::new(6);
            command.contexts.as_mut().unwrap().reverse();
        }
        assert!(same(&echoed, &wanted));
        assert!(!same(&[], &wanted));
        assert!(!same(&wanted[..1], &wanted));
        assert!(!same(&definitions(false), &wanted));
        echoed[1].options[0].max_length = Some(100);
        assert!(!same(&echoed, &wanted));
    }
}
