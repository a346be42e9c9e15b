//! Our commands as Discord shows them. Names are the words [`super::call`]
//! reads; descriptions have at most 100 characters.

use twilight_model::application::command::{Command, CommandType};
use twilight_model::application::interaction::InteractionContextType;
use twilight_model::channel::ChannelType;
use twilight_model::guild::Permissions;
use twilight_model::oauth::ApplicationIntegrationType;
use twilight_util::builder::command::{
    BooleanBuilder, ChannelBuilder, CommandBuilder, StringBuilder, SubCommandBuilder,
};

use super::name;

/// Longest question, in characters: that of a message.
const MAX_QUESTION: u16 = 2_000;
/// Longest fact, in characters: short enough for one line of a prompt.
const MAX_FACT: u16 = 300;
/// Longest snapshot description, in characters: it fits a choice.
const MAX_SAVED_DESCRIPTION: u16 = 100;
/// Longest time span as typed, in characters.
const MAX_SPAN: u16 = 20;
/// The choice that resets a setting.
const OPERATORS: (&str, &str) = ("As the operator set it", name::DEFAULT);
/// Channel types people talk in; a thread counts as its parent.
const TALKED_IN: [ChannelType; 6] = [
    ChannelType::GuildText,
    ChannelType::GuildVoice,
    ChannelType::GuildAnnouncement,
    ChannelType::GuildStageVoice,
    ChannelType::GuildForum,
    ChannelType::GuildMedia,
];

/// Our commands. If registered everywhere, each states that it works only in
/// servers, or there and in direct messages with the bot.
pub(super) fn definitions(everywhere: bool) -> Vec<Command> {
    let anywhere = [
        ask(),
        CommandBuilder::new(name::ASK_ABOUT, "", CommandType::Message),
        context(),
        chat(name::CLEAR_CONTEXT, "Delete my history of our talk here"),
        memory(),
        privacy(),
        chat(name::HELP, "What I can do and what I remember"),
    ];
    let servers = [settings(), server_memory()];
    let both = vec![InteractionContextType::Guild, InteractionContextType::BotDm];
    let anywhere = anywhere.map(|command| (command, both.clone()));
    let servers = servers.map(|command| (command, vec![InteractionContextType::Guild]));
    let all = anywhere.into_iter().chain(servers);
    all.map(|(command, contexts)| {
        let placed = if everywhere {
            command
                .contexts(contexts)
                .integration_types([ApplicationIntegrationType::GuildInstall])
        } else {
            command
        };
        placed.build()
    })
    .collect()
}

fn ask() -> CommandBuilder {
    let question = StringBuilder::new(name::QUESTION, "What do you want to know?")
        .required(true)
        .max_length(MAX_QUESTION);
    chat(name::ASK, "Ask a question").option(question)
}

fn context() -> CommandBuilder {
    let everyone = BooleanBuilder::new(
        name::EVERYONE,
        "For everybody in this server (needs Manage Server)",
    );
    let description =
        StringBuilder::new(name::DESCRIPTION, "What to call it").max_length(MAX_SAVED_DESCRIPTION);
    let agent =
        StringBuilder::new(name::AGENT, "Only what was saved with this agent").autocomplete(true);
    let snapshot = StringBuilder::new(name::SNAPSHOT, "Which one")
        .required(true)
        .autocomplete(true);
    chat(name::CONTEXT, "What I remember of our conversation")
        .option(sub(name::CLEAR, "Start afresh from here").option(everyone))
        .option(sub(name::SHOW, "What I go by at the moment"))
        .option(sub(name::SAVE, "Save the conversation").option(description))
        .option(sub(name::HISTORY, "List what you saved").option(agent))
        .option(sub(name::RESTORE, "Bring back what you saved").option(snapshot))
}

