//! Select: which of the gathered messages go into the block. Pure. Applies the
//! caps on count and age; [`super::block`] applies the one on characters, since
//! it knows the texts.

mod conversation;
mod links;
mod place;
mod thread;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{BlockPlace, Limits, Marker, Message, MessageId, OmitReason, Omitted, Unseen};

use super::chain::ChainLink;
use super::eligible::Us;
use super::least;
use super::render;

pub use conversation::{conversations, naming};
pub use links::LinkedSelection;
pub use place::PlaceSelection;

/// Scalars of a line around name and text: `03:04 `, `: ` and the line break.
const HEADER_CHARS: usize = 9;

/// A message with a special role: starter or pointed-at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NamedMessage {
    /// By the rules there is none.
    #[default]
    None,
    /// We have it.
    Known(Arc<Message>),
    /// It was deleted.
    Deleted(MessageId),
    /// It could not be fetched.
    Unavailable(Option<MessageId>),
}

impl NamedMessage {
    /// The message, if we have it.
    pub fn message(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Known(message) => Some(message),
            Self::None | Self::Deleted(_) | Self::Unavailable(_) => None,
        }
    }

    pub(crate) fn message_mut(&mut self) -> Option<&mut Arc<Message>> {
        match self {
            Self::Known(message) => Some(message),
            Self::None | Self::Deleted(_) | Self::Unavailable(_) => None,
        }
    }
}

/// The messages of a scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gathered {
    /// A thread or forum post.
    Thread(GatheredThread),
    /// A reply chain, newest link first.
    Chain {
        /// Newest first.
        links: Vec<ChainLink>,
        /// The cap that ended the walk, if one did.
        cut: Option<OmitReason>,
        /// With `LONE_CONTEXT=conversation`, the last messages of the channel, oldest first.
        around: Vec<Arc<Message>>,
    },
    /// The last messages of a channel before a bare mention, oldest first.
    Tail(Vec<Arc<Message>>),
    /// The same before a mention with text, with `LONE_CONTEXT=recent`.
    Recent(Vec<Arc<Message>>),
    /// The same with `LONE_CONTEXT=conversation`.
    Conversation(Vec<Arc<Message>>),
    /// Nothing: a mention with text, a direct message.
    Nothing,
}

impl Gathered {
    /// The messages we have, in no particular order; some may occur twice.
    pub fn messages(&self) -> Vec<&Arc<Message>> {
        match self {
            Self::Thread(GatheredThread {
                messages,
                starter,
                pointed_at,
                target,
                reaches_start: _,
                total: _,
                history: _,
            }) => {
                let found = [starter, pointed_at].into_iter();
                let found = found.filter_map(NamedMessage::message);
                found.chain(messages).chain(target).collect()
            }
            Self::Chain { links, around, .. } => {
                let links = links.iter().filter_map(ChainLink::message);
                links.chain(around).collect()
            }
            Self::Tail(messages) | Self::Recent(messages) | Self::Conversation(messages) => {
                messages.iter().collect()
            }
            Self::Nothing => Vec::new(),
        }
    }

    /// The message that the trigger replies to, if we have it.
    pub(crate) fn pointed_at(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Thread(thread) => thread.pointed_at.message(),
            Self::Chain { links, .. } => links.first().and_then(ChainLink::message),
            Self::Tail(_) | Self::Recent(_) | Self::Conversation(_) | Self::Nothing => None,
        }
    }

    pub(crate) fn messages_mut(&mut self) -> Vec<&mut Arc<Message>> {
        match self {
            Self::Thread(thread) => {
                let (messages, named, target) = thread.parts_mut();
                let found = named.into_iter().filter_map(NamedMessage::message_mut);
                found.chain(messages).chain(target).collect()
            }
            Self::Chain { links, around, .. } => links
                .iter_mut()
                .filter_map(|link| match link {
                    ChainLink::Message(message) => Some(message),
                    ChainLink::Deleted(_) | ChainLink::Unavailable(_) => None,
                })
                .chain(around)
                .collect(),
            Self::Tail(messages) | Self::Recent(messages) | Self::Conversation(messages) => {
                messages.iter_mut().collect()
            }
            Self::Nothing => Vec::new(),
        }
    }
}

/// What was gathered from a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatheredThread {
    /// All messages from one id up to the turn's start, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Whether they reach back to the thread's first message.
    pub reaches_start: bool,
    /// Messages in the whole thread, by Discord's count.
    pub total: Option<usize>,
    /// The message the thread was started from, or its first message.
    pub starter: NamedMessage,
    /// The message the trigger replies to.
    pub pointed_at: NamedMessage,
    /// The message the answer replies to.
    pub target: Option<Arc<Message>>,
    /// Whether the full history is wanted (for a mention), not only the tail.
    pub history: bool,
}

