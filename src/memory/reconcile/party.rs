//! Parties: those between whom room is shared out, and a table that shares its room so.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use clew_context::model::{ChannelId, GuildId, UserId};

/// Who something counts against when room is shared out: a server, a direct
/// conversation, or somebody of whom nothing is kept any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Party {
    Guild(GuildId),
    Channel(ChannelId),
    User(UserId),
}

impl Party {
    pub(super) fn of(guild: Option<GuildId>, channel: ChannelId) -> Self {
        guild.map_or(Self::Channel(channel), Self::Guild)
    }

    pub(super) const fn guild(self) -> Option<GuildId> {
        match self {
            Self::Guild(guild) => Some(guild),
            Self::Channel(_) | Self::User(_) => None,
        }
    }
}

/// Who takes up most; of several, the first in order.
pub(in crate::memory) fn largest<K: Copy + Hash + Ord>(
    taken: impl IntoIterator<Item = (K, usize)>,
) -> Option<K> {
    let mut parties: HashMap<K, usize> = HashMap::new();
    for (party, taken) in taken {
        *parties.entry(party).or_default() += taken;
    }
    let largest = parties
        .into_iter()
        .max_by_key(|(party, taken)| (*taken, std::cmp::Reverse(*party)));
    largest.map(|(party, _)| party)
}

/// A table of at most `MOST` entries. When it is full, whoever has most loses all of theirs.
#[derive(Debug)]
pub(super) struct Shared<K, V, const MOST: usize> {
    entries: BTreeMap<K, (Party, V)>,
}

impl<K, V, const MOST: usize> Default for Shared<K, V, MOST> {
    fn default() -> Self {
        let entries = BTreeMap::new();
        Self { entries }
    }
}

impl<K: Ord + Copy, V, const MOST: usize> Shared<K, V, MOST> {
    /// Returns who lost theirs, with the keys that were lost; that may be the new one, too.
    pub(super) fn insert(&mut self, party: Party, key: K, value: V) -> Option<(Party, Vec<K>)> {
        self.entries.insert(key, (party, value));
        if self.entries.len() <= MOST {
            return None;
        }
        let largest = largest(self.entries.values().map(|(party, _)| (*party, 1)))?;
        let lost = self.entries.extract_if(.., |_, (of, _)| *of == largest);
        let lost = lost.map(|(key, _)| key).collect();
        Some((largest, lost))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key).map(|(_, value)| value)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&K, &V) -> bool) {
        self.entries.retain(|key, (_, value)| keep(key, value));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Party, &K, &V)> {
        let entries = self.entries.iter();
        entries.map(|(key, (party, value))| (*party, key, value))
    }

    /// Takes all out.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Party, K, V)> + use<K, V, MOST> {
        let entries = std::mem::take(&mut self.entries).into_iter();
        entries.map(|(key, (party, value))| (party, key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn guild(id: u64) -> Party {
        Party::Guild(GuildId::new(id))
    }

    #[test]
    fn who_has_most_loses_all_of_theirs() {
        let mut table = Shared::<_, _, 4>::default();
        for (party, key) in [(1, 10), (2, 20), (1, 11), (3, 30)] {
            assert_eq!(table.insert(guild(party), key, ()), None);
        }
        assert_eq!(table.insert(guild(2), 20, ()), None, "it has its place");
        let lost = table.insert(guild(3), 31, ());
        assert_eq!(lost, Some((guild(1), vec![10, 11])), "as many, the first");
        let left: Vec<_> = table.iter().map(|(party, key, ())| (party, *key)).collect();
        assert_eq!(left, [(guild(2), 20), (guild(3), 30), (guild(3), 31)]);
    }
}
