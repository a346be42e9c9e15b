//! Recall: earlier exchanges of a conversation that match the question, from beyond what
//! the history shows.
//!
//! What finds them are indexes in memory, made of what the store holds and dropped at any
//! time: nothing of them reaches a disk, and they hold no text. Each exchange is read from
//! the store again before it is shown, so that nothing is shown that is no longer there.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Memory, Place, Result};
use crate::telemetry::Ids;
use clew_context::engine::recall::{RecallEntry, RecallIndex};
use clew_context::model::{MessageId, TurnId, UnixMillis, UserId};
use clew_store::model::{AgentName, Scope, StoredMessage, StoredRole};
use clew_store::{ExchangeQuery, Exchanges, Purge, TurnKey};

/// The most that the index of one conversation takes, in bytes: some tens of thousands
/// of exchanges. The oldest are not found beyond it.
const MOST_OF_ONE: usize = 32 << 20;
/// The most that all take, in bytes, but for the one asked last. Those asked longest ago
/// make room, and are made again when asked.
pub(super) const MOST_OF_ALL: usize = 64 << 20;
/// Rows read at a time: an answer may have 32,000 characters.
const PAGE: usize = 200;
/// The most turns that may be stored in a conversation before its index is looked at again:
/// beyond, it is made anew.
pub(super) const MOST_STORED: usize = 4_096;
/// How long a turn goes on reading older rows of a conversation that is not wholly
/// indexed; the next turn continues.
const READING: Duration = Duration::from_millis(300);
/// How long a turn waits for all of it, also for other turns of the same conversation. It
/// is less than the patience with a store, so that slow reading here does not count as
/// a store that hangs.
const WAITING: Duration = Duration::from_secs(1);
/// Candidates for each exchange that is shown: some may be gone, or not for those who read
/// the answer.
const CANDIDATES: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Recall {
    indexes: Mutex<Indexes>,
}

type Key = (Scope, AgentName);

#[derive(Debug, Default)]
struct Indexes {
    held: HashMap<Key, Cached>,
    /// What all take.
    bytes: usize,
    /// Counts the turns that asked.
    asked: u64,
}

#[derive(Debug, Default)]
struct Cached {
    conversation: Arc<tokio::sync::Mutex<Conversation>>,
    bytes: usize,
    /// When it was last asked.
    asked: u64,
    /// Turns stored since that was last looked at, with their ordinals.
    stored: Vec<(TurnId, u64)>,
}

/// What is indexed of a conversation.
#[derive(Debug)]
struct Conversation {
    index: RecallIndex,
    /// The highest ordinal read; none before anything was.
    newest: Option<u64>,
    /// Rows with lower ordinals are still to be read; none when all are, or when there is
    /// no room.
    below: Option<u64>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            index: RecallIndex::default(),
            newest: None,
            below: Some(u64::MAX),
        }
    }
}

impl Indexes {
    fn remove_if(&mut self, is_meant: impl Fn(&Key, &Cached) -> bool) {
        self.held.retain(|key, held| !is_meant(key, held));
        self.bytes = self.held.values().map(|held| held.bytes).sum();
    }
}

impl Recall {
    /// The index of a conversation, which counts as asked now.
    fn of(&self, place: &Place) -> Arc<tokio::sync::Mutex<Conversation>> {
        let mut indexes = self.indexes.lock();
        indexes.asked += 1;
        let asked = indexes.asked;
        let key = (place.scope, place.agent.clone());
        let held = indexes.held.entry(key).or_default();
        held.asked = asked;
        Arc::clone(&held.conversation)
    }

    /// The turns of a conversation that were stored since this was last asked.
    fn stored_since(&self, place: &Place) -> Vec<(TurnId, u64)> {
        let key = (place.scope, place.agent.clone());
        let mut indexes = self.indexes.lock();
        let held = indexes.held.get_mut(&key);
        held.map_or_else(Vec::new, |held| std::mem::take(&mut held.stored))
    }

    /// Notes what an index takes, and makes room.
    pub(super) fn measured(&self, place: &Place, bytes: usize) {
        let mut indexes = self.indexes.lock();
        let indexes = &mut *indexes;
        let key = (place.scope, place.agent.clone());
        let Some(held) = indexes.held.get_mut(&key) else {
            return;
        };
        let bytes = bytes + size_of::<Cached>() + size_of::<Conversation>();
        indexes.bytes += bytes;
        indexes.bytes -= std::mem::replace(&mut held.bytes, bytes);
        if indexes.bytes <= MOST_OF_ALL {
            return;
        }
        let mut oldest: Vec<(u64, usize)> = Vec::new();
        oldest.extend(indexes.held.values().map(|held| (held.asked, held.bytes)));
        oldest.sort_unstable();
        // An eighth more, so that not every turn has to look for the oldest.
        let mut too_much = indexes.bytes - MOST_OF_ALL / 8 * 7;
        let mut since = 0;
        for (asked, bytes) in oldest {
            if asked == indexes.asked || too_much == 0 {
                break;
            }
            since = asked;
            too_much = too_much.saturating_sub(bytes);
        }
        indexes.remove_if(|_, held| held.asked <= since);
    }

