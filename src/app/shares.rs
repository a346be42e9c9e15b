//! Fair shares of the places for turns: which of those that wait is next, and
//! which gives way when too many wait. Places are shared between servers first; in direct
//! messages each person counts like a server. Within a server a turn weighs as much as its
//! person or its channel takes up, whichever is more; of those that weigh the same, whoever
//! has asked less lately goes first, and whoever has asked more gives way. Pure: the time of
//! a question comes with it, and the rest is counted in events.

use std::collections::HashMap;
use std::hash::Hash;

use tokio::time::Instant;

use crate::engine::rate_limit::RateLimiter;
use crate::model::Spender;
use clew_context::model::{ChannelId, GuildId};

/// How many questions of a person within a minute are told apart.
const MOST_COUNTED: usize = 16;

/// Those between whom shares are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Tenant {
    /// A server.
    Guild(GuildId),
    /// A person in direct messages.
    Person(Spender),
}

/// Who asks, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Requester {
    pub(super) tenant: Tenant,
    pub(super) spender: Spender,
    pub(super) channel: ChannelId,
}

impl Requester {
    pub(super) const fn person(self) -> (Tenant, Spender) {
        (self.tenant, self.spender)
    }
}

/// What each tenant, and each person and channel of one, takes up now.
#[derive(Debug)]
pub(super) struct Shares {
    tenants: HashMap<Tenant, Share>,
    people: HashMap<(Tenant, Spender), Share>,
    channels: HashMap<ChannelId, Share>,
    /// The questions of each person within the last minute.
    asked: RateLimiter<(Tenant, Spender)>,
    /// When the last question came.
    last: Option<Instant>,
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
    pub(super) fn new() -> Self {
        Self {
            tenants: HashMap::new(),
            people: HashMap::new(),
            channels: HashMap::new(),
            asked: RateLimiter::new(MOST_COUNTED),
            last: None,
            events: 0,
        }
    }

    /// Notes that one more waits, which came now.
    pub(super) fn waits(&mut self, requester: Requester, now: Instant) {
        self.last = Some(now);
        self.asked.take(requester.person(), now);
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
        let RequesterShares {
            tenant,
            person,
            channel,
        } = self.of(requester);
        let weight = person.running.max(channel.running);
        (tenant.rank(), weight, self.asks(requester), person.since)
    }

    /// Among those that wait, the highest gives way.
    pub(super) fn load(&self, requester: Requester) -> (usize, usize, usize) {
        let RequesterShares {
            tenant,
            person,
            channel,
        } = self.of(requester);
        let weight = person.load().max(channel.load());
        (tenant.load(), weight, self.asks(requester))
    }

    /// How often a person has asked lately.
    fn asks(&self, requester: Requester) -> usize {
        let person = requester.person();
        let lately = self.last.map_or(0, |now| self.asked.counted(&person, now));
        lately.max(self.of(requester).person.load())
    }

    /// How many of the tenant's wait, and how many of the person's.
    pub(super) fn waiting(&self, requester: Requester) -> (usize, usize) {
        let RequesterShares { tenant, person, .. } = self.of(requester);
        (tenant.waiting, person.waiting)
    }

    /// How many run in the channel.
    pub(super) fn running_in(&self, channel: ChannelId) -> usize {
        self.channels.get(&channel).map_or(0, |share| share.running)
    }

    fn of(&self, requester: Requester) -> RequesterShares {
        let tenant = self.tenants.get(&requester.tenant).copied();
        let person = self.people.get(&requester.person()).copied();
        let channel = self.channels.get(&requester.channel).copied();
        RequesterShares {
            tenant: tenant.unwrap_or_default(),
            person: person.unwrap_or_default(),
            channel: channel.unwrap_or_default(),
        }
    }

    fn change(&mut self, requester: Requester, change: impl Fn(&mut Share, u64)) {
        self.events += 1;
        let change = |share: &mut Share| change(share, self.events);
        changed(&mut self.tenants, requester.tenant, change);
        changed(&mut self.people, requester.person(), change);
        changed(&mut self.channels, requester.channel, change);
    }
}

/// What a requester's tenant, person and channel hold.
struct RequesterShares {
    tenant: Share,
    person: Share,
    channel: Share,
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
