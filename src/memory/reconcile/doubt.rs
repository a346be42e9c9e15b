//! Doubts: stored messages that may have been deleted or edited on Discord without
//! our hearing of it. Each is settled by an answer about that very message, or by
//! a page that shows it.
//!
//! In a *gap* events were missed. What was stored before one is confirmed once, when a
//! prompt uses it. A message missing from a page, or covered by an event that was heard but
//! could not be kept (a *loss*), is asked for by itself. Neither is shown before Discord
//! has said that it is there.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis};
use clew_store::model::{Fact, Origin, StoredMessage};

/// The most messages to be asked for, over all channels and in one channel.
const MOST_QUESTIONS: usize = 4_096;
const MOST_OF_A_CHANNEL: usize = 256;
/// The most messages asked for in one round, over all channels and in one channel,
/// so that no channel waits long for another.
const A_ROUND: usize = 64;
const A_ROUND_OF_A_CHANNEL: usize = 8;
/// The most channels and servers with gaps of their own; beyond, one gap covers all.
/// The same for losses.
const MOST_MISSED: usize = 8_192;
/// The most messages remembered as settled; beyond, the older half is forgotten
/// and asked for once more if needed.
const MOST_SETTLED: usize = 32_768;

/// A message, by its channel and id.
pub(in crate::memory) type Key = (ChannelId, MessageId);

/// Where events were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Everywhere.
    Everything,
    /// In the servers of a shard; direct messages are those of shard 0.
    Shard {
        /// The shard.
        shard: u32,
        /// The total number of shards.
        shards: u32,
    },
    /// In a server.
    Guild(GuildId),
    /// In a channel.
    Channel(ChannelId),
}

/// A message that something stored was made from.
#[derive(Debug, Clone, Copy)]
pub(in crate::memory) struct Trace {
    key: Key,
    guild: Option<GuildId>,
    /// When it was stored; the distant past if restored from a snapshot.
    at: UnixMillis,
}

/// The traces of a row: of its message, of the message's further parts, and of the
/// messages that it was made from.
pub(in crate::memory) fn traces(row: &StoredMessage) -> impl Iterator<Item = Trace> + '_ {
    let at = match row.restored_from {
        Some(_) => UnixMillis(i64::MIN),
        None => row.timestamp,
    };
    let own = row.message.iter().chain(&row.parts);
    let own = own.map(|id| ((row.channel, *id), row.guild));
    let sources = row.sources.iter();
    let sources = sources.filter_map(|one| Some(((one.channel, one.message?), one.guild)));
    let all = own.chain(sources);
    all.map(move |(key, guild)| Trace { key, guild, at })
}

/// The trace of a fact that was learnt from a message.
pub(in crate::memory) fn trace_of_fact(fact: &Fact) -> Option<Trace> {
    let guild = match fact.origin {
        Origin::Guild(guild) => Some(guild),
        Origin::Direct | Origin::Everywhere => None,
    };
    fact.link.map(|key| Trace {
        key,
        guild,
        at: fact.at,
    })
}

impl Trace {
    pub(in crate::memory) const fn key(&self) -> Key {
        self.key
    }
}

/// How far a question has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Still to be asked.
    Due,
    /// Being asked, or known to be gone and being purged.
    Asking,
    /// Discord would not say. A change of permissions or another page reopens it.
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct Question {
    progress: Progress,
    /// Whether nothing made from the message is shown in the meantime.
    hidden: bool,
}

/// The messages in doubt.
#[derive(Debug, Default)]
pub(in crate::memory) struct Doubts {
    inner: Mutex<Inner>,
    due: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    questions: BTreeMap<Key, Question>,
    gaps: Since,
    losses: Since,
    /// When Discord last showed a message, by its id, which is unique across channels.
    settled: HashMap<MessageId, UnixMillis>,
    /// Channels with more in doubt than there is room for, with the last message
    /// that was noted.
    unfinished: BTreeMap<ChannelId, MessageId>,
}

/// The last time something happened, by place.
#[derive(Debug, Default)]
struct Since {
    everything: Option<UnixMillis>,
    shards: HashMap<(u32, u32), UnixMillis>,
    guilds: HashMap<GuildId, UnixMillis>,
    channels: HashMap<ChannelId, UnixMillis>,
}

impl Since {
    fn note(&mut self, missed: Missed, now: UnixMillis) {
        if self.guilds.len() + self.channels.len() >= MOST_MISSED {
            self.guilds.clear();
            self.channels.clear();
            self.everything = Some(now);
        }
        match missed {
            Missed::Everything => self.everything = Some(now),
            Missed::Shard { shard, shards } => {
                self.shards.insert((shard, shards), now);
            }
            Missed::Guild(guild) => {
                self.guilds.insert(guild, now);
            }
            Missed::Channel(channel) => {
                self.channels.insert(channel, now);
            }
        }
    }

