//! Doubts: stored messages that may have been deleted or edited on Discord without
//! our hearing of it. Each is settled by an answer about that very message, or by
//! a page that shows it.
//!
//! In a *gap* events were missed. What was stored before one is confirmed once, when a
//! prompt uses it. A message missing from a page, or covered by an event that was heard but
//! could not be kept (a *loss*), is asked for by itself. Neither is shown before Discord
//! has said that it is there.

mod questions;
mod since;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::party::{Party, Shared};
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis};
use clew_discord::session::{Gap, Missed};
use clew_store::model::{Fact, StoredMessage};

use questions::{A_ROUND, Progress, Question, Questions};
use since::Since;

/// The most messages remembered as settled (some 4 MiB); beyond, the older half is forgotten
/// and asked for once more if needed.
const MOST_SETTLED: usize = 131_072;
/// The most channels of which it is remembered that they would not say, and of which some
/// messages wait for room. Those forgotten are asked about when next used.
const MOST_REFUSED: usize = 8_192;
const MOST_UNFINISHED: usize = 8_192;

/// A message, by its channel and id.
pub(in crate::memory) type Key = (ChannelId, MessageId);

/// A message that something stored was made from.
#[derive(Debug, Clone, Copy)]
pub(in crate::memory) struct Trace {
    pub(in crate::memory) key: Key,
    pub(in crate::memory) guild: Option<GuildId>,
    /// When it was stored; the distant past if restored from a snapshot.
    pub(in crate::memory) at: UnixMillis,
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
    fact.link.map(|key| Trace {
        key,
        guild: fact.origin.guild(),
        at: fact.at,
    })
}

impl Trace {
    /// The same of what was heard at that time, and stored later.
    pub(in crate::memory) fn heard(self, at: UnixMillis) -> Self {
        let at = self.at.min(at);
        Self { at, ..self }
    }

    fn party(&self) -> Party {
        Party::of(self.guild, self.key.0)
    }
}

#[derive(Debug, Default)]
pub(in crate::memory) struct Doubts {
    inner: Mutex<Inner>,
    due: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    questions: Questions,
    gaps: Since,
    losses: Since,
    /// When Discord last showed a message, by its id, which is unique across channels.
    settled: HashMap<MessageId, UnixMillis>,
    /// Channels that we may not read, and whether anything of theirs is hidden for that.
    /// A change of permissions or another page reopens them.
    refused: Shared<ChannelId, bool, MOST_REFUSED>,
    /// Channels with more in doubt than there is room for.
    unfinished: Shared<ChannelId, Unfinished, MOST_UNFINISHED>,
    /// How many have become unfinished.
    count: u64,
}

/// A channel with more in doubt than there is room for.
#[derive(Debug, Clone, Copy)]
struct Unfinished {
    /// Its number: the one that waits longest is next.
    number: u64,
    /// The last message that was noted.
    from: MessageId,
}

impl Inner {
    /// Whether something happened there after it was stored and last shown.
    fn is_open(&self, since: &Since, trace: &Trace) -> bool {
        let settled = self.settled.get(&trace.key.1);
        since
            .latest(trace)
            .is_some_and(|at| trace.at < at && settled.is_none_or(|settled| *settled < at))
    }

    /// Asks for a message, unless its channel would not say or there is no room. Returns
    /// whether it does.
    fn ask(&mut self, key: Key, party: Party, hidden: bool) -> bool {
        self.refused.get(&key.0).is_none() && self.questions.ask(key, party, hidden)
    }

    fn unfinished(&mut self, party: Party, channel: ChannelId, from: MessageId) {
        self.count += 1;
        let number = self.count;
        let before = self.unfinished.get(&channel).copied();
        let from = before.map_or(from, |before| before.from.min(from));
        let number = before.map_or(number, |before| before.number);
        self.unfinished
            .insert(party, channel, Unfinished { number, from });
    }
}

impl Doubts {
    /// Notes a gap. Messages that Discord would not tell of before may be asked for
    /// again.
    pub(in crate::memory) fn missed(&self, missed: Missed, now: UnixMillis) {
        let mut inner = self.inner.lock();
        inner.gaps.note(missed, now);
        inner.refused.retain(|_, hides| *hides);
        inner
            .questions
            .retain(|_, question| question.hidden || question.progress != Progress::Unclear);
    }

    /// What another process has to know of what was missed: gaps and losses, and channels
    /// of which something is hidden or to be asked for.
    pub(in crate::memory) fn gaps(&self, now: UnixMillis) -> Vec<Gap> {
        let inner = self.inner.lock();
        let noted = inner.gaps.gaps().chain(inner.losses.gaps());
        let asked = inner
            .questions
            .iter()
            .map(|((channel, _), one)| (*channel, one.party));
        let left = inner
            .unfinished
            .iter()
            .map(|(party, channel, _)| (*channel, party));
        let channels: BTreeMap<ChannelId, Party> = asked.chain(left).collect();
        let channels = channels.into_iter().map(|(channel, party)| Gap {
            at: now.0,
            missed: Missed::Channel {
                guild: party.guild(),
                channel,
            },
        });
        noted.chain(channels).collect()
    }

