//! Answered turns that are not stored yet: normally for a moment, and all of them,
//! within bounds, while the store fails. Prompts include them, and messages deleted
//! or edited meanwhile are deleted or edited here. Turns about to be answered are here
//! as well, for the same reason, and shown to nobody ([`early`](super::early)).

mod early;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(super) use self::early::EarlyRows;
use super::reconcile::largest;
use crate::telemetry::Ids;
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
use clew_store::model::{
    AgentName, ClearKey, ReceiptPerson, Scope, StoredMessage, StoredReceipt, StoredRole,
};
use clew_store::{Purge, Reach, TurnKey};

/// The most turns that may wait.
const MOST_TURNS: usize = 4_096;
/// The most that they may take, in bytes of all that they hold plus [`TURN_BYTES`] each.
const MOST_BYTES: usize = 16 << 20;
/// After this many refusals by the store, later turns no longer wait for a turn.
const TRIES_IN_ORDER: u32 = 10;
/// The size of a turn without its rows and receipt, in bytes, roughly.
const TURN_BYTES: usize = 1 << 10;

/// The turns that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct Unsaved {
    turns: Mutex<Turns>,
    /// Notified when a turn is no longer being stored.
    pub(super) ended: Notify,
}

#[derive(Debug, Default)]
struct Turns {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    /// Its place in the queue.
    number: u64,
    turn: UnsavedTurn,
    bytes: usize,
    /// Whether it is on its way to the store.
    is_moving: bool,
    /// Whether the store may have it, or may still get it from an abandoned call:
    /// then what is deleted from it must be deleted there as well.
    may_be_stored: bool,
}

/// A turn on its way to the store.
#[derive(Debug, Clone)]
pub(super) struct UnsavedTurn {
    pub(super) ids: Ids,
    /// When it was answered.
    pub(super) answered: UnixMillis,
    /// Empty if all of it was deleted meanwhile.
    pub(super) rows: Arc<Vec<StoredMessage>>,
    /// What the answer was made from.
    pub(super) receipt: Option<Arc<StoredReceipt>>,
    /// Deletions since, to be applied to what the store may already have.
    pub(super) purges: Vec<Purge>,
    /// How many attempts to store it were begun.
    pub(super) tries: u32,
    /// Whether an earlier version was stored and logged.
    pub(super) is_logged: bool,
    /// Its answer is not posted wholly, as far as is known: it waits for that, and nobody is
    /// shown it. Otherwise it is over, and its rows are stored, or taken back if none are left.
    is_early: bool,
    pub(super) early: EarlyRows,
    pub(super) key: TurnKey,
}

fn is_of(key: &TurnKey, scope: Scope, agent: &AgentName) -> bool {
    (key.scope, &key.agent) == (scope, agent)
}

/// The next turn to be stored.
pub(super) enum Next<'a> {
    Turn(Box<Moving<'a>>),
    /// None yet: one that has to come before is on its way.
    Wait,
    /// There is none.
    Nothing,
}

/// A turn that is being stored. When dropped, it waits again.
pub(super) struct Moving<'a> {
    unsaved: &'a Unsaved,
    number: u64,
    pub(super) turn: UnsavedTurn,
}

impl UnsavedTurn {
    /// The question was edited since its answer was made: only the early rows say so.
    fn takes_words_of(&mut self, early: &Self) {
        let is_question = |row: &&StoredMessage| row.role == StoredRole::User;
        let Some(words) = early.rows.iter().find(is_question) else {
            return;
        };
        for row in Arc::make_mut(&mut self.rows) {
            if row.role == words.role && row.message == words.message {
                row.content.clone_from(&words.content);
            }
        }
    }

    /// None if there is nothing to store.
    pub(super) fn new(
        ids: Ids,
        answered: UnixMillis,
        agent: &AgentName,
        rows: Vec<StoredMessage>,
        receipt: Option<StoredReceipt>,
    ) -> Option<Self> {
        let of_rows = rows.first().map(|row| (row.scope, row.turn));
        let of_receipt = receipt
            .as_ref()
            .map(|receipt| (receipt.scope, receipt.turn));
        let (scope, turn) = of_rows.or(of_receipt)?;
        let agent = agent.clone();
        Some(Self {
            ids,
            answered,
            key: TurnKey { scope, agent, turn },
            rows: Arc::new(rows),
            receipt: receipt.map(Arc::new),
            purges: Vec::new(),
            tries: 0,
            is_logged: false,
            is_early: false,
            early: EarlyRows::None,
        })
    }

    /// Whether a `/context clear` marker covers it.
    pub(super) fn is_cleared_by(&self, key: &ClearKey) -> bool {
        self.key.agent == key.agent
            && self.ids.guild == key.guild
            && key.user.is_none_or(|user| self.ids.user == Some(user))
    }

    /// The server and user whose room it takes up.
    fn owner(&self) -> (Option<GuildId>, Option<UserId>) {
        (self.ids.guild, self.ids.user)
    }

    fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(bytes_of_row).sum();
        let receipt = self.receipt.as_deref().map_or(0, bytes_of_receipt);
        TURN_BYTES + rows + receipt
    }
}

