//! Fair shares of the places for turns: who of those that wait is next, and
//! who gives way when too many wait. Between servers first, between the people
//! of a server second; in direct messages each person counts like a server.
//! Pure, and without a clock: events are counted instead.

use std::collections::HashMap;
use std::hash::Hash;

use clew_context::model::{GuildId, UserId};

/// What shares are equal between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Party {
    /// A server.
    Guild(GuildId),
    /// A person in direct messages.
    Person(UserId),
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Asker {
    pub(super) party: Party,
    pub(super) user: UserId,
}

/// What each party, and each person within one, takes up now.
#[derive(Debug, Default)]
pub(super) struct Shares {
    parties: HashMap<Party, Share>,
    people: HashMap<Asker, Share>,
    /// Events so far.
    events: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Share {
    waiting: usize,
    running: usize,
    /// The event at which it came, or last got or gave back a place.
    since: u64,
}

impl Share {
    /// What waits with the fewest running is next, then what has gone longest
    /// without a change.
    const fn rank(self) -> (usize, u64) {
        (self.running, self.since)
    }

    const fn load(self) -> usize {
        self.running + self.waiting
    }
}

impl Shares {
    /// One more waits.
    pub(super) fn waits(&mut self, asker: Asker) {
        self.change(asker, |share, now| {
            if share.load() == 0 {
                share.since = now;
            }
            share.waiting += 1;
        });
    }

    /// One that waited does so no longer, and does not run either.
    pub(super) fn leaves(&mut self, asker: Asker) {
        self.change(asker, |share, _| share.waiting -= 1);
    }

    /// One that waited runs.
    pub(super) fn starts(&mut self, asker: Asker) {
        self.change(asker, |share, now| {
            share.waiting -= 1;
            share.running += 1;
            share.since = now;
        });
    }

    /// One that ran is done.
    pub(super) fn ends(&mut self, asker: Asker) {
        self.change(asker, |share, now| {
            share.running -= 1;
            share.since = now;
        });
    }

    /// The lowest of those that wait is next.
    pub(super) fn rank(&self, asker: Asker) -> impl Ord + use<> {
        let (party, person) = self.of(asker);
        (party.rank(), person.rank())
    }

    /// The highest of those that wait gives way.
    pub(super) fn load(&self, asker: Asker) -> (usize, usize) {
        let (party, person) = self.of(asker);
        (party.load(), person.load())
    }

    /// How many of the party wait, and how many of the person.
    pub(super) fn waiting(&self, asker: Asker) -> (usize, usize) {
        let (party, person) = self.of(asker);
        (party.waiting, person.waiting)
    }

    fn of(&self, asker: Asker) -> (Share, Share) {
        let party = self.parties.get(&asker.party).copied();
        let person = self.people.get(&asker).copied();
        (party.unwrap_or_default(), person.unwrap_or_default())
    }

    fn change(&mut self, asker: Asker, change: impl Fn(&mut Share, u64)) {
        self.events += 1;
        let change = |share: &mut Share| change(share, self.events);
        changed(&mut self.parties, asker.party, change);
        changed(&mut self.people, asker, change);
    }
}

/// A share exists while something of it waits or runs.
fn changed<K: Copy + Eq + Hash>(
    shares: &mut HashMap<K, Share>,
    key: K,
    change: impl Fn(&mut Share),
) {
    let share = shares.entry(key).or_default();
    change(share);
    if share.load() == 0 {
        shares.remove(&key);
    }
}
