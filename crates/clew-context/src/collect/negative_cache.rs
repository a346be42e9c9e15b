//! What need not be asked for again: channels that refuse us, starters that do not
//! exist, and what came of looking up a channel that somebody named.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Channel, ChannelId, MessageId};

/// How long a channel that refused us is not asked again, unless its permissions
/// change: Discord counts refused requests towards a ban.
const FORBIDDEN_FOR: Duration = Duration::from_mins(1);
/// How long a look-up holds.
const LOOKED_UP_FOR: Duration = Duration::from_mins(1);
/// Minimum time between two warnings about the same channel.
const A_DAY: Duration = Duration::from_hours(24);
/// Most entries of each kind; when full, all are dropped, at the cost of a fetch each.
const MAX_ENTRIES: usize = 4_096;

/// Why a thread has no starter in its parent channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoStarter {
    /// It was deleted.
    Deleted,
    /// The thread was not started from a message; this is its first one.
    FirstMessage(MessageId),
}

/// What came of looking up a channel.
#[derive(Debug, Clone)]
pub(super) enum LookUp {
    /// It is this one.
    Found(Box<Channel>),
    /// It is not there, or not for us.
    Nothing,
}

/// What was not there or not allowed; one for all turns of a process.
#[derive(Debug, Default)]
pub struct NegativeCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Channels that refuse us their messages.
    forbidden: HashMap<ChannelId, Instant>,
    /// Channels that we may not even view.
    hidden: HashMap<ChannelId, Instant>,
    no_starters: HashMap<ChannelId, NoStarter>,
    /// Channels that were looked up.
    looked_up: HashMap<ChannelId, (Instant, LookUp)>,
    warned: HashMap<ChannelId, Instant>,
}

impl NegativeCache {
    /// Call when permissions changed: channels for which `may_be_of` returns true
    /// may be asked again. It should return true for channels of an unknown server.
    pub fn permissions_changed(&self, may_be_of: impl Fn(ChannelId) -> bool) {
        let mut inner = self.lock();
        inner.forbidden.retain(|channel, _| !may_be_of(*channel));
        inner.hidden.retain(|channel, _| !may_be_of(*channel));
        inner.looked_up.retain(|channel, _| !may_be_of(*channel));
    }

    /// Whether this is the first warning about a channel within a day.
    pub fn first_warning_today(&self, channel: ChannelId, now: Instant) -> bool {
        let mut inner = self.lock();
        let last = inner.warned.get(&channel);
        let first = last.is_none_or(|last| now.duration_since(*last) >= A_DAY);
        if first {
            put(&mut inner.warned, channel, now);
        }
        first
    }

    /// Forgets everything about a thread or channel that was deleted.
    pub fn forget(&self, channel: ChannelId) {
        let mut inner = self.lock();
        inner.forbidden.remove(&channel);
        inner.hidden.remove(&channel);
        inner.no_starters.remove(&channel);
        inner.looked_up.remove(&channel);
    }

    /// Notes that the message a thread was started from was deleted.
    pub fn starter_deleted(&self, thread: ChannelId) {
        self.remember_no_starter(thread, NoStarter::Deleted);
    }

    pub(super) fn forbid(&self, channel: ChannelId, now: Instant) {
        put(&mut self.lock().forbidden, channel, now + FORBIDDEN_FOR);
    }

    pub(super) fn is_forbidden(&self, channel: ChannelId, now: Instant) -> bool {
        refuses(&self.lock().forbidden, channel, now)
    }

    pub(super) fn hide(&self, channel: ChannelId, now: Instant) {
        put(&mut self.lock().hidden, channel, now + FORBIDDEN_FOR);
        self.forbid(channel, now);
    }

    pub(super) fn is_hidden(&self, channel: ChannelId, now: Instant) -> bool {
        refuses(&self.lock().hidden, channel, now)
    }