impl GatheredThread {
    /// All that holds messages: its own, the starter and the pointed-at one, the target.
    pub(crate) const fn parts_mut(
        &mut self,
    ) -> (
        &mut Vec<Arc<Message>>,
        [&mut NamedMessage; 2],
        &mut Option<Arc<Message>>,
    ) {
        let Self {
            messages,
            starter,
            pointed_at,
            target,
            reaches_start: _,
            total: _,
            history: _,
        } = self;
        (messages, [starter, pointed_at], target)
    }
}

/// The chosen messages, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// What is shown.
    pub picks: Vec<Pick>,
    /// Markers for missing messages, with the id of their position.
    pub markers: Vec<(MessageId, Marker)>,
    /// What was left out.
    pub omitted: Vec<Omitted>,
    /// Older messages that were not looked at.
    pub unseen: Option<Unseen>,
    /// Which of them are the tail.
    pub tail: BTreeSet<MessageId>,
    /// The most Unicode scalars that they may take, if that is less than the block may.
    pub max_chars: Option<usize>,
    /// How it is marked what a cap left out.
    pub gaps: GapMarks,
}

/// How it is marked what a cap left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GapMarks {
    /// By their number and the cap.
    #[default]
    Counted,
    /// Between messages shortly, a single one not at all: what belongs less stands everywhere.
    Short,
    /// Not at all, since other conversations stand between the messages anyway.
    None,
}

impl Selection {
    fn omit(&mut self, id: MessageId, reason: OmitReason) {
        self.omitted.push(Omitted { id, reason });
    }

    fn mark(&mut self, id: MessageId, marker: Marker) {
        self.markers.push((id, marker));
    }

    fn mark_deleted(&mut self, id: MessageId, place: BlockPlace) {
        self.mark(id, Marker::Deleted(id, place));
        self.omit(id, OmitReason::Deleted);
    }

    /// Marks a withheld message at its position, once.
    fn mark_withheld(&mut self, id: MessageId, place: BlockPlace) {
        if self.omitted.iter().all(|omitted| omitted.id != id) {
            self.mark(id, Marker::Withheld(1, place));
            self.omit(id, OmitReason::OptedOut);
        }
    }

    /// Leaves a message out; one that is withheld is marked.
    fn leave_out(&mut self, id: MessageId, reason: OmitReason, place: BlockPlace) {
        match reason {
            OmitReason::OptedOut => self.mark_withheld(id, place),
            reason => self.omit(id, reason),
        }
    }

    /// A trigger without words points at this message: if it is shown, it may not
    /// be dropped and gets a label, so that the prompt can refer to it.
    pub fn point_at(&mut self, id: MessageId) {
        self.keep_as(id, BlockPlace::PointedAt);
    }

    fn keep_as(&mut self, id: MessageId, place: BlockPlace) {
        for pick in self.picks.iter_mut().filter(|pick| pick.message.id == id) {
            pick.kept = true;
            if !pick.place.is_named() {
                pick.place = place;
            }
        }
    }

    fn shows(&self, id: MessageId) -> bool {
        self.picks.iter().any(|pick| pick.message.id == id)
    }

    fn pick(&mut self, message: &Arc<Message>, place: BlockPlace, kept: bool) {
        self.picks.push(Pick::new(message, place, kept, 0));
    }
}

/// A message to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The message.
    pub message: Arc<Message>,
    /// Why it is shown.
    pub place: BlockPlace,
    /// Whether it may only be shortened, not dropped.
    pub kept: bool,
    /// Where not all fit, the lowest is dropped first, of equals the oldest.
    pub rank: usize,
}

impl Pick {
    fn new(message: &Arc<Message>, place: BlockPlace, kept: bool, rank: usize) -> Self {
        Self {
            message: Arc::clone(message),
            place,
            kept,
            rank,
        }
    }
}

/// By what is selected: who we are, what was asked, and the caps.
#[derive(Debug, Clone, Copy)]
pub struct Selector<'a> {
    /// Our user.
    pub us: &'a Us,
    /// The question.
    pub trigger: &'a Message,
    /// The caps.
    pub limits: &'a Limits,
}

