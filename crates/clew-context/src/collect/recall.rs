//! What turns learn that also helps later turns: channels that refuse us, and
//! starters that do not exist.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{ChannelId, MessageId};

/// How long a channel that refused us is not asked again, unless its permissions
/// change: Discord counts refused requests towards a ban.
const FORBIDDEN_FOR: Duration = Duration::from_mins(1);
/// Minimum time between two complaints about the same channel.
const A_DAY: Duration = Duration::from_hours(24);
/// Most entries of each kind; when full, all are dropped, at the cost of a fetch each.
const MAX_ENTRIES: usize = 4_096;

/// Why a thread has no starter in its parent channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnchor {
    /// It was deleted.
    Deleted,
    /// The thread was not started from a message; this is its first one.
    Unanchored(MessageId),
}

/// Knowledge shared by all turns of a process.
#[derive(Debug, Default)]
pub struct Recall {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Channels that refuse us their messages.
    forbidden: HashMap<ChannelId, Instant>,
    /// Channels that we may not even view.
    hidden: HashMap<ChannelId, Instant>,
    anchors: HashMap<ChannelId, NoAnchor>,
    complained: HashMap<ChannelId, Instant>,
}

impl Recall {
    /// Call when permissions changed: channels for which `may_be_of` returns true
    /// may be asked again. It should return true for channels of an unknown server.
    pub fn permissions_changed(&self, may_be_of: impl Fn(ChannelId) -> bool) {
        let mut inner = self.lock();
        inner.forbidden.retain(|channel, _| !may_be_of(*channel));
        inner.hidden.retain(|channel, _| !may_be_of(*channel));
    }

    /// Whether this is the first complaint about a channel within a day.
    pub fn first_today(&self, channel: ChannelId, now: Instant) -> bool {
        let mut inner = self.lock();
        if inner.complained.len() >= MAX_ENTRIES {
            inner.complained.clear();
        }
        let last = inner.complained.get(&channel);
        let first = last.is_none_or(|last| now.duration_since(*last) >= A_DAY);
        if first {
            inner.complained.insert(channel, now);
        }
        first
    }

    /// Forgets everything about a thread or channel that was deleted.
    pub fn forget(&self, channel: ChannelId) {
        let mut inner = self.lock();
        inner.forbidden.remove(&channel);
        inner.hidden.remove(&channel);
        inner.anchors.remove(&channel);
    }

    /// Notes that the message a thread was started from was deleted.
    pub fn starter_deleted(&self, thread: ChannelId) {
        self.learn_anchor(thread, NoAnchor::Deleted);
    }

    pub(super) fn forbid(&self, channel: ChannelId, now: Instant) {
        refuse(&mut self.lock().forbidden, channel, now);
    }

    pub(super) fn is_forbidden(&self, channel: ChannelId, now: Instant) -> bool {
        refuses(&self.lock().forbidden, channel, now)
    }

    pub(super) fn hide(&self, channel: ChannelId, now: Instant) {
        let mut inner = self.lock();
        refuse(&mut inner.hidden, channel, now);
        refuse(&mut inner.forbidden, channel, now);
    }

    pub(super) fn is_hidden(&self, channel: ChannelId, now: Instant) -> bool {
        refuses(&self.lock().hidden, channel, now)
    }

    pub(super) fn no_anchor(&self, thread: ChannelId) -> Option<NoAnchor> {
        self.lock().anchors.get(&thread).copied()
    }

    pub(super) fn learn_anchor(&self, thread: ChannelId, anchor: NoAnchor) {
        let mut inner = self.lock();
        if inner.anchors.len() >= MAX_ENTRIES {
            inner.anchors.clear();
        }
        inner.anchors.insert(thread, anchor);
    }

    /// A poisoned lock is harmless: nothing in here can be left half-written.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse(refused: &mut HashMap<ChannelId, Instant>, channel: ChannelId, now: Instant) {
    if refused.len() >= MAX_ENTRIES {
        refused.clear();
    }
    refused.insert(channel, now + FORBIDDEN_FOR);
}

fn refuses(refused: &HashMap<ChannelId, Instant>, channel: ChannelId, now: Instant) -> bool {
    refused.get(&channel).is_some_and(|until| now < *until)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ChannelId = ChannelId::new(1);
    const OTHER: ChannelId = ChannelId::new(2);

    #[test]
    fn a_refusal_holds_for_a_minute() {
        let (recall, now) = (Recall::default(), Instant::now());
        recall.forbid(ONE, now);
        recall.hide(OTHER, now);
        let almost = now + Duration::from_millis(59_999);
        let after = now + Duration::from_mins(1);
        assert!(recall.is_forbidden(ONE, almost) && !recall.is_forbidden(ONE, after));
        assert!(recall.is_hidden(OTHER, almost) && !recall.is_hidden(OTHER, after));
        assert!(recall.is_forbidden(OTHER, almost), "its messages as well");
        assert!(!recall.is_hidden(ONE, almost), "it was shown");
    }

    #[test]
    fn permissions_that_change_end_refusals_where_they_may_be_of() {
        let (recall, now) = (Recall::default(), Instant::now());
        recall.hide(ONE, now);
        recall.hide(OTHER, now);
        recall.permissions_changed(|channel| channel == ONE);
        assert!(!recall.is_hidden(ONE, now) && !recall.is_forbidden(ONE, now));
        assert!(recall.is_hidden(OTHER, now) && recall.is_forbidden(OTHER, now));
    }

    #[test]
    fn one_complaint_a_day() {
        let (recall, now) = (Recall::default(), Instant::now());
        let hour = Duration::from_hours(1);
        assert!(recall.first_today(ONE, now));
        assert!(recall.first_today(OTHER, now), "each channel has its own");
        assert!(!recall.first_today(ONE, now + 23 * hour));
        assert!(recall.first_today(ONE, now + 24 * hour));
        assert!(!recall.first_today(ONE, now + 25 * hour));
    }

    #[test]
    fn starters_are_remembered_until_the_thread_is_gone() {
        let recall = Recall::default();
        recall.starter_deleted(ONE);
        let first = NoAnchor::Unanchored(MessageId::new(7));
        recall.learn_anchor(OTHER, first);
        assert_eq!(recall.no_anchor(ONE), Some(NoAnchor::Deleted));
        assert_eq!(recall.no_anchor(OTHER), Some(first));
        recall.forget(ONE);
        assert_eq!(recall.no_anchor(ONE), None);
    }

    /// Memory is bounded: dropping an entry costs at most one fetch.
    #[test]
    fn a_full_memory_begins_anew() {
        let (recall, now) = (Recall::default(), Instant::now());
        let last = ChannelId::new(MAX_ENTRIES as u64 + 1);
        for channel in (1..=last.get()).map(ChannelId::new) {
            recall.hide(channel, now);
            recall.starter_deleted(channel);
            recall.first_today(channel, now);
        }
        assert!(recall.is_hidden(last, now) && !recall.is_hidden(ONE, now));
        assert!(recall.no_anchor(last).is_some() && recall.no_anchor(ONE).is_none());
        assert!(!recall.first_today(last, now) && recall.first_today(ONE, now));
    }
}
