//! Agent runs that are under way: whose they are, where they stand, how far they are;
//! and those that broke off, until that has been said where they stood. Also what any
//! running turn is doing, what it waits for, and which programs read as members.
//!
//! Invariant: `runs` keeps ids, times, counts and hashes, never a word of a task or
//! an answer; what a server says of a call is gone with the call.

mod activity;
mod approvals;
mod connections;
mod pace;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::model::{Agent, RUNS_PER_GUILD, RUNS_PER_USER};
use clew_context::model::{
    ChannelId, GuildId, InteractionId, Message, MessageId, UnixMillis, UserId,
};

pub use activity::{Activity, Doing};
pub use approvals::{
    Approval, Approvals, Approvers, Decided, NewApproval, OpenApproval, OpenApprovals, Undecided,
};
pub use connections::{Connection, Connections, MOST_CONNECTIONS};
pub use pace::CatchUpPace;

/// The most runs that broke off and are remembered; the oldest go.
const MOST_BROKEN_OFF: usize = 100;
/// The most further messages of its asker that reach a run; later ones do not.
const MOST_HEARD: usize = 10;

/// What the next process needs of something, kept in a file of the state folder.
pub trait StateFile {
    type Content;
    /// Tells when the content may have changed.
    fn changes(&self) -> watch::Receiver<()>;
    /// What the next process needs if this one is killed now.
    fn content(&self) -> Self::Content;
    /// So much was written, or could not be: then it is not in the file.
    fn written(&self, content: Self::Content, is_in_file: bool);
}

/// All runs; clones share them.
#[derive(Debug, Clone)]
pub struct Runs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `MAX_AGENT_RUNS`; if 0, there are none.
    most: usize,
    known: Mutex<RunTable>,
    /// Tells that what the next process needs has changed.
    changed: watch::Sender<()>,
    /// What of that has been written, or could not be.
    written: watch::Sender<OpenRuns>,
}

#[derive(Debug, Default)]
struct RunTable {
    under_way: BTreeMap<InteractionId, Arc<Run>>,
    /// Runs whose progress message does not yet say that they are over.
    broken_off: BTreeMap<InteractionId, OpenRun>,
}

/// A run that is under way.
#[derive(Debug)]
pub struct Run {
    /// The id of the call that asked for it.
    pub id: InteractionId,
    /// The server; none in direct messages.
    pub guild: Option<GuildId>,
    pub asker: UserId,
    /// The agent that does it.
    pub agent: Arc<Agent>,
    /// The channel in which it was asked for; a thread counts as its channel.
    pub home: ChannelId,
    /// When it was asked for.
    pub began: UnixMillis,
    pub activity: Arc<Activity>,
    channel: OnceLock<ChannelId>,
    message: OnceLock<MessageId>,
    /// The thread that was started for it.
    thread: OnceLock<ChannelId>,
    /// What its asker wrote there since.
    heard: Mutex<Vec<MessageId>>,
    is_over: AtomicBool,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlace {
    /// The run's own thread, or where it was asked for.
    pub channel: ChannelId,
    /// The message that shows its progress.
    pub message: MessageId,
}

/// A run that the next process has to report, unless it is said before that it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRun {
    /// The run's own thread, or where it was asked for.
    pub channel: ChannelId,
    /// The message that shows its progress; none if it may not have been posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// When the run began, in Unix milliseconds.
    pub began: i64,
    /// Whether it had ended: then only its message does not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenRuns(pub BTreeMap<InteractionId, OpenRun>);

#[derive(Debug)]
pub struct NewRun {
    pub id: InteractionId,
    pub guild: Option<GuildId>,
    pub asker: UserId,
    pub agent: Arc<Agent>,
    pub home: ChannelId,
    pub began: UnixMillis,
}

/// Why no further run may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// There are none here at all.
    Off,
    /// As many as may be are under way.
    All,
    /// In this server.
    Guild,
    User,
}

/// A place among the runs, given back when this is dropped.
#[derive(Debug)]
pub struct RunSlot {
    run: Arc<Run>,
    shared: Arc<Shared>,
    /// Whether its message says that it is over.
    is_told: AtomicBool,
}

impl Runs {
    /// No run is under way; these broke off with an earlier process.
    pub fn new(most: usize, broken_off: OpenRuns) -> Self {
        let known = RunTable {
            broken_off: broken_off.0,
            ..RunTable::default()
        };
        Self {
            shared: Arc::new(Shared {
                most,
                known: Mutex::new(known),
                changed: watch::Sender::new(()),
                written: watch::Sender::default(),
            }),
        }
    }

