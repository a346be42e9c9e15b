//! The window: recent messages of each channel, by id, fed by the event loop
//! in gateway order, with a mark from which on it is whole up to now.
//!
//! What stands before the mark (links of reply chains, starters) can be looked
//! up by id but never counts as "the messages of this channel".

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::eligible::is_blank;
use crate::model::{ChannelId, GuildId, Message, MessageId, Referenced};

/// Deletions and edits remembered per channel, so that a page that was on its
/// way meanwhile does not bring back what is gone.
/// A bulk deletion names up to 100.
const RECENT_CHANGES: usize = 128;
/// A map entry, an `Arc` and the allocator's share, bytes a message.
const ENTRY_OVERHEAD: usize = 96;
/// A channel that holds nothing, bytes about.
const CHANNEL_OVERHEAD: usize = 400;

/// How much the window keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// `WINDOW_PER_CHANNEL`: messages a channel, at least 2.
    pub per_channel: usize,
    /// `WINDOW_MAX_MB` in bytes: over all channels, about.
    pub max_bytes: usize,
}

/// Recent messages of all channels.
#[derive(Debug)]
pub struct Window {
    limits: WindowLimits,
    channels: HashMap<ChannelId, ChannelWindow>,
    by_use: BTreeMap<u64, ChannelId>,
    uses: u64,
    bytes: usize,
    generation: u64,
}

#[derive(Debug, Default)]
struct ChannelWindow {
    guild: Option<GuildId>,
    /// Whole from the mark on.
    recent: BTreeMap<MessageId, Held>,
    /// Older messages that somebody pointed at.
    linked: BTreeMap<MessageId, Arc<Message>>,
    /// Every message from this id on is in `recent`, up to now.
    mark: Option<MessageId>,
    changes: VecDeque<Change>,
    /// When the youngest of the changes was made that is not in `changes` any
    /// more.
    forgot_change: u64,
    newest: Option<MessageId>,
    /// When it was last empty of all knowledge.
    generation: u64,
    bytes: usize,
    used: u64,
}

/// An edit, or without a message a deletion.
#[derive(Debug)]
struct Change {
    id: MessageId,
    message: Option<Arc<Message>>,
    made: u64,
}

#[derive(Debug)]
struct Held {
    message: Arc<Message>,
    linked: bool,
}

/// One channel's part of the window at one moment.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// All messages from `whole_from` on, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// Older single messages, by id.
    pub linked: BTreeMap<MessageId, Arc<Message>>,
    /// From here on nothing is missing. `None`: nothing is known to be whole.
    pub whole_from: Option<MessageId>,
    /// The newest message seen.
    pub newest: Option<MessageId>,
    /// Ids known to be deleted.
    pub deleted: Vec<MessageId>,
    /// To be handed back with fetched messages: what was broken later than
    /// this takes none.
    pub generation: u64,
    /// The same for edits and deletions that are not remembered any more.
    pub taken: u64,
}

impl View {
    /// A message by id, wherever it stands.
    pub fn get(&self, id: MessageId) -> Option<&Arc<Message>> {
        let at = self.recent.binary_search_by_key(&id, |message| message.id);
        at.ok()
            .map(|at| &self.recent[at])
            .or_else(|| self.linked.get(&id))
    }

    /// A message that came with a command or a mention is whole, though the
    /// gateway blanked it before for want of the message content intent.
    pub fn complete(&mut self, carried: &Message) {
        let recent = self.recent.iter_mut();
        let mut held = recent.chain(self.linked.values_mut());
        if let Some(held) = held.find(|held| held.id == carried.id)
            && is_blank(held)
        {
            *held = Arc::new(carried.clone());
        }
    }
}

/// Where a channel is whole from that is held from its first message on.
pub const CHANNEL_START: MessageId = MessageId::new(0);

impl Window {
    /// An empty window.
    pub fn new(limits: WindowLimits) -> Self {
        Self {
            limits,
            channels: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            bytes: 0,
            generation: 0,
        }
    }

