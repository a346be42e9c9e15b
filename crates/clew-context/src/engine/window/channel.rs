//! One channel of the window: its messages from the mark on, older messages that
//! were pointed at, and recent changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::View;
use crate::engine::place::MOST_PINS;
use crate::model::{GuildId, Message, MessageId};

/// Deletions and edits remembered per channel, so that a page that was in flight
/// does not bring back what is gone. A bulk deletion names up to 100 messages.
const RECENT_CHANGES: usize = 128;
/// Bytes per message for a map entry, an `Arc` and the allocator (measured with
/// `cargo bench -- windowed`).
const ENTRY_OVERHEAD: usize = 120;
/// Approximate bytes of a channel that holds nothing.
pub(super) const CHANNEL_OVERHEAD: usize = 400;

#[derive(Debug, Default)]
pub(super) struct ChannelWindow {
    pub(super) guild: Option<GuildId>,
    /// Complete from the mark on.
    pub(super) recent: BTreeMap<MessageId, Kept>,
    /// Older messages that were pointed at.
    pub(super) linked: BTreeMap<MessageId, Linked>,
    /// The pinned messages, the last pinned first; none if they are not known.
    pub(super) pins: Option<Vec<Arc<Message>>>,
    /// When the pins were last said to have changed.
    pub(super) pins_changed: u64,
    /// Counts uses of linked messages, to find the longest unused.
    linkings: u64,
    /// Every message from this id up to now is in `recent`.
    pub(super) mark: Option<MessageId>,
    pub(super) changes: VecDeque<Change>,
    /// When the latest change was made that `changes` no longer contains.
    forgot_change: u64,
    pub(super) newest: Option<MessageId>,
    /// The window's generation when everything held was last discarded.
    pub(super) generation: u64,
    pub(super) bytes: usize,
    pub(super) used: u64,
}

/// An edit; without a message, a deletion.
#[derive(Debug)]
pub(super) struct Change {
    id: MessageId,
    pub(super) message: Option<Arc<Message>>,
    made: u64,
}

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) message: Arc<Message>,
    linked: bool,
}

#[derive(Debug)]
pub(super) struct Linked {
    pub(super) message: Arc<Message>,
    /// When a turn last used it, as a value of `linkings`.
    used: u64,
}

pub(super) fn weight(message: &Message) -> usize {
    message.weight() + ENTRY_OVERHEAD
}

impl Change {
    /// Counts the message as if nothing else shared it.
    pub(super) fn weight(&self) -> usize {
        ENTRY_OVERHEAD + self.message.as_deref().map_or(0, weight)
    }
}

impl ChannelWindow {
    /// A channel of which nothing is known yet.
    pub(super) fn new(generation: u64, pins_changed: u64) -> Self {
        Self {
            generation,
            pins_changed,
            bytes: CHANNEL_OVERHEAD,
            ..Self::default()
        }
    }

    /// Whether everything that happened since `view` was taken is still known.
    pub(super) fn is_known_since(&self, view: &View) -> bool {
        self.generation <= view.generation && self.forgot_change <= view.taken
    }

    pub(super) fn hold(&mut self, message: Arc<Message>) {
        let linked = self.take_linked(message.id) || message.replies_to().is_some();
        self.bytes += weight(&message);
        if let Some(old) = self.recent.insert(message.id, Kept { message, linked }) {
            self.bytes -= weight(&old.message);
        }
    }

    /// Whether an edit of its text arrived before its creation.
    pub(super) fn holds_newer(&self, message: &Message) -> bool {
        let held = self.recent.get(&message.id);
        held.is_some_and(|held| held.message.content != message.content)
    }

    /// Whether it is missing although the window is complete there.
    pub(super) fn lacks(&self, message: &Message) -> bool {
        let is_covered = self.mark.is_some_and(|mark| message.id >= mark);
        is_covered
            && !message.flags.is_private()
            && !self.recent.contains_key(&message.id)
            && !self.is_deleted(message.id)
    }

    pub(super) fn keep(&mut self, message: Arc<Message>) {
        if self.recent.contains_key(&message.id) || self.is_deleted(message.id) {
            return;
        }
        self.bytes += weight(&message);
        self.linkings += 1;
        let used = self.linkings;
        if let Some(old) = self.linked.insert(message.id, Linked { message, used }) {
            self.bytes -= weight(&old.message);
        }
    }

    pub(super) fn linked_messages(&self) -> BTreeMap<MessageId, Arc<Message>> {
        let message = |(id, linked): (&MessageId, &Linked)| (*id, Arc::clone(&linked.message));
        self.linked.iter().map(message).collect()
    }

    /// Adds a fetched message; what the gateway has reported since is newer.
    pub(super) fn hold_fetched(&mut self, message: &Arc<Message>) {
        if self.recent.contains_key(&message.id) || message.flags.is_private() {
            return;
        }
        if let Some(message) = self.as_changed(message) {
            self.hold(message);
        }
    }

