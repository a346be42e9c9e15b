//! The operator's rules as data: who may use the bot, where, and what counts as a
//! trigger. `engine::route` applies them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{ChannelId, GuildId, Proxies, RoleId, UserId};

/// The allow and deny lists. Deny wins over allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRules {
    /// `guild:` in `ALLOWED` and `DENIED`.
    pub guilds: IdList<GuildId>,
    /// `channel:` there; a thread goes by its parent.
    pub channels: IdList<ChannelId>,
    /// `user:` there.
    pub users: IdList<UserId>,
    /// `role:` there.
    pub roles: IdList<RoleId>,
    /// Whether direct messages are answered.
    pub direct_messages: bool,
}

/// The allow and deny lists for one kind of id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdList<T> {
    /// What is allowed.
    pub allowed: AllowList<T>,
    /// What is denied, even if allowed.
    pub denied: BTreeSet<T>,
}

/// One allow list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowList<T> {
    /// Everything.
    All,
    /// These.
    Only(BTreeSet<T>),
}

/// What makes a message a trigger, apart from a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerRules {
    /// `MENTION_ONLY`: in servers only mentions count (a reply's ping is one), but
    /// neither replies without a ping nor `auto_reply_channels`.
    pub mention_only: bool,
    /// `AUTO_REPLY_CHANNELS`: every message by a person is a trigger; a thread goes
    /// by its parent.
    pub auto_reply_channels: BTreeSet<ChannelId>,
    /// `REPLY_TO_BOTS`: a mention typed by a bot is a trigger.
    pub reply_to_bots: bool,
    /// Bot turns in a row before a person has to write again.
    pub max_bot_turns: usize,
    /// `PROXY_APPS`: the apps through which people write.
    pub proxies: Proxies,
    /// How long a question waits for its copy.
    pub proxy_hold: Duration,
}

/// For how long after its wait a question is known, for copies and deletions that come late.
pub const LATE_COPIES: Duration = Duration::from_secs(5);

/// What the bot responds to in a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChannelMode {
    /// Answers mentions and replies.
    #[default]
    Mentions,
    /// Answers every message by a person.
    Everything,
    /// Answers nothing.
    Off,
}

/// `THREAD_REPLY_TARGET`: which message an answer in a thread replies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyTarget {
    #[default]
    /// The newest message by a person when the turn starts.
    Newest,
    /// The trigger.
    Trigger,
}

impl<T> IdList<T> {
    /// Allows everything.
    pub const fn all() -> Self {
        Self {
            allowed: AllowList::All,
            denied: BTreeSet::new(),
        }
    }
}

impl Default for AccessRules {
    /// Allows everybody, everywhere.
    fn default() -> Self {
        Self {
            guilds: IdList::all(),
            channels: IdList::all(),
            users: IdList::all(),
            roles: IdList::all(),
            direct_messages: true,
        }
    }
}

impl Default for TriggerRules {
    fn default() -> Self {
        Self {
            mention_only: false,
            auto_reply_channels: BTreeSet::new(),
            reply_to_bots: false,
            max_bot_turns: 3,
            proxies: Proxies::default(),
            proxy_hold: Duration::from_millis(1_500),
        }
    }
}