    /// Notes a loss: events were heard and could not be kept.
    pub(in crate::memory) fn lost(&self, missed: Missed, now: UnixMillis) {
        self.inner.lock().losses.note(missed, now);
    }

    /// Notes stored messages, in order of their ids, that were missing from a page
    /// fetched at that time. If there is no room for the rest, it counts as lost
    /// and is noted later, see [`Doubts::unfinished`].
    pub(in crate::memory) fn lacking(
        &self,
        (guild, channel): (Option<GuildId>, ChannelId),
        ids: impl IntoIterator<Item = MessageId>,
        at: UnixMillis,
    ) {
        let mut inner = self.inner.lock();
        let party = Party::of(guild, channel);
        inner.refused.remove(&channel);
        let mut last = MessageId::new(0);
        for id in ids {
            if inner.settled.get(&id).is_some_and(|settled| *settled >= at) {
                continue;
            }
            if let Some(question) = inner.questions.get_mut(&(channel, id)) {
                question.hidden = true;
                if question.progress == Progress::Unclear {
                    question.progress = Progress::Due;
                }
            } else if !inner.ask((channel, id), party, true) {
                inner.unfinished(party, channel, last);
                inner.losses.note(Missed::Channel { guild, channel }, at);
                break;
            }
            last = id;
        }
        self.due.notify_one();
    }

    /// Notes of what is stored now which messages lie before a gap: from its time the stores
    /// do not tell. They are hidden until Discord has shown them.
    pub(in crate::memory) fn hide_unconfirmed(
        &self,
        traces: impl IntoIterator<Item = Trace>,
        now: UnixMillis,
    ) {
        let mut open: BTreeMap<ChannelId, (Party, BTreeSet<MessageId>)> = BTreeMap::new();
        for trace in traces.into_iter().filter(|one| self.is_unconfirmed(one)) {
            let (channel, id) = trace.key;
            let of_channel = open.entry(channel);
            let (_, ids) = of_channel.or_insert_with(|| (trace.party(), BTreeSet::new()));
            ids.insert(id);
        }
        for (channel, (party, ids)) in open {
            self.lacking((party.guild(), channel), ids, now);
        }
    }

    /// Settles messages that Discord showed, or that were purged.
    pub(in crate::memory) fn settle(
        &self,
        channel: ChannelId,
        ids: impl IntoIterator<Item = MessageId>,
        now: UnixMillis,
    ) {
        let mut inner = self.inner.lock();
        for id in ids {
            inner.questions.remove(&(channel, id));
            let settled = inner.settled.entry(id).or_insert(now);
            *settled = now.max(*settled);
        }
        if inner.settled.len() > MOST_SETTLED {
            let mut times: Vec<UnixMillis> = inner.settled.values().copied().collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            inner.settled.retain(|_, at| *at > middle);
        }
        if !inner.unfinished.is_empty() {
            self.due.notify_one();
        }
    }

    /// Drops the questions about deleted messages.
    pub(in crate::memory) fn drop_questions(&self, channel: ChannelId, ids: &[MessageId]) {
        let mut inner = self.inner.lock();
        for id in ids {
            inner.questions.remove(&(channel, *id));
        }
    }

    /// Drops the doubts of a channel that is gone, with all that was kept of it.
    pub(in crate::memory) fn forget(&self, channel: ChannelId) {
        let mut inner = self.inner.lock();
        inner.questions.retain(|(of, _), _| *of != channel);
        inner.unfinished.remove(&channel);
        inner.refused.remove(&channel);
    }

    /// Whether nothing made from the message may be shown now. A message affected
    /// by a loss is queued to be asked for.
    pub(in crate::memory) fn hides(&self, trace: &Trace) -> bool {
        let mut inner = self.inner.lock();
        let is_lost = inner.is_open(&inner.losses, trace);
        if let Some(question) = inner.questions.get_mut(&trace.key) {
            question.hidden |= is_lost;
            return question.hidden;
        }
        if is_lost && inner.ask(trace.key, trace.party(), true) {
            self.due.notify_one();
        }
        is_lost
    }

    /// The server of a message that is asked for, if it is known.
    pub(in crate::memory) fn guild_of(&self, key: Key) -> Option<GuildId> {
        let inner = self.inner.lock();
        inner.questions.get(&key).and_then(|one| one.party.guild())
    }

    /// Whether the message lies before a gap and is not confirmed yet.
    pub(in crate::memory) fn is_unconfirmed(&self, trace: &Trace) -> bool {
        let inner = self.inner.lock();
        inner.is_open(&inner.gaps, trace)
    }

