//! Claims each question once, however often the gateway delivers it and whichever process
//! gets it.
//!
//! Each claim is noted in a file, or with several processes in their database, before the
//! answer's first post, so that it outlasts a kill. What is noted holds no id: a claim is found by a keyed hash of the question's id, and says which
//! messages were posted only to who knows that id. So there is nothing in it of anybody that an
//! erasure would have to find. Erasures are noted, too, by a keyed hash of the user's id.

mod log;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::timeout;

use self::log::{Hash, Keys, Line, Log};
use clew_context::model::{InteractionId, MessageId, UnixMillis, UserId};
use clew_context::outside::blocking;

/// Claimed messages that a process remembers; a resumed session replays only minutes.
const REMEMBERED: usize = 10_000;
/// How long a claim is kept.
pub const KEPT: Duration = Duration::from_hours(1);
/// How old a question may be that an earlier process may have had: its claim is certainly
/// kept, with clocks that differ by minutes.
const ASKED_AGAIN: Duration = Duration::from_mins(30);
/// The most claims that are kept; beyond, the oldest go.
const MOST_KEPT: usize = 50_000;
/// How long an answer waits for its claim to be noted: far longer than a healthy disk takes.
const PATIENCE: Duration = Duration::from_millis(50);

/// What an earlier process left of a question: it is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// How often it had been started over.
    pub restarts: u32,
    /// The messages of its answer that Discord confirmed, oldest first.
    pub posted: Vec<MessageId>,
    /// When it was claimed.
    pub at: UnixMillis,
}

/// Keeps claims where the next process finds them on whichever machine it runs.
pub trait ClaimRows: fmt::Debug + Send + Sync {
    /// Keeps what is known of a claim in place of what was known before. Ready once it is kept;
    /// false if it is not, since this process may not act any more.
    fn keep(&self, claim: u64, at: UnixMillis, line: String) -> BoxFuture<'static, bool>;

    /// Removes what is older.
    fn forget(&self, before: UnixMillis) -> BoxFuture<'static, ()>;
}

/// Where claims are kept.
#[derive(Debug)]
enum Place {
    /// They go with the process.
    Nowhere,
    File(Arc<Mutex<Log>>),
    Rows(Arc<dyn ClaimRows>),
}

/// Which questions were claimed, and what became of them; shared by reference.
#[derive(Debug)]
pub struct Claims {
    keys: Keys,
    began: UnixMillis,
    state: Mutex<State>,
    place: Place,
}

#[derive(Debug, Default)]
struct State {
    taken: Recent,
    kept: HashMap<Hash, Claim>,
    /// The kept, oldest first.
    order: VecDeque<Hash>,
    /// When rows were last removed.
    tidied: UnixMillis,
}

/// What became of a question so far.
#[derive(Debug, Clone, Default)]
struct Claim {
    at: UnixMillis,
    restarts: u32,
    posted: Vec<MessageId>,
    /// Nobody will answer it again.
    is_over: bool,
    /// As an earlier process left it; boxed, since there are thousands and few have it.
    left: Option<Box<Line>>,
}

impl Claims {
    /// Those of earlier processes, and from now on ours. What cannot be read is told and not
    /// used; what cannot be written is told once.
    pub fn open(path: &Path, key: &[u8], now: UnixMillis) -> Self {
        let lines = newest(log::read(path, now));
        let log = Log::new(path.to_owned(), &lines);
        Self::kept_in(&lines, key, now, Place::File(Arc::new(Mutex::new(log))))
    }

    /// The same with rows in place of a file: those of earlier processes are in `lines`.
    pub fn in_rows(
        rows: Arc<dyn ClaimRows>,
        lines: &[String],
        key: &[u8],
        now: UnixMillis,
    ) -> Self {
        let lines = newest(log::parsed(lines, now));
        Self::kept_in(&lines, key, now, Place::Rows(rows))
    }

    fn kept_in(lines: &[Line], key: &[u8], now: UnixMillis, place: Place) -> Self {
        let mut state = State {
            tidied: now,
            ..State::default()
        };
        for line in lines {
            let claim = Claim {
                at: line.at(),
                is_over: line.over,
                left: Some(Box::new(line.clone())),
                ..Claim::default()
            };
            if state.kept.insert(line.claim, claim).is_none() {
                state.order.push_back(line.claim);
            }
        }
        Self {
            keys: Keys::new(key),
            began: now,
            state: Mutex::new(state),
            place,
        }
    }

