//! Our commands as Discord's API takes them.

use twilight_model::application::command::{Command, CommandOption, CommandType};
use twilight_model::application::interaction::InteractionContextType;
use twilight_model::channel::ChannelType;
use twilight_model::guild::Permissions;
use twilight_model::oauth::ApplicationIntegrationType;
use twilight_util::builder::command::{
    AttachmentBuilder, BooleanBuilder, ChannelBuilder, CommandBuilder, RoleBuilder, StringBuilder,
    SubCommandBuilder, UserBuilder,
};

use crate::model::{CommandKind, CommandSpec, OptionKind, OptionSpec};

/// Channel types people talk in, threads last.
const TALKED_IN: [ChannelType; 9] = [
    ChannelType::GuildText,
    ChannelType::GuildVoice,
    ChannelType::GuildAnnouncement,
    ChannelType::GuildStageVoice,
    ChannelType::GuildForum,
    ChannelType::GuildMedia,
    ChannelType::AnnouncementThread,
    ChannelType::PublicThread,
    ChannelType::PrivateThread,
];
/// How many of them are no threads.
const CHANNELS: usize = 6;

/// A command. If registered `everywhere`, it states that it works only in servers,
/// or there and in direct messages with the bot.
pub(super) fn command(spec: &CommandSpec, everywhere: bool) -> Command {
    let kind = match spec.kind {
        CommandKind::Slash => CommandType::ChatInput,
        CommandKind::Message => CommandType::Message,
    };
    let mut command = CommandBuilder::new(spec.name, spec.description, kind);
    let needs = [
        (spec.manage_server, Permissions::MANAGE_GUILD),
        (spec.moderate_members, Permissions::MODERATE_MEMBERS),
    ];
    for (_, permission) in needs.into_iter().filter(|(is_needed, _)| *is_needed) {
        command = command.default_member_permissions(permission);
    }
    if everywhere {
        let mut contexts = vec![InteractionContextType::Guild];
        if !spec.servers_only {
            contexts.push(InteractionContextType::BotDm);
        }
        command = command
            .contexts(contexts)
            .integration_types([ApplicationIntegrationType::GuildInstall]);
    }
    let options = spec.options.iter().map(option);
    options.fold(command, CommandBuilder::option).build()
}

fn option(spec: &OptionSpec) -> CommandOption {
    let (name, description) = (spec.name, spec.description);
    let text = || StringBuilder::new(name, description);
    let channel = || ChannelBuilder::new(name, description);
    let mut built = match spec.kind {
        OptionKind::Text { min: 0, max } => text().max_length(max).build(),
        OptionKind::Text { min, max } => text().min_length(min).max_length(max).build(),
        OptionKind::Completed => text().autocomplete(true).build(),
        OptionKind::Choice(choices) => text().choices(choices.iter().copied()).build(),
        OptionKind::File => AttachmentBuilder::new(name, description).build(),
        OptionKind::Flag => BooleanBuilder::new(name, description).build(),
        OptionKind::Channel => channel()
            .channel_types(TALKED_IN.into_iter().take(CHANNELS))
            .build(),
        OptionKind::Place => channel().channel_types(TALKED_IN).build(),
        OptionKind::User => UserBuilder::new(name, description).build(),
        OptionKind::Role => RoleBuilder::new(name, description).build(),
        OptionKind::Sub(options) => {
            let sub = SubCommandBuilder::new(name, description);
            let options = options.iter().map(option);
            options.fold(sub, SubCommandBuilder::option).build()
        }
    };
    built.required = spec.required.then_some(true);
    built
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: OptionSpec = OptionSpec::text("text", "What to remember", 1, 300).required();
    const WINDOW: OptionSpec = OptionSpec::text("window", "How long", 0, 20);
    const FACT: OptionSpec = OptionSpec::completed("fact", "Which one");
    const CHANNEL: OptionSpec = OptionSpec::new("channel", "Where", OptionKind::Channel);
    const MODE: OptionSpec = OptionSpec::new(
        "mode",
        "How",
        OptionKind::Choice(&[("Mentions", "mentions"), ("Nothing", "off")]),
    );
    const EVERYWHERE: OptionSpec = OptionSpec::flag("everywhere", "Not only here");

    fn slash(name: &'static str, options: Vec<OptionSpec>) -> CommandSpec {
        CommandSpec {
            name,
            description: "What it does",
            kind: CommandKind::Slash,
            options,
            servers_only: false,
            manage_server: false,
            moderate_members: false,
        }
    }

    fn sub(name: &'static str, options: &'static [OptionSpec]) -> OptionSpec {
        OptionSpec::new(name, "What it does", OptionKind::Sub(options))
    }

    /// Commands with everything that there is.
    pub(in crate::commands) fn sample(everywhere: bool) -> Vec<Command> {
        let specs = [
            CommandSpec {
                kind: CommandKind::Message,
                description: "",
                ..slash("Ask about", Vec::new())
            },
            slash("ask", vec![WINDOW]),
            CommandSpec {
                servers_only: true,
                manage_server: true,
                ..slash(
                    "settings",
                    vec![sub("set", &[WINDOW, CHANNEL, MODE, EVERYWHERE])],
                )
            },
            slash(
                "memory",
                vec![sub("remember", &[TEXT]), sub("forget", &[FACT])],
            ),
        ];
        specs.iter().map(|spec| command(spec, everywhere)).collect()
    }

    #[test]
    fn a_command_is_written_as_discord_names_it() {
        let [about, .., memory] = &sample(true)[..] else {
            panic!("there are two at least");
        };
        let about = serde_json::to_value(about).unwrap();
        assert_eq!(
            (&about["type"], &about["description"]),
            (&json!(3), &json!(""))
        );
        let memory = serde_json::to_value(memory).unwrap();
        assert_eq!(memory["contexts"], json!([0, 1]));
        let remember = json!({
            "type": 1, "name": "remember", "description": "What it does",
            "options": [{
                "type": 3, "name": "text", "description": "What to remember", "required": true,
                "min_length": 1, "max_length": 300, "autocomplete": false, "choices": [],
            }],
        });
        assert_eq!(memory["options"][0], remember);
    }

    #[test]
    fn where_a_command_is_offered_is_said_if_it_is_offered_everywhere() {
        let settings = |everywhere| sample(everywhere).swap_remove(2);
        let everywhere = settings(true);
        assert_eq!(
            everywhere.contexts,
            Some(vec![InteractionContextType::Guild])
        );
        let managed = Some(Permissions::MANAGE_GUILD);
        assert_eq!(everywhere.default_member_permissions, managed);
        let here = settings(false);
        assert_eq!(
            (here.contexts, here.default_member_permissions),
            (None, managed)
        );
    }
}
