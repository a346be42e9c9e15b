//! Which messages of a recording are triggers: uses the bot's own router, and
//! what was requested.

use std::collections::{HashMap, VecDeque};

use super::{Questions, Triggers, Us};
use crate::archive::Recording;
use clew_context::engine::eligible::Repeats;
use clew_context::engine::route::{RouteFacts, Rules, Verdict, route};
use clew_context::model::{
    AccessRules, Cause, ChannelId, ChannelMode, LATE_COPIES, Message, MessageId, UserId,
};

/// The most questions that are known at a time, for copies of them.
const MOST_QUESTIONS: usize = 1_024;

/// The memory held per message of the bot, to recognise replies to it.
#[cfg(feature = "test-util")]
pub const BYTES_PER_OWN_MESSAGE: usize = size_of::<MessageId>();

/// Sees every message in order.
pub(super) struct Router<'a> {
    recording: &'a Recording,
    us: &'a Us,
    questions: &'a Questions,
    rules: Rules,
    /// The ids of the bot's messages, ascending.
    ours: Vec<MessageId>,
    /// How many turns in a row bots started.
    bot_turns: HashMap<ChannelId, usize>,
    /// The latest questions that people asked themselves, which an app may have copied.
    asked: VecDeque<Message>,
}

impl<'a> Router<'a> {
    /// Nobody is refused in a recording: the lists of servers and users concern the
    /// operator's own bot.
    pub(super) fn new(recording: &'a Recording, us: &'a Us, questions: &'a Questions) -> Self {
        Self {
            recording,
            us,
            questions,
            rules: Rules {
                access: AccessRules::default(),
                triggers: questions.rules.clone(),
                message_content: true,
            },
            ours: Vec::new(),
            bot_turns: HashMap::new(),
            asked: VecDeque::new(),
        }
    }

    /// Why a message is a trigger, if it is one.
    pub(super) fn cause(&mut self, message: &Message) -> Option<Cause> {
        if self.us.wrote(message) {
            self.ours.push(message.id);
        }
        let routed = self.routed(message);
        let human =
            self.us.is_person(message) && !self.us.wrote(message) && !message.flags.is_private();
        let is_meant = match self.questions.triggers {
            Triggers::Mentions => routed.is_some(),
            Triggers::Replies => human && message.replies_to().is_some(),
            Triggers::All => human,
            Triggers::One(id) => id == message.id,
        };
        let wanted = is_meant && !self.is_copy(message);
        if wanted && message.is_human() && !self.us.proxies.is_empty() {
            self.asked.truncate(MOST_QUESTIONS - 1);
            self.asked.push_front(message.clone());
        }
        let cause = if self.questions.as_mention {
            Cause::Mention
        } else {
            routed.unwrap_or(Cause::AutoReply)
        };
        wanted.then_some(cause)
    }

    fn routed(&mut self, message: &Message) -> Option<Cause> {
        let channel = self.recording.channel(message.channel)?;
        let bot_turns = self.bot_turns.get(&message.channel).copied().unwrap_or(0);
        let facts = RouteFacts {
            kind: Some(channel.kind),
            parent: channel.parent,
            roles: Some(&[]),
            replied_author: self.replied_author(message),
            bot_turns,
            mode: ChannelMode::Mentions,
        };
        let verdict = route(message, self.us, &self.rules, facts);
        let cause = match verdict {
            Verdict::Turn(cause) => Some(cause),
            Verdict::Ignore | Verdict::Denied(_) | Verdict::NoContent => None,
        };
        if self.us.is_person(message) {
            self.bot_turns.remove(&message.channel);
        } else if cause.is_some() {
            self.bot_turns.insert(message.channel, bot_turns + 1);
        }
        cause
    }

    /// Whether an app posted it as a copy of a question. Whatever is recorded was not
    /// deleted, so the question is asked and its copy is not, as by the bot.
    fn is_copy(&mut self, message: &Message) -> bool {
        if self.us.proxy_of(message).is_none() {
            return false;
        }
        let known = self.rules.triggers.proxy_hold + LATE_COPIES;
        let known = i64::try_from(known.as_millis()).unwrap_or(i64::MAX);
        let age = |one: &Message| message.timestamp.0.saturating_sub(one.timestamp.0);
        self.asked.retain(|one| age(one) <= known);
        let us = self.us;
        let copied = self.asked.iter().enumerate().filter(|(_, one)| {
            one.channel == message.channel && us.repeats(message, one) == Some(Repeats::All)
        });
        let shortest = copied.min_by_key(|(_, one)| one.content.len());
        let at = shortest.map(|(at, _)| at);
        at.and_then(|at| self.asked.remove(at)).is_some()
    }

    /// The author of the message replied to; it only matters whether it is the bot.
    fn replied_author(&self, message: &Message) -> Option<UserId> {
        let referenced = message
            .referenced_message()
            .map(|referenced| referenced.author.id);
        referenced.or_else(|| {
            let id = message.replies_to()?;
            self.ours.binary_search(&id).is_ok().then_some(self.us.user)
        })
    }
}
