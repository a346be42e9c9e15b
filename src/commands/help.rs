//! `/help`.

use super::call::Call;
use super::definition::{Action, Body, Command, Handler, run};
use super::done::{Done, Stop};
use super::{COMMANDS, Context};

pub(super) const HELP: Command = Command {
    for_everybody: true,
    body: Body::Action(Action::new(Handler::Answer(run!(help)))),
    ..Command::new("help", "What I can do and what I remember")
};

/// Sections of several commands.
pub(super) const CONVERSATION: &str = "**What I remember of our conversation**";
pub(super) const SERVER: &str = "**About this server** (changes need Manage Server)";

/// What the bot does, on one screen.
async fn help(context: &Context<'_>, _: &Call) -> Result<Done, Stop> {
    let us = context.guild_state.current_user();
    let us = us.map_or_else(|| "me".to_owned(), |us| format!("<@{}>", us.user));
    Ok(Done::say(format!(
        "Mention {us} in a message, a thread or a reply, write to me directly, or use `/ask`. In \
         a thread I read what was said before; in a reply, what it answers. \"Ask about this \
         message\" is in the menu of every message, under Apps.\n\
         {}\n\
         \n\
         -# Commands and their answers are seen by you alone, except for `/ask` and \"Ask about \
         this message\".",
        sections()
    )))
}

/// The lines of the commands, each section under its title.
fn sections() -> String {
    let mut text = String::new();
    let mut current = "";
    for (section, line) in COMMANDS.iter().filter_map(|command| command.help) {
        if section == current {
            text.push_str(" · ");
        } else {
            text.push_str(&format!("\n{section}\n"));
            current = section;
        }
        text.push_str(line);
    }
    text
}
