//! What is done where an answer cannot be posted: a reaction, or a line in the log.

use tokio::time::Instant;

use crate::telemetry::event::SendStage;
use crate::telemetry::with_sources;
use crate::turn::{ASIDE_TIMEOUT, Turn};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelKind, Fallback};

/// The reaction that says that we cannot write here.
const CANNOT_WRITE: &str = "🔇";
/// The reaction that says that an answer could not be posted.
const NOT_POSTED: &str = "⚠️";

/// An answer could not be posted.
pub(super) async fn undelivered(turn: &Turn<'_>, error: &RestError) {
    // A command's token ends after 15 minutes, and a person may close direct messages: no right helps.
    let is_by_rights = turn.interaction().is_none() && turn.ids.guild.is_some();
    match error.reason {
        Fallback::Forbidden | Fallback::Locked | Fallback::Archived if is_by_rights => {
            cannot_write(turn, error.reason).await;
        }
        reason => {
            tracing::warn!(error = %with_sources(error), "an answer could not be sent");
            turn.report.not_sent(reason, SendStage::Create);
            react(turn, NOT_POSTED).await;
        }
    }
}

/// We may not write here: reacts to the trigger if that is allowed; otherwise logs
/// it.
pub(in crate::turn) async fn cannot_write(turn: &Turn<'_>, reason: Fallback) {
    turn.report.not_sent(reason, SendStage::Create);
    let kind = turn.job.request.channel_kind;
    if kind.is_some_and(ChannelKind::is_thread) {
        turn.report.thread_closed(reason);
    }
    if react(turn, CANNOT_WRITE).await {
        return;
    }
    let channel = turn.trigger().channel;
    let negative_cache = &turn.services.negative_cache;
    if negative_cache.first_warning_today(channel, Instant::now()) {
        tracing::warn!(%channel, %reason,
            "cannot write in this channel: give the bot Send Messages (in threads Send \
             Messages in Threads) there, or deny it View Channel");
    }
}

/// Reacts to a trigger that is a message, if that is allowed.
async fn react(turn: &Turn<'_>, sign: &str) -> bool {
    let (services, trigger) = (turn.services, turn.trigger());
    let ours = services.guild_state.our_access(trigger.channel);
    if !turn.job.request.cause.is_posted() || ours.forbids(|rights| rights.react) {
        return false;
    }
    let deadline = Instant::now() + ASIDE_TIMEOUT;
    let rest = &services.rest;
    let reacted = rest.add_reaction(trigger.channel, trigger.id, sign, deadline);
    match reacted.await {
        Ok(()) => true,
        Err(error) => {
            turn.report.not_sent(error.reason, SendStage::React);
            false
        }
    }
}
