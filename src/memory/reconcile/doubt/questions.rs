//! The messages to be asked for: whose room they take, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::party::Party;
use super::Key;
use clew_context::model::{ChannelId, MessageId};

/// The most messages to be asked for, over all channels and in one channel.
pub(super) const MOST_QUESTIONS: usize = 4_096;
pub(super) const MOST_OF_A_CHANNEL: usize = 256;
/// A server or direct conversation may have this part of what the others leave free: a
/// quarter. However much some have, there is something left for the next.
const PART: usize = 4;
/// The most messages asked for in one round, which is of one channel: some two seconds, so
/// that no channel waits long for another.
pub(super) const A_ROUND: usize = 8;

/// How far a question has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Still to be asked.
    Due,
    /// Being asked, or known to be gone and being purged.
    Asking,
    /// Discord's answer did not settle it. A change of permissions or another page reopens
    /// it.
    Unclear,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub(super) party: Party,
    pub(super) progress: Progress,
    /// Whether nothing made from the message is shown in the meantime.
    pub(super) hidden: bool,
}

/// The questions, and who is next.
#[derive(Debug, Default)]
pub(super) struct Questions {
    by_key: BTreeMap<Key, Question>,
    taken: HashMap<Party, usize>,
    /// The places in the circle: of parties, and of the channels of each. Whoever was asked
    /// about goes to the end, as does who is new.
    places: BTreeMap<(Party, Option<ChannelId>), u64>,
    last_place: u64,
}

impl Questions {
    pub(super) fn get(&self, key: &Key) -> Option<&Question> {
        self.by_key.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Question> {
        self.by_key.get_mut(key)
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }

    /// How many more there is room for.
    pub(super) fn room(&self, party: Party) -> usize {
        let taken = self.taken.get(&party).copied().unwrap_or_default();
        let free = MOST_QUESTIONS.saturating_sub(self.by_key.len() - taken);
        (free / PART).saturating_sub(taken)
    }

    /// Whether anything of a channel is asked for.
    pub(super) fn is_asked(&self, channel: ChannelId) -> bool {
        self.of_channel(channel).next().is_some()
    }

    pub(super) fn of_channel(
        &self,
        channel: ChannelId,
    ) -> impl DoubleEndedIterator<Item = (&Key, &Question)> {
        let all = (channel, MessageId::new(0))..=(channel, MessageId::new(u64::MAX));
        self.by_key.range(all)
    }

    /// Adds one to be asked for. Returns whether there was room.
    pub(super) fn ask(&mut self, key: Key, party: Party, hidden: bool) -> bool {
        if self.room(party) == 0 || self.of_channel(key.0).count() >= MOST_OF_A_CHANNEL {
            return false;
        }
        let progress = Progress::Due;
        self.put(
            key,
            Question {
                party,
                progress,
                hidden,
            },
        );
        true
    }

    /// Adds one, room or not.
    pub(super) fn put(&mut self, key: Key, question: Question) {
        self.remove(&key);
        *self.taken.entry(question.party).or_default() += 1;
        self.by_key.insert(key, question);
    }

    pub(super) fn remove(&mut self, key: &Key) {
        if let Some(question) = self.by_key.remove(key) {
            gives_back(&mut self.taken, question.party);
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Key, &Question) -> bool) {
        let gone = self.by_key.extract_if(.., |key, one| !keep(key, one));
        for (_, question) in gone {
            gives_back(&mut self.taken, question.party);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Question)> {
        self.by_key.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Question)> {
        self.by_key.iter_mut()
    }

    pub(super) fn progress(&mut self, key: Key, progress: Progress) {
        if let Some(question) = self.by_key.get_mut(&key) {
            question.progress = progress;
        }
    }

    /// The next ones to ask for, the newest of one channel: servers and direct conversations
    /// take turns, and within a server its channels.
    pub(super) fn take_round(&mut self) -> Vec<Key> {
        let Some((party, channel)) = self.next_channel() else {
            return Vec::new();
        };
        self.move_to_end((party, None));
        self.move_to_end((party, Some(channel)));
        let of_channel = self.of_channel(channel);
        let due = of_channel.filter(|(_, one)| one.progress == Progress::Due);
        let mut keys: Vec<Key> = due.rev().map(|(key, _)| *key).take(A_ROUND).collect();
        keys.reverse();
        for key in &keys {
            self.progress(*key, Progress::Asking);
        }
        keys
    }

    fn next_channel(&mut self) -> Option<(Party, ChannelId)> {
        let all = self.by_key.iter();
        let due = all.filter(|(_, one)| one.progress == Progress::Due);
        let due: BTreeSet<(Party, ChannelId)> = due.map(|(key, one)| (one.party, key.0)).collect();
        let seats =
            |(party, channel): &(Party, ChannelId)| [(*party, None), (*party, Some(*channel))];
        let taken: BTreeSet<_> = due.iter().flat_map(seats).collect();
        self.places.retain(|seat, _| taken.contains(seat));
        for seat in taken {
            if !self.places.contains_key(&seat) {
                self.move_to_end(seat);
            }
        }
        due.into_iter()
            .min_by_key(|seat| seats(seat).map(|seat| self.places.get(&seat).copied()))
    }

    fn move_to_end(&mut self, seat: (Party, Option<ChannelId>)) {
        self.last_place += 1;
        self.places.insert(seat, self.last_place);
    }
}

fn gives_back(taken: &mut HashMap<Party, usize>, party: Party) {
    if let Some(count) = taken.get_mut(&party) {
        *count -= 1;
        if *count == 0 {
            taken.remove(&party);
        }
    }
}
