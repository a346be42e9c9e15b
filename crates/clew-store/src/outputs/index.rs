//! The pointers in memory, and what was purged lately.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bounds::{OutputLimits, next_to_go};
use super::{ContextPointer, ERASURES_KEPT, PURGES_KEPT, SaveError};
use crate::Purge;
use crate::model::Scope;
use clew_context::model::UnixMillis;

/// Most purges remembered. Beyond that, results from before the oldest one are
/// refused, since they may hold what it removed.
const MOST_PURGES: usize = 1_000;

/// What was removed of late, for results that are still on their way.
#[derive(Debug)]
struct Lately<T> {
    /// How long it is remembered.
    kept: Duration,
    removed: VecDeque<(UnixMillis, T)>,
    /// It is not known what was removed up to then.
    unknown_until: UnixMillis,
}

impl<T> Lately<T> {
    const fn new(kept: Duration) -> Self {
        Self {
            kept,
            removed: VecDeque::new(),
            unknown_until: UnixMillis(i64::MIN),
        }
    }

    fn note(&mut self, what: T, at: UnixMillis) {
        self.forget(at);
        if self.removed.len() == MOST_PURGES {
            self.forget_first();
        }
        self.removed.push_back((at, what));
    }

    fn forget(&mut self, now: UnixMillis) {
        let oldest = now.before(self.kept);
        while self.removed.front().is_some_and(|(at, _)| *at < oldest) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((at, _)) = self.removed.pop_front() {
            self.unknown_until = at.max(self.unknown_until);
        }
    }

    /// Whether such a thing was removed since then, as far as is known.
    fn has(&self, since: UnixMillis, is_such: impl Fn(&T) -> bool) -> bool {
        let mut later = self.removed.iter().filter(|(at, _)| *at >= since);
        since <= self.unknown_until || later.any(|(_, what)| is_such(what))
    }
}

#[derive(Debug)]
pub(super) struct Index {
    limits: OutputLimits,
    /// Sorted by age.
    pointers: Vec<ContextPointer>,
    /// When each conversation was last used.
    last_used: HashMap<Scope, UnixMillis>,
    /// Outputs saved so far, also of former processes.
    serial: u64,
    /// Whether files of a former process are still to be looked at.
    must_resume: bool,
    purges: Lately<Purge>,
    /// Those of them that name an owner or a place.
    erasures: Lately<Purge>,
    /// Conversations that were ended.
    ended: Lately<Scope>,
    /// Files that could not be removed.
    undeleted: Vec<PathBuf>,
}

impl Index {
    pub(super) fn new(limits: OutputLimits, must_resume: bool) -> Self {
        Self {
            limits,
            pointers: Vec::new(),
            last_used: HashMap::new(),
            serial: 0,
            must_resume,
            purges: Lately::new(PURGES_KEPT),
            erasures: Lately::new(ERASURES_KEPT),
            ended: Lately::new(ERASURES_KEPT),
            undeleted: Vec::new(),
        }
    }

    pub(super) const fn must_resume(&self) -> bool {
        self.must_resume
    }

    /// Takes over the pointers of a former process. Returns those for which
    /// there is no room.
    pub(super) fn resumed(
        &mut self,
        found: Vec<ContextPointer>,
        now: UnixMillis,
    ) -> Vec<ContextPointer> {
        self.must_resume = false;
        for pointer in found {
            self.serial = self.serial.max(pointer.serial + 1);
            self.insert(pointer, now);
        }
        self.pointers.sort_by_key(ContextPointer::age_key);
        self.over_limits(0, 0)
    }

    pub(super) const fn next_serial(&mut self) -> u64 {
        let serial = self.serial;
        self.serial += 1;
        serial
    }

    pub(super) fn insert(&mut self, pointer: ContextPointer, now: UnixMillis) {
        self.used(pointer.scope, now);
        self.pointers.push(pointer);
    }

