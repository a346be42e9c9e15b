//! Calls of others' tools that wait until somebody allows them, and those that a restart
//! cut off.
//!
//! Invariant: a call is decided on once, by somebody who may, and only while the turn that
//! wants it waits; what an earlier process left is never decided on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::StateFile;
use clew_context::model::{ChannelId, GuildId, MessageId, RoleId, TurnId, UnixMillis, UserId};

/// Calls that wait at the same time: of one person, in one server, of all.
const MOST_OF_USER: usize = 1;
const MOST_OF_GUILD: usize = 4;
const MOST: usize = 32;
/// The most that is remembered of what a process left, and for how long: by then its
/// questions are not asked again.
const MOST_LEFT: usize = 100;
const LEFT_FOR: Duration = Duration::from_hours(24);

/// All calls that wait; clones share them.
#[derive(Debug, Clone)]
pub struct Approvals(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    known: Mutex<Known>,
    /// Tells that what the next process needs has changed.
    changed: watch::Sender<()>,
    /// What of that has been written, or could not be.
    written: watch::Sender<OpenApprovals>,
}

#[derive(Debug, Default)]
struct Known {
    waiting: BTreeMap<u64, Waiting>,
    /// What this process gave up, whose message does not say so yet.
    given_up: BTreeMap<u64, OpenApproval>,
    /// What an earlier process left.
    left: BTreeMap<u64, OpenApproval>,
}

#[derive(Debug)]
struct Waiting {
    open: OpenApproval,
    asker: UserId,
    guild: Option<GuildId>,
    approvers: Approvers,
    /// Taken by the decision.
    decide: Option<oneshot::Sender<Decided>>,
}

/// Who may allow a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Approvers {
    /// Whoever has one of these roles.
    pub roles: BTreeSet<RoleId>,
    /// The asker, if they may.
    pub asker: Option<UserId>,
}

/// What was decided, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    pub by: UserId,
    pub is_allowed: bool,
}

/// Why a decision was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// Nothing waits for it any more.
    Over,
    /// They may not decide on it.
    NotYours,
}

/// A call that the next process has to speak of, unless it is over before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenApproval {
    /// The turn that wants it.
    pub turn: u64,
    /// Tool and arguments, as a keyless hash: they are not kept.
    pub call: String,
    pub channel: ChannelId,
    /// The message that asks; none if it may not have been posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// When it was asked for, in Unix milliseconds.
    pub asked: i64,
    /// Whether it was allowed, so that it may have been run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_allowed: bool,
    /// Whether its message says what became of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_told: bool,
}

/// What the next process needs, by the approvals' ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenApprovals(pub BTreeMap<u64, OpenApproval>);

/// A call to be allowed.
#[derive(Debug)]
pub struct NewApproval {
    pub open: OpenApproval,
    pub asker: UserId,
    pub guild: Option<GuildId>,
    pub approvers: Approvers,
}

/// A call that waits, or is being made. Dropped before its message says what was decided, it
/// is given up.
#[derive(Debug)]
pub struct Approval {
    pub id: u64,
    shared: Arc<Shared>,
    decided: oneshot::Receiver<Decided>,
}

impl Approvals {
    /// Nothing waits; this is what an earlier process left.
    pub fn new(left: OpenApprovals, now: UnixMillis) -> Self {
        let is_recent = |open: &OpenApproval| UnixMillis(open.asked) > now.before(LEFT_FOR);
        let mut left = left.0;
        left.retain(|_, open| is_recent(open));
        let known = Known {
            left,
            ..Known::default()
        };
        Self(Arc::new(Shared {
            known: Mutex::new(known),
            changed: watch::Sender::new(()),
            written: watch::Sender::default(),
        }))
    }

    /// Lets a call wait; none if too many do.
    pub fn ask(&self, new: NewApproval) -> Option<Approval> {
        let mut known = self.0.known();
        let count = |is_such: &dyn Fn(&Waiting) -> bool| {
            let waiting = known.waiting.values();
            waiting.filter(|one| is_such(one)).count()
        };
        let is_full = count(&|one| one.asker == new.asker) >= MOST_OF_USER
            || new.guild.is_some() && count(&|one| one.guild == new.guild) >= MOST_OF_GUILD
            || known.waiting.len() >= MOST;
        if is_full {
            return None;
        }
        let (decide, decided) = oneshot::channel();
        // Old buttons stay under messages: an id is never used twice.
        let id = Uuid::new_v4().as_u64_pair().0;
        let NewApproval {
            open,
            asker,
            guild,
            approvers,
        } = new;
        let waiting = Waiting {
            open,
            asker,
            guild,
            approvers,
            decide: Some(decide),
        };
        known.waiting.insert(id, waiting);
        drop(known);
        self.0.changed.send_replace(());
        Some(Approval {
            id,
            shared: Arc::clone(&self.0),
            decided,
        })
    }

