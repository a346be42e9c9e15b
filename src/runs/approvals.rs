//! Calls of others' tools that wait until somebody allows them, and those that a restart
//! cut off.
//!
//! Invariant: a call is decided on once, by somebody who may, and only while the turn that
//! wants it waits; what an earlier process left is never decided on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use uuid::Uuid;

use super::StateFile;
use clew_context::model::{ChannelId, GuildId, MessageId, RoleId, TurnId, UnixMillis, UserId};

/// Turns at the same time that asked for something: of one person, in one server, of all. They
/// hold no place from then on.
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
    known: Mutex<Register>,
    /// Tells that what the next process needs has changed.
    changed: watch::Sender<()>,
    /// What of that has been written, or could not be.
    written: watch::Sender<Written>,
}

/// What was written last, and whether it is in the file.
#[derive(Debug, Default)]
struct Written {
    content: OpenApprovals,
    is_in_file: bool,
}

#[derive(Debug, Default)]
struct Register {
    /// The turns that have asked for something and are not over: who asks, and where.
    turns: BTreeMap<u64, (UserId, Option<GuildId>)>,
    waiting: BTreeMap<u64, Waiting>,
    /// What waits no more, until its turn is over and its message says what became of it.
    decided: BTreeMap<u64, OpenApproval>,
    /// What an earlier process left.
    left: BTreeMap<u64, OpenApproval>,
}

#[derive(Debug)]
struct Waiting {
    open: OpenApproval,
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

/// A call that waits, or is being made. It is remembered until its turn is over.
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
        let known = Register {
            left,
            ..Register::default()
        };
        Self(Arc::new(Shared {
            known: Mutex::new(known),
            changed: watch::Sender::new(()),
            written: watch::Sender::default(),
        }))
    }

    /// Lets a call wait; none if too many do.
    pub fn ask(&self, new: NewApproval) -> Option<Approval> {
        let mut known = self.0.known.lock();
        let own = new.open.turn;
        let others = known.turns.iter().filter(|(turn, _)| **turn != own);
        let others: Vec<_> = others.map(|(_, whose)| *whose).collect();
        let of_user = others.iter().filter(|(asker, _)| *asker == new.asker);
        let of_guild = others.iter().filter(|(_, guild)| *guild == new.guild);
        let is_full = of_user.count() >= MOST_OF_USER
            || new.guild.is_some() && of_guild.count() >= MOST_OF_GUILD
            || others.len() >= MOST;
        if is_full {
            return None;
        }
        known.turns.insert(own, (new.asker, new.guild));
        let (decide, decided) = oneshot::channel();
        // Old buttons stay under messages: an id is never used twice.
        let id = Uuid::new_v4().as_u64_pair().0;
        let waiting = Waiting {
            open: new.open,
            approvers: new.approvers,
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
        let mut known = self.0.known.lock();
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
        let known = self.0.known.lock();
        let mut left = known.left.values();
        let found = left.find(|open| open.turn == turn.0 && open.call == call);
        found.map(|open| open.is_allowed)
    }

    /// Those that nobody waits for and whose message does not say so: what an earlier process
    /// left, or of this one what a turn gave up.
    pub fn untold(&self, of: Option<TurnId>) -> Vec<(u64, OpenApproval)> {
        let known = self.0.known.lock();
        let (all, turn) = match of {
            Some(turn) => (&known.decided, Some(turn.0)),
            None => (&known.left, None),
        };
        let untold = all
            .iter()
            .filter(|(_, open)| !open.is_told && turn.is_none_or(|turn| open.turn == turn));
        untold.map(|(id, open)| (*id, open.clone())).collect()
    }

    /// The message of one says what became of it, or never can.
    pub fn told(&self, id: u64) {
        let mut known = self.0.known.lock();
        let Register { decided, left, .. } = &mut *known;
        for open in [decided.get_mut(&id), left.get_mut(&id)]
            .into_iter()
            .flatten()
        {
            open.is_told = true;
        }
        drop(known);
        self.0.changed.send_replace(());
    }

    /// A turn is over: nobody will ask for its calls again.
    pub fn turn_over(&self, turn: TurnId) {
        let mut known = self.0.known.lock();
        known.turns.remove(&turn.0);
        let before = (known.decided.len(), known.left.len());
        known
            .decided
            .retain(|_, open| open.turn != turn.0 || !open.is_told);
        known
            .left
            .retain(|_, open| open.turn != turn.0 || !open.is_told);
        let is_changed = before != (known.decided.len(), known.left.len());
        drop(known);
        if is_changed {
            self.0.changed.send_replace(());
        }
    }
}

impl StateFile for Approvals {
    type Content = OpenApprovals;

    fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    fn content(&self) -> OpenApprovals {
        let known = self.0.known.lock();
        let waiting = known
            .waiting
            .iter()
            .map(|(id, one)| (*id, one.open.clone()));
        let mut open: BTreeMap<u64, OpenApproval> = waiting.collect();
        let others = known.decided.iter().chain(&known.left);
        let others = others.map(|(id, open)| (*id, open.clone()));
        open.extend(others.take(MOST_LEFT));
        OpenApprovals(open)
    }