    /// The latest time that concerns a message. A server belongs to shard
    /// `(id >> 22) % shards` (Discord's reference, "Sharding").
    fn latest(&self, trace: &Trace) -> Option<UnixMillis> {
        let id = trace.guild.map_or(0, |guild| guild.get() >> 22);
        let of_shard = self
            .shards
            .iter()
            .filter(|((shard, shards), _)| id % u64::from(*shards).max(1) == u64::from(*shard));
        let of_guild = trace.guild.and_then(|guild| self.guilds.get(&guild));
        of_shard
            .map(|(_, at)| at)
            .chain(of_guild)
            .chain(self.channels.get(&trace.key.0))
            .chain(&self.everything)
            .max()
            .copied()
    }
}

impl Inner {
    /// Whether something happened there after it was stored and last shown.
    fn is_open(&self, since: &Since, trace: &Trace) -> bool {
        let settled = self.settled.get(&trace.key.1);
        since
            .latest(trace)
            .is_some_and(|at| trace.at < at && settled.is_none_or(|settled| *settled < at))
    }

    /// Returns whether there was room.
    fn ask(&mut self, key: Key, hidden: bool) -> bool {
        if self.questions.len() >= MOST_QUESTIONS {
            return false;
        }
        let of_channel = (key.0, MessageId::new(0))..=(key.0, MessageId::new(u64::MAX));
        if self.questions.range(of_channel).count() >= MOST_OF_A_CHANNEL {
            return false;
        }
        let progress = Progress::Due;
        self.questions.insert(key, Question { progress, hidden });
        true
    }
}

impl Doubts {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a gap. Messages that Discord would not tell of before may be asked for
    /// again.
    pub(in crate::memory) fn missed(&self, missed: Missed, now: UnixMillis) {
        let mut inner = self.lock();
        inner.gaps.note(missed, now);
        inner
            .questions
            .retain(|_, question| question.hidden || question.progress != Progress::Refused);
    }

    /// Notes a loss: events were heard and could not be kept.
    pub(in crate::memory) fn lost(&self, missed: Missed, now: UnixMillis) {
        self.lock().losses.note(missed, now);
    }

    /// Notes stored messages, in order of their ids, that were missing from a page
    /// fetched at that time. If there is no room for the rest, it counts as lost
    /// and is noted later, see [`Doubts::unfinished`].
    pub(in crate::memory) fn lacking(
        &self,
        channel: ChannelId,
        ids: impl IntoIterator<Item = MessageId>,
        at: UnixMillis,
    ) {
        let mut inner = self.lock();
        let mut last = MessageId::new(0);
        for id in ids {
            if inner.settled.get(&id).is_some_and(|settled| *settled >= at) {
                continue;
            }
            match inner.questions.entry((channel, id)) {
                Entry::Occupied(mut question) => {
                    let question = question.get_mut();
                    question.hidden = true;
                    if question.progress == Progress::Refused {
                        question.progress = Progress::Due;
                    }
                }
                Entry::Vacant(_) => {
                    if !inner.ask((channel, id), true) {
                        inner.unfinished.entry(channel).or_insert(last);
                        inner.losses.note(Missed::Channel(channel), at);
                        break;
                    }
                }
            }
            last = id;
        }
        self.due.notify_one();
    }

    /// Settles messages that Discord showed, or that were purged.
    pub(in crate::memory) fn settle(
        &self,
        channel: ChannelId,
        ids: impl IntoIterator<Item = MessageId>,
        now: UnixMillis,
    ) {
        let mut inner = self.lock();
        for id in ids {
            inner.questions.remove(&(channel, id));
            inner.settled.insert(id, now);
        }
        if inner.settled.len() > MOST_SETTLED {
            let mut times: Vec<UnixMillis> = inner.settled.values().copied().collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            inner.settled.retain(|_, at| *at > middle);
        }
    }

    /// Drops the doubts of a channel that is gone, with all that was kept of it.
    pub(in crate::memory) fn forget(&self, channel: ChannelId) {
        let mut inner = self.lock();
        inner.questions.retain(|(of, _), _| *of != channel);
        inner.unfinished.remove(&channel);
    }

    /// Whether nothing made from the message may be shown now. A message affected
    /// by a loss is queued to be asked for.
    pub(in crate::memory) fn hides(&self, trace: &Trace) -> bool {
        let mut inner = self.lock();
        let is_lost = inner.is_open(&inner.losses, trace);
        if let Some(question) = inner.questions.get_mut(&trace.key) {
            question.hidden |= is_lost;
            return question.hidden;
        }
        if is_lost && inner.ask(trace.key, true) {
            self.due.notify_one();
        }
        is_lost
    }

    /// Whether the message lies before a gap and is not confirmed yet.
    pub(in crate::memory) fn is_unconfirmed(&self, trace: &Trace) -> bool {
        let inner = self.lock();
        inner.is_open(&inner.gaps, trace)
    }

