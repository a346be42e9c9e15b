//! Our commands: how Discord shows them, and what a call of one says.

mod call;

use twilight_model::application::command::{Command, CommandOption, CommandType};
use twilight_model::application::interaction::InteractionContextType;
use twilight_model::id::Id;
use twilight_model::oauth::ApplicationIntegrationType;
use twilight_util::builder::command::{CommandBuilder, StringBuilder};

pub use call::called;

use super::error::RestError;
use super::rest::Rest;
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
    rest: &Rest,
    application: ApplicationId,
    guild: Option<GuildId>,
) -> Result<bool, RegisterError> {
    let Some(interaction) = rest.interaction(application) else {
        return Ok(false);
    };
    let guild = guild.and_then(|guild| Id::new_checked(guild.get()));
    let wanted = definitions(guild.is_none());
    let registered = match guild {
        Some(guild) => interaction.guild_commands(guild).await,
        None => interaction.global_commands().await,
    };
    // What cannot be read differs from ours.
    let registered = registered
        .map_err(|error| RegisterError::List(RestError::of_twilight(&error)))?
        .model()
        .await
        .unwrap_or_default();
    if same(&registered, &wanted, guild.is_none()) {
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
    /// Reading those registered.
    #[error("cannot list the registered commands")]
    List(#[source] RestError),
    /// Replacing them.
    #[error("cannot register the commands")]
    Set(#[source] RestError),
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

/// Compares what we define, not what Discord adds: ids, versions, and the
/// places of a command of one server.
fn same(registered: &[Command], wanted: &[Command], everywhere: bool) -> bool {
    let key = |command: &Command| {
        let options: Vec<_> = command.options.iter().map(option_key).collect();
        let places = everywhere.then(|| {
            let contexts = numbers(command.contexts.as_ref());
            (contexts, numbers(command.integration_types.as_ref()))
        });
        let texts = (command.name.clone(), command.description.clone());
        (texts, u8::from(command.kind), options, places)
    };
    let mut registered: Vec<_> = registered.iter().map(key).collect();
    let mut wanted: Vec<_> = wanted.iter().map(key).collect();
    registered.sort();
    wanted.sort();
    registered == wanted
}

/// Discord's numbers of contexts or installation types, in order.
fn numbers<T: Copy + Into<u8>>(items: Option<&Vec<T>>) -> Vec<u8> {
    let items = items.into_iter().flatten();
    let mut numbers: Vec<u8> = items.map(|item| (*item).into()).collect();
    numbers.sort_unstable();
    numbers
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
        assert!(same(&echoed, &wanted, true));
        assert!(!same(&[], &wanted, true));
        assert!(!same(&wanted[..1], &wanted, true));
        assert!(!same(&definitions(false), &wanted, true));
        assert!(same(&echoed, &definitions(false), false));
        echoed[1].options[0].max_length = Some(100);
        assert!(!same(&echoed, &wanted, true));
    }
}