fn bytes_of_row(row: &StoredMessage) -> usize {
    let texts = [&row.tool_calls, &row.tool_call_id, &row.author_name];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    let lists = size_of_val(&*row.parts) + size_of_val(&*row.sources);
    size_of_val(row) + row.content.len() + texts + lists
}

fn bytes_of_receipt(receipt: &StoredReceipt) -> usize {
    let lists = size_of_val(&*receipt.messages) + receipt.people.len() * size_of::<ReceiptPerson>();
    size_of_val(receipt) + receipt.body.len() + lists
}

impl Waiting {
    /// Removes the rows that a purge covers.
    fn purge(&mut self, purge: &Purge) {
        let rows = Arc::clone(&self.turn.rows);
        let reach = Reach::of(purge, &rows);
        let takes_rows = rows.iter().any(|row| reach.holds(row));
        if takes_rows {
            let kept = rows.iter().filter(|row| !reach.holds(row)).cloned();
            self.turn.rows = Arc::new(kept.collect());
        }
        let receipt = &mut self.turn.receipt;
        let taken = receipt.take_if(|receipt| purge.takes_receipt(receipt));
        if (takes_rows || taken.is_some()) && self.may_be_stored {
            self.turn.purges.push(purge.clone());
        }
    }

    /// Whether nothing of it is left, here or to be removed from the store.
    fn is_over(&self) -> bool {
        let UnsavedTurn {
            rows,
            receipt,
            purges,
            early,
            ..
        } = &self.turn;
        let is_in_store = !purges.is_empty() || *early != EarlyRows::None;
        rows.is_empty() && receipt.is_none() && !is_in_store
    }
}

impl Unsaved {
    /// How many turns wait for the store.
    pub(super) fn len(&self) -> usize {
        let turns = self.turns.lock();
        let over = turns.waiting.iter().filter(|one| !one.turn.is_early);
        over.count()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.waits(|_| true)
    }