    /// Takes a place for a run.
    ///
    /// # Errors
    /// Whose runs are as many as may be.
    pub fn begin(&self, new: NewRun) -> Result<RunSlot, Full> {
        let mut known = self.shared.known.lock();
        known.has_room(self.shared.most, &new)?;
        let run = Arc::new(Run {
            id: new.id,
            guild: new.guild,
            asker: new.asker,
            agent: new.agent,
            home: new.home,
            began: new.began,
            activity: Arc::default(),
            channel: OnceLock::new(),
            message: OnceLock::new(),
            thread: OnceLock::new(),
            heard: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        known.under_way.insert(new.id, Arc::clone(&run));
        Ok(RunSlot {
            run,
            shared: Arc::clone(&self.shared),
            is_told: AtomicBool::new(false),
        })
    }

    /// All that are under way, the oldest first.
    pub fn all(&self) -> Vec<Arc<Run>> {
        let known = self.shared.known.lock();
        known.under_way.values().cloned().collect()
    }

    /// Those that stand somewhere, the oldest first.
    pub fn under_way(&self) -> Vec<Arc<Run>> {
        let mut runs = self.all();
        runs.retain(|run| run.place().is_some());
        runs
    }

    /// The run with this id.
    pub fn get(&self, id: InteractionId) -> Option<Arc<Run>> {
        self.shared.known.lock().under_way.get(&id).cloned()
    }

    /// Those that broke off and have not been reported.
    pub fn broken_off(&self) -> OpenRuns {
        OpenRuns(self.shared.known.lock().broken_off.clone())
    }

    /// It has been said, or cannot be said, that a run broke off.
    pub fn reported(&self, id: InteractionId) {
        self.shared.known.lock().broken_off.remove(&id);
        self.shared.changed.send_replace(());
    }
}

impl StateFile for Runs {
    type Content = OpenRuns;

    fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    fn content(&self) -> OpenRuns {
        let known = self.shared.known.lock();
        let under_way = known.under_way.iter();
        let mut open: BTreeMap<InteractionId, OpenRun> = under_way
            .filter_map(|(id, run)| Some((*id, run.open()?)))
            .collect();
        open.extend(&known.broken_off);
        OpenRuns(open)
    }

    fn written(&self, open: OpenRuns, _: bool) {
        self.shared.written.send_replace(open);
    }
}

impl RunTable {
    fn has_room(&self, most: usize, new: &NewRun) -> Result<(), Full> {
        let count = |is_such: &dyn Fn(&Run) -> bool| {
            self.under_way.values().filter(|run| is_such(run)).count()
        };
        if most == 0 {
            Err(Full::Off)
        } else if count(&|run| run.asker == new.asker) >= RUNS_PER_USER {
            Err(Full::User)
        } else if new.guild.is_some() && count(&|run| run.guild == new.guild) >= RUNS_PER_GUILD {
            Err(Full::Guild)
        } else if self.under_way.len() >= most {
            Err(Full::All)
        } else {
            Ok(())
        }
    }
}

impl Run {
    /// Where it stands; none while that is being made.
    pub fn place(&self) -> Option<RunPlace> {
        Some(RunPlace {
            channel: *self.channel.get()?,
            message: *self.message.get()?,
        })
    }

    /// Where it stands, or will; none while its thread is being made.
    pub fn channel(&self) -> Option<ChannelId> {
        self.channel.get().copied()
    }

    /// Takes a message if its asker wrote it in the run's own thread.
    pub fn hears(&self, message: &Message) {
        let is_meant =
            self.thread.get() == Some(&message.channel) && self.asker == message.author.id;
        let mut heard = self.heard.lock();
        if is_meant && heard.len() < MOST_HEARD {
            heard.push(message.id);
        }
    }

    /// What its asker wrote, oldest first.
    pub fn heard(&self) -> Vec<MessageId> {
        self.heard.lock().clone()
    }

    fn open(&self) -> Option<OpenRun> {
        Some(OpenRun {
            channel: *self.channel.get()?,
            message: self.message.get().copied(),
            began: self.began.0,
            is_over: self.is_over.load(Ordering::Relaxed),
        })
    }
}

impl RunSlot {
    pub const fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// Its message is about to be posted there. Waits until the next process would know
    /// that.
    pub async fn begins_in(&self, channel: ChannelId) {
        // It stands in one place all along.
        let _ = self.run.channel.set(channel);
        let mut written = self.shared.written.subscribe();
        self.shared.changed.send_replace(());
        let is_known = |open: &OpenRuns| open.0.contains_key(&self.run.id);
        // The sender is a field of ours.
        let _ = written.wait_for(is_known).await;
    }

    /// This thread was started for it.
    pub fn opens(&self, thread: ChannelId) {
        let _ = self.run.thread.set(thread);
    }

    /// This message shows its progress.
    pub fn stands(&self, message: MessageId) {
        let _ = self.run.message.set(message);
        self.shared.changed.send_replace(());
    }

    /// It has ended, and its message is about to say so.
    pub fn over(&self) {
        self.run.is_over.store(true, Ordering::Relaxed);
        self.shared.changed.send_replace(());
    }

    /// Its message says that it is over, or can never say so.
    pub fn told(&self) {
        self.is_told.store(true, Ordering::Relaxed);
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut known = self.shared.known.lock();
        known.under_way.remove(&self.run.id);
        if let Some(open) = self.run.open().filter(|_| !*self.is_told.get_mut()) {
            known.broken_off.insert(self.run.id, open);
            while known.broken_off.len() > MOST_BROKEN_OFF {
                known.broken_off.pop_first();
            }
        }
        drop(known);
        self.shared.changed.send_replace(());
    }
}
