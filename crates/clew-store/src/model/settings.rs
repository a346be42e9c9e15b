//! The settings of a server (`/settings`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clew_context::model::{
    ChannelId, ChannelMode, LinkContext, LoneContext, PlaceContext, ReplyTarget, UserId,
};

/// The settings of one server; unset ones follow the operator's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuildSettings {
    /// How far back a conversation is remembered
    /// (`CONTEXT_ROLLING_WINDOW_S`).
    pub rolling_window: Option<Duration>,
    /// Channels in which the bot is silent; a thread counts as its parent.
    pub channels_off: BTreeSet<ChannelId>,
    /// Channels in which the bot answers every message by a human.
    pub channels_answered: BTreeSet<ChannelId>,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: Option<ReplyTarget>,
    /// Whether facts are learnt from conversations (`MEMORY_LEARN`).
    pub learning: Option<bool>,
    /// `LINK_CONTEXT`.
    pub link_context: Option<LinkContext>,
    /// `LONE_CONTEXT`.
    pub lone_context: Option<LoneContext>,
    /// The same of single channels, which goes before the server's.
    pub lone_contexts: BTreeMap<ChannelId, LoneContext>,
    /// `PLACE_CONTEXT`.
    pub place_context: Option<PlaceContext>,
    /// What the server's managers tell the model: at most [`Self::MOST_PROMPT`] characters.
    pub prompt: Option<String>,
    /// Who is not answered in the server: at most [`Self::MOST_BLOCKED`].
    pub blocked: BTreeSet<UserId>,
}

/// One `/settings set`: the given settings change, the others stay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingsChange {
    /// How far back a conversation is remembered.
    pub rolling_window: Change<Duration>,
    /// What the bot does in a channel.
    pub channel: Option<(ChannelId, ChannelMode)>,
    /// Which message an answer in a thread replies to.
    pub reply_target: Change<ReplyTarget>,
    /// Whether facts are learnt.
    pub learning: Change<bool>,
    /// What is shown around a linked message.
    pub link_context: Change<LinkContext>,
    /// What a lone mention with text gets.
    pub lone_context: Change<LoneContext>,
    /// What it gets in a channel.
    pub lone_context_in: Option<(ChannelId, Change<LoneContext>)>,
    /// What is shown of a channel itself.
    pub place_context: Change<PlaceContext>,
    /// What the server's managers tell the model.
    pub prompt: Change<String>,
    /// Whether somebody is not answered. Beyond [`GuildSettings::MOST_BLOCKED`] nobody is added.
    pub blocked: Option<(UserId, bool)>,
}

/// A change to one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// Leave it as it is.
    #[default]
    Keep,
    /// Follow the operator's setting again.
    Unset,
    /// Set this value.
    Set(T),
}

impl<T> Change<T> {
    fn of(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Unset => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl GuildSettings {
    /// The most characters of a server's instructions.
    pub const MOST_PROMPT: usize = 2_000;
    /// The most members that one server can block.
    pub const MOST_BLOCKED: usize = 200;

    /// What the bot does in a channel, or in a thread under `parent`.
    pub fn mode(&self, channel: ChannelId, parent: Option<ChannelId>) -> ChannelMode {
        let named = |set: &BTreeSet<ChannelId>| {
            set.contains(&channel) || parent.is_some_and(|parent| set.contains(&parent))
        };
        if named(&self.channels_off) {
            ChannelMode::Off
        } else if named(&self.channels_answered) {
            ChannelMode::Everything
        } else {
            ChannelMode::Mentions
        }
    }

    /// What a lone mention with text gets in a channel; none if the operator's setting
    /// applies.
    pub fn lone_context_in(&self, channel: ChannelId) -> Option<LoneContext> {
        let own = self.lone_contexts.get(&channel).copied();
        own.or(self.lone_context)
    }

    /// Applies a change.
    #[must_use]
    pub fn changed(mut self, change: &SettingsChange) -> Self {
        self.rolling_window = change.rolling_window.of(self.rolling_window);
        self.reply_target = change.reply_target.of(self.reply_target);
        self.learning = change.learning.of(self.learning);
        self.link_context = change.link_context.of(self.link_context);
        self.lone_context = change.lone_context.of(self.lone_context);
        self.place_context = change.place_context.of(self.place_context);
        self.prompt = change.prompt.clone().of(self.prompt);
        match change.blocked {
            Some((user, true)) if self.blocked.len() < Self::MOST_BLOCKED => {
                self.blocked.insert(user);
            }
            Some((user, false)) => drop(self.blocked.remove(&user)),
            Some((_, true)) | None => {}
        }
        if let Some((channel, change)) = change.lone_context_in {
            let own = self.lone_contexts.remove(&channel);
            let own = change.of(own).map(|context| (channel, context));
            self.lone_contexts.extend(own);
        }
        if let Some((channel, mode)) = change.channel {
            self.channels_off.remove(&channel);
            self.channels_answered.remove(&channel);
            match mode {
                ChannelMode::Mentions => {}
                ChannelMode::Everything => drop(self.channels_answered.insert(channel)),
                ChannelMode::Off => drop(self.channels_off.insert(channel)),
            }
        }
        self
    }
}
