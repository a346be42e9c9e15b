//! Target, pointed-at and adopted text: which message the answer replies to, and
//! whose text stands in for a trigger without words. Resolved once, at the turn's
//! start, so that context and reply agree.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Message, MessageId, ReplyTarget};

use super::eligible::Us;

/// The input of the rules.
#[derive(Debug, Clone, Copy)]
pub struct TargetFacts<'a> {
    /// The trigger.
    pub trigger: &'a Arc<Message>,
    /// Whether it is a message that can be replied to, not a command's question.
    pub is_message: bool,
    /// Whether it has no words of its own, see [`Us::is_bare`].
    pub bare: bool,
    /// Whether it had to wait for other turns of the conversation.
    pub waited: bool,
    /// The message it replies to, if we have it.
    pub pointed_at: Option<&'a Arc<Message>>,
    /// The thread's messages up to the turn's start, oldest first; `None` outside threads.
    pub thread: Option<&'a [Arc<Message>]>,
    /// Triggers of other turns that are waiting or running, or were refused.
    pub other_triggers: &'a BTreeSet<MessageId>,
    /// The setting `THREAD_REPLY_TARGET`.
    pub rule: ReplyTarget,
}

/// What the answer replies to, and whose words it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The message the answer replies to; `None` if it is not a reply.
    pub reply_to: Option<Arc<Message>>,
    /// A message whose text stands in for a trigger without words.
    pub adopted: Option<Arc<Message>>,
    /// A trigger without words points at a message whose author opted out: there is
    /// nothing to answer, and one line says so.
    pub withheld: bool,
}

/// Applies the rules of `docs/behaviour.md`, "What is answered".
pub fn resolve(us: &Us, facts: &TargetFacts<'_>) -> Target {
    let pointed_at = facts.pointed_at.filter(|_| facts.bare);
    let withheld = pointed_at.is_some_and(|at| at.withheld);
    let pointed_at = pointed_at.filter(|at| !at.withheld);
    match facts.thread {
        None => Target {
            reply_to: facts.is_message.then(|| Arc::clone(facts.trigger)),
            adopted: pointed_at.cloned(),
            withheld,
        },
        Some(thread) => Target {
            withheld,
            ..resolve_in_thread(us, facts, thread, pointed_at)
        },
    }
}

fn resolve_in_thread(
    us: &Us,
    facts: &TargetFacts<'_>,
    thread: &[Arc<Message>],
    pointed_at: Option<&Arc<Message>>,
) -> Target {
    let bare = facts.bare;
    let newest = newest_human(us, facts, thread);
    let adopted = match pointed_at {
        Some(pointed_at) => Some(pointed_at),
        None if bare && facts.trigger.replies_to().is_none() => newest,
        None => None,
    };
    let rule = if facts.is_message {
        facts.rule
    } else {
        ReplyTarget::Newest
    };
    let points = bare && facts.trigger.replies_to().is_some();
    let found = match (rule, points) {
        (ReplyTarget::Trigger, _) => None,
        (ReplyTarget::Newest, true) => pointed_at.filter(|at| us.is_person(at)),
        (ReplyTarget::Newest, false) => newest,
    };
    let trigger = || us.is_person(facts.trigger).then_some(facts.trigger);
    let reply_to = if facts.is_message {
        found.or_else(trigger)
    } else {
        None
    };
    Target {
        reply_to: reply_to.cloned(),
        adopted: adopted.cloned(),
        withheld: false,
    }
}

/// The newest message by a person that says something, skipping triggers of other
/// turns; a question that had to wait counts as the newest itself. Users who
/// opted out are skipped like apps: a reply to a message we do not read would
/// seem to answer it.
fn newest_human<'a>(
    us: &Us,
    facts: &TargetFacts<'a>,
    thread: &'a [Arc<Message>],
) -> Option<&'a Arc<Message>> {
    let trigger = facts.trigger.id;
    let is_candidate = |message: &&Arc<Message>| {
        us.is_person(message)
            && !message.withheld
            && !us.wrote(message)
            && !facts.other_triggers.contains(&message.id)
            && message.id != trigger
            && us.has_meaning(message)
    };
    let newest = thread.iter().rev().find(is_candidate);
    let has_words = !facts.bare && facts.is_message && us.is_person(facts.trigger);
    let itself = has_words.then_some(facts.trigger);
    match (newest, itself) {
        (_, Some(itself)) if facts.waited => Some(itself),
        (Some(newest), Some(itself)) if itself.id > newest.id => Some(itself),
        (Some(newest), _) => Some(newest),
        (None, itself) => itself,
    }
}