    /// Notes that a conversation that has outputs was used.
    pub(super) fn used(&mut self, scope: Scope, now: UnixMillis) {
        let last = self.last_used.entry(scope).or_insert(now);
        *last = now.max(*last);
    }

    pub(super) fn len(&self) -> usize {
        self.pointers.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ContextPointer> {
        self.pointers.iter()
    }

    pub(super) fn at(&self, path: &Path) -> Option<&ContextPointer> {
        self.pointers.iter().find(|one| one.filepath == path)
    }

    pub(super) fn clear(&mut self) {
        self.pointers.clear();
        self.last_used.clear();
        self.must_resume = false;
    }

    /// Takes out what matches.
    pub(super) fn take(
        &mut self,
        is_taken: impl Fn(&ContextPointer) -> bool,
    ) -> Vec<ContextPointer> {
        let all = std::mem::take(&mut self.pointers);
        let (taken, kept) = all.into_iter().partition(is_taken);
        self.pointers = kept;
        let held: std::collections::HashSet<Scope> =
            self.pointers.iter().map(|one| one.scope).collect();
        self.last_used.retain(|scope, _| held.contains(scope));
        taken
    }

    /// Takes out what has to make room for another output.
    pub(super) fn crowded_out(&mut self, by: &ContextPointer) -> Vec<ContextPointer> {
        self.over_limits(1, by.file_bytes)
    }

    fn over_limits(&mut self, more: usize, more_bytes: u64) -> Vec<ContextPointer> {
        let mut gone = Vec::new();
        let mut bytes: u64 =
            more_bytes + self.pointers.iter().map(|one| one.file_bytes).sum::<u64>();
        loop {
            let next = if bytes > self.limits.bytes {
                next_to_go(&self.pointers, |one| one.file_bytes)
            } else if self.pointers.len() + more > self.limits.pointers {
                next_to_go(&self.pointers, |_| 1)
            } else {
                None
            };
            let Some(next) = next else {
                return gone;
            };
            let pointer = self.pointers.remove(next);
            bytes -= pointer.file_bytes;
            gone.push(pointer);
        }
    }

    /// Takes out what is too old or belongs to an idle conversation.
    pub(super) fn expired(&mut self, now: UnixMillis) -> Vec<ContextPointer> {
        let oldest = now.before(self.limits.age);
        let idle_since = now.before(self.limits.idle);
        let last_used = self.last_used.clone();
        self.purges.forget(now);
        self.erasures.forget(now);
        self.ended.forget(now);
        self.take(|pointer| {
            let used = last_used.get(&pointer.scope).copied();
            pointer.time < oldest || used.is_none_or(|used| used < idle_since)
        })
    }

    /// Remembers a purge for results that are still on their way.
    pub(super) fn note_purge(&mut self, purge: &Purge, at: UnixMillis) {
        if let Purge::Channel(_) | Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) = purge {
            self.erasures.note(purge.clone(), at);
        }
        self.purges.note(purge.clone(), at);
    }

    /// The same of the end of a conversation.
    pub(super) fn note_end(&mut self, scope: Scope, at: UnixMillis) {
        self.ended.note(scope, at);
    }

    /// Refuses a result if what it was made from was removed since its tool began, or its owner,
    /// place or conversation was erased since its question was asked.
    pub(super) fn check(&self, pointer: &ContextPointer) -> Result<(), SaveError> {
        let ContextPointer { asked, began, .. } = *pointer;
        if self.purges.has(began, |purge| pointer.lost_source(purge)) {
            return Err(SaveError::SourceRemoved);
        }
        if self.erasures.has(asked, |purge| pointer.is_named_by(purge))
            || self.ended.has(asked, |scope| pointer.scope == *scope)
        {
            return Err(SaveError::Erased);
        }
        Ok(())
    }

    pub(super) fn take_undeleted(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.undeleted)
    }

    pub(super) fn put_undeleted(&mut self, paths: Vec<PathBuf>) {
        self.undeleted.extend(paths);
    }
}
