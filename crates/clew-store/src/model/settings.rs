//! The settings of a server (`/settings`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use clew_context::model::{
    ChannelId, ChannelMode, GuildId, LinkContext, LoneContext, PlaceContext, ReplyTarget, RoleId,
    UserId,
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
    /// Whether buttons under answers steer them; off unless set.
    pub buttons: Option<bool>,
    /// Whether members' own programs may read; off unless set.
    pub programs: Option<bool>,
    /// What the server's managers tell the model: at most [`Self::MOST_PROMPT`] characters.
    pub prompt: Option<String>,
    /// Who is not answered in the server: at most [`Self::MOST_BLOCKED`].
    pub blocked: BTreeSet<UserId>,
    /// What the members of a role may use, at most [`Self::MOST_ROLES`]; the role with the
    /// server's id is everybody's.
    pub role_limits: BTreeMap<RoleId, RoleLimits>,
}

/// What a member may use in a server; none: as much as the operator lets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoleLimits {
    /// Questions a minute.
    pub questions: Option<u32>,
    /// The model's tokens a day (UTC).
    pub tokens: Option<u64>,
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
    /// Whether answers have buttons.
    pub buttons: Change<bool>,
    /// Whether members' own programs may read.
    pub programs: Change<bool>,
    /// What the server's managers tell the model.
    pub prompt: Change<String>,
    /// Whether somebody is not answered. Beyond [`GuildSettings::MOST_BLOCKED`] nobody is added.
    pub blocked: Option<(UserId, bool)>,
    /// What a role's members may use; without any limit it is as others. Beyond
    /// [`GuildSettings::MOST_ROLES`] no role is added.
    pub role_limits: Option<(RoleId, RoleLimits)>,
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
    /// The most roles that have limits of their own.
    pub const MOST_ROLES: usize = 20;

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

    /// What somebody with these roles may use: the most generous of what theirs allow.
    pub fn limits_of(&self, guild: GuildId, roles: &[RoleId]) -> RoleLimits {
        let everybody = RoleId::new(guild.get());
        let held = roles.iter().chain([&everybody]);
        let held: Vec<&RoleLimits> = held.filter_map(|id| self.role_limits.get(id)).collect();
        let most = |limit: fn(&RoleLimits) -> Option<u64>| {
            let limits: Option<Vec<u64>> = held.iter().map(|one| limit(one)).collect();
            limits?.into_iter().max()
        };
        RoleLimits {
            questions: most(|one| one.questions.map(u64::from))
                .map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            tokens: most(|one| one.tokens),
        }
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
        self.buttons = change.buttons.of(self.buttons);
        self.programs = change.programs.of(self.programs);
        self.prompt = change.prompt.clone().of(self.prompt);
        match change.blocked {
            Some((user, true)) if self.blocked.len() < Self::MOST_BLOCKED => {
                self.blocked.insert(user);
            }
            Some((user, false)) => drop(self.blocked.remove(&user)),
            Some((_, true)) | None => {}
        }
        if let Some((role, limits)) = change.role_limits {
            self.role_limits.remove(&role);
            if limits != RoleLimits::default() && self.role_limits.len() < Self::MOST_ROLES {
                self.role_limits.insert(role, limits);
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(questions: Option<u32>, tokens: Option<u64>) -> RoleLimits {
        RoleLimits { questions, tokens }
    }

    #[test]
    fn the_most_generous_of_ones_roles_counts() {
        let (guild, role) = (GuildId::new(1), RoleId::new);
        let settings = GuildSettings {
            role_limits: [
                (role(1), limits(Some(1), Some(10))),
                (role(2), limits(Some(5), None)),
                (role(3), limits(Some(3), Some(30))),
            ]
            .into(),
            ..GuildSettings::default()
        };
        let of = |roles: &[u64]| {
            let roles: Vec<RoleId> = roles.iter().map(|id| role(*id)).collect();
            settings.limits_of(guild, &roles)
        };
        assert_eq!(of(&[]), limits(Some(1), Some(10)));
        assert_eq!(of(&[9]), limits(Some(1), Some(10)));
        assert_eq!(of(&[3]), limits(Some(3), Some(30)));
        assert_eq!(of(&[3, 2]), limits(Some(5), None));
        let none = GuildSettings::default();
        assert_eq!(none.limits_of(guild, &[role(3)]), RoleLimits::default());
    }

    #[test]
    fn so_many_are_blocked_and_so_many_roles_limited_at_most() {
        let mut settings = GuildSettings::default();
        for id in 1..=300 {
            settings = settings.changed(&SettingsChange {
                blocked: Some((UserId::new(id), true)),
                role_limits: Some((RoleId::new(id), limits(Some(1), None))),
                ..SettingsChange::default()
            });
        }
        assert_eq!(settings.blocked.len(), GuildSettings::MOST_BLOCKED);
        assert_eq!(settings.role_limits.len(), GuildSettings::MOST_ROLES);
        let back = SettingsChange {
            blocked: Some((UserId::new(1), false)),
            role_limits: Some((RoleId::new(1), RoleLimits::default())),
            ..SettingsChange::default()
        };
        let settings = settings.changed(&back);
        assert_eq!(settings.blocked.len(), GuildSettings::MOST_BLOCKED - 1);
        assert_eq!(settings.role_limits.len(), GuildSettings::MOST_ROLES - 1);
    }
}
