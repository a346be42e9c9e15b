//! What makes a message a trigger, and what its answer replies to.

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;
use clew_context::model::{ReplyTarget, TriggerRules};

/// The words of `THREAD_REPLY_TARGET`.
pub(super) const REPLY_TARGETS: [(&str, ReplyTarget); 2] = [
    ("newest", ReplyTarget::Newest),
    ("trigger", ReplyTarget::Trigger),
];

#[derive(Default, Deserialize)]
struct RawTriggers {
    mention_only: Option<String>,
    auto_reply_channels: Option<String>,
    reply_to_bots: Option<String>,
    max_bot_turns: Option<String>,
    thread_reply_target: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> TriggerRules {
    let raw: RawTriggers = check.raw();
    let triggers = TriggerRules {
        mention_only: check.switch(&var::MENTION_ONLY, raw.mention_only),
        auto_reply_channels: check.ids(&var::AUTO_REPLY_CHANNELS, raw.auto_reply_channels),
        reply_to_bots: check.switch(&var::REPLY_TO_BOTS, raw.reply_to_bots),
        max_bot_turns: check.number(&var::MAX_BOT_TURNS, raw.max_bot_turns, 1..=100),
    };
    if triggers.mention_only && !triggers.auto_reply_channels.is_empty() {
        check.warn("AUTO_REPLY_CHANNELS has no effect with MENTION_ONLY=true".to_owned());
    }
    triggers
}

pub(super) fn reply_target(check: &mut Checker) -> ReplyTarget {
    let raw: RawTriggers = check.raw();
    check.one_of(
        &var::THREAD_REPLY_TARGET,
        raw.thread_reply_target,
        &REPLY_TARGETS,
    )
}