    /// A message arrived from the gateway. Ephemeral and loading ones are not
    /// kept; a referenced message it carries is kept beside it.
    pub fn created(&mut self, mut message: Message) -> Arc<Message> {
        if message.flags.is_private() {
            return Arc::new(message);
        }
        let carried = message.take_carried();
        let (channel, guild, replies_to) = (message.channel, message.guild, message.replies_to());
        let message = Arc::new(message);
        self.change(channel, |window, limits, _| {
            window.guild = guild.or(window.guild);
            let mark = *window.mark.get_or_insert(message.id);
            window.newest = window.newest.max(Some(message.id));
            if window.holds_newer(&message) {
                // Ours, edited meanwhile: the edit will come as well.
            } else if message.id < mark {
                // Delivered late or again: what stands around it may be gone.
                window.keep(Arc::clone(&message));
            } else {
                window.hold(Arc::clone(&message));
            }
            if let Some(parent) = replies_to {
                window.link(parent);
            }
            window.shrink(limits.per_channel);
        });
        if let Some(carried) = carried {
            self.carried(carried);
        }
        message
    }

    /// We posted this. The gateway tells of it too, maybe later than the next
    /// turn here starts.
    pub fn posted(&mut self, message: Message) {
        let message = Arc::new(message);
        self.change(message.channel, |window, limits, _| {
            window.newest = window.newest.max(Some(message.id));
            if window.lacks(&message) {
                window.hold(message);
                window.shrink(limits.per_channel);
            }
        });
    }

    /// A referenced message, kept in its own channel: a thread's starter
    /// stands in the parent, where its edits and deletion arrive.
    fn carried(&mut self, carried: Message) {
        self.change(carried.channel, |window, limits, _| {
            window.keep(Arc::new(carried));
            window.shrink(limits.per_channel);
        });
    }

    /// A message was edited. One that is not held is remembered for a while,
    /// for a page that may be on its way. A command's answer is loading when
    /// it is created and becomes a message by its first edit.
    pub fn edited(&mut self, mut message: Message) {
        message.take_carried();
        let message = Arc::new(message);
        self.change(message.channel, |window, limits, now| {
            if window.lacks(&message) {
                window.hold(Arc::clone(&message));
                window.shrink(limits.per_channel);
            } else {
                window.replace(&message);
            }
            window.remember(message.id, Some(Arc::clone(&message)), now);
        });
    }

    /// Messages were deleted.
    pub fn deleted(&mut self, channel: ChannelId, ids: &[MessageId]) {
        self.change(channel, |window, _, now| {
            for id in ids {
                window.drop_message(*id);
                window.remember(*id, None, now);
            }
        });
    }

    /// A thread was opened while we watched: it is whole from its start.
    pub fn opened(&mut self, channel: ChannelId, guild: Option<GuildId>) {
        self.change(channel, |window, _, _| {
            window.guild = guild.or(window.guild);
            if window.recent.is_empty() || window.mark.is_some() {
                window.mark = Some(CHANNEL_START);
            }
        });
    }

    /// Something may have been missed in this channel: nothing of it is
    /// trusted any more.
    pub fn break_channel(&mut self, channel: ChannelId) {
        self.generation += 1;
        let generation = self.generation;
        self.change(channel, |window, _, _| {
            window.clear();
            window.generation = generation;
        });
    }

    /// The same for every channel that `hidden` names.
    pub fn break_where(&mut self, mut hidden: impl FnMut(ChannelId, Option<GuildId>) -> bool) {
        // Channels of which nothing is held may be meant as well.
        self.generation += 1;
        let broken: Vec<ChannelId> = self
            .channels
            .iter()
            .filter(|(channel, window)| hidden(**channel, window.guild))
            .map(|(channel, _)| *channel)
            .collect();
        for channel in broken {
            self.break_channel(channel);
        }
    }

    /// The channel is gone.
    pub fn forget(&mut self, channel: ChannelId) {
        if let Some(window) = self.channels.remove(&channel) {
            self.bytes -= window.bytes;
            self.by_use.remove(&window.used);
            // What was fetched before may lack what was forgotten now.
            self.generation += 1;
        }
    }

    /// What is known of a channel now.
    pub fn view(&self, channel: ChannelId) -> View {
        let Some(window) = self.channels.get(&channel) else {
            return View {
                generation: self.generation,
                taken: self.uses,
                ..View::default()
            };
        };
        View {
            recent: window
                .recent
                .values()
                .map(|held| Arc::clone(&held.message))
                .collect(),
            linked: window.linked.clone(),
            whole_from: window.mark,
            newest: window.newest,
            deleted: window.deleted().collect(),
            generation: self.generation,
            taken: self.uses,
        }
    }