    /// Without a file: they go with the process.
    pub fn in_memory() -> Self {
        Self {
            keys: Keys::new(&[]),
            began: UnixMillis(i64::MIN),
            state: Mutex::default(),
            place: Place::Nowhere,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a question, written at that time by Discord's clock. Returns whether this process
    /// is to answer it: the first time, unless an earlier process finished it, or it is so old
    /// that nobody knows. `now` is what the system's clock says: it may have been set back since
    /// the process began.
    pub fn claim(&self, id: MessageId, written: UnixMillis, now: UnixMillis) -> bool {
        let hash = self.keys.of_question(id);
        let mut state = self.lock();
        if !state.taken.insert(id) {
            return false;
        }
        if let Some(claim) = state.kept.get(&hash) {
            return !claim.is_over;
        }
        written >= self.began.min(now).before(ASKED_AGAIN)
    }

    /// Whether a question is this process's already, or over.
    pub fn is_taken(&self, id: MessageId) -> bool {
        self.was_answered(id).is_some() || self.lock().taken.ids.contains(&id)
    }

    /// Whether a question is over without an answer, as one that was deleted before.
    pub fn is_given_up(&self, id: MessageId) -> bool {
        self.was_answered(id) == Some(false)
    }

    /// Whether a question is over with an answer that stands.
    pub fn has_answer(&self, id: MessageId) -> bool {
        self.was_answered(id) == Some(true)
    }

    /// Whether a question that is over has an answer.
    fn was_answered(&self, id: MessageId) -> Option<bool> {
        let hash = self.keys.of_question(id);
        let state = self.lock();
        let claim = state.kept.get(&hash).filter(|claim| claim.is_over)?;
        let left = claim.left.as_ref();
        let has_left = left.is_some_and(|line| !line.posted.is_empty());
        Some(!claim.posted.is_empty() || has_left)
    }

    /// Whether it is known what became of a question.
    pub fn is_known(&self, id: MessageId) -> bool {
        let hash = self.keys.of_question(id);
        self.lock().kept.contains_key(&hash)
    }

    /// What an earlier process left of a question, asked for once.
    pub fn unfinished(&self, id: MessageId) -> Option<Unfinished> {
        let hash = self.keys.of_question(id);
        let mut state = self.lock();
        let claim = state.kept.get_mut(&hash).filter(|claim| !claim.is_over)?;
        let line = claim.left.take()?;
        claim.restarts = line.restarts;
        claim.posted = self.keys.posted(id, &line);
        Some(Unfinished {
            restarts: claim.restarts,
            posted: claim.posted.clone(),
            at: claim.at,
        })
    }

    /// Whether a message of ours is known to be part of an answer.
    pub fn explains(&self, ours: MessageId) -> bool {
        let mark = self.keys.of_answer(ours);
        let state = self.lock();
        state.kept.values().any(|claim| {
            let left = claim.left.as_ref();
            claim.posted.contains(&ours) || left.is_some_and(|line| line.marks(mark))
        })
    }

    /// Takes a call, however often it is delivered. Returns true the first time.
    pub fn claim_call(&self, id: InteractionId, now: UnixMillis) -> bool {
        let hash = self.keys.of_call(id);
        let mut state = self.lock();
        let is_first = !state.kept.contains_key(&hash);
        state.keep(hash, now).is_over = true;
        is_first
    }

    /// Notes that a call was taken. Returns whether this process may carry it out.
    pub async fn note_call(&self, id: InteractionId) -> bool {
        self.note(self.keys.of_call(id), None).await
    }

    /// Everything of a user is erased, at that time by Discord's clock: what they asked before
    /// is not to be stored by a later process either.
    pub async fn erased(&self, user: UserId, at: UnixMillis) {
        let hash = self.keys.of_user(user);
        {
            let mut state = self.lock();
            let claim = state.keep(hash, at);
            (claim.at, claim.is_over) = (at, true);
        }
        self.note(hash, None).await;
    }

    /// When everything of a user was erased, if that was after a question was written.
    pub fn erased_since(&self, user: UserId, written: UnixMillis) -> Option<UnixMillis> {
        let state = self.lock();
        let claim = state.kept.get(&self.keys.of_user(user))?;
        (claim.at > written).then_some(claim.at)
    }

    /// The first message of an answer is about to be posted.
    pub async fn posting(&self, id: MessageId, restarts: u32, now: UnixMillis) {
        self.change(id, now, |claim| claim.restarts = restarts)
            .await;
    }

    /// A message of the answer stands there.
    pub async fn posted(&self, id: MessageId, message: MessageId, now: UnixMillis) {
        self.change(id, now, |claim| claim.posted.push(message))
            .await;
    }

    /// What was posted is taken back. Under its nonce nothing can be posted again: Discord knows that it was
    /// deleted.
    pub async fn taken_back(&self, id: MessageId, now: UnixMillis) {
        self.change(id, now, |claim| {
            claim.posted.clear();
            claim.left = None;
            claim.restarts += 1;
        })
        .await;
    }

    /// It is answered or refused: no process answers it again.
    pub async fn over(&self, id: MessageId, now: UnixMillis) {
        let hash = self.keys.of_question(id);
        let is_over = |state: &State| state.kept.get(&hash).is_some_and(|claim| claim.is_over);
        let was_over = is_over(&self.lock());
        if !was_over {
            self.change(id, now, |claim| claim.is_over = true).await;
        }
    }

    /// Removes what is kept no longer, from a file once it is kept twice as long: a quiet bot
    /// writes nothing that would shorten it.
    pub async fn tidy(&self, now: UnixMillis) {
        let log = match &self.place {
            Place::Nowhere => return,
            Place::File(log) => log,
            Place::Rows(rows) => {
                let oldest = now.before(KEPT);
                let last = self.lock().tidied;
                if last < oldest {
                    self.lock().tidied = now;
                    rows.forget(oldest).await;
                }
                return;
            }
        };
        // Whoever writes has it.
        if log.try_lock().is_ok_and(|log| log.is_old(now)) {
            let log = Arc::clone(log);
            let tidied = blocking(move || {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.tidy(now);
            });
            drop(tidied.await);
        }
    }

    async fn change(&self, id: MessageId, now: UnixMillis, change: impl FnOnce(&mut Claim)) {
        let hash = self.keys.of_question(id);
        change(self.lock().keep(hash, now));
        self.note(hash, Some(id)).await;
    }

    /// Notes a claim as it is now; waits for a disk that is slow for 50 ms at most, and for rows
    /// as long as it takes: whoever goes on in our place has nothing else. Returns whether this process
    /// may still act.
    async fn note(&self, hash: Hash, question: Option<MessageId>) -> bool {
        let line = {
            let state = self.lock();
            let Some(claim) = state.kept.get(&hash) else {
                return true;
            };
            let posted = question.map(|id| self.keys.sealed(id, &claim.posted));
            Line {
                claim: hash,
                at: claim.at.0,
                restarts: claim.restarts,
                posted: posted.unwrap_or_default(),
                over: claim.is_over,
            }
        };
        let log = match &self.place {
            Place::Nowhere => return true,
            Place::File(log) => Arc::clone(log),
            Place::Rows(rows) => return rows.keep(hash, line.at(), line.text()).await,
        };
        let writing = blocking(move || {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.append(&line);
        });
        if timeout(PATIENCE, writing).await.is_err() {
            tracing::debug!("the disk is slow: an answer is posted before its claim is noted");
        }
        true
    }
}

/// What a file of claims says that is still kept: each claim once, its time and its line as
/// [`ClaimRows`] keeps them.
pub fn claims_in(path: &Path, now: UnixMillis) -> Vec<(u64, UnixMillis, String)> {
    let lines = newest(log::read(path, now)).into_iter();
    lines
        .map(|line| (line.claim, line.at(), line.text()))
        .collect()
}

/// As many as are kept.
fn newest(mut lines: Vec<Line>) -> Vec<Line> {
    let from = lines.len().saturating_sub(MOST_KEPT);
    lines.drain(..from);
    lines
}

impl State {
    /// The claim, a new one if need be.
    fn keep(&mut self, hash: Hash, now: UnixMillis) -> &mut Claim {
        if !self.kept.contains_key(&hash) {
            let oldest = now.before(KEPT);
            while let Some(first) = self.order.front().copied() {
                let is_old = |claim: &Claim| claim.at < oldest;
                if self.order.len() < MOST_KEPT && !self.kept.get(&first).is_none_or(is_old) {
                    break;
                }
                self.kept.remove(&first);
                self.order.pop_front();
            }
            self.order.push_back(hash);
        }
        self.kept.entry(hash).or_insert_with(|| Claim {
            at: now,
            ..Claim::default()
        })
    }
}

/// The most recent ids, up to [`REMEMBERED`].
#[derive(Debug, Default)]
struct Recent {
    ids: HashSet<MessageId>,
    order: VecDeque<MessageId>,
}

impl Recent {
    fn insert(&mut self, id: MessageId) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests;