    /// Whether there is an index of a conversation.
    #[cfg(test)]
    pub(super) fn holds(&self, place: &Place) -> bool {
        let key = (place.scope, place.agent.clone());
        self.indexes.lock().held.contains_key(&key)
    }

    pub(super) fn forget_all(&self) {
        self.indexes.lock().remove_if(|_, _| true);
    }

    /// Drops the index of a conversation.
    pub(super) fn forget(&self, scope: Scope) {
        self.indexes.lock().remove_if(|(one, _), _| *one == scope);
    }

    /// Drops the indexes that may hold words of what a purge, or an edit of its messages,
    /// has changed. What was made from those elsewhere is never shown; its hashes stay
    /// until the index goes.
    pub(super) fn forget_changed(&self, purge: &Purge) {
        self.indexes
            .lock()
            .remove_if(|(scope, _), _| may_concern(purge, *scope));
    }

    /// Notes a turn that was stored: if it is indexed with former words, or others after it
    /// are, the index is made again.
    pub(super) fn stored(&self, turn: &TurnKey, ordinal: u64) {
        let (mut indexes, key) = (self.indexes.lock(), (turn.scope, turn.agent.clone()));
        let Some(held) = indexes.held.get_mut(&key) else {
            return;
        };
        held.stored.push((turn.turn, ordinal));
        if held.stored.len() > MOST_STORED {
            indexes.remove_if(|one, _| *one == key);
        }
    }
}

/// Whether rows of a conversation may be among what a purge removes by itself.
fn may_concern(purge: &Purge, scope: Scope) -> bool {
    let (guild, channel) = match scope {
        Scope::Member { guild, channel, .. } | Scope::Thread { guild, channel } => {
            (Some(guild), Some(channel))
        }
        Scope::User(_) | Scope::Direct(_) => (None, None),
    };
    let is_by = |user: &UserId| scope.owner().is_none_or(|owner| owner == *user);
    match purge {
        Purge::Messages { channel: of, .. }
        | Purge::Edited { channel: of, .. }
        | Purge::Channel(of) => channel.is_none_or(|channel| channel == *of),
        Purge::Guild(of) => guild.is_none_or(|guild| guild == *of),
        Purge::Member { guild: of, user } => guild.is_none_or(|guild| guild == *of) && is_by(user),
        Purge::User(user) => is_by(user),
        Purge::Before(_) => true,
    }
}

impl Memory {
    /// Candidates for what is recalled: the exchanges of this conversation that match a
    /// question best, best first, but for those of `shown` rows; three for each of
    /// `RECALL_MESSAGES`. Empty if the store fails or is slow.
    pub(super) async fn recall(
        &self,
        ids: &Ids,
        place: &Place,
        question: &str,
        turn: TurnId,
        shown: &[StoredMessage],
    ) -> Vec<Vec<StoredMessage>> {
        if self.settings.recall == 0 || question.trim().is_empty() {
            return Vec::new();
        }
        let turns = shown.iter().map(|row| row.turn).chain([turn]).collect();
        let search = self.search(ids, place, question, &turns);
        let found = tokio::time::timeout(WAITING, search).await;
        let mut found = found.ok().flatten().unwrap_or_default();
        // A restored copy of what is shown has its messages.
        let shown: BTreeSet<MessageId> = shown.iter().filter_map(|row| row.message).collect();
        let is_shown = |row: &StoredMessage| row.message.is_some_and(|id| shown.contains(&id));
        found.retain(|rows| !rows.iter().any(is_shown));
        for rows in &mut found {
            self.leave_out_opted_out(rows);
            self.leave_out_doubtful(rows);
        }
        found.retain(|rows| !rows.is_empty());
        found
    }