    /// One message, if it is held.
    pub fn message(&self, channel: ChannelId, id: MessageId) -> Option<Arc<Message>> {
        let window = self.channels.get(&channel)?;
        let recent = window.recent.get(&id).map(|held| &held.message);
        recent.or_else(|| window.linked.get(&id)).cloned()
    }

    /// Fetched messages: all that stand from `from` to the newest one seen
    /// when `view` was taken. Nothing happens if the channel broke meanwhile,
    /// or if what arrived since was too much to be held.
    pub fn adopt(
        &mut self,
        channel: ChannelId,
        view: &View,
        from: MessageId,
        messages: &[Arc<Message>],
    ) {
        let Some(window) = self.channels.get(&channel) else {
            return;
        };
        let joins = |mark: &MessageId| view.newest.is_some_and(|newest| *mark <= newest.next());
        let known = window.mark.filter(|mark| from < *mark && joins(mark));
        if known.is_none() || !window.is_known_since(view) {
            return;
        }
        let (messages, carried) = apart(messages);
        self.change(channel, |window, limits, _| {
            window.mark = Some(from);
            for message in &messages {
                window.hold_fetched(message);
            }
            window.shrink(limits.per_channel);
        });
        self.carried_all(carried, view);
    }

    /// Fetched single messages that somebody pointed at, in `channel` or,
    /// as a thread's starter, in its parent. `view` may be any channel's, taken
    /// before the fetch.
    pub fn keep(&mut self, channel: ChannelId, view: &View, messages: &[Arc<Message>]) {
        let fresh = match self.channels.get(&channel) {
            Some(window) => window.is_known_since(view),
            None => self.generation == view.generation,
        };
        if messages.is_empty() || !fresh {
            return;
        }
        let (messages, carried) = apart(messages);
        self.change(channel, |window, limits, _| {
            for message in &messages {
                window.keep_fetched(message);
            }
            window.shrink(limits.per_channel);
        });
        self.carried_all(carried, view);
    }

    fn carried_all(&mut self, carried: Vec<Message>, view: &View) {
        for message in carried {
            let (channel, message) = (message.channel, Arc::new(message));
            self.keep(channel, view, &[message]);
        }
    }

    /// Messages held, and bytes they occupy, about.
    pub fn size(&self) -> (usize, usize) {
        let held = |window: &ChannelWindow| window.recent.len() + window.linked.len();
        (self.channels.values().map(held).sum(), self.bytes)
    }

    fn change(
        &mut self,
        channel: ChannelId,
        change: impl FnOnce(&mut ChannelWindow, WindowLimits, u64),
    ) {
        self.uses += 1;
        let (generation, bytes) = (self.generation, &mut self.bytes);
        let fresh = || {
            *bytes += CHANNEL_OVERHEAD;
            ChannelWindow {
                generation,
                bytes: CHANNEL_OVERHEAD,
                ..ChannelWindow::default()
            }
        };
        let window = self.channels.entry(channel).or_insert_with(fresh);
        self.by_use.remove(&window.used);
        window.used = self.uses;
        self.by_use.insert(self.uses, channel);
        let before = window.bytes;
        change(window, self.limits, self.uses);
        self.bytes = self.bytes - before + window.bytes;
        self.evict(channel);
    }

    /// Drops whole channels, the longest unused first, never `spared`.
    fn evict(&mut self, spared: ChannelId) {
        while self.bytes > self.limits.max_bytes {
            let Some(oldest) = self
                .by_use
                .values()
                .copied()
                .find(|channel| *channel != spared)
            else {
                return;
            };
            self.forget(oldest);
        }
    }
}

/// Fetched messages, and apart from them those they carried: each copy stands
/// once, where its edits and its deletion find it.
fn apart(messages: &[Arc<Message>]) -> (Vec<Arc<Message>>, Vec<Message>) {
    let mut carried = Vec::new();
    let alone = messages.iter().map(|message| {
        if !matches!(message.referenced, Referenced::Known(_)) {
            return Arc::clone(message);
        }
        let mut own = Message::clone(message);
        carried.extend(own.take_carried());
        Arc::new(own)
    });
    (alone.collect(), carried)
}

fn weight(message: &Message) -> usize {
    message.weight() + ENTRY_OVERHEAD
}

impl Change {
    /// As if nobody else held the message.
    fn weight(&self) -> usize {
        ENTRY_OVERHEAD + self.message.as_deref().map_or(0, weight)
    }
}

