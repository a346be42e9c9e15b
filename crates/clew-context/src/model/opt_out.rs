//! Users who opted out of having their messages read, and what remains of such a
//! message: a message that keeps its place and has no words.
//!
//! A forward contains the words of a message without its author (Discord sends no
//! author in `message_snapshots`), but it names the message. Once we have seen
//! that its author opted out, every forward of it is withheld. The forward of a
//! message that we never saw cannot be told from other text and is shown like the
//! forwarder's own words; so are quotes.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::{Message, MessageId, Referenced, Snapshot, UserId};

/// Most messages remembered as written by opted-out users; beyond it the oldest are forgotten.
const MOST_KNOWN: usize = 10_000;

/// Everybody who had opted out at one point in time, and which messages were seen
/// to be by them. Cheap to clone; clones share the remembered messages.
#[derive(Debug, Clone, Default)]
pub struct OptedOut {
    users: Arc<HashSet<UserId>>,
    /// The authors, who may have opted back in since.
    known: Arc<RwLock<BTreeMap<MessageId, UserId>>>,
}

impl OptedOut {
    /// Whether this person opted out.
    pub fn contains(&self, user: UserId) -> bool {
        self.users.contains(&user)
    }

    /// Everybody who opted out.
    pub fn users(&self) -> impl Iterator<Item = UserId> {
        self.users.iter().copied()
    }

    /// Whether both are the same value, unchanged in between.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.users, &other.users)
    }

    /// These users, with the messages that `before` remembers.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        Self {
            known: Arc::clone(&before.known),
            ..self
        }
    }

    /// Removes words of opted-out users from a message: its own, those of the
    /// message it includes, and those of messages it forwards.
    pub fn withhold(&self, message: &mut Message) {
        if self.contains(message.author.id) {
            self.remember(message);
            message.withhold();
        }
        self.withhold_others(message);
    }

    /// The same, but keeps the message's own words, which its author chose to send.
    pub fn withhold_others(&self, message: &mut Message) {
        self.withhold_forwards(message);
        if let Referenced::Known(referenced) = &mut message.referenced {
            self.withhold(referenced);
        }
    }

    /// Like [`withhold`](Self::withhold), for a shared message, which is cloned
    /// only if words have to be removed.
    #[must_use]
    pub fn withheld(&self, message: Arc<Message>) -> Arc<Message> {
        if !self.concerns(&message) {
            return message;
        }
        let mut withheld = Message::clone(&message);
        self.withhold(&mut withheld);
        Arc::new(withheld)
    }

    /// Whether there are words to remove.
    pub fn concerns(&self, message: &Message) -> bool {
        let own = !message.withheld && self.contains(message.author.id);
        own || self.concerns_others(message)
    }

    /// The same, without regard to the message's own words.
    pub fn concerns_others(&self, message: &Message) -> bool {
        self.forwards_theirs(message)
            || matches!(&message.referenced, Referenced::Known(referenced) if self.concerns(referenced))
    }

    /// Whether it lost words whose author is no longer opted out.
    pub fn gives_back(&self, message: &Message) -> bool {
        let extras = message.extras.as_deref();
        let snapshots = extras.map_or(&[][..], |all| &all.snapshots);
        let forward = || snapshots.iter().any(|one| one.withheld) && !self.names_theirs(message);
        message.withheld && !self.contains(message.author.id) || forward()
    }

    /// Remembers a message if its author opted out, so that forwards of it are withheld too.
    pub fn remember(&self, message: &Message) {
        if !self.contains(message.author.id) {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(message.id, message.author.id);
        if known.len() > MOST_KNOWN {
            known.pop_first();
        }
    }

    fn withhold_forwards(&self, message: &mut Message) {
        if !self.forwards_theirs(message) {
            return;
        }
        for snapshot in message.extras.iter_mut().flat_map(|all| &mut all.snapshots) {
            snapshot.withhold();
        }
    }

    /// Whether it shows a forward of a message known to be by an opted-out user.
    fn forwards_theirs(&self, message: &Message) -> bool {
        let extras = message.extras.as_deref();
        let is_shown = extras.is_some_and(|all| all.snapshots.iter().any(|one| !one.withheld));
        is_shown && self.names_theirs(message)
    }

    /// Whether it refers to a message known to be by an opted-out user.
    fn names_theirs(&self, message: &Message) -> bool {
        let reference = message.reference.as_ref();
        let Some(original) = reference.and_then(|reference| reference.message) else {
            return false;
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&original)
            .is_some_and(|author| self.contains(*author))
    }
}

/// Compares the users only.
impl PartialEq for OptedOut {
    fn eq(&self, other: &Self) -> bool {
        self.users == other.users
    }
}

impl Eq for OptedOut {}

impl FromIterator<UserId> for OptedOut {
    fn from_iter<I: IntoIterator<Item = UserId>>(users: I) -> Self {
        Self {
            users: Arc::new(users.into_iter().collect()),
            known: Arc::default(),
        }
    }
}

/// Everybody who opted out, shared by everything that stores, learns or reads. It
/// only holds the value; whoever changes it loads and saves it.
///
/// A window is told by
/// [`Window::withhold`](crate::engine::window::Window::withhold), which removes
/// the words from what it already holds.
#[derive(Debug, Default)]
pub struct OptOuts(RwLock<OptedOut>);

impl OptOuts {
    /// Who is opted out now.
    pub fn current(&self) -> OptedOut {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces the set of users.
    pub fn set(&self, opted_out: OptedOut) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = opted_out;
    }
}

impl Snapshot {
    /// Removes everything it says.
    fn withhold(&mut self) {
        *self = Self {
            withheld: true,
            content: Box::default(),
            timestamp: None,
            extras: None,
        };
    }
}

impl Message {
    /// Removes everything the author said, and the author's name. Id, place, time,
    /// type and reference stay, so that windows stay complete and reply chains
    /// connected.
    fn withhold(&mut self) {
        self.withheld = true;
        self.content = Box::default();
        self.mentions = Box::default();
        self.mention_roles = Box::default();
        self.extras = None;
        self.author.name = Box::default();
    }
}
