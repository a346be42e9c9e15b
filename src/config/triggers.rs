//! What makes a message a trigger, and what its answer replies to.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;
use crate::model::ChannelId;

/// What makes a message a trigger, beside a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerConfig {
    /// `MENTION_ONLY`: in servers only mentions count (a reply's ping is one),
    /// neither replies without ping nor `auto_reply_channels`.
    pub mention_only: bool,
    /// `AUTO_REPLY_CHANNELS`: every human message is a trigger; a thread
    /// counts as its parent.
    pub auto_reply_channels: BTreeSet<ChannelId>,
    /// `REPLY_TO_BOTS`: a bot's inline mention is a trigger.
    pub reply_to_bots: bool,
    /// `MAX_BOT_TURNS`: bot turns in a row before a person has to speak.
    pub max_bot_turns: usize,
}

/// `THREAD_REPLY_TARGET`: which message an answer in a thread replies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyTarget {
    /// The newest human message at the turn's start (seed S3).
    Newest,
    /// The trigger.
    Trigger,
}

#[derive(Default, Deserialize)]
struct Raw {
    mention_only: Option<String>,
    auto_reply_channels: Option<String>,
    reply_to_bots: Option<String>,
    max_bot_turns: Option<String>,
    thread_reply_target: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> TriggerConfig {
    let raw: Raw = check.raw();
    let triggers = TriggerConfig {
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
    let raw: Raw = check.raw();
    check.one_of(
        &var::THREAD_REPLY_TARGET,
        raw.thread_reply_target,
        &[
            ("newest", ReplyTarget::Newest),
            ("trigger", ReplyTarget::Trigger),
        ],
    )
}
