//! The system prompt: who the bot is.

use serde::Deserialize;

use super::check::Checker;

/// The prompt if the variable is not set.
const BUILT_IN: &str = "You take part in conversations on Discord. Answer the person who \
addressed you, in that person's language, briefly and to the point. Use the conversation that you \
are shown; where it does not hold what is needed, say so instead of guessing. Discord's Markdown \
works, tables do not.";

#[derive(Default, Deserialize)]
struct RawPrompt {
    system_prompt: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> String {
    let raw: RawPrompt = check.raw();
    raw.system_prompt.unwrap_or_else(|| BUILT_IN.to_owned())
}
