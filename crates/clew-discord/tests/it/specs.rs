//! Commands like those of a bot: each kind of option, each place to offer one.

use clew_discord::model::{CommandKind, CommandSpec, OptionKind, OptionSpec};

const QUESTION: OptionSpec = text("question", 0).required();
const TEXT: OptionSpec = text("text", 1).required();
const WINDOW: OptionSpec = text("window", 0);
const EVERYWHERE: OptionSpec = OptionSpec::flag("everywhere", "Not only here");
const FACT: OptionSpec = OptionSpec::completed("fact", "Which one").required();
const CHANNEL: OptionSpec = OptionSpec::new("channel", "Where", OptionKind::Channel);
const MODE: OptionSpec = OptionSpec::new(
    "mode",
    "What to do there",
    OptionKind::Choice(&[("Every message", "everything"), ("Nothing", "off")]),
);

const fn text(name: &'static str, min: u16) -> OptionSpec {
    OptionSpec::text(name, "Any text", min, 300)
}

const fn sub(name: &'static str, options: &'static [OptionSpec]) -> OptionSpec {
    OptionSpec::new(name, "What it does", OptionKind::Sub(options))
}

pub(crate) fn specs() -> Vec<CommandSpec> {
    let slash = |name, options| CommandSpec {
        name,
        description: "What it does",
        kind: CommandKind::Slash,
        options,
        servers_only: false,
        manage_server: false,
        moderate_members: false,
    };
    let memory = [
        sub("show", &[]),
        sub("remember", &[TEXT, EVERYWHERE]),
        sub("forget", &[FACT]),
    ];
    vec![
        slash("ask", vec![QUESTION]),
        CommandSpec {
            kind: CommandKind::Message,
            description: "",
            ..slash("Ask about this message", Vec::new())
        },
        slash("memory", memory.to_vec()),
        slash("help", Vec::new()),
        CommandSpec {
            servers_only: true,
            manage_server: true,
            ..slash("settings", vec![sub("set", &[WINDOW, CHANNEL, MODE])])
        },
        CommandSpec {
            servers_only: true,
            ..slash("server-memory", vec![sub("show", &[])])
        },
    ]
}