    /// Notes that a turn used this message; one that is held will stay longer.
    pub(super) fn keep_fetched(&mut self, message: &Arc<Message>) {
        self.linkings += 1;
        if let Some(linked) = self.linked.get_mut(&message.id) {
            linked.used = self.linkings;
        } else if let Some(held) = self.recent.get_mut(&message.id) {
            held.linked = true;
        } else if let Some(message) = self.as_changed(message) {
            self.keep(message);
        }
    }

    fn as_changed(&self, message: &Arc<Message>) -> Option<Arc<Message>> {
        let change = self.changes.iter().find(|change| change.id == message.id);
        match change.map(|change| change.message.as_ref()) {
            Some(None) => None,
            Some(Some(edited)) if edited.edited >= message.edited => Some(Arc::clone(edited)),
            _ => Some(Arc::clone(message)),
        }
    }

    pub(super) fn replace(&mut self, message: &Arc<Message>) {
        let mut pins = self.pins.iter_mut().flatten();
        if let Some(held) = pins.find(|held| held.id == message.id) {
            self.bytes = self.bytes + weight(message) - weight(held);
            *held = Arc::clone(message);
        }
        if let Some(held) = self.recent.get_mut(&message.id) {
            self.bytes = self.bytes + weight(message) - weight(&held.message);
            held.message = Arc::clone(message);
        } else if let Some(held) = self.linked.get_mut(&message.id) {
            self.bytes = self.bytes + weight(message) - weight(&held.message);
            held.message = Arc::clone(message);
        }
    }

    pub(super) fn drop_message(&mut self, id: MessageId) {
        if let Some(held) = self.recent.remove(&id) {
            self.bytes -= weight(&held.message);
        }
        self.take_linked(id);
        if self.pins.iter().flatten().any(|held| held.id == id) {
            let pins = self.pins.clone();
            self.keep_pins(pins.as_deref());
        }
    }

    /// Keeps the pinned messages as they are now; `None` if that is not known any more. Where as
    /// many as are asked for were pinned and one is gone, another that is not known takes its
    /// place.
    pub(super) fn keep_pins(&mut self, pins: Option<&[Arc<Message>]>) {
        self.bytes -= self.pin_bytes();
        self.pins = pins.and_then(|pins| {
            let there = pins.iter().filter_map(|one| self.as_changed(one));
            let there: Vec<_> = there.collect();
            (pins.len() < MOST_PINS || there.len() == pins.len()).then_some(there)
        });
        self.bytes += self.pin_bytes();
    }

    /// Bytes of the pinned messages.
    pub(super) fn pin_bytes(&self) -> usize {
        let pins = self.pins.iter().flatten();
        pins.map(|message| weight(message)).sum()
    }

    fn take_linked(&mut self, id: MessageId) -> bool {
        let taken = self.linked.remove(&id);
        self.bytes -= taken.as_ref().map_or(0, |taken| weight(&taken.message));
        taken.is_some()
    }

    pub(super) fn link(&mut self, id: MessageId) {
        if let Some(held) = self.recent.get_mut(&id) {
            held.linked = true;
        }
    }

    /// Keeps one entry per message: an answer that is streamed by edits must not
    /// push out the others.
    pub(super) fn remember(&mut self, id: MessageId, message: Option<Arc<Message>>, now: u64) {
        let same = self.changes.iter().position(|change| change.id == id);
        if let Some(old) = same.and_then(|at| self.changes.remove(at)) {
            self.bytes -= old.weight();
        }
        if self.changes.len() == RECENT_CHANGES
            && let Some(oldest) = self.changes.pop_front()
        {
            self.bytes -= oldest.weight();
            self.forgot_change = oldest.made;
        }
        let change = Change {
            id,
            message,
            made: now,
        };
        self.bytes += change.weight();
        self.changes.push_back(change);
    }

    pub(super) fn deleted(&self) -> impl Iterator<Item = MessageId> {
        self.changes
            .iter()
            .filter(|change| change.message.is_none())
            .map(|change| change.id)
    }

    fn is_deleted(&self, id: MessageId) -> bool {
        self.deleted().any(|deleted| deleted == id)
    }

    /// Drops the oldest messages first. Those that are part of a reply chain stay
    /// longer: they may take up to half of the room, and the longest unused of them
    /// go first.
    pub(super) fn shrink(&mut self, per_channel: usize) {
        let half = per_channel / 2;
        self.shrink_linked(half);
        while self.recent.len() + self.linked.len() > per_channel {
            let Some((id, held)) = self.recent.pop_first() else {
                return;
            };
            self.bytes -= weight(&held.message);
            self.mark = Some(id.next());
            if held.linked {
                self.keep(held.message);
                self.shrink_linked(half);
            }
        }
    }

    fn shrink_linked(&mut self, room: usize) {
        while self.linked.len() > room {
            let unused = self.linked.iter().min_by_key(|(_, linked)| linked.used);
            let Some(unused) = unused.map(|(id, _)| *id) else {
                return;
            };
            self.take_linked(unused);
        }
    }

    pub(super) fn clear(&mut self) {
        self.recent.clear();
        self.linked.clear();
        self.pins = None;
        self.mark = None;
        let changes: usize = self.changes.iter().map(Change::weight).sum();
        self.bytes = CHANNEL_OVERHEAD + changes;
    }
}
