//! Conversation queues: turns of one thread, direct conversation or channel
//! member run one after the other, a few may wait, and all together stay under
//! a limit. A channel never has all places, since what Discord's limits for a channel hold
//! up would keep others waiting. [`Shares`] decides which waiting turn runs next and which
//! one is refused when too many wait. Pure.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use super::shares::{Requester, Shares};
use crate::model::Spender;
use clew_context::model::ChannelId;

/// The most turns that wait, whatever the limits are set to: finding the next
/// one looks at all of them.
const MOST_WAITING: usize = 10_000;
/// A server may have this part of all waiting turns: a half.
const SERVERS_PART: usize = 2;
/// A person may have this part of them in one server, or in direct messages: an
/// eighth.
const PERSONS_PART: usize = 8;
/// A channel may have this part of the places that other channels leave free, and at least
/// one: a half.
const CHANNELS_PART: usize = 2;

/// Turns with the same key run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum QueueKey {
    /// A thread or a direct conversation.
    Conversation(ChannelId),
    /// One person in an ordinary channel.
    Member(ChannelId, Spender),
}

/// The result of submitting something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Submitted<T> {
    /// It runs now.
    Starts(T),
    Waits,
    /// There is no room for it.
    Refused(T, Full),
    /// It waits, and takes the place of this one, whose requester takes up more.
    Displaces(T, Full),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// `TURN_QUEUE_PER_CHANNEL` wait in the queue already.
    Queue,
    /// No more may wait: of the person's turns, the server's or all together.
    Room,
}

/// All queues. A queue exists while something runs or waits in it.
#[derive(Debug)]
pub(super) struct Queues<T> {
    limits: QueueLimits,
    running: usize,
    waiting: usize,
    /// How many have been submitted so far.
    tickets: u64,
    by_key: HashMap<QueueKey, QueueState<T>>,
    shares: Shares,
}

#[derive(Debug, Clone, Copy)]
struct QueueLimits {
    running: usize,
    /// How many may wait in one queue behind what runs or runs next.
    queue: usize,
    person: usize,
    tenant: usize,
    waiting: usize,
}

#[derive(Debug)]
struct QueueState<T> {
    runs: Option<Requester>,
    waiting: VecDeque<QueuedItem<T>>,
}

#[derive(Debug)]
struct QueuedItem<T> {
    requester: Requester,
    ticket: u64,
    work: T,
}

impl<T> QueueState<T> {
    /// What runs as soon as there is a place.
    fn ready(&self) -> Option<&QueuedItem<T>> {
        self.waiting.front().filter(|_| self.runs.is_none())
    }
}

impl<T> Queues<T> {
    /// At most `max_running` run, and in one queue at most `max_behind` wait
    /// behind another.
    pub(super) fn new(max_running: usize, max_behind: usize) -> Self {
        let waiting = MOST_WAITING.min(max_running * (max_behind + 1));
        let part = |of: usize| (waiting / of).max(max_behind).max(1);
        Self {
            limits: QueueLimits {
                running: max_running,
                queue: max_behind,
                person: part(PERSONS_PART),
                tenant: part(SERVERS_PART),
                waiting,
            },
            running: 0,
            waiting: 0,
            tickets: 0,
            by_key: HashMap::new(),
            shares: Shares::new(),
        }
    }

    /// Submits what came now.
    pub(super) fn submit(
        &mut self,
        queue: QueueKey,
        requester: Requester,
        now: Instant,
        work: T,
    ) -> Submitted<T> {
        self.tickets += 1;
        let ticket = self.tickets;
        let state = self.by_key.entry(queue).or_insert(QueueState {
            runs: None,
            waiting: VecDeque::new(),
        });
        state.waiting.push_back(QueuedItem {
            requester,
            ticket,
            work,
        });
        self.waiting += 1;
        self.shares.waits(requester, now);
        // Nothing else waits for a place that it may have.
        if let Some((_, work)) = self.next() {
            return Submitted::Starts(work);
        }
        let Some((full, gives_way)) = self.overflow(queue, requester) else {
            return Submitted::Waits;
        };
        match self.take(|one| one.ticket == gives_way).pop() {
            Some(one) if gives_way == ticket => Submitted::Refused(one, full),
            Some(other) => Submitted::Displaces(other, full),
            None => Submitted::Waits,
        }
    }

