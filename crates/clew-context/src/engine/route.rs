//! Route: decides whether a message is for us, and why, by the rules of `docs/behaviour.md`,
//! "Triggers". Each has a table of cases in the tests.

use crate::model::{
    AccessRules, Cause, ChannelId, ChannelKind, ChannelMode, Message, RoleId, Scene, TriggerRules,
    UserId,
};

use super::admission::{Admission, Denied, admit};
use super::eligible::{Us, is_blank};

/// The operator's rules that routing applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Who may use the bot, and where.
    pub access: AccessRules,
    /// What counts as addressing it.
    pub triggers: TriggerRules,
    /// Whether the message content intent is used.
    pub message_content: bool,
}

impl Default for Rules {
    /// Everybody may ask, by mention, reply or direct message.
    fn default() -> Self {
        Self {
            access: AccessRules::default(),
            triggers: TriggerRules::default(),
            message_content: true,
        }
    }
}

/// What the caller knows about a new message; by default nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouteFacts<'a> {
    /// Type of the channel, if known. If it is unknown and there is no guild id,
    /// the message is not assumed to be direct.
    pub kind: Option<ChannelKind>,
    /// A thread's channel.
    pub parent: Option<ChannelId>,
    /// The author's roles, if the event contained them.
    pub roles: Option<&'a [RoleId]>,
    /// Who wrote the message replied to, if known.
    pub replied_author: Option<UserId>,
    /// Turns that bots started here, or in this server, since a person last wrote;
    /// see [`ends_bot_turns`].
    pub bot_turns: usize,
    /// The mode set for this channel or its parent.
    pub mode: ChannelMode,
}

/// What to do with a message.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// Not for us.
    Ignore,
    /// It would be a turn, but the operator's lists refuse it.
    Denied(Denied),
    /// For us, but it has no text: the message content intent is off.
    NoContent,
    /// A turn.
    Turn(Cause),
}

/// Decides on a new message.
pub fn route(message: &Message, us: &Us, rules: &Rules, facts: RouteFacts<'_>) -> Verdict {
    if us.wrote(message) || !message.kind.is_conversation() || message.flags.is_private() {
        return Verdict::Ignore;
    }
    if facts.mode == ChannelMode::Off || !is_placed(message, &facts) {
        return Verdict::Ignore;
    }
    let cause = if us.is_person(message) {
        human_cause(message, us, rules, &facts)
    } else {
        bot_cause(message, us, rules, &facts)
    };
    let Some(cause) = cause else {
        return Verdict::Ignore;
    };
    match admitted(message, rules, &facts) {
        Err(denied) => Verdict::Denied(denied),
        Ok(()) if !rules.message_content && is_blank(message) => Verdict::NoContent,
        Ok(()) => Verdict::Turn(cause),
    }
}

/// Whether a message ends a series of bot turns: a person who may use the bot
/// wrote it. Others do not count, or their chatter would keep two bots talking.
pub fn ends_bot_turns(message: &Message, us: &Us, rules: &Rules, facts: &RouteFacts<'_>) -> bool {
    us.is_person(message) && is_placed(message, facts) && admitted(message, rules, facts).is_ok()
}

/// Whether it is known to be from a server or a direct message.
fn is_placed(message: &Message, facts: &RouteFacts<'_>) -> bool {
    message.guild.is_some() || facts.kind.is_some_and(ChannelKind::is_direct)
}

fn admitted(message: &Message, rules: &Rules, facts: &RouteFacts<'_>) -> Result<(), Denied> {
    let direct = facts.kind.is_some_and(ChannelKind::is_direct);
    let asked = Admission {
        guild: message.guild.filter(|_| !direct),
        channel: message.channel,
        parent: facts.parent,
        user: message.author.id,
        roles: facts.roles,
    };
    admit(&rules.access, asked)
}

fn human_cause(message: &Message, us: &Us, rules: &Rules, facts: &RouteFacts<'_>) -> Option<Cause> {
    if facts.kind.is_some_and(ChannelKind::is_direct) {
        return Some(Cause::Direct);
    }
    if us.mentioned(message) {
        return Some(Cause::Mention);
    }
    if rules.triggers.mention_only {
        return None;
    }
    if message.replies_to().is_some() && facts.replied_author == Some(us.user) {
        return Some(Cause::Mention);
    }
    if facts.mode == ChannelMode::Everything {
        return Some(Cause::AutoReply);
    }
    let places = [Some(message.channel), facts.parent];
    let auto = places
        .into_iter()
        .flatten()
        .any(|place| rules.triggers.auto_reply_channels.contains(&place));
    auto.then_some(Cause::AutoReply)
}

/// A bot's reply ping does not count as a mention, or two bots would loop.
fn bot_cause(message: &Message, us: &Us, rules: &Rules, facts: &RouteFacts<'_>) -> Option<Cause> {
    let asked = rules.triggers.reply_to_bots
        && us.named_inline(message)
        && facts.bot_turns < rules.triggers.max_bot_turns;
    asked.then_some(Cause::Mention)
}

/// The trigger's scene. `kind` comes from the event, the cache or a fetch.
pub fn scene(message: &Message, kind: Option<ChannelKind>) -> Scene {
    match kind {
        Some(kind) if kind.is_thread() => Scene::Thread,
        Some(kind) if kind.is_direct() => Scene::Direct,
        _ if message.replies_to().is_some() => Scene::ReplyChain,
        _ => Scene::Lone,
    }
}
