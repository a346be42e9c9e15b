//! Turns that are answered and not stored yet: a moment each, and as long as
//! the store fails all of them, within bounds. Prompts carry them, and what is
//! deleted or edited meanwhile is deleted or edited here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::telemetry::Ids;
use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};
use clew_store::model::{AgentName, ClearKey, Scope, StoredMessage};
use clew_store::{Purge, Reach};

/// Turns that wait at most.
const MOST_TURNS: usize = 4_096;
/// What they may take, bytes of text and [`TURN_BYTES`] each.
const MOST_BYTES: usize = 16 << 20;
/// A turn that the store refuses so often is passed by those after it.
const TRIES_IN_ORDER: u32 = 10;
/// A turn without its texts, about.
const TURN_BYTES: usize = 1 << 10;

/// All of them, oldest first.
#[derive(Debug, Default)]
pub(super) struct Unsaved {
    turns: Mutex<Turns>,
    /// One that was being stored is no longer.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Turns {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    next: u64,
}

/// A turn that waits.
#[derive(Debug)]
struct Waiting {
    /// Its place in the queue.
    number: u64,
    turn: UnsavedTurn,
    bytes: usize,
    /// It is on its way to the store.
    is_moving: bool,
    /// The store may have it, or get it from a call that was given up: what is
    /// deleted from it is deleted there as well.
    may_be_stored: bool,
}

/// A turn on its way to the store.
#[derive(Debug, Clone)]
pub(super) struct UnsavedTurn {
    pub(super) ids: Ids,
    /// When it was answered.
    pub(super) answered: UnixMillis,
    /// Empty when all of it was deleted meanwhile.
    pub(super) rows: Arc<Vec<StoredMessage>>,
    /// What was deleted meanwhile of what may be stored already.
    pub(super) purges: Vec<Purge>,
    /// How often it was given out.
    pub(super) tries: u32,
    /// It is stored, and was changed on its way: what is told once was told.
    pub(super) is_logged: bool,
    key: Key,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    scope: Scope,
    agent: AgentName,
    turn: TurnId,
}

impl Key {
    fn is_of(&self, scope: Scope, agent: &AgentName) -> bool {
        (self.scope, &self.agent) == (scope, agent)
    }
}

/// The next one to be stored.
pub(super) enum Next<'a> {
    /// This one.
    Turn(Moving<'a>),
    /// None, but one that has to come before is on its way.
    Wait,
    /// None.
    Nothing,
}

/// A turn that is being stored. Dropped, it waits again.
pub(super) struct Moving<'a> {
    unsaved: &'a Unsaved,
    number: u64,
    pub(super) turn: UnsavedTurn,
}

impl UnsavedTurn {
    /// None without rows.
    pub(super) fn new(ids: Ids, answered: UnixMillis, rows: Vec<StoredMessage>) -> Option<Self> {
        let first = rows.first()?;
        let key = Key {
            scope: first.scope,
            agent: first.agent.clone(),
            turn: first.turn,
        };
        Some(Self {
            ids,
            answered,
            key,
            rows: Arc::new(rows),
            purges: Vec::new(),
            tries: 0,
            is_logged: false,
        })
    }

    pub(super) fn is_of(&self, scope: Scope) -> bool {
        self.key.scope == scope
    }

    /// Whether a marker of `/context clear` is for it.
    pub(super) fn is_cleared_by(&self, key: &ClearKey) -> bool {
        self.key.agent == key.agent
            && self.ids.guild == key.guild
            && key.user.is_none_or(|user| self.ids.user == Some(user))
    }

    pub(super) fn is_by(&self, user: UserId) -> bool {
        self.ids.user == Some(user)
    }

    /// Whose it is, and where: what is shared out fairly.
    fn owner(&self) -> (Option<GuildId>, Option<UserId>) {
        (self.ids.guild, self.ids.user)
    }

    fn bytes(&self) -> usize {
        let texts = |row: &StoredMessage| {
            row.content.len()
                + row.tool_calls.as_ref().map_or(0, String::len)
                + row.author_name.as_ref().map_or(0, String::len)
        };
        TURN_BYTES + self.rows.iter().map(texts).sum::<usize>()
    }
}

impl Waiting {
    /// Takes out what a purge names.
    fn purge(&mut self, purge: &Purge) {
        let rows = Arc::clone(&self.turn.rows);
        let reach = Reach::of(purge, &rows);
        if rows.iter().any(|row| reach.holds(row)) {
            let kept = rows.iter().filter(|row| !reach.holds(row)).cloned();
            self.turn.rows = Arc::new(kept.collect());
            if self.may_be_stored {
                self.turn.purges.push(purge.clone());
            }
        }
    }

