//! The lines that people read if there is no answer. Everything else goes into the
//! log.
//!
//! Each starts with `-# `, which keeps it out of blocks
//! ([`clew_context::engine::meaning::NOTE_PREFIX`]); Discord shows it small.

use std::borrow::Cow;

use crate::engine::daily_tokens::day_ends;
use crate::model::count;
use crate::telemetry::event::{LlmFailure, Refusal};
use clew_context::model::UnixMillis;

/// For a bare mention with nothing around it.
pub(super) const INVITATION: &str = "-# Ask me something, or mention me in a reply.";
/// For a bare mention in a thread of which nothing could be read.
pub(super) const UNREAD_THREAD: &str =
    "-# I can't read this thread. Ask me in a few words instead.";
/// No agent answers in this channel (`DEFAULT_AGENT=off`).
pub(super) const NO_AGENT: &str = "-# I don't answer in this channel.";
/// For a bare mention that points at a message of somebody who opted out.
pub(super) const WITHHELD: &str = "-# Whoever wrote that message opted out, so I don't read it.";
/// Said once per channel with `DISCORD_MESSAGE_CONTENT=off`.
pub(super) const ONLY_MENTIONS: &str =
    "-# I only see messages that mention me. Mention me when you ask.";
/// The moderators of the server blocked the asker (`/block member`): said only where nobody else
/// reads it.
pub const BLOCKED: &str = "-# The moderators of this server don't let you ask me here.";
/// The process ends before a command is answered, and no other will answer it.
pub const INTERRUPTED: &str = "-# I'm restarting. Try again in a moment.";

/// Why a trigger gets no turn. Calls are refused by `commands`, in its own words.
pub fn refusal(reason: Refusal, now: UnixMillis) -> Option<Cow<'static, str>> {
    let line = match reason {
        Refusal::QueueFull => {
            "-# I'm still answering earlier questions here. Try again in a moment."
        }
        Refusal::UserRate => "-# That's a lot of questions. Try again in a minute.",
        Refusal::UserTokens => return Some(spent("You", now)),
        Refusal::GuildTokens => return Some(spent("This server", now)),
        Refusal::TotalTokens => return Some(spent("I", now)),
        Refusal::Blocked => BLOCKED,
        Refusal::Busy => "-# I'm busy elsewhere. Try again in a moment.",
        Refusal::NoContent => ONLY_MENTIONS,
        Refusal::NotAllowed | Refusal::Elsewhere | Refusal::UnknownCommand | Refusal::Stopping => {
            return None;
        }
    };
    Some(line.into())
}

/// Discord shows the time as each reader's clock has it.
fn spent(who: &str, now: UnixMillis) -> Cow<'static, str> {
    let ends = day_ends(now);
    let line = format!("-# {who} used up today's tokens. Try again <t:{ends}:R>.");
    line.into()
}

/// The label of the button under [`noted`].
pub(super) const SHOW_NOTED: &str = "Show";

/// The label of the button under answers with a receipt.
pub(super) const RECEIPT: &str = "Why?";
/// The labels of those that steer it.
pub(super) const STOP: &str = "Stop";
pub(super) const REGENERATE: &str = "Regenerate";
pub(super) const CONTINUE: &str = "Continue";

/// How many facts were learnt. Everyone sees the number; only the asker can see the
/// facts.
pub(super) fn noted(facts: usize) -> String {
    format!("-# Noted {}.", count(facts, "thing"))
}

/// Why the model gave no answer.
pub(super) const fn model_failed(reason: LlmFailure) -> &'static str {
    match reason {
        LlmFailure::Unauthorized => {
            "-# The model is unavailable until the operator fixes its account."
        }
        LlmFailure::NotFound | LlmFailure::Rejected => {
            "-# The model rejected this. Trying again won't help; the operator's log says why."
        }
        LlmFailure::RateLimited => "-# The model is busy. Try again in a minute.",
        LlmFailure::ContextTooLong => {
            "-# This conversation is too long for the model. Try a new one."
        }
        LlmFailure::ImagesRefused => {
            "-# The model can't read these images. The operator's log says why."
        }
        LlmFailure::Timeout => "-# The model took too long. Try again.",
        LlmFailure::Empty => "-# The model had no answer. Try other words.",
        LlmFailure::Unavailable
        | LlmFailure::Malformed
        | LlmFailure::Truncated
        | LlmFailure::Cancelled => "-# The model is unavailable. Try again in a moment.",
    }
}

/// An agent run has used up its tokens.
pub(super) const TOKENS_SPENT: &str = "-# I stopped here: this task's tokens are used up.";
/// Added to what an agent run had said when it was ended.
pub(super) const PART_OF_RUN: &str = "-# I was stopped before this was complete.";
/// Added to an answer that somebody stopped.
pub(super) const STOPPED: &str = "-# I was stopped here.";
/// Added to an answer that reached the model's limit of tokens.
pub(super) const TOKEN_LIMIT: &str = "-# The answer ends here: it reached the model's token limit.";
/// Added to an answer that the model's provider cut off.
pub(super) const FILTERED: &str = "-# The answer ends here: the model's content filter cut it off.";
/// Added to an answer that is longer than can be posted.
pub(super) const CUT_OFF: &str = "-# The answer ends here: it was too long.";
/// Added if a link in the question leads to what not everybody here may read, or to
/// nothing: it reads the same.
pub(super) const CLOSED_LINK: &str = "-# I can't show what a link in the question leads to.";
/// Added to an answer that broke off.
pub(super) const BROKE_OFF: &str = "-# The answer broke off here. Ask again for the rest.";
