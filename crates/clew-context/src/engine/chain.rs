//! The reply chain: the references from the trigger up to the root, without any
//! siblings. The walk is pure: it says which message it needs next, and the
//! collector provides it.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Limits, Message, MessageId, OmitReason, Referenced, UnixMillis};

use super::eligible::Us;

/// One link of the chain; links are listed newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainLink {
    /// A message, whether it is shown or only walked through.
    Message(Arc<Message>),
    /// It was deleted; what it replied to is unknown.
    Deleted(MessageId),
    /// It could not be fetched; what it replied to is unknown.
    Unavailable(MessageId),
}

impl ChainLink {
    /// The message, if we have it.
    pub fn message(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Message(message) => Some(message),
            Self::Deleted(_) | Self::Unavailable(_) => None,
        }
    }
}

/// What is known about an id.
#[derive(Debug, Clone)]
pub enum ChainLookup {
    /// The message.
    Here(Arc<Message>),
    /// It is known to be deleted.
    Deleted,
    /// It was asked for but is unavailable.
    Unavailable,
    /// It has not been asked for yet.
    Unknown,
}

/// What the walk needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainStep {
    /// This message; call `advance` again once it is known.
    Need(MessageId),
    /// Nothing more.
    Done,
}

/// A walk up the references of one trigger.
#[derive(Debug, Clone)]
pub struct ChainWalk {
    links: Vec<ChainLink>,
    next: Option<MessageId>,
    below: MessageId,
    shown: usize,
    /// Older links exceed the age cap, which counts back from the pointed-at message.
    oldest: Option<UnixMillis>,
    max_age: Option<Duration>,
    max_msgs: usize,
    /// Why older links are not shown.
    cut: Option<OmitReason>,
}

impl ChainWalk {
    /// Starts at the message that `trigger` replies to.
    pub fn new(trigger: &Message, limits: &Limits) -> Self {
        Self {
            links: Vec::new(),
            next: trigger.replies_to(),
            below: trigger.id,
            shown: 0,
            oldest: None,
            max_age: limits.max_chain_age,
            max_msgs: limits.max_msgs,
            cut: None,
        }
    }

    /// Walks as far as `lookup` knows the messages.
    pub fn advance(&mut self, us: &Us, lookup: impl Fn(MessageId) -> ChainLookup) -> ChainStep {
        while let Some(id) = self.next {
            // References always point to older messages; anything else could form a loop.
            if id >= self.below {
                self.next = None;
                break;
            }
            if let Some(reason) = self.stops_before(id) {
                self.cut = Some(reason);
                self.next = None;
                break;
            }
            match lookup(id) {
                ChainLookup::Unknown => return ChainStep::Need(id),
                ChainLookup::Here(message) => self.take(us, message),
                ChainLookup::Deleted => self.end(ChainLink::Deleted(id)),
                ChainLookup::Unavailable => self.end(ChainLink::Unavailable(id)),
            }
        }
        ChainStep::Done
    }

    /// The links, newest first, and the cap that ended the walk, if one did.
    pub fn finish(self) -> (Vec<ChainLink>, Option<OmitReason>) {
        (self.links, self.cut)
    }

    /// Whether a cap stops the walk at this id. Ids contain their time, so nothing
    /// is fetched only to be dropped.
    fn stops_before(&self, id: MessageId) -> Option<OmitReason> {
        if self.links.is_empty() {
            return None;
        }
        if self.shown >= self.max_msgs {
            return Some(OmitReason::Msgs);
        }
        self.oldest
            .filter(|oldest| id.created() < *oldest)
            .map(|_| OmitReason::ChainAge)
    }

    fn take(&mut self, us: &Us, message: Arc<Message>) {
        self.below = message.id;
        self.next = message.replies_to();
        if us.rejects(&message).is_none() || self.links.is_empty() {
            self.shown += 1;
        }
        if self.links.is_empty() {
            let max_age = self.max_age;
            self.oldest = max_age.map(|age| message.timestamp.before(age));
        }
        let parent_deleted = message.referenced == Referenced::Deleted;
        self.links.push(ChainLink::Message(message));
        if let Some(parent) = self.next.filter(|_| parent_deleted) {
            self.end(ChainLink::Deleted(parent));
        }
    }

    fn end(&mut self, link: ChainLink) {
        self.links.push(link);
        self.next = None;
    }
}
