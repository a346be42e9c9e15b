//! The system prompt: who the bot is.

use super::check::Checker;
use super::variable as var;

/// The prompt if the variable is not set.
const BUILT_IN: &str = "You take part in conversations on Discord. Answer the person who \
addressed you, in that person's language, briefly and to the point. Use the conversation that you \
are shown; where it does not hold what is needed, say so instead of guessing. Discord's Markdown \
works, tables do not.";

pub(super) fn read(check: &mut Checker) -> String {
    let own = check.text(&var::SYSTEM_PROMPT);
    own.unwrap_or(BUILT_IN).to_owned()
}