fn settings() -> CommandBuilder {
    let window = StringBuilder::new(
        name::ROLLING_WINDOW,
        "How long I remember: 90m, 12h or 7d, at most 365d; default: as the operator set it",
    )
    .max_length(MAX_SPAN);
    let channel = ChannelBuilder::new(name::CHANNEL, "Together with mode: the channel it is for")
        .channel_types(TALKED_IN);
    let mode = StringBuilder::new(name::MODE, "Together with channel: what I answer there")
        .choices([
            ("Mentions and replies", name::MENTIONS),
            ("Every message", name::EVERYTHING),
            ("Nothing", name::OFF),
        ]);
    let target = StringBuilder::new(name::REPLY_TARGET, "What my answers in threads reply to")
        .choices([
            ("The newest message", name::NEWEST),
            ("The message that asked", name::TRIGGER),
            OPERATORS,
        ]);
    let learning = StringBuilder::new(name::LEARNING, "Whether I learn facts from conversations")
        .choices([("Yes", name::ON), ("No", name::OFF), OPERATORS]);
    chat(name::SETTINGS, "How I behave in this server")
        .default_member_permissions(Permissions::MANAGE_GUILD)
        .option(sub(name::SHOW, "Show the settings"))
        .option(
            sub(name::SET, "Change what is given, leave the rest")
                .option(window)
                .option(channel)
                .option(mode)
                .option(target)
                .option(learning),
        )
}

fn memory() -> CommandBuilder {
    let everywhere = BooleanBuilder::new(name::EVERYWHERE, "Use it in every server, not only here");
    chat(name::MEMORY, "What I remember about you")
        .option(sub(name::SHOW, "Show what I remember about you"))
        .option(
            sub(name::REMEMBER, "Remember something about you")
                .option(fact_text())
                .option(everywhere),
        )
        .option(sub(name::FORGET, "Forget something about you").option(fact()))
}

fn server_memory() -> CommandBuilder {
    chat(name::SERVER_MEMORY, "What I remember about this server")
        .option(sub(name::SHOW, "Show what I remember about this server"))
        .option(
            sub(
                name::REMEMBER,
                "Remember something about this server (needs Manage Server)",
            )
            .option(fact_text()),
        )
        .option(
            sub(
                name::FORGET,
                "Forget something about this server (needs Manage Server)",
            )
            .option(fact()),
        )
}

fn privacy() -> CommandBuilder {
    chat(name::PRIVACY, "What I keep of you")
        .option(sub(name::SHOW, "Show what I keep of you"))
        .option(sub(name::OPT_OUT, "Keep nothing of you from now on"))
        .option(sub(name::OPT_IN, "Remember you again"))
        .option(sub(name::EXPORT, "Send you everything I keep of you"))
        .option(sub(name::ERASE, "Erase everything I keep of you"))
}

fn fact_text() -> StringBuilder {
    StringBuilder::new(name::TEXT, "What to remember")
        .required(true)
        .min_length(1)
        .max_length(MAX_FACT)
}

fn fact() -> StringBuilder {
    StringBuilder::new(name::FACT, "Which one")
        .required(true)
        .autocomplete(true)
}

fn chat(name: &str, description: &str) -> CommandBuilder {
    CommandBuilder::new(name, description, CommandType::ChatInput)
}

fn sub(name: &str, description: &str) -> SubCommandBuilder {
    SubCommandBuilder::new(name, description)
}

#[cfg(test)]
mod tests {
    use twilight_model::application::command::CommandOption;

    use super::*;

    #[test]
    fn everything_is_described_in_a_hundred_characters() {
        #[track_caller]
        fn check(name: &str, description: &str) {
            let length = description.chars().count();
            assert!((1..=100).contains(&length), "{name}: {description}");
        }
        fn check_options(options: &[CommandOption]) {
            let required = |option: &CommandOption| option.required == Some(true);
            assert!(options.is_sorted_by_key(|option| !required(option)));
            for option in options {
                check(&option.name, &option.description);
                check_options(option.options.as_deref().unwrap_or_default());
            }
        }
        for command in definitions(true) {
            if command.kind == CommandType::ChatInput {
                check(&command.name, &command.description);
            }
            check_options(&command.options);
        }
    }

    #[test]
    fn what_is_of_servers_says_so() {
        for command in definitions(true) {
            let of_servers = matches!(&*command.name, "settings" | "server-memory");
            let contexts = command.contexts.unwrap();
            assert_eq!(
                !contexts.contains(&InteractionContextType::BotDm),
                of_servers,
                "{}",
                command.name
            );
            let managed = command.default_member_permissions == Some(Permissions::MANAGE_GUILD);
            assert_eq!(managed, command.name == "settings");
        }
    }
}
