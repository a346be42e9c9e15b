//! The text of `.env.example`, generated from the table.

use clew::config::{Group, VARIABLES, Variable};

const HEAD: &str = "\
# Clew's settings. Copy this file to .env and uncomment what you change.
# Environment variables override this file; an empty value means the default.
# Put values with spaces in double quotes.
";

/// The text of `.env.example`: each variable with its description, unit and
/// default, commented out.
pub(super) fn example() -> String {
    let mut text = HEAD.to_owned();
    let mut group = None;
    for variable in VARIABLES {
        if group != Some(variable.group) {
            group = Some(variable.group);
            text.push_str(&format!("\n# {}\n\n", title(variable.group)));
        }
        let Variable {
            name,
            default,
            unit,
            about,
            ..
        } = variable;
        text.push_str(&format!("# {about} ({unit})\n#{name}={default}\n"));
    }
    text
}

/// The heading of a group.
fn title(group: Group) -> &'static str {
    match group {
        Group::Discord => "Discord",
        Group::Access => "Who may use the bot, and where",
        Group::Triggers => "What the bot answers to",
        Group::Model => "The model (without LLM_BASE_URL the bot shows what it collected)",
        Group::Context => "Caps of the collected context",
        Group::Window => "Window of recent messages in memory",
        Group::Turns => "Turns and answers",
        Group::Tools => "Tools that the model may call",
        Group::Operation => "Telemetry, log and state",
        Group::Memory => "Memory and history",
    }
}