impl Selector<'_> {
    /// Selects by the rules of `docs/behaviour.md`, "What is collected".
    pub fn select(self, gathered: &Gathered) -> Selection {
        let limits = self.limits;
        match gathered {
            Gathered::Thread(thread) => thread::select(self, thread),
            Gathered::Chain { links, cut, around } => {
                let chain = self.chain(links, *cut);
                if around.is_empty() {
                    return chain;
                }
                self.conversation(around, chain)
            }
            Gathered::Tail(messages) => self.tail(messages, limits.tail.min(limits.max_msgs)),
            Gathered::Recent(messages) => self.recent(messages),
            Gathered::Conversation(messages) => Selection {
                max_chars: Some(limits.lone_max_chars),
                ..self.conversation(messages, Selection::default())
            },
            Gathered::Nothing => Selection::default(),
        }
    }

    /// Whether older messages should be fetched for a tail, because it has too few
    /// eligible ones. `messages` are those the tail can consist of, oldest first.
    pub fn tail_wants_more(self, messages: &[Arc<Message>]) -> bool {
        let tail = self.limits.tail;
        self.eligible(messages).take(tail).count() < tail
    }

    /// The messages that may be shown, newest first.
    fn eligible(self, messages: &[Arc<Message>]) -> impl Iterator<Item = &Arc<Message>> {
        let newest_first = messages.iter().rev();
        newest_first.filter(move |one| one.id != self.trigger.id && self.us.rejects(one).is_none())
    }

    fn chain(self, links: &[ChainLink], cut: Option<OmitReason>) -> Selection {
        let mut selection = Selection::default();
        for (index, link) in links.iter().enumerate() {
            let place = if index == 0 {
                BlockPlace::PointedAt
            } else {
                BlockPlace::Chain
            };
            match link {
                ChainLink::Message(message) => self.linked(message, place, &mut selection),
                ChainLink::Deleted(id) => selection.mark_deleted(*id, place),
                ChainLink::Unavailable(id) => {
                    selection.mark(*id, Marker::Unavailable(Some(*id), place));
                }
            }
        }
        let oldest = links.last().and_then(ChainLink::message);
        let beyond = oldest.and_then(|oldest| oldest.replies_to());
        let beyond = beyond.zip(cut);
        let omitted = beyond.map(|(id, reason)| Omitted { id, reason });
        selection.omitted.extend(omitted);
        selection.picks.sort_by_key(|pick| pick.message.id);
        // Links and pins may have left room for fewer than were gathered.
        let dropped = links::cap(&mut selection, self.limits.max_msgs);
        let dropped = dropped.map(|id| (id, OmitReason::Msgs));
        if let Some((id, reason)) = dropped.or(beyond) {
            selection.mark(id, Marker::EarlierChain(reason));
        }
        selection.omitted.sort_by_key(|omitted| omitted.id);
        selection
    }

    /// A message that a reply or a link leads to.
    fn linked(self, message: &Arc<Message>, place: BlockPlace, selection: &mut Selection) {
        let kept = place.is_named();
        let id = message.id;
        let with_apps = kept && self.limits.include_pointed_apps;
        match self.us.rejects_pointed_at(message, with_apps) {
            None => selection.pick(message, place, kept),
            Some(OmitReason::OptedOut) => selection.mark_withheld(id, place),
            Some(reason) => {
                selection.mark(id, Marker::Ineligible(id));
                selection.omit(id, reason);
            }
        }
    }

    /// Whether older messages should be fetched for `LONE_CONTEXT=recent`.
    pub fn recent_wants_more(self, messages: &[Arc<Message>]) -> bool {
        let eligible = self.eligible(messages).count();
        eligible < self.limits.max_msgs && self.recent_that_fit(messages) == eligible
    }

    /// How many of the newest messages that may be shown fit `LONE_MAX_CHARS`.
    fn recent_that_fit(self, messages: &[Arc<Message>]) -> usize {
        let mut room = self.limits.lone_max_chars;
        let fits = |message: &&Arc<Message>| {
            let chars = self.chars(message);
            let fits = chars <= room;
            room = room.saturating_sub(chars);
            fits
        };
        self.eligible(messages).take_while(fits).count()
    }

    /// About how many scalars a message takes in the block, with all that it shows.
    fn chars(self, message: &Message) -> usize {
        let text = render::shown_chars(self.us, message).min(self.limits.max_msg_chars);
        HEADER_CHARS + message.author.name.chars().count() + text
    }

    fn recent(self, messages: &[Arc<Message>]) -> Selection {
        // A newest message that is too long is shortened.
        let fit = self.recent_that_fit(messages).max(1);
        let (room, cap) = if fit < self.limits.max_msgs {
            (fit, OmitReason::LoneChars)
        } else {
            (self.limits.max_msgs, OmitReason::Msgs)
        };
        let mut selection = Selection {
            max_chars: Some(self.limits.lone_max_chars),
            gaps: GapMarks::None,
            ..self.tail(messages, room)
        };
        let before = self
            .eligible(messages)
            .filter(|one| one.id < self.trigger.id);
        for beyond in before.skip(room) {
            selection.omit(beyond.id, cap);
        }
        selection.omitted.sort_by_key(|omitted| omitted.id);
        selection
    }

    /// Picks the first `room` of these that may be shown.
    fn add_first<'m>(
        self,
        messages: impl Iterator<Item = &'m Arc<Message>>,
        place: BlockPlace,
        room: usize,
        selection: &mut Selection,
    ) {
        let mut left = room;
        for message in messages {
            if left == 0 {
                return;
            }
            if let Some(reason) = self.us.rejects(message) {
                selection.leave_out(message.id, reason, place);
            } else {
                selection.pick(message, place, false);
                left -= 1;
            }
        }
    }

    fn tail(self, messages: &[Arc<Message>], room: usize) -> Selection {
        let mut selection = Selection::default();
        let before = messages.iter().filter(|one| one.id < self.trigger.id);
        self.add_first(before.rev(), BlockPlace::Tail, room, &mut selection);
        selection.picks.reverse();
        selection.omitted.reverse();
        selection.tail = selection.picks.iter().map(|pick| pick.message.id).collect();
        selection
    }
}
