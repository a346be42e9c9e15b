//! `/help`.

use super::Context;
use super::done::Done;

/// What the bot does, on one screen.
pub(super) fn help(context: &Context<'_>) -> Done {
    let us = context.guild_state.current_user();
    let us = us.map_or_else(|| "me".to_owned(), |us| format!("<@{}>", us.user));
    Done::say(format!(
        "Mention {us} in a message, a thread or a reply, write to me directly, or use `/ask`. In \
         a thread I read what was said before; in a reply, what it answers. \"Ask about this \
         message\" is in the menu of every message, under Apps.\n\
         \n\
         **What I remember of our conversation**\n\
         `/context show` · `/context clear` starts afresh · `/context save`, `/context history`, \
         `/context restore` keep a conversation and bring it back · `/clear-context` deletes it \
         here\n\
         **What I remember about you**\n\
         `/memory show` · `/memory remember` · `/memory forget`\n\
         **About this server** (changes need Manage Server)\n\
         `/server-memory show` · `/server-memory remember` · `/server-memory forget` · \
         `/settings show` · `/settings set`\n\
         **Your data**\n\
         `/privacy show` says what I keep of you · `/privacy export` sends it to you · \
         `/privacy erase` deletes it · `/privacy opt-out`: I keep nothing of you and do not read \
         your messages, unless you ask me something · `/privacy opt-in`\n\
         \n\
         -# Commands and their answers are seen by you alone, except for `/ask` and \"Ask about \
         this message\"."
    ))
}
