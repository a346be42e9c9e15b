//! Who has chosen that we do not read their messages, and what is left of a
//! message of theirs: a husk that keeps its place and says nothing.
//!
//! A forward carries the words of a message without its author (Discord sends
//! no author in `message_snapshots`): what somebody else forwards of a person
//! cannot be told from anybody's words, and is shown like the forwarder's own.
//! The same holds for what others quote.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use super::{Message, Referenced, UserId};

/// Everybody who opted out, as of one moment. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptedOut(Arc<HashSet<UserId>>);

impl OptedOut {
    /// Whether this person opted out.
    pub fn contains(&self, user: UserId) -> bool {
        self.0.contains(&user)
    }

    /// Whether both are one value, of which nothing changed in between.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Takes the words out of a message of theirs, and out of one of theirs
    /// that it carries.
    pub fn withhold(&self, message: &mut Message) {
        if self.contains(message.author.id) {
            message.withhold();
        }
        if let Referenced::Known(carried) = &mut message.referenced {
            self.withhold(carried);
        }
    }

    /// The same for a shared message, which is copied only if words go.
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
        own || matches!(&message.referenced, Referenced::Known(carried) if self.concerns(carried))
    }
}

impl FromIterator<UserId> for OptedOut {
    fn from_iter<I: IntoIterator<Item = UserId>>(users: I) -> Self {
        Self(Arc::new(users.into_iter().collect()))
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
