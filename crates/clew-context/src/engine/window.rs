//! The window: recent messages of each channel, by id, which the event loop adds
//! in gateway order. From each channel's mark on, it is complete up to now.
//!
//! Messages before the mark (links of reply chains, starters) can be looked up by
//! id, but never count as "the messages of this channel".

mod channel;
#[cfg(test)]
mod tests;
mod view;
mod withheld;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::model::{ChannelId, GuildId, Message, MessageId, OptedOut, Referenced};

pub use view::{CHANNEL_START, View};

use channel::{CHANNEL_OVERHEAD, ChannelWindow};

/// How much the window keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// `WINDOW_PER_CHANNEL`: most messages per channel, at least 2.
    pub per_channel: usize,
    /// `WINDOW_MAX_MB`, in bytes: approximate limit for all channels together.
    pub max_bytes: usize,
}

impl Default for WindowLimits {
    /// 200 messages per channel, 8 MiB in total.
    fn default() -> Self {
        Self {
            per_channel: 200,
            max_bytes: 8 << 20,
        }
    }
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
    /// When the pins of a channel of which nothing is held were last said to have changed.
    pins_changed: u64,
    opted_out: OptedOut,
}

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
            pins_changed: 0,
            opted_out: OptedOut::default(),
        }
    }

    /// A message arrived from the gateway. Ephemeral and loading messages are not
    /// kept; the referenced message it includes is kept separately. Returns what is
    /// kept, which has no words if the author opted out: copy a trigger's words
    /// beforehand.
    pub fn created(&mut self, mut message: Message) -> Arc<Message> {
        if message.flags.is_private() {
            return Arc::new(message);
        }
        self.opted_out.withhold(&mut message);
        let referenced = message.take_referenced_message();
        let (channel, guild, replies_to) = (message.channel, message.guild, message.replies_to());
        let message = Arc::new(message);
        self.change(channel, |window, limits, _| {
            window.guild = guild.or(window.guild);
            let mark = *window.mark.get_or_insert(message.id);
            window.newest = window.newest.max(Some(message.id));
            if window.holds_newer(&message) {
                // Our own message, edited in the meantime: its edit event will follow.
            } else if message.id < mark {
                // Delivered late or twice: the messages around it may already be gone.
                window.keep(Arc::clone(&message));
            } else {
                window.hold(Arc::clone(&message));
            }
            if let Some(parent) = replies_to {
                window.link(parent);
            }
            window.shrink(limits.per_channel);
        });
        if let Some(referenced) = referenced {
            self.keep_referenced(referenced);
        }
        message
    }

    /// We posted this. The gateway reports it too, but possibly only after the next
    /// turn here has started.
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

    /// Keeps a referenced message in its own channel: a thread's starter belongs to
    /// the parent, where its edits and deletion arrive.
    fn keep_referenced(&mut self, referenced: Message) {
        self.change(referenced.channel, |window, limits, _| {
            window.keep(Arc::new(referenced));
            window.shrink(limits.per_channel);
        });
    }

    /// A message was edited. The edit of a message that is not held is remembered
    /// for a while, since a page with it may be in flight. A command's answer is
    /// first created as loading and becomes a message with its first edit.
    pub fn edited(&mut self, mut message: Message) {
        message.take_referenced_message();
        self.opted_out.withhold(&mut message);
        let message = Arc::new(message);
        self.change(message.channel, |window, limits, now| {
            if window.lacks(&message) {
                window.hold(Arc::clone(&message));
                window.shrink(limits.per_channel);
            }
            window.replace(&message);
            window.remember(message.id, Some(Arc::clone(&message)), now);
        });
    }

    /// Messages were deleted.
    pub fn deleted(&mut self, channel: ChannelId, ids: &[MessageId]) {
        self.change(channel, |window, _, now| {
            for id in ids {
                window.remember(*id, None, now);
                window.drop_message(*id);
            }
        });
    }

    /// A thread was opened while we were watching: it is complete from its start.
    pub fn opened(&mut self, channel: ChannelId, guild: Option<GuildId>) {
        self.change(channel, |window, _, _| {
            window.guild = guild.or(window.guild);
            if window.recent.is_empty() || window.mark.is_some() {
                window.mark = Some(CHANNEL_START);
            }
        });
    }

    /// The pins of a channel changed: those held are not shown again. A deletion of a pinned
    /// message does not tell so (Channel Pins Update).
    pub fn pins_changed(&mut self, channel: ChannelId) {
        self.uses += 1;
        let Some(window) = self.channels.get_mut(&channel) else {
            // They may be on their way.
            self.pins_changed = self.uses;
            return;
        };
        let before = window.bytes;
        window.keep_pins(None);
        window.pins_changed = self.uses;
        self.bytes = self.bytes - before + window.bytes;
    }

    /// Events of this channel may have been missed: discards all messages held of it.
    pub fn break_channel(&mut self, channel: ChannelId) {
        self.generation += 1;
        let generation = self.generation;
        self.change(channel, |window, _, _| {
            window.clear();
            window.generation = generation;
        });
    }

    /// The same for every channel for which `hidden` returns true.
    pub fn break_where(&mut self, mut hidden: impl FnMut(ChannelId, Option<GuildId>) -> bool) {
        // This may also concern channels of which nothing is held.
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

    /// The channel was deleted or is dropped for room.
    pub fn forget(&mut self, channel: ChannelId) {
        if let Some(window) = self.channels.remove(&channel) {
            self.bytes -= window.bytes;
            self.by_use.remove(&window.used);
            // Pages fetched before may lack deletions and edits that are forgotten now.
            self.generation += 1;
        }
    }

    /// The channels of a server of which messages are held, latest used first.
    pub fn held_of(&self, guild: GuildId) -> impl Iterator<Item = ChannelId> {
        let is_there = move |channel: &&ChannelId| {
            let window = self.channels.get(channel);
            window.is_some_and(|window| window.guild == Some(guild))
        };
        self.by_use.values().rev().filter(is_there).copied()
    }

    /// Everything known of a channel now.
    pub fn view(&self, channel: ChannelId) -> View {
        let Some(window) = self.channels.get(&channel) else {
            return View {
                generation: self.generation,
                taken: self.uses,
                opted_out: self.opted_out.clone(),
                ..View::default()
            };
        };
        View {
            recent: window
                .recent
                .values()
                .map(|held| Arc::clone(&held.message))
                .collect(),
            linked: window.linked_messages(),
            pins: window.pins.clone(),
            whole_from: window.mark,
            newest: window.newest,
            deleted: window.deleted().collect(),
            generation: self.generation,
            taken: self.uses,
            opted_out: self.opted_out.clone(),
        }
    }

    /// The newest message seen in a channel.
    pub fn newest(&self, channel: ChannelId) -> Option<MessageId> {
        self.channels.get(&channel)?.newest
    }

    /// One message, if it is held.
    pub fn message(&self, channel: ChannelId, id: MessageId) -> Option<Arc<Message>> {
        let window = self.channels.get(&channel)?;
        let recent = window.recent.get(&id).map(|held| &held.message);
        let linked = || window.linked.get(&id).map(|linked| &linked.message);
        let pinned = || window.pins.iter().flatten().find(|one| one.id == id);
        recent.or_else(linked).or_else(pinned).cloned()
    }

    /// Adds fetched messages: all from `from` to the newest one seen when `view`
    /// was taken. Does nothing if the channel was broken in the meantime, or if
    /// more changes arrived since than are remembered.
    pub fn backfill(
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
        let (messages, referenced) = self.apart(messages);
        self.change(channel, |window, limits, _| {
            window.mark = Some(from);
            for message in &messages {
                window.hold_fetched(message);
            }
            window.shrink(limits.per_channel);
        });
        self.keep_all_referenced(referenced, view);
    }

    /// Adds single fetched messages that were pointed at, in `channel` or, for a
    /// thread's starter, in its parent. `view` can be any channel's, taken before
    /// the fetch.
    pub fn keep(&mut self, channel: ChannelId, view: &View, messages: &[Arc<Message>]) {
        let fresh = match self.channels.get(&channel) {
            Some(window) => window.is_known_since(view),
            None => self.generation == view.generation,
        };
        if messages.is_empty() || !fresh {
            return;
        }
        let (messages, referenced) = self.apart(messages);
        self.change(channel, |window, limits, _| {
            for message in &messages {
                window.keep_fetched(message);
            }
            window.shrink(limits.per_channel);
        });
        self.keep_all_referenced(referenced, view);
    }

    /// Keeps the pinned messages of a channel, fetched after `view` was taken. Those of a server
    /// take at most an eighth of the window: the longest unused go first. A window that has room for
    /// no message keeps none.
    pub fn keep_pins(
        &mut self,
        channel: ChannelId,
        guild: Option<GuildId>,
        view: &View,
        pins: &[Arc<Message>],
    ) {
        let is_fresh = match self.channels.get(&channel) {
            Some(window) => window.is_known_since(view) && window.pins_changed <= view.taken,
            None => self.generation == view.generation && self.pins_changed <= view.taken,
        };
        if !is_fresh || self.limits.per_channel == 0 {
            return;
        }
        let (pins, _) = self.apart(pins);
        self.change(channel, |window, _, _| {
            window.guild = guild.or(window.guild);
            window.keep_pins(Some(&pins));
        });
        let Some(guild) = guild else { return };
        let of_guild: Vec<ChannelId> = self.held_of(guild).collect();
        let mut room = self.limits.max_bytes / 8;
        for channel in of_guild {
            let Some(window) = self.channels.get_mut(&channel) else {
                continue;
            };
            let bytes = window.pin_bytes();
            if bytes <= room {
                room -= bytes;
            } else {
                window.keep_pins(None);
                self.bytes -= bytes;
            }
        }
    }

    fn keep_all_referenced(&mut self, referenced: Vec<Message>, view: &View) {
        for message in referenced {
            let (channel, message) = (message.channel, Arc::new(message));
            self.keep(channel, view, &[message]);
        }
    }

    /// Separates fetched messages from those they include: each copy is kept once,
    /// in its own channel, where its edits and deletion arrive.
    fn apart(&self, messages: &[Arc<Message>]) -> (Vec<Arc<Message>>, Vec<Message>) {
        let mut referenced = Vec::new();
        let alone = messages.iter().map(|message| {
            let message = self.opted_out.withheld(Arc::clone(message));
            if !matches!(message.referenced, Referenced::Known(_)) {
                return message;
            }
            let mut own = Message::clone(&message);
            referenced.extend(own.take_referenced_message());
            Arc::new(own)
        });
        (alone.collect(), referenced)
    }

    /// Number of messages held, and the approximate bytes they occupy.
    pub fn size(&self) -> (usize, usize) {
        let held = |window: &ChannelWindow| {
            let pins = window.pins.as_ref().map_or(0, Vec::len);
            window.recent.len() + window.linked.len() + pins
        };
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
            ChannelWindow::new(generation, self.pins_changed)
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

    /// Drops whole channels, the longest unused first, but never `spared`.
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
