//! Early turns: in the store before their answer's last post, so that a kill right after it
//! loses nothing. Nobody is shown them until they are confirmed by [`Memory::record`]; a turn
//! whose answer was not posted is taken back.
//!
//! What an earlier process left early is settled once Discord tells: an answer that stands there is
//! confirmed; one that does not, though it would be on the pages after its question, is taken
//! back.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::circuit::Side;
use super::unsaved::{EarlyRows, UnsavedTurn};
use super::{Exchange, Memory, Place};
use crate::engine::deliver::{self, Overflow};
use crate::telemetry::Ids;
use crate::telemetry::event::{CircuitState, StoreOperation};
use clew_context::collect::{PAGE_LIMIT, PageCursor};
use clew_context::model::{Message, MessageId, TurnId, UnixMillis, UserId};
use clew_discord::guild_state::GuildState;
use clew_discord::rest::Rest;
use clew_discord::session::Claims;
use clew_store::model::{StoredMessage, StoredRole};
use clew_store::{Purge, TurnKey};

/// How long an answer waits for the store: far longer than a healthy one takes, and hardly
/// noticed.
const PATIENCE: Duration = Duration::from_millis(50);
/// The most turns of earlier processes that are settled; a kill leaves as many as were just being
/// posted. More are settled after the next start.
const MOST_LEFT: usize = 256;
/// The most pages that are asked for to find an answer.
const MOST_PAGES: usize = 5;
/// How long after it was ready an answer is still on its way to Discord, at most, clocks that
/// differ included.
const POSTING: Duration = Duration::from_mins(5);
/// How long a request of a process that is gone may take to show on Discord.
const IN_FLIGHT: Duration = Duration::from_secs(15);
/// What Discord cannot tell of is given up after this time: it might be shown to nobody for ever.
const MOST_AGE: Duration = Duration::from_hours(24 * 7);
/// How long one request may take, and the pause between two.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
const PACE: Duration = Duration::from_millis(250);
/// How long until turns without an answer are asked for again.
const AGAIN: Duration = Duration::from_secs(20);

/// A turn that is early. Dropped, it is taken back.
pub struct EarlyTurn<'a> {
    memory: &'a Memory,
    /// None once it is answered.
    key: Option<TurnKey>,
    pub(super) rows: EarlyRows,
}

impl EarlyTurn<'_> {
    /// It is answered, and waits in the queue as such.
    pub(super) fn answered(mut self) {
        self.key = None;
    }
}

impl Drop for EarlyTurn<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.memory.unsaved.take_back(key);
            self.memory.recovery.notify_one();
        }
    }
}

/// A turn that an earlier process left early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftTurn {
    key: TurnKey,
    /// Its answer was found, and it is confirmed.
    is_answered: bool,
}

/// What Discord shows of an answer.
enum Shown {
    /// It stands there, in these messages.
    Wholly(Vec<MessageId>),
    /// It does not.
    No,
    /// Nobody knows, nor will soon.
    Unknown,
    /// No answer in time.
    Unanswered,
}