    /// Nothing of it is left, here or in the store.
    fn is_over(&self) -> bool {
        self.turn.rows.is_empty() && self.turn.purges.is_empty()
    }
}

impl Unsaved {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Keeps a turn until it is stored, instead of what an earlier attempt at
    /// it left. Gives what had to go to make room: of the server that takes
    /// most, of its user who takes most, the oldest.
    pub(super) fn keep(&self, turn: UnsavedTurn) -> Vec<Ids> {
        let mut turns = self.lock();
        let bytes = turn.bytes();
        let same = turns
            .waiting
            .iter_mut()
            .find(|one| one.turn.key == turn.key);
        if let Some(waiting) = same {
            let before = std::mem::replace(&mut waiting.bytes, bytes);
            let purges = std::mem::take(&mut waiting.turn.purges);
            waiting.turn = UnsavedTurn { purges, ..turn };
            turns.bytes = turns.bytes + bytes - before;
        } else {
            let number = turns.next;
            turns.next += 1;
            turns.bytes += bytes;
            turns.waiting.push_back(Waiting {
                number,
                turn,
                bytes,
                is_moving: false,
                may_be_stored: false,
            });
        }
        turns.make_room()
    }

    /// The next of those turns that is not on its way, oldest first. Turns of a
    /// conversation are stored one after the other.
    pub(super) fn next(
        &self,
        held_up: &BTreeSet<u64>,
        is_meant: impl Fn(&UnsavedTurn) -> bool,
    ) -> Next<'_> {
        let is_meant = |one: &Waiting| !held_up.contains(&one.number) && is_meant(&one.turn);
        let mut turns = self.lock();
        let mut moving: Vec<Key> = Vec::new();
        for waiting in &mut turns.waiting {
            let key = &waiting.turn.key;
            if waiting.is_moving {
                moving.push(key.clone());
            }
            let is_free = !moving.iter().any(|one| one.is_of(key.scope, &key.agent));
            if !is_free || !is_meant(waiting) {
                continue;
            }
            waiting.is_moving = true;
            waiting.may_be_stored = true;
            waiting.turn.tries += 1;
            return Next::Turn(Moving {
                unsaved: self,
                number: waiting.number,
                turn: waiting.turn.clone(),
            });
        }
        let is_blocked = turns.waiting.iter().any(is_meant);
        if is_blocked {
            Next::Wait
        } else {
            Next::Nothing
        }
    }

    /// What a turn that the store refused is in the way of: itself, and for some
    /// tries what comes after it in its conversation.
    pub(super) fn held_up_by(&self, refused: &UnsavedTurn) -> Vec<u64> {
        let Key { scope, agent, .. } = &refused.key;
        let is_held_up = |one: &&Waiting| {
            let key = &one.turn.key;
            *key == refused.key || (refused.tries < TRIES_IN_ORDER && key.is_of(*scope, agent))
        };
        let turns = self.lock();
        let held_up = turns.waiting.iter().filter(is_held_up);
        held_up.map(|one| one.number).collect()
    }

    /// Whether one of those is left, on its way or not.
    pub(super) fn waits(&self, is_meant: impl Fn(&UnsavedTurn) -> bool) -> bool {
        let turns = self.lock();
        turns.waiting.iter().any(|one| is_meant(&one.turn))
    }

    /// Waits until [`Unsaved::next`] may give another answer.
    pub(super) fn ended(&self) -> tokio::sync::futures::Notified<'_> {
        self.ended.notified()
    }

    /// Nothing of what has to go is stored later.
    pub(super) fn purge(&self, purge: &Purge) {
        let mut turns = self.lock();
        let purge = match purge {
            Purge::Messages { channel, ids } => {
                // A deletion names a hundred messages, and most are of no turn.
                let ids = turns.known(*channel, ids);
                if ids.is_empty() {
                    return;
                }
                let channel = *channel;
                Purge::Messages { channel, ids }
            }
            other => other.clone(),
        };
        for waiting in &mut turns.waiting {
            waiting.purge(&purge);
        }
        turns.tidy();
    }

    /// Lets go of those turns: nothing of them has reached the store.
    pub(super) fn forget(&self, is_meant: impl Fn(&UnsavedTurn) -> bool) {
        let mut turns = self.lock();
        turns
            .waiting
            .retain(|one| one.is_moving || !is_meant(&one.turn));
        turns.tidy();
    }

    /// An edited message gets its new words, as [`clew_store`] does it.
    pub(super) fn edit(&self, channel: ChannelId, message: MessageId, words: &str) {
        let mut turns = self.lock();
        for waiting in &mut turns.waiting {
            if waiting
                .turn
                .rows
                .iter()
                .any(|row| row.is_text_of(channel, message))
            {
                let rows = Arc::make_mut(&mut waiting.turn.rows);
                for row in rows
                    .iter_mut()
                    .filter(|row| row.is_text_of(channel, message))
                {
                    words.clone_into(&mut row.content);
                }
            }
        }
        turns.tidy();
    }

    /// Messages of a channel that turns are made of.
    pub(super) fn messages(&self, channel: ChannelId) -> BTreeSet<MessageId> {
        let turns = self.lock();
        let rows = turns.waiting.iter().flat_map(|one| one.turn.rows.iter());
        let here = rows.filter(|row| row.channel == channel);
        here.flat_map(|row| row.message.iter().chain(&row.parts).copied())
            .collect()
    }

    /// Puts what waits of a conversation behind its stored rows, numbered on.
    pub(super) fn add_to(
        &self,
        rows: &mut Vec<StoredMessage>,
        scope: Scope,
        agent: &AgentName,
        since: UnixMillis,
    ) {
        let turns = self.lock();
        for waiting in &turns.waiting {
            let turn = &waiting.turn;
            if !turn.key.is_of(scope, agent) {
                continue;
            }
            // The store may have it, perhaps as it was before.
            rows.retain(|row| row.turn != turn.key.turn);
            let ordinal = rows.last().map_or(0, |row| row.ordinal) + 1;
            let recent = turn.rows.iter().filter(|row| row.timestamp > since);
            rows.extend(recent.map(|row| StoredMessage {
                ordinal,
                ..row.clone()
            }));
        }
    }
}