    fn written(&self, content: OpenApprovals, is_in_file: bool) {
        self.0.written.send_replace(Written {
            content,
            is_in_file,
        });
    }
}

impl Approval {
    /// Waits until the next process would know of it as it is now; false if it cannot.
    pub async fn is_noted(&self) -> bool {
        let noted = |written: &Written| {
            let known = self.shared.known.lock();
            let now = known.waiting.get(&self.id).map(|one| &one.open);
            written.content.0.get(&self.id) == now
        };
        let mut written = self.shared.written.subscribe();
        let written = written.wait_for(noted).await;
        written.is_ok_and(|written| written.is_in_file)
    }

    /// This message asks for it.
    pub fn stands(&self, message: MessageId) {
        self.change(|open| open.message = Some(message));
    }

    /// Waits so long for the decision. One that allows is noted before this returns; if it
    /// cannot be, nothing is decided.
    pub async fn decided(&mut self, patience: Duration) -> Option<Decided> {
        let decided = if let Ok(decided) = timeout(patience, &mut self.decided).await {
            decided.ok()?
        } else {
            // Who presses from now on is told that it is over.
            self.decided.close();
            self.decided.try_recv().ok()?
        };
        if decided.is_allowed {
            self.change(|open| open.is_allowed = true);
            if !self.is_noted().await {
                self.change(|open| open.is_allowed = false);
                return None;
            }
        }
        Some(decided)
    }

    /// It was allowed, and was not done.
    pub fn overruled(&self) {
        self.change(|open| open.is_allowed = false);
    }

    /// The message that asks for it.
    pub fn message(&self) -> Option<MessageId> {
        let known = self.shared.known.lock();
        known.waiting.get(&self.id)?.open.message
    }

    /// Its message says what was decided.
    pub fn told(&self) {
        self.change(|open| open.is_told = true);
    }

    fn change(&self, change: impl FnOnce(&mut OpenApproval)) {
        if let Some(waiting) = self.shared.known.lock().waiting.get_mut(&self.id) {
            change(&mut waiting.open);
        }
        self.shared.changed.send_replace(());
    }
}

impl Drop for Approval {
    fn drop(&mut self) {
        let mut known = self.shared.known.lock();
        if let Some(waiting) = known.waiting.remove(&self.id) {
            known.decided.insert(self.id, waiting.open);
            while known.decided.len() > MOST_LEFT {
                known.decided.pop_first();
            }
        }
        drop(known);
        self.shared.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(turn: u64, asker: u64, guild: u64) -> NewApproval {
        NewApproval {
            open: OpenApproval {
                turn,
                call: "find".to_owned(),
                channel: ChannelId::new(1),
                message: None,
                asked: 0,
                is_allowed: false,
                is_told: false,
            },
            asker: UserId::new(asker),
            guild: Some(GuildId::new(guild)),
            approvers: Approvers {
                roles: BTreeSet::from([RoleId::new(7)]),
                asker: None,
            },
        }
    }

    #[test]
    fn few_turns_wait_of_a_person_in_a_server_and_in_all() {
        let approvals = Approvals::new(OpenApprovals::default(), UnixMillis(0));
        let ask = |turn, asker, guild| approvals.ask(asked(turn, asker, guild));
        let _first = ask(1, 1, 1).unwrap();
        assert!(ask(2, 1, 2).is_none(), "of this person one waits");
        assert!(ask(1, 1, 1).is_some(), "a turn may ask again");
        let mut waiting: Vec<Approval> = (2..5).filter_map(|one| ask(one, one, 1)).collect();
        assert_eq!(waiting.len(), MOST_OF_GUILD - 1);
        assert!(ask(5, 5, 1).is_none(), "in this server four wait");
        waiting.extend((10..100).filter_map(|one| ask(one, one, one)));
        assert_eq!(waiting.len() + 1, MOST);
        // Who is over makes room, even for a turn that goes on after its decision.
        drop(waiting.pop());
        assert!(ask(200, 200, 200).is_none());
        approvals.turn_over(TurnId(10));
        assert!(ask(200, 200, 200).is_some());
    }

    #[test]
    fn a_call_is_decided_on_once_by_somebody_who_may() {
        let approvals = Approvals::new(OpenApprovals::default(), UnixMillis(0));
        let approval = approvals.ask(asked(1, 1, 1)).unwrap();
        let (id, roles) = (approval.id, [RoleId::new(7)]);
        let decide = |by: u64, roles: &[RoleId], allows| {
            approvals.decide(id, UserId::new(by), roles, allows)
        };
        assert_eq!(decide(1, &[], true), Err(Undecided::NotYours));
        assert_eq!(decide(2, &roles, false), Ok(()));
        assert_eq!(decide(3, &roles, true), Err(Undecided::Over));
        drop(approval);
        assert_eq!(decide(2, &roles, true), Err(Undecided::Over));
    }
}