    /// None if the store fails. May be dropped at any time: the index is changed between
    /// two awaits only.
    async fn search(
        &self,
        ids: &Ids,
        place: &Place,
        question: &str,
        shown: &BTreeSet<TurnId>,
    ) -> Option<Vec<Vec<StoredMessage>>> {
        let store = &self.stores.conversations;
        let since = self.ask(ids, store, self.recalled_since(place)).await?;
        let conversation = self.recall.of(place);
        let mut conversation = conversation.lock().await;
        let (index, stored) = (&conversation.index, self.recall.stored_since(place));
        let is_behind = |ordinal: u64| conversation.newest.is_some_and(|newest| ordinal < newest);
        let is_missed =
            |(turn, ordinal): &(TurnId, u64)| index.contains(*turn) || is_behind(*ordinal);
        // In files ordinals begin anew when a conversation is empty.
        if index.is_empty() || stored.iter().any(is_missed) {
            *conversation = Conversation::default();
        }
        let read = self.read_on(ids, place, &mut conversation).await;
        self.recall.measured(place, conversation.index.bytes());
        read?;
        let most = self.settings.recall * CANDIDATES;
        let best = conversation.index.best(question, since, shown, most);
        if best.is_empty() {
            return Some(Vec::new());
        }
        let query = query(place, Exchanges::Turns(best.clone()), usize::MAX);
        let rows = self.ask(ids, store, store.exchanges(&query)).await?;
        let mut found = Vec::new();
        for turn in best {
            let of_turn = rows.iter().filter(|row| row.turn == turn);
            if of_turn.clone().next().is_none() {
                conversation.index.remove(turn);
            }
            found.push(of_turn.cloned().collect());
        }
        Some(found)
    }

    /// Rows up to this time are not recalled.
    async fn recalled_since(&self, place: &Place) -> Result<UnixMillis> {
        let store = &self.stores.conversations;
        let (agent, guild) = (&place.agent, place.guild);
        let created = self.agent_created(agent, self.oldest(place)).await?;
        let cleared = store.cleared_at(agent, guild, place.asker).await?;
        // LOAD_PAST_CONVERSATIONS=0: nothing from before the process.
        let started = (self.settings.load_past == 0).then_some(UnixMillis(self.started.0 - 1));
        let since = [cleared, started].into_iter().flatten().max();
        Ok(since.map_or(created, |since| since.max(created)))
    }

    /// Indexes what is not yet: what came since, then older rows, for a while.
    async fn read_on(
        &self,
        ids: &Ids,
        place: &Place,
        conversation: &mut Conversation,
    ) -> Option<()> {
        let store = &self.stores.conversations;
        let began = Instant::now();
        let is_late = || began.elapsed() > READING;
        while let Some(newest) = conversation.newest {
            let query = query(place, Exchanges::Above(newest), PAGE);
            let mut rows = self.ask(ids, store, store.exchanges(&query)).await?;
            let is_full = rows.len() == PAGE;
            if is_full {
                drop_turn(&mut rows, PAGE - 1);
            }
            let Some(last) = rows.last() else { break };
            conversation.newest = Some(last.ordinal);
            conversation.index.add_newer(&entries(&rows));
            if !is_full || is_late() {
                break;
            }
        }
        // Until a page is empty: rows that cannot be read make pages shorter.
        while let Some(below) = conversation.below {
            let query = query(place, Exchanges::Below(below), PAGE);
            let mut rows = self.ask(ids, store, store.exchanges(&query)).await?;
            let newest = rows.last().map_or(0, |row| row.ordinal);
            drop_turn(&mut rows, 0);
            conversation.newest.get_or_insert(newest);
            conversation.index.add_older(&entries(&rows));
            conversation.below = rows.first().map(|row| row.ordinal);
            if is_late() || conversation.index.bytes() > MOST_OF_ONE {
                break;
            }
        }
        if conversation.index.shrink_to(MOST_OF_ONE) {
            conversation.below = None;
        }
        Some(())
    }
}

fn query(place: &Place, which: Exchanges, limit: usize) -> ExchangeQuery {
    ExchangeQuery {
        scope: place.scope,
        agent: place.agent.clone(),
        which,
        limit,
    }
}

/// Leaves out the turn of a row at an end of a page, of which the page may have a part only;
/// unless there is no other.
fn drop_turn(rows: &mut Vec<StoredMessage>, at: usize) {
    let Some(ordinal) = rows.get(at).map(|row| row.ordinal) else {
        return;
    };
    if rows.iter().any(|row| row.ordinal != ordinal) {
        rows.retain(|row| row.ordinal != ordinal);
    }
}

/// Turns as they are indexed, oldest first.
fn entries(rows: &[StoredMessage]) -> Vec<RecallEntry<'_>> {
    let turns = rows.chunk_by(|one, next| one.turn == next.turn);
    let entries = turns.map(|rows| {
        let question = rows.iter().find(|row| row.role == StoredRole::User);
        let name = question.and_then(|row| row.author_name.as_deref());
        RecallEntry {
            turn: rows[0].turn,
            at: rows[0].timestamp,
            author: name.unwrap_or_default(),
            texts: rows.iter().map(|row| row.content.as_str()).collect(),
        }
    });
    entries.collect()
}