impl Memory {
    /// Puts a turn into the store before its answer's last post; waits for the store for
    /// 50 ms at most, and not at all while it fails. None if there is nothing to store, or
    /// if it would go with the process.
    pub async fn record_early(
        &self,
        ids: &Ids,
        place: &Place,
        exchange: &Exchange,
    ) -> Option<EarlyTurn<'_>> {
        let store = &self.stores.conversations;
        let is_lasting = Arc::ptr_eq(store, &self.stores.lasting);
        if !is_lasting || self.circuit(store).now().write != CircuitState::Closed {
            return None;
        }
        let turn = self.unsaved_turn(ids, place, exchange)?;
        let (key, rows) = (turn.key.clone(), Arc::clone(&turn.rows));
        if rows.is_empty() || self.changes.noted.is_unknown(exchange.turn, &rows, None) {
            return None;
        }
        self.unsaved.keep(turn.early(EarlyRows::None));
        let mut early = EarlyTurn {
            memory: self,
            key: Some(key.clone()),
            rows: EarlyRows::Unsure,
        };
        self.purge_unsaved(place.asker, &rows, None, exchange.asked);
        let rows = self.unsaved.begin_early(&key)?;
        match timeout(PATIENCE, store.append_early(&rows)).await {
            Ok(Ok(())) => early.rows = EarlyRows::Stored,
            Ok(Err(error)) => {
                let trouble = self.trouble_of(error);
                let append = StoreOperation::Append;
                self.trouble(ids, append, store, Side::Write, &trouble);
            }
            Err(_) => tracing::debug!("the store is slow: an answer is posted before it is stored"),
        }
        Some(early)
    }

    /// Takes up what an earlier process left early. To be called before this one records
    /// anything.
    pub(super) async fn find_left(&self) {
        let store = &self.stores.conversations;
        if !Arc::ptr_eq(store, &self.stores.lasting) {
            return;
        }
        let left = store.early(MOST_LEFT).await;
        let rows = self.done(StoreOperation::Read, left).unwrap_or_default();
        for rows in rows.chunk_by(|one, next| TurnKey::of(one) == TurnKey::of(next)) {
            let ids = Ids {
                guild: rows[0].guild,
                channel: Some(rows[0].channel),
                user: Some(rows[0].owner),
                // A command's is its own.
                message: Some(MessageId::new(rows[0].turn.0)),
                turn: Some(rows[0].turn),
            };
            let (now, agent) = (self.now(), &rows[0].agent);
            let turn = UnsavedTurn::new(ids, now, agent, rows.to_vec(), None);
            let Some(turn) = turn else { continue };
            let key = turn.key.clone();
            self.unsaved.keep(turn.early(EarlyRows::Stored));
            let _ = self.unsaved.begin_early(&key);
            if self.opted_out(rows[0].owner) {
                self.unsaved.purge(&Purge::User(rows[0].owner));
            }
            self.left.lock().push(LeftTurn {
                key,
                is_answered: false,
            });
        }
    }

    /// Settles what was left early, once we know who we are; what Discord has no answer to now is
    /// asked for again. A question whose answer stands there is over.
    pub(super) async fn settle_early(
        &self,
        rest: &Rest,
        claims: &Claims,
        guild_state: &GuildState,
        shutdown: &CancellationToken,
    ) {
        let settling = async {
            loop {
                let open = |one: &LeftTurn| (!one.is_answered).then(|| one.key.clone());
                let left: Vec<_> = self.left.lock().iter().filter_map(open).collect();
                if left.is_empty() {
                    return;
                }
                for key in left {
                    let us = current_user(guild_state).await;
                    let is_answered = self.settle_one(rest, us, &key).await;
                    self.recovery.notify_one();
                    let question = MessageId::new(key.turn.0);
                    // A turn of this process finds the answer by itself.
                    if is_answered && !claims.is_taken(question) {
                        claims.over(question, self.now()).await;
                    }
                    sleep(PACE).await;
                }
                sleep(AGAIN).await;
            }
        };
        let _ = shutdown.run_until_cancelled(settling).await;
    }

    /// Settles what was left of a turn that is about to be asked again. Returns whether its
    /// answer stands there; otherwise what is stored of it is taken back.
    pub async fn settle_left(&self, rest: &Rest, us: UserId, turn: TurnId) -> bool {
        let key = {
            let mut left = self.left.lock();
            let Some(place) = left.iter().position(|one| one.key.turn == turn) else {
                return false;
            };
            if left[place].is_answered {
                return true;
            }
            left.remove(place).key
        };
        let Some(rows) = self.unsaved.early_rows(&key) else {
            return false;
        };
        let shown = self.look_for_answer(rest, us, &key, &rows).await;
        let is_there = match shown {
            Shown::Wholly(messages) => {
                self.unsaved.confirm(&key, &messages, self.now());
                true
            }
            Shown::No | Shown::Unknown | Shown::Unanswered => {
                self.unsaved.take_back(&key);
                false
            }
        };
        self.recovery.notify_one();
        is_there
    }

    /// Settles a turn if Discord tells. Returns whether its answer stands there.
    async fn settle_one(&self, rest: &Rest, us: UserId, key: &TurnKey) -> bool {
        let rows = self.unsaved.early_rows(key).unwrap_or_default();
        // Without an answer none is on its way.
        let age = answer(&rows).map_or(MOST_AGE, |answer| self.elapsed(answer.timestamp));
        let shown = self.look_for_answer(rest, us, key, &rows).await;
        let mut left = self.left.lock();
        let Some(place) = left.iter().position(|one| one.key == *key) else {
            // It is asked again, which settled it.
            return false;
        };
        match shown {
            Shown::Wholly(messages) => {
                self.unsaved.confirm(key, &messages, self.now());
                left[place].is_answered = true;
                return true;
            }
            // It may be on its way.
            Shown::No if age < IN_FLIGHT => return false,
            Shown::No => self.unsaved.take_back(key),
            Shown::Unanswered => return false,
            Shown::Unknown if age > MOST_AGE => {
                tracing::warn!("a turn is given up: nobody could tell whether it was answered");
                self.unsaved.take_back(key);
            }
            // It stays hidden until the next start.
            Shown::Unknown => {}
        }
        left.remove(place);
        false
    }

    /// Reads on from the question, as far as the answer may stand.
    async fn look_for_answer(
        &self,
        rest: &Rest,
        us: UserId,
        key: &TurnKey,
        rows: &[StoredMessage],
    ) -> Shown {
        let Some(answer) = answer(rows) else {
            return Shown::No;
        };
        let until = UnixMillis(answer.timestamp.0.saturating_add(millis(POSTING)));
        let mut ours: Vec<Message> = Vec::new();
        let mut after = MessageId::new(key.turn.0);
        for _ in 0..MOST_PAGES {
            let deadline = Instant::now() + LOOK_TIMEOUT;
            let cursor = PageCursor::After(after);
            let page = rest
                .reader()
                .page(answer.channel, cursor, PAGE_LIMIT, deadline);
            let page = match page.await {
                Ok(page) => page,
                Err(error) if error.reason.is_unanswered() => return Shown::Unanswered,
                Err(_) => return Shown::Unknown,
            };
            let last = page.messages.last().map(|message| message.id);
            let in_time = page.messages.into_iter();
            let in_time = in_time.filter(|message| message.id.created() <= until);
            ours.extend(in_time.filter(|message| message.author.id == us));
            let target = question(rows).and_then(|row| row.target);
            if let Some(messages) = self.shown_by(&answer.content, target, &ours) {
                return Shown::Wholly(messages);
            }
            match last {
                Some(last) if !page.complete && last.created() <= until => after = last,
                _ => return Shown::No,
            }
        }
        Shown::Unknown
    }

    /// The messages that show an answer as we would post it: all of them in order, the first not
    /// a reply to anything but its target. Commands are answered without a reply, and so is
    /// whoever deleted the target.
    fn shown_by(
        &self,
        answer: &str,
        target: Option<MessageId>,
        ours: &[Message],
    ) -> Option<Vec<MessageId>> {
        let readable = deliver::readable(answer, true);
        let found = [Overflow::Attached, Overflow::Cut].into_iter();
        found.into_iter().find_map(|overflow| {
            let most = self.answer_messages;
            let delivery = deliver::split(&readable.text, most, overflow);
            let mut left = ours.iter();
            let mut is_first = true;
            let each = delivery.messages.iter().map(|text| {
                let is_reply = |message: &Message| {
                    let to = message.reference.as_ref().and_then(|to| to.message);
                    to.is_none() || target.is_none() || to == target
                };
                let is_it = |message: &&Message| {
                    message.content.trim() == text.trim() && (!is_first || is_reply(message))
                };
                let found = left.find(is_it).map(|message| message.id);
                is_first = false;
                found
            });
            let messages: Option<Vec<MessageId>> = each.collect();
            messages.filter(|messages| !messages.is_empty())
        })
    }
}

fn question(rows: &[StoredMessage]) -> Option<&StoredMessage> {
    rows.iter().find(|row| row.role == StoredRole::User)
}

fn answer(rows: &[StoredMessage]) -> Option<&StoredMessage> {
    rows.iter().find(|row| row.role == StoredRole::Assistant)
}

/// Who we are, once Discord has said so.
async fn current_user(guild_state: &GuildState) -> UserId {
    loop {
        if let Some(us) = guild_state.current_user() {
            return us.user;
        }
        sleep(PACE).await;
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