impl Turns {
    fn make_room(&mut self) -> Vec<Ids> {
        let mut gone = Vec::new();
        while self.waiting.len() > MOST_TURNS || self.bytes > MOST_BYTES {
            let Some(at) = self.to_go() else { break };
            if let Some(waiting) = self.waiting.remove(at) {
                self.bytes -= waiting.bytes;
                gone.push(waiting.turn.ids);
            }
        }
        gone
    }

    /// The oldest of the user who takes most of the server that takes most.
    /// Direct messages count as one server.
    fn to_go(&self) -> Option<usize> {
        let still = || self.waiting.iter().filter(|one| !one.is_moving);
        let guild = largest(still().map(|one| (one.turn.owner().0, one.bytes)))?;
        let of_guild = || still().filter(|one| one.turn.owner().0 == guild);
        let user = largest(of_guild().map(|one| (one.turn.owner().1, one.bytes)))?;
        let goes = |one: &Waiting| !one.is_moving && one.turn.owner() == (guild, user);
        self.waiting.iter().position(goes)
    }

    /// Which of these messages any turn is made of.
    fn known(&self, channel: ChannelId, ids: &[MessageId]) -> Vec<MessageId> {
        let ids: BTreeSet<&MessageId> = ids.iter().collect();
        let rows = self.waiting.iter().flat_map(|one| one.turn.rows.iter());
        let here = rows.filter(|row| row.channel == channel);
        let held = here.flat_map(|row| row.message.iter().chain(&row.parts));
        held.filter(|id| ids.contains(id)).copied().collect()
    }

    /// After a change.
    fn tidy(&mut self) {
        self.waiting.retain(|one| one.is_moving || !one.is_over());
        for waiting in &mut self.waiting {
            waiting.bytes = waiting.turn.bytes();
        }
        self.bytes = self.waiting.iter().map(|one| one.bytes).sum();
    }
}

/// Who takes most; of equals the one with the lowest id.
fn largest<K: Copy + Ord>(parts: impl Iterator<Item = (K, usize)>) -> Option<K> {
    let mut sums: BTreeMap<K, usize> = BTreeMap::new();
    for (key, bytes) in parts {
        *sums.entry(key).or_default() += bytes;
    }
    let most = sums
        .into_iter()
        .max_by_key(|(key, bytes)| (*bytes, Reverse(*key)));
    most.map(|(key, _)| key)
}

impl Moving<'_> {
    /// It is stored as it was given out. What was changed meanwhile has to be
    /// stored again.
    pub(super) fn stored(self) {
        let mut turns = self.unsaved.lock();
        let at = turns
            .waiting
            .iter()
            .position(|one| one.number == self.number);
        let Some(at) = at else { return };
        let waiting = &mut turns.waiting[at];
        waiting.turn.purges.drain(..self.turn.purges.len());
        let is_same = Arc::ptr_eq(&waiting.turn.rows, &self.turn.rows);
        waiting.turn.is_logged = true;
        if waiting.turn.purges.is_empty() && is_same {
            turns.waiting.remove(at);
        }
        turns.tidy();
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        let mut turns = self.unsaved.lock();
        let mut waiting = turns.waiting.iter_mut();
        if let Some(waiting) = waiting.find(|one| one.number == self.number) {
            waiting.is_moving = false;
        }
        drop(turns);
        self.unsaved.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