impl ChannelWindow {
    /// Nothing that happened since `view` was taken is lost.
    fn is_known_since(&self, view: &View) -> bool {
        self.generation <= view.generation && self.forgot_change <= view.taken
    }

    fn hold(&mut self, message: Arc<Message>) {
        let linked = self.take_linked(message.id) || message.replies_to().is_some();
        self.bytes += weight(&message);
        if let Some(old) = self.recent.insert(message.id, Held { message, linked }) {
            self.bytes -= weight(&old.message);
        }
    }

    /// Its text was edited before its creation was heard of.
    fn holds_newer(&self, message: &Message) -> bool {
        let held = self.recent.get(&message.id);
        held.is_some_and(|held| held.message.content != message.content)
    }

    /// It stands where the window is whole, and is not there.
    fn lacks(&self, message: &Message) -> bool {
        let is_covered = self.mark.is_some_and(|mark| message.id >= mark);
        is_covered
            && !message.flags.is_private()
            && !self.recent.contains_key(&message.id)
            && !self.is_deleted(message.id)
    }

    fn keep(&mut self, message: Arc<Message>) {
        if self.recent.contains_key(&message.id) || self.is_deleted(message.id) {
            return;
        }
        self.bytes += weight(&message);
        if let Some(old) = self.linked.insert(message.id, message) {
            self.bytes -= weight(&old);
        }
    }

    /// A fetched message: what the gateway said since is newer.
    fn hold_fetched(&mut self, message: &Arc<Message>) {
        if self.recent.contains_key(&message.id) || message.flags.is_private() {
            return;
        }
        if let Some(message) = self.as_changed(message) {
            self.hold(message);
        }
    }

    fn keep_fetched(&mut self, message: &Arc<Message>) {
        let held = self.linked.contains_key(&message.id);
        if let Some(message) = self.as_changed(message).filter(|_| !held) {
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

    fn replace(&mut self, message: &Arc<Message>) {
        if let Some(held) = self.recent.get_mut(&message.id) {
            self.bytes = self.bytes + weight(message) - weight(&held.message);
            held.message = Arc::clone(message);
        } else if let Some(held) = self.linked.get_mut(&message.id) {
            self.bytes = self.bytes + weight(message) - weight(held);
            *held = Arc::clone(message);
        }
    }

    fn drop_message(&mut self, id: MessageId) {
        if let Some(held) = self.recent.remove(&id) {
            self.bytes -= weight(&held.message);
        }
        self.take_linked(id);
    }

    fn take_linked(&mut self, id: MessageId) -> bool {
        let taken = self.linked.remove(&id);
        self.bytes -= taken.as_deref().map_or(0, weight);
        taken.is_some()
    }

    fn link(&mut self, id: MessageId) {
        if let Some(held) = self.recent.get_mut(&id) {
            held.linked = true;
        }
    }

    /// One entry a message: an answer that is streamed by edits must not push
    /// out the rest.
    fn remember(&mut self, id: MessageId, message: Option<Arc<Message>>, now: u64) {
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

    fn deleted(&self) -> impl Iterator<Item = MessageId> {
        self.changes
            .iter()
            .filter(|change| change.message.is_none())
            .map(|change| change.id)
    }

    fn is_deleted(&self, id: MessageId) -> bool {
        self.deleted().any(|deleted| deleted == id)
    }

    /// Older messages go first, but those that a reply chain runs through stay
    /// longer: up to half of the room is theirs.
    fn shrink(&mut self, per_channel: usize) {
        let half = (per_channel / 2).max(1);
        while self.linked.len() > half {
            self.linked
                .pop_first()
                .inspect(|(_, old)| self.bytes -= weight(old));
        }
        while self.recent.len() > half && self.recent.len() + self.linked.len() > per_channel {
            let Some((id, held)) = self.recent.pop_first() else {
                return;
            };
            self.bytes -= weight(&held.message);
            self.mark = Some(id.next());
            if held.linked {
                self.keep(held.message);
                if self.linked.len() > half {
                    self.linked
                        .pop_first()
                        .inspect(|(_, old)| self.bytes -= weight(old));
                }
            }
        }
    }

    fn clear(&mut self) {
        self.recent.clear();
        self.linked.clear();
        self.mark = None;
        let changes: usize = self.changes.iter().map(Change::weight).sum();
        self.bytes = CHANNEL_OVERHEAD + changes;
    }
}