    /// What came of a look-up within the last minute.
    pub(super) fn looked_up(&self, channel: ChannelId, now: Instant) -> Option<LookUp> {
        let inner = self.lock();
        let (until, found) = inner.looked_up.get(&channel)?;
        (now < *until).then(|| found.clone())
    }

    pub(super) fn remember_look_up(&self, channel: ChannelId, found: LookUp, now: Instant) {
        let until = now + LOOKED_UP_FOR;
        put(&mut self.lock().looked_up, channel, (until, found));
    }

    pub(super) fn no_starter(&self, thread: ChannelId) -> Option<NoStarter> {
        self.lock().no_starters.get(&thread).copied()
    }

    pub(super) fn remember_no_starter(&self, thread: ChannelId, reason: NoStarter) {
        put(&mut self.lock().no_starters, thread, reason);
    }

    /// A poisoned lock is harmless: nothing in here can be left half-written.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Remembers one more; where there is no room, instead of all others.
fn put<T>(entries: &mut HashMap<ChannelId, T>, channel: ChannelId, entry: T) {
    if entries.len() >= MAX_ENTRIES {
        entries.clear();
    }
    entries.insert(channel, entry);
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
        let (cache, now) = (NegativeCache::default(), Instant::now());
        cache.forbid(ONE, now);
        cache.hide(OTHER, now);
        let almost = now + Duration::from_millis(59_999);
        let after = now + Duration::from_mins(1);
        assert!(cache.is_forbidden(ONE, almost) && !cache.is_forbidden(ONE, after));
        assert!(cache.is_hidden(OTHER, almost) && !cache.is_hidden(OTHER, after));
        assert!(cache.is_forbidden(OTHER, almost), "its messages as well");
        assert!(!cache.is_hidden(ONE, almost), "it was shown");
    }

    #[test]
    fn permissions_that_change_end_refusals_where_they_may_be_of() {
        let (cache, now) = (NegativeCache::default(), Instant::now());
        cache.hide(ONE, now);
        cache.hide(OTHER, now);
        cache.permissions_changed(|channel| channel == ONE);
        assert!(!cache.is_hidden(ONE, now) && !cache.is_forbidden(ONE, now));
        assert!(cache.is_hidden(OTHER, now) && cache.is_forbidden(OTHER, now));
    }

    #[test]
    fn one_warning_a_day() {
        let (cache, now) = (NegativeCache::default(), Instant::now());
        let hour = Duration::from_hours(1);
        assert!(cache.first_warning_today(ONE, now));
        assert!(
            cache.first_warning_today(OTHER, now),
            "each channel has its own"
        );
        assert!(!cache.first_warning_today(ONE, now + 23 * hour));
        assert!(cache.first_warning_today(ONE, now + 24 * hour));
        assert!(!cache.first_warning_today(ONE, now + 25 * hour));
    }

    #[test]
    fn starters_are_remembered_until_the_thread_is_gone() {
        let cache = NegativeCache::default();
        cache.starter_deleted(ONE);
        let first = NoStarter::FirstMessage(MessageId::new(7));
        cache.remember_no_starter(OTHER, first);
        assert_eq!(cache.no_starter(ONE), Some(NoStarter::Deleted));
        assert_eq!(cache.no_starter(OTHER), Some(first));
        cache.forget(ONE);
        assert_eq!(cache.no_starter(ONE), None);
    }

    /// Memory is bounded: dropping an entry costs at most one fetch.
    #[test]
    fn a_full_memory_begins_anew() {
        let (cache, now) = (NegativeCache::default(), Instant::now());
        let last = ChannelId::new(MAX_ENTRIES as u64 + 1);
        for channel in (1..=last.get()).map(ChannelId::new) {
            cache.hide(channel, now);
            cache.starter_deleted(channel);
            cache.first_warning_today(channel, now);
        }
        assert!(cache.is_hidden(last, now) && !cache.is_hidden(ONE, now));
        assert!(cache.no_starter(last).is_some() && cache.no_starter(ONE).is_none());
        assert!(!cache.first_warning_today(last, now) && cache.first_warning_today(ONE, now));
    }
}