    /// Decides on a call for somebody with these roles.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn decide(
        &self,
        id: u64,
        by: UserId,
        roles: &[RoleId],
        is_allowed: bool,
    ) -> Result<(), Undecided> {
        let mut known = self.0.known();
        let waiting = known.waiting.get_mut(&id).ok_or(Undecided::Over)?;
        let approvers = &waiting.approvers;
        let may =
            approvers.asker == Some(by) || roles.iter().any(|one| approvers.roles.contains(one));
        if !may {
            return Err(Undecided::NotYours);
        }
        let decide = waiting.decide.take().ok_or(Undecided::Over)?;
        let decided = Decided { by, is_allowed };
        decide.send(decided).map_err(|_| Undecided::Over)
    }

    /// A call of a turn that a restart cut off: whether it had been allowed.
    pub fn cut_off(&self, turn: TurnId, call: &str) -> Option<bool> {
        let known = self.0.known();
        let mut left = known.left.values();
        let found = left.find(|open| open.turn == turn.0 && open.call == call);
        found.map(|open| open.is_allowed)
    }

    /// Those that nobody waits for and whose message does not say so: what an earlier process
    /// left, and what this one gave up for a turn.
    pub fn untold(&self, of: Option<TurnId>) -> Vec<(u64, OpenApproval)> {
        let known = self.0.known();
        let given_up = known.given_up.iter();
        let mut untold: Vec<_> = given_up
            .filter(|(_, open)| of == Some(TurnId(open.turn)))
            .collect();
        if of.is_none() {
            untold.extend(known.left.iter().filter(|(_, open)| !open.is_told));
        }
        untold
            .into_iter()
            .map(|(id, open)| (*id, open.clone()))
            .collect()
    }

    /// The message of one says what became of it, or never can.
    pub fn told(&self, id: u64) {
        let mut known = self.0.known();
        known.given_up.remove(&id);
        if let Some(open) = known.left.get_mut(&id) {
            open.is_told = true;
        }
        drop(known);
        self.0.changed.send_replace(());
    }
}

impl StateFile for Approvals {
    type Content = OpenApprovals;

    fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    fn content(&self) -> OpenApprovals {
        let known = self.0.known();
        let waiting = known
            .waiting
            .iter()
            .map(|(id, one)| (*id, one.open.clone()));
        let mut open: BTreeMap<u64, OpenApproval> = waiting.collect();
        let others = known.given_up.iter().chain(&known.left);
        let others = others.map(|(id, open)| (*id, open.clone()));
        open.extend(others.take(MOST_LEFT));
        OpenApprovals(open)
    }

    fn written(&self, content: OpenApprovals) {
        self.0.written.send_replace(content);
    }
}

impl Approval {
    /// Waits until the next process would know of it as it is now.
    pub async fn is_noted(&self) {
        let noted = |open: &OpenApprovals| {
            let known = self.shared.known();
            let now = known.waiting.get(&self.id).map(|one| &one.open);
            open.0.get(&self.id) == now
        };
        let mut written = self.shared.written.subscribe();
        // The sender is a field of ours.
        let _ = written.wait_for(noted).await;
    }

    /// This message asks for it.
    pub fn stands(&self, message: MessageId) {
        self.change(|open| open.message = Some(message));
    }

    /// Waits for the decision. One that allows is noted before this returns.
    pub async fn decided(&mut self) -> Option<Decided> {
        let decided = (&mut self.decided).await.ok()?;
        if decided.is_allowed {
            self.change(|open| open.is_allowed = true);
            self.is_noted().await;
        }
        Some(decided)
    }

    /// Its message says what was decided.
    pub fn told(&self) {
        self.change(|open| open.is_told = true);
    }

    fn change(&self, change: impl FnOnce(&mut OpenApproval)) {
        if let Some(waiting) = self.shared.known().waiting.get_mut(&self.id) {
            change(&mut waiting.open);
        }
        self.shared.changed.send_replace(());
    }
}

impl Drop for Approval {
    fn drop(&mut self) {
        let mut known = self.shared.known();
        let waiting = known.waiting.remove(&self.id);
        if let Some(waiting) = waiting.filter(|one| !one.open.is_told) {
            known.given_up.insert(self.id, waiting.open);
            while known.given_up.len() > MOST_LEFT {
                known.given_up.pop_first();
            }
        }
        drop(known);
        self.shared.changed.send_replace(());
    }
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