    /// Queues messages that lie before a gap and are not confirmed yet: the caller
    /// has to ask for the first `most`, the others are asked for later.
    pub(in crate::memory) fn take_unconfirmed(
        &self,
        traces: impl IntoIterator<Item = Trace>,
        most: usize,
    ) -> Asking<'_> {
        let mut inner = self.inner.lock();
        let mut keys = Vec::new();
        for trace in traces {
            let is_asked = inner.questions.contains(&trace.key);
            if is_asked || !inner.is_open(&inner.gaps, &trace) {
                continue;
            }
            let asks = inner.ask(trace.key, trace.party(), false);
            if keys.len() < most && asks {
                inner.questions.progress(trace.key, Progress::Asking);
                keys.push(trace.key);
            }
        }
        self.due.notify_one();
        Asking { doubts: self, keys }
    }

    /// Waits until there are messages to ask for, and returns some of a channel; or until
    /// an unfinished channel has room, and returns none.
    pub(in crate::memory) async fn due(&self) -> Asking<'_> {
        loop {
            {
                let mut inner = self.inner.lock();
                let keys = inner.questions.take_round();
                if !keys.is_empty() || inner.next_unfinished().is_some() {
                    return Asking { doubts: self, keys };
                }
            }
            self.due.notified().await;
        }
    }

    /// The message is gone: hides it until it is purged.
    pub(in crate::memory) fn gone(&self, key: Key) {
        let mut inner = self.inner.lock();
        let asked = inner.questions.get_mut(&key).map(|question| question.party);
        let question = Question {
            party: asked.unwrap_or(Party::Channel(key.0)),
            progress: Progress::Asking,
            hidden: true,
        };
        inner.questions.put(key, question);
    }

    /// Discord's answer did not settle it.
    pub(in crate::memory) fn unclear(&self, key: Key) {
        self.inner.lock().questions.progress(key, Progress::Unclear);
    }

    /// We may not read the channel: it is not asked about again for now, since
    /// refused requests count towards a ban, and its messages take no room. What was hidden
    /// stays so, with all that is stored of the channel.
    pub(in crate::memory) fn refused(&self, channel: ChannelId, now: UnixMillis) {
        let mut inner = self.inner.lock();
        let of_channel = inner.questions.of_channel(channel).map(|(_, one)| *one);
        let (party, hides) = of_channel.fold((None, false), |(_, hides), one| {
            (Some(one.party), hides || one.hidden)
        });
        let party = party.unwrap_or(Party::Channel(channel));
        if hides {
            let guild = party.guild();
            inner.losses.note(Missed::Channel { guild, channel }, now);
        }
        inner.questions.retain(|(of, _), _| *of != channel);
        let hides = hides || inner.refused.get(&channel).is_some_and(|hides| *hides);
        inner.refused.insert(party, channel, hides);
    }

    /// Messages that Discord would not tell of are asked for once more.
    pub(in crate::memory) fn ask_refused(&self, which: impl Fn(ChannelId) -> bool) {
        let mut inner = self.inner.lock();
        for ((channel, _), question) in inner.questions.iter_mut() {
            if question.progress == Progress::Unclear && which(*channel) {
                question.progress = Progress::Due;
            }
        }
        let reopened = inner
            .refused
            .iter()
            .filter(|(_, channel, _)| which(**channel));
        let reopened: Vec<_> = reopened
            .map(|(party, channel, hides)| (party, *channel, *hides))
            .collect();
        for (party, channel, hides) in reopened {
            inner.refused.remove(&channel);
            if hides {
                inner.unfinished(party, channel, MessageId::new(0));
            }
        }
        self.due.notify_one();
    }

    /// Messages that got no answer are asked for once more.
    pub(in crate::memory) fn ask_again(&self, keys: &[Key]) {
        let mut inner = self.inner.lock();
        for key in keys {
            inner.questions.progress(*key, Progress::Due);
        }
        self.due.notify_one();
    }

    /// A channel that has room again, with its server and the last message that was noted
    /// before the room ran out.
    pub(in crate::memory) fn unfinished(&self) -> Option<(Option<GuildId>, Key)> {
        let mut inner = self.inner.lock();
        let (party, channel) = inner.next_unfinished()?;
        let unfinished = inner.unfinished.remove(&channel)?;
        Some((party.guild(), (channel, unfinished.from)))
    }
}

impl Inner {
    /// The channel that has waited longest of those of which nothing else is asked for, and
    /// whose server has room for a round.
    fn next_unfinished(&self) -> Option<(Party, ChannelId)> {
        let all = self.unfinished.iter();
        let ready = all.filter(|(party, channel, _)| {
            self.questions.room(*party) >= A_ROUND && !self.questions.is_asked(**channel)
        });
        let next = ready.min_by_key(|(_, _, unfinished)| unfinished.number);
        next.map(|(party, channel, _)| (party, *channel))
    }
}

/// Messages being asked for by the holder. Those left when it is dropped are due
/// again.
#[derive(Debug)]
pub(in crate::memory) struct Asking<'a> {
    doubts: &'a Doubts,
    /// Whoever has dealt with some removes them.
    pub(in crate::memory) keys: Vec<Key>,
}

impl Asking<'_> {
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
