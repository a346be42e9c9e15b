//! `/help`.

use super::call::{Call, run};
use super::definition::{Action, Command};
use super::done::{Done, Stop};
use super::{CommandServices, offered};

pub(super) const HELP: Command = Command {
    for_everybody: true,
    ..Command::action(Action::new(
        "help",
        "What I can do and what I remember",
        run!(help),
    ))
};

/// What the bot does, on one screen.
async fn help(services: &CommandServices<'_>, _: &Call) -> Result<Done, Stop> {
    let us = services.guild_state.current_user();
    let us = us.map_or_else(|| "me".to_owned(), |us| format!("<@{}>", us.user));
    Ok(Done::say(format!(
        "Mention {us}, write to me directly, or use `/ask`. In a thread I read what was said \
         before; in a reply, what it answers. \"Ask about this message\" is in every message's \
         menu, under Apps.\n\
         {}\n\
         \n\
         -# Only you see commands and their answers, except `/ask` and \"Ask about this message\".",
        sections(services.mcp_listen.is_some())
    )))
}

/// The lines of the commands, each section under its title.
fn sections(has_clients: bool) -> String {
    let helped = offered(has_clients).filter_map(|command| command.help);
    let mut helped: Vec<_> = helped.collect();
    helped.sort_by_key(|(section, _)| *section);
    let mut text = String::new();
    for lines in helped.chunk_by(|(one, _), (other, _)| one == other) {
        let title = lines[0].0.title();
        let lines: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
        text.push_str(&format!("\n{title}\n{}", lines.join(" · ")));
    }
    text
}