    /// What the newest one of `requester` in `queue` makes too full, and which one gives way:
    /// of those that are in all that is too full, the newest of whoever takes up most.
    fn overflow(&self, queue: QueueKey, requester: Requester) -> Option<(Full, u64)> {
        let limits = self.limits;
        let state = self.by_key.get(&queue)?;
        let behind = state.waiting.len() - usize::from(state.runs.is_none());
        let (of_tenant, of_person) = self.shares.waiting(requester);
        let (queue_is_full, person_is_full) = (behind > limits.queue, of_person > limits.person);
        let tenant_is_full = of_tenant > limits.tenant;
        let is_full = queue_is_full || person_is_full || tenant_is_full;
        if !is_full && self.waiting <= limits.waiting {
            return None;
        }
        let is_concerned = |of: QueueKey, one: Requester| {
            (!queue_is_full || of == queue)
                && (!person_is_full || one.person() == requester.person())
                && (!tenant_is_full || one.tenant == requester.tenant)
        };
        let all = self.by_key.iter();
        let all = all.flat_map(|(of, state)| state.waiting.iter().map(move |one| (*of, one)));
        let concerned = all.filter(|(of, one)| is_concerned(*of, one.requester));
        let gives_way =
            concerned.max_by_key(|(_, one)| (self.shares.load(one.requester), one.ticket));
        let full = if queue_is_full {
            Full::Queue
        } else {
            Full::Room
        };
        gives_way.map(|(_, one)| (full, one.ticket))
    }

    /// Ends what ran in a queue. Returns what runs next, in whichever queue; more may, see
    /// [`Queues::next`].
    pub(super) fn finished(&mut self, queue: QueueKey) -> Option<(QueueKey, T)> {
        let state = self.by_key.get_mut(&queue)?;
        let requester = state.runs.take()?;
        if state.waiting.is_empty() {
            self.by_key.remove(&queue);
        }
        self.running -= 1;
        self.shares.ends(requester);
        self.next()
    }

    /// Starts one that waits, if it may.
    pub(super) fn next(&mut self) -> Option<(QueueKey, T)> {
        let ready = self.by_key.iter();
        let ready = ready.filter_map(|(queue, state)| Some((*queue, state.ready()?)));
        let ready = ready.filter(|(_, one)| self.has_place(one.requester.channel));
        let (queue, _) =
            ready.min_by_key(|(_, one)| (self.shares.rank(one.requester), one.ticket))?;
        let state = self.by_key.get_mut(&queue)?;
        let QueuedItem {
            requester, work, ..
        } = state.waiting.pop_front()?;
        state.runs = Some(requester);
        self.running += 1;
        self.waiting -= 1;
        self.shares.starts(requester);
        Some((queue, work))
    }

    /// Whether one more may run in a channel.
    fn has_place(&self, channel: ChannelId) -> bool {
        let here = self.shares.running_in(channel);
        let left = (self.limits.running + here).saturating_sub(self.running);
        self.running < self.limits.running && here < left.div_ceil(CHANNELS_PART)
    }

    /// Everything that waits.
    pub(super) fn waiting_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.by_key
            .values_mut()
            .flat_map(|state| state.waiting.iter_mut().map(|one| &mut one.work))
    }

    /// Removes and returns what waits and is no longer wanted.
    pub(super) fn remove_waiting(&mut self, unwanted: impl Fn(&T) -> bool) -> Vec<T> {
        self.take(|one| unwanted(&one.work))
    }

    fn take(&mut self, unwanted: impl Fn(&QueuedItem<T>) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        self.by_key.retain(|_, state| {
            if state.waiting.iter().any(&unwanted) {
                let (gone, kept): (VecDeque<_>, _) = std::mem::take(&mut state.waiting)
                    .into_iter()
                    .partition(|one| unwanted(one));
                state.waiting = kept;
                for one in gone {
                    self.waiting -= 1;
                    self.shares.leaves(one.requester);
                    taken.push(one.work);
                }
            }
            state.runs.is_some() || !state.waiting.is_empty()
        });
        taken
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// How many may run at once.
    pub(super) fn running_limit(&self) -> usize {
        self.limits.running
    }

    /// How many wait, in all queues.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests;
