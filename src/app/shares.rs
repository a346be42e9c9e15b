//! Fair shares of the places for turns: which of those that wait is next, and
//! which gives way when too many wait. Places are shared between servers first,
//! then between the people of a server; in direct messages each person counts
//! like a server. Pure, and without a clock: events are counted instead.

use std::collections::HashMap;
use std::hash::Hash;

use crate::model::Spender;
use clew_context::model::GuildId;

/// Those between whom shares are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Tenant {
    /// A server.
    Guild(GuildId),
    /// A person in direct messages.
    Person(Spender),
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Requester {
    pub(super) tenant: Tenant,
    pub(super) spender: Spender,
}

/// What each tenant, and each person within one, takes up now.
#[derive(Debug, Default)]
pub(super) struct Shares {
    tenants: HashMap<Tenant, Share>,
    people: HashMap<Requester, Share>,
    /// The number of events so far.
    events: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Share {
    waiting: usize,
    running: usize,
    /// The event at which it first waited, or last got or gave back a place.
    since: u64,
}

impl Share {
    /// The lowest is next: whoever has the fewest running, then whoever has gone
    /// longest without a change.
    const fn rank(self) -> (usize, u64) {
        (self.running, self.since)
    }

    const fn load(self) -> usize {
        self.running + self.waiting
    }
}

impl Shares {
    /// Notes that one more waits.
    pub(super) fn waits(&mut self, requester: Requester) {
        self.change(requester, |share, now| {
            if share.load() == 0 {
                share.since = now;
            }
            share.waiting += 1;
        });
    }

    /// Notes that one no longer waits, without running.
    pub(super) fn leaves(&mut self, requester: Requester) {
        self.change(requester, |share, _| share.waiting -= 1);
    }

    /// Notes that one that waited now runs.
    pub(super) fn starts(&mut self, requester: Requester) {
        self.change(requester, |share, now| {
            share.waiting -= 1;
            share.running += 1;
            share.since = now;
        });
    }

    /// Notes that one that ran is done.
    pub(super) fn ends(&mut self, requester: Requester) {
        self.change(requester, |share, now| {
            share.running -= 1;
            share.since = now;
        });
    }

    /// Among those that wait, the lowest is next.
    pub(super) fn rank(&self, requester: Requester) -> impl Ord + use<> {
        let (tenant, person) = self.of(requester);
        (tenant.rank(), person.rank())
    }

    /// Among those that wait, the highest gives way.
    pub(super) fn load(&self, requester: Requester) -> (usize, usize) {
        let (tenant, person) = self.of(requester);
        (tenant.load(), person.load())
    }

    /// How many of the tenant's wait, and how many of the person's.
    pub(super) fn waiting(&self, requester: Requester) -> (usize, usize) {
        let (tenant, person) = self.of(requester);
        (tenant.waiting, person.waiting)
    }

    fn of(&self, requester: Requester) -> (Share, Share) {
        let tenant = self.tenants.get(&requester.tenant).copied();
        let person = self.people.get(&requester).copied();
        (tenant.unwrap_or_default(), person.unwrap_or_default())
    }

    fn change(&mut self, requester: Requester, change: impl Fn(&mut Share, u64)) {
        self.events += 1;
        let change = |share: &mut Share| change(share, self.events);
        changed(&mut self.tenants, requester.tenant, change);
        changed(&mut self.people, requester, change);
    }
}

/// Changes a share, which exists only while something of it waits or runs.
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