    /// Queues messages that lie before a gap and are not confirmed yet: the caller
    /// has to ask for the first `most`, the others are asked for later.
    pub(in crate::memory) fn take_unconfirmed(
        &self,
        traces: impl IntoIterator<Item = Trace>,
        most: usize,
    ) -> Asking<'_> {
        let mut inner = self.lock();
        let mut keys = Vec::new();
        for trace in traces {
            let is_asked = inner.questions.contains_key(&trace.key);
            if is_asked || !inner.is_open(&inner.gaps, &trace) {
                continue;
            }
            let has_room = inner.ask(trace.key, false);
            if keys.len() < most && has_room {
                inner.progress(trace.key, Progress::Asking);
                keys.push(trace.key);
            }
        }
        self.due.notify_one();
        Asking { doubts: self, keys }
    }

    /// Waits until there are messages to ask for, and returns some, grouped by
    /// channel.
    pub(in crate::memory) async fn due(&self) -> Asking<'_> {
        loop {
            let keys = self.lock().take_round();
            if !keys.is_empty() {
                return Asking { doubts: self, keys };
            }
            self.due.notified().await;
        }
    }

    /// The message is gone: hides it until it is purged.
    pub(in crate::memory) fn gone(&self, key: Key) {
        let question = Question {
            progress: Progress::Asking,
            hidden: true,
        };
        self.lock().questions.insert(key, question);
    }

    /// Discord's answer did not settle it.
    pub(in crate::memory) fn unclear(&self, key: Key) {
        self.lock().progress(key, Progress::Refused);
    }

    /// We may not read the channel: it is not asked about again for now, since
    /// refused requests count towards a ban.
    pub(in crate::memory) fn refused(&self, channel: ChannelId) {
        let mut inner = self.lock();
        let of_channel = inner
            .questions
            .iter_mut()
            .filter(|((of, _), _)| *of == channel);
        for (_, question) in of_channel {
            question.progress = Progress::Refused;
        }
    }

    /// Messages that were refused are asked for once more.
    pub(in crate::memory) fn ask_refused(&self, which: impl Fn(ChannelId) -> bool) {
        let mut inner = self.lock();
        for ((channel, _), question) in &mut inner.questions {
            if question.progress == Progress::Refused && which(*channel) {
                question.progress = Progress::Due;
            }
        }
        self.due.notify_one();
    }

    /// Messages that got no answer are asked for once more.
    pub(in crate::memory) fn ask_again(&self, keys: &[Key]) {
        let mut inner = self.lock();
        for key in keys {
            inner.progress(*key, Progress::Due);
        }
        self.due.notify_one();
    }

    /// Channels that have room again, each with the last message that was noted
    /// before the room ran out.
    pub(in crate::memory) fn unfinished(&self) -> Vec<Key> {
        let mut inner = self.lock();
        let is_busy = |inner: &Inner, channel: ChannelId| {
            let of_channel = (channel, MessageId::new(0))..=(channel, MessageId::new(u64::MAX));
            inner.questions.range(of_channel).next().is_some()
        };
        let ready: Vec<Key> = inner
            .unfinished
            .iter()
            .filter(|(channel, _)| !is_busy(&inner, **channel))
            .map(|(channel, from)| (*channel, *from))
            .collect();
        for (channel, _) in &ready {
            inner.unfinished.remove(channel);
        }
        ready
    }
}

impl Inner {
    fn progress(&mut self, key: Key, progress: Progress) {
        if let Some(question) = self.questions.get_mut(&key) {
            question.progress = progress;
        }
    }

    fn take_round(&mut self) -> Vec<Key> {
        let (mut keys, mut of_channel) = (Vec::<Key>::new(), 0);
        let due = self.questions.iter_mut();
        for (key, question) in due.filter(|(_, one)| one.progress == Progress::Due) {
            of_channel = match keys.last() {
                Some((last, _)) if *last == key.0 => of_channel + 1,
                _ => 1,
            };
            if of_channel <= A_ROUND_OF_A_CHANNEL && keys.len() < A_ROUND {
                question.progress = Progress::Asking;
                keys.push(*key);
            }
        }
        keys
    }
}

/// Messages being asked for by the holder. Those left when it is dropped are due
/// again.
#[derive(Debug)]
pub(in crate::memory) struct Asking<'a> {
    doubts: &'a Doubts,
    keys: Vec<Key>,
}

impl Asking<'_> {
    /// The next one.
    pub(in crate::memory) fn first(&self) -> Option<Key> {
        self.keys.first().copied()
    }

    /// All of them.
    pub(in crate::memory) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    /// Removes one that has been dealt with; returns whether it was among them.
    pub(in crate::memory) fn done(&mut self, key: &Key) -> bool {
        let at = self.keys.iter().position(|one| one == key);
        at.map(|at| self.keys.remove(at)).is_some()
    }

    /// Stops asking for the messages of a channel.
    pub(in crate::memory) fn leave(&mut self, channel: ChannelId) {
        self.keys.retain(|(of, _)| *of != channel);
    }

    pub(in crate::memory) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns those left, for the caller to have asked for again.
    pub(in crate::memory) fn hand_over(mut self) -> Vec<Key> {
        std::mem::take(&mut self.keys)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.keys.is_empty() {
            self.doubts.ask_again(&self.keys);
        }
    }
}

#[cfg(test)]
mod tests;
