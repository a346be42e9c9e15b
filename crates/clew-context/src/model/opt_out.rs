//! Who has chosen that we do not read their messages, and what is left of a
//! message of theirs: a husk that keeps its place and says nothing.
//!
//! A forward carries the words of a message without its author (Discord sends
//! no author in `message_snapshots`), but it names the message: it is withheld
//! once that was seen as theirs, wherever it stands. What somebody forwards of a
//! message that nobody here has seen cannot be told from anybody's words, and is
//! shown like the forwarder's own; so is what others quote.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::{Message, MessageId, Referenced, Snapshot, UserId};

/// Messages remembered as theirs; when there are more, the oldest are
/// forgotten.
const MOST_KNOWN: usize = 10_000;

/// Everybody who opted out, as of one moment, and which messages were seen as
/// theirs. Cheap to clone; clones remember the same messages.
#[derive(Debug, Clone, Default)]
pub struct OptedOut {
    users: Arc<HashSet<UserId>>,
    /// Who wrote them, who may be back by now.
    known: Arc<RwLock<BTreeMap<MessageId, UserId>>>,
}

impl OptedOut {
    /// Whether this person opted out.
    pub fn contains(&self, user: UserId) -> bool {
        self.users.contains(&user)
    }

    /// Whether both are one value, of which nothing changed in between.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.users, &other.users)
    }

    /// These people, and the messages that `before` remembers.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        Self {
            known: Arc::clone(&before.known),
            ..self
        }
    }

    /// Takes the words out of a message of theirs, out of one of theirs that it
    /// carries, and out of what it forwards of theirs.
    pub fn withhold(&self, message: &mut Message) {
        if self.contains(message.author.id) {
            self.remember(message);
            message.withhold();
        }
        self.withhold_forwards(message);
        if let Referenced::Known(carried) = &mut message.referenced {
            self.withhold(carried);
        }
    }

    /// Takes out of a message what it forwards of theirs, and out of one that it
    /// carries all that is theirs: its own words are for its author to say.
    pub fn withhold_others(&self, message: &mut Message) {
        self.withhold_forwards(message);
        if let Referenced::Known(carried) = &mut message.referenced {
            self.withhold(carried);
        }
    }

    /// As [`withhold`](Self::withhold) for a shared message, which is copied only
    /// if words go.
    #[must_use]
    pub fn withheld(&self, message: Arc<Message>) -> Arc<Message> {
        if !self.concerns(&message) {
            return message;
        }
        let mut husk = Message::clone(&message);
        self.withhold(&mut husk);
        Arc::new(husk)
    }

    /// There are words to be taken out of it.
    pub fn concerns(&self, message: &Message) -> bool {
        let own = !message.withheld && self.contains(message.author.id);
        own || self.concerns_others(message)
    }

    /// The same, but for its author's own words.
    pub fn concerns_others(&self, message: &Message) -> bool {
        self.forwards_theirs(message)
            || matches!(&message.referenced, Referenced::Known(carried) if self.concerns(carried))
    }

    /// Words were taken out of it that nobody keeps private any more.
    pub fn gives_back(&self, message: &Message) -> bool {
        let extras = message.extras.as_deref();
        let snapshots = extras.map_or(&[][..], |all| &all.snapshots);
        let forward = || snapshots.iter().any(|one| one.withheld) && !self.names_theirs(message);
        message.withheld && !self.contains(message.author.id) || forward()
    }

    /// Notes a message of theirs: forwards of it are theirs too.
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

    /// It shows a forward of a message that is known to be theirs.
    fn forwards_theirs(&self, message: &Message) -> bool {
        let extras = message.extras.as_deref();
        let is_shown = extras.is_some_and(|all| all.snapshots.iter().any(|one| !one.withheld));
        is_shown && self.names_theirs(message)
    }

    /// It refers to a message that is known to be theirs.
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

/// The same people.
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

/// Everybody who opted out, shared by all who store, learn or read. It only
/// holds the value; who changes it loads and saves it.
///
/// A window hears of it by
/// [`Window::withhold`](crate::engine::window::Window::withhold), which takes
/// the words out of what it holds already.
#[derive(Debug, Default)]
pub struct OptOuts(RwLock<OptedOut>);

impl OptOuts {
    /// Who opted out, as of now.
    pub fn current(&self) -> OptedOut {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// From now on it is these.
    pub fn set(&self, opted_out: OptedOut) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = opted_out;
    }
}

impl Snapshot {
    /// Takes out all that it says.
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
    /// Takes out everything that its author said, and his name. Id, place,
    /// time, type and what it points at stay, so that windows stay whole and
    /// reply chains hold together.
    fn withhold(&mut self) {
        self.withheld = true;
        self.content = Box::default();
        self.mentions = Box::default();
        self.mention_roles = Box::default();
        self.extras = None;
        self.author.name = Box::default();
    }
}