    /// Keeps a turn until it is stored, in place of an earlier attempt at it.
    /// Returns the turns dropped to make room: the oldest of the user who
    /// takes most, in the server that takes most.
    pub(super) fn keep(&self, mut turn: UnsavedTurn) -> Vec<Ids> {
        let mut turns = self.turns.lock();
        let same = turns
            .waiting
            .iter_mut()
            .find(|one| one.turn.key == turn.key);
        if let Some(waiting) = &same
            && waiting.turn.is_early
            && !turn.is_early
        {
            turn.takes_words_of(&waiting.turn);
        }
        let bytes = turn.bytes();
        if let Some(waiting) = same {
            let before = std::mem::replace(&mut waiting.bytes, bytes);
            let purges = std::mem::take(&mut waiting.turn.purges);
            let early = turn.early.max(waiting.turn.early);
            waiting.turn = UnsavedTurn {
                purges,
                early,
                ..turn
            };
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

    /// The oldest of the matching turns that is not on its way. Turns of one
    /// conversation are stored one after the other.
    pub(super) fn next(
        &self,
        held_up: &BTreeSet<u64>,
        is_meant: impl Fn(&UnsavedTurn) -> bool,
    ) -> Next<'_> {
        let is_meant = |one: &Waiting| {
            !one.turn.is_early && !held_up.contains(&one.number) && is_meant(&one.turn)
        };
        let mut turns = self.turns.lock();
        let mut moving: Vec<TurnKey> = Vec::new();
        for waiting in &mut turns.waiting {
            let key = &waiting.turn.key;
            if waiting.is_moving {
                moving.push(key.clone());
            }
            let is_free = !moving.iter().any(|one| is_of(one, key.scope, &key.agent));
            if !is_free || !is_meant(waiting) {
                continue;
            }
            waiting.is_moving = true;
            waiting.may_be_stored = true;
            waiting.turn.tries += 1;
            return Next::Turn(Box::new(Moving {
                unsaved: self,
                number: waiting.number,
                turn: waiting.turn.clone(),
            }));
        }
        let is_blocked = turns.waiting.iter().any(is_meant);
        if is_blocked {
            Next::Wait
        } else {
            Next::Nothing
        }
    }

    /// The turns held up by one that the store refused: itself and, for the first
    /// few tries, those after it in its conversation.
    pub(super) fn held_up_by(&self, refused: &UnsavedTurn) -> Vec<u64> {
        let TurnKey { scope, agent, .. } = &refused.key;
        let is_held_up = |one: &&Waiting| {
            let key = &one.turn.key;
            *key == refused.key || (refused.tries < TRIES_IN_ORDER && is_of(key, *scope, agent))
        };
        let turns = self.turns.lock();
        let held_up = turns.waiting.iter().filter(is_held_up);
        held_up.map(|one| one.number).collect()
    }

    /// Whether any matching turn is left, on its way or not.
    pub(super) fn waits(&self, is_meant: impl Fn(&UnsavedTurn) -> bool) -> bool {
        let turns = self.turns.lock();
        let mut over = turns.waiting.iter().filter(|one| !one.turn.is_early);
        over.any(|one| is_meant(&one.turn))
    }

    /// Removes what a purge covers, so that it is not stored later.
    pub(super) fn purge(&self, purge: &Purge) {
        let mut turns = self.turns.lock();
        let purge = match purge {
            Purge::Messages { channel, ids } => {
                // A bulk deletion names up to a hundred messages, most of no turn.
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

    /// Drops matching turns that are answered and of which nothing has reached the store.
    pub(super) fn forget(&self, is_meant: impl Fn(&UnsavedTurn) -> bool) {
        let mut turns = self.turns.lock();
        let is_answered = |turn: &UnsavedTurn| !turn.is_early && !turn.rows.is_empty();
        turns
            .waiting
            .retain(|one| one.is_moving || !is_answered(&one.turn) || !is_meant(&one.turn));
        turns.tidy();
    }

    /// Gives an edited message its new words, as [`clew_store`] does.
    pub(super) fn edit(&self, channel: ChannelId, message: MessageId, words: &str) {
        let mut turns = self.turns.lock();
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

    /// The newest receipt that fits.
    pub(super) fn last_receipt(
        &self,
        is_it: impl Fn(&StoredReceipt) -> bool,
    ) -> Option<StoredReceipt> {
        let turns = self.turns.lock();
        let waiting = turns.waiting.iter().rev();
        let mut receipts = waiting.filter_map(|one| one.turn.receipt.as_deref());
        receipts.find(|receipt| is_it(receipt)).cloned()
    }

    /// The messages of a channel that waiting turns are made of.
    pub(super) fn messages(&self, channel: ChannelId) -> BTreeSet<MessageId> {
        self.turns.lock().messages(channel).collect()
    }

    /// The direct channels of turns that wait, the newest first.
    pub(super) fn direct(&self) -> Vec<ChannelId> {
        let turns = self.turns.lock();
        let rows = turns
            .waiting
            .iter()
            .rev()
            .flat_map(|one| one.turn.rows.iter());
        let direct = rows.filter(|row| row.guild.is_none());
        direct.map(|row| row.channel).collect()
    }

    /// Adds a conversation's waiting turns after its stored rows, with the next ordinals.
    pub(super) fn add_to(
        &self,
        rows: &mut Vec<StoredMessage>,
        scope: Scope,
        agent: &AgentName,
        since: UnixMillis,
    ) {
        let turns = self.turns.lock();
        for waiting in &turns.waiting {
            let turn = &waiting.turn;
            if turn.is_early || !is_of(&turn.key, scope, agent) {
                continue;
            }
            // The store may have it too, perhaps in an earlier version.
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
    fn find(&mut self, key: &TurnKey) -> Option<&mut Waiting> {
        let mut waiting = self.waiting.iter_mut();
        waiting.find(|one| one.turn.key == *key)
    }

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

    /// The oldest turn of the user who takes most, in the server that takes most.
    /// Direct messages count as one server. Early turns are as few as turns under way.
    fn to_go(&self) -> Option<usize> {
        let stays = |one: &Waiting| one.is_moving || one.turn.is_early;
        let still = || self.waiting.iter().filter(|one| !stays(one));
        let guild = largest(still().map(|one| (one.turn.owner().0, one.bytes)))?;
        let of_guild = || still().filter(|one| one.turn.owner().0 == guild);
        let user = largest(of_guild().map(|one| (one.turn.owner().1, one.bytes)))?;
        let goes = |one: &Waiting| !stays(one) && one.turn.owner() == (guild, user);
        self.waiting.iter().position(goes)
    }

    /// The messages of a channel that turns are made of.
    fn messages(&self, channel: ChannelId) -> impl Iterator<Item = MessageId> {
        let rows = self.waiting.iter().flat_map(|one| one.turn.rows.iter());
        let held = rows.flat_map(StoredMessage::made_of);
        let held = held.filter_map(move |(of, id)| (of == channel).then_some(id));
        let receipts = self
            .waiting
            .iter()
            .filter_map(|one| one.turn.receipt.as_ref());
        let here = receipts.filter(move |receipt| receipt.channel == channel);
        held.chain(here.flat_map(|receipt| receipt.message_ids()))
    }

    /// Which of these messages are part of any turn.
    fn known(&self, channel: ChannelId, ids: &[MessageId]) -> Vec<MessageId> {
        let ids: BTreeSet<&MessageId> = ids.iter().collect();
        let known: BTreeSet<MessageId> = self.messages(channel).collect();
        known.into_iter().filter(|id| ids.contains(id)).collect()
    }

    /// Removes empty turns and recounts bytes after a change.
    fn tidy(&mut self) {
        self.waiting.retain(|one| one.is_moving || !one.is_over());
        for waiting in &mut self.waiting {
            waiting.bytes = waiting.turn.bytes();
        }
        self.bytes = self.waiting.iter().map(|one| one.bytes).sum();
    }
}

impl Moving<'_> {
    /// Notes that it was stored as it was given out. If it has changed since,
    /// it has to be stored again.
    pub(super) fn stored(self) {
        let mut turns = self.unsaved.turns.lock();
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
        let mut turns = self.unsaved.turns.lock();
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
