//! Route: is a message for us, and what is it? Each rule is one line of
//! `DESIGN.md` "What triggers" and has a table of cases in the tests.

use std::collections::BTreeSet;

use crate::model::{
    Cause, ChannelId, ChannelKind, GuildId, Message, RoleId, Scene, UserId,
};

use super::eligible::{Us, is_blank};

/// Who may use the bot, where, and what counts as asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Servers.
    pub guilds: Gate<GuildId>,
    /// Channels; a thread counts as its parent.
    pub channels: Gate<ChannelId>,
    /// People.
    pub users: Gate<UserId>,
    /// Roles: one allowed role is enough, one denied role refuses.
    pub roles: Gate<RoleId>,
    /// Direct messages are answered.
    pub direct_messages: bool,
    /// Only mentions count in servers: no replies without a ping, no
    /// `AUTO_REPLY_CHANNELS`.
    pub mention_only: bool,
    /// Every human message in these is a trigger; a thread counts as its
    /// parent.
    pub auto_reply: BTreeSet<ChannelId>,
    /// Other bots may ask, by an inline mention.
    pub reply_to_bots: bool,
    /// Consecutive turns that bots may start in one channel.
    pub max_bot_turns: usize,
    /// The message content intent is used.
    pub message_content: bool,
}

/// An allow list (all, when `None`) and a deny list, which wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate<T> {
    /// Who passes; everybody when `None`.
    pub allow: Option<BTreeSet<T>>,
    /// Who never passes.
    pub deny: BTreeSet<T>,
}

impl<T> Default for Gate<T> {
    fn default() -> Self {
        Self { allow: None, deny: BTreeSet::new() }
    }
}

impl<T: Ord> Gate<T> {
    fn passes(&self, values: &[T]) -> bool {
        let allowed = |allow: &BTreeSet<T>| values.iter().any(|value| allow.contains(value));
        self.allow.as_ref().is_none_or(allowed)
            && !values.iter().any(|value| self.deny.contains(value))
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            guilds: Gate::default(),
            channels: Gate::default(),
            users: Gate::default(),
            roles: Gate::default(),
            direct_messages: true,
            mention_only: false,
            auto_reply: BTreeSet::new(),
            reply_to_bots: false,
            max_bot_turns: 3,
            message_content: true,
        }
    }
}

/// What the shell knows of a new message beside itself.
#[derive(Debug, Clone, Copy)]
pub struct RouteFacts<'a> {
    /// Type of the channel, if known. Without it and without a guild id the
    /// message is not taken for a direct one.
    pub kind: Option<ChannelKind>,
    /// A thread's channel.
    pub parent: Option<ChannelId>,
    /// The author's roles, from the event.
    pub roles: &'a [RoleId],
    /// Who wrote the message replied to, if that is known.
    pub replied_author: Option<UserId>,
    /// Turns that bots started here since a person last wrote.
    pub bot_turns: usize,
}

/// What a message is to us.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// Not for us.
    Ignore,
    /// For us, but it came without text: the message content intent is off.
    NoContent,
    /// A turn.
    Turn(Cause),
}

/// Decides on a new message.
pub fn route(message: &Message, us: &Us, rules: &Rules, facts: RouteFacts<'_>) -> Verdict {
    if us.wrote(message) || !message.kind.is_conversation() || message.flags.is_private() {
        return Verdict::Ignore;
    }
    if !admits(message, rules, &facts) {
        return Verdict::Ignore;
    }
    let cause = if message.is_human() {
        human_cause(message, us, rules, &facts)
    } else {
        bot_cause(message, us, rules, &facts)
    };
    match cause {
        None => Verdict::Ignore,
        Some(_) if !rules.message_content && is_blank(message) => Verdict::NoContent,
        Some(cause) => Verdict::Turn(cause),
    }
}

fn admits(message: &Message, rules: &Rules, facts: &RouteFacts<'_>) -> bool {
    let direct = facts.kind.is_some_and(ChannelKind::is_direct);
    if direct {
        return rules.direct_messages && rules.users.passes(&[message.author.id]);
    }
    admits_in_guild(message.guild, message.channel, facts.parent, rules)
        && rules.users.passes(&[message.author.id])
        && rules.roles.passes(facts.roles)
}

/// Whether a place in a server is served.
pub fn admits_in_guild(
    guild: Option<GuildId>,
    channel: ChannelId,
    parent: Option<ChannelId>,
    rules: &Rules,
) -> bool {
    let guilds: Vec<GuildId> = guild.into_iter().collect();
    let places: Vec<ChannelId> = [Some(channel), parent].into_iter().flatten().collect();
    rules.guilds.passes(&guilds) && rules.channels.passes(&places)
}

/// Whether somebody may call a command here.
pub fn admits_caller(
    user: UserId,
    roles: &[RoleId],
    direct: bool,
    place: (Option<GuildId>, ChannelId, Option<ChannelId>),
    rules: &Rules,
) -> bool {
    let (guild, channel, parent) = place;
    if direct {
        return rules.direct_messages && rules.users.passes(&[user]);
    }
    admits_in_guild(guild, channel, parent, rules)
        && rules.users.passes(&[user])
        && rules.roles.passes(roles)
}

fn human_cause(
    message: &Message,
    us: &Us,
    rules: &Rules,
    facts: &RouteFacts<'_>,
) -> Option<Cause> {
    if facts.kind.is_some_and(ChannelKind::is_direct) {
        return Some(Cause::Direct);
    }
    if us.mentioned(message) {
        return Some(Cause::Mention);
    }
    if rules.mention_only {
        return None;
    }
    if message.replies_to().is_some() && facts.replied_author == Some(us.user) {
        return Some(Cause::Mention);
    }
    let places = [Some(message.channel), facts.parent];
    let auto = places.into_iter().flatten().any(|place| rules.auto_reply.contains(&place));
    auto.then_some(Cause::AutoReply)
}

/// A reply's ping is no mention when a bot wrote it: two bots would loop.
fn bot_cause(
    message: &Message,
    us: &Us,
    rules: &Rules,
    facts: &RouteFacts<'_>,
) -> Option<Cause> {
    let asked = rules.reply_to_bots
        && us.named_inline(message)
        && facts.bot_turns < rules.max_bot_turns;
    asked.then_some(Cause::Mention)
}

/// What the trigger is. `kind` comes from the event, the cache or one fetch.
pub fn scene(message: &Message, kind: Option<ChannelKind>) -> Scene {
    match kind {
        Some(kind) if kind.is_thread() => Scene::Thread,
        Some(kind) if kind.is_direct() => Scene::Direct,
        _ if message.replies_to().is_some() => Scene::ReplyChain,
        _ => Scene::Lone,
    }
}
