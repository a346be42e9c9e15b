//! What waits to be mended, and what was lately, for turns that are being
//! stored meanwhile.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::Mend;
use crate::memory::Place;
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
use clew_store::Purge;
use clew_store::model::StoredMessage;

/// Deletions remembered for a turn that is being stored while they come.
const RECENT_DELETIONS: usize = 4_096;
/// Members of whom is remembered when they were looked up.
const MEMBERS_REMEMBERED: usize = 10_000;
/// A member is looked up no more often.
const A_DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Channels, members and users that went, remembered for turns that were running.
const RECENTLY_GONE: usize = 1_024;
/// Mends that wait for a store that is gone; the oldest go first.
const MOST_WAITING: usize = 100_000;

/// Messages that a page lacked. Beyond, those that could not be asked for give
/// way, then newer ones are not noted and stay in prompts.
const MOST_MISSING: usize = 4_096;

/// What waits to be mended: ids and edited texts, at most [`MOST_WAITING`]
/// while a store is gone.
#[derive(Debug, Default)]
pub(in crate::memory) struct Queue {
    waiting: Mutex<Vec<Mend>>,
    came: Notify,
    /// Held while mends are done: who waits for all to be done waits for those
    /// that somebody else has begun, too.
    pub(super) doing: tokio::sync::Mutex<()>,
    deleted: Mutex<VecDeque<MessageId>>,
    /// Members to be looked up, and when others were.
    members: Mutex<Members>,
    member_due: Notify,
    /// Messages of which something is kept and that a page lacked; true while
    /// they have still to be asked for.
    missing: Mutex<BTreeMap<(ChannelId, MessageId), bool>>,
    missing_due: Notify,
    /// Channels, members and users, and when they went.
    gone: Mutex<VecDeque<(UnixMillis, Purge)>>,
}

#[derive(Debug, Default)]
struct Members {
    due: Vec<(GuildId, UserId)>,
    looked_up: HashMap<(GuildId, UserId), UnixMillis>,
}

impl Queue {
    pub(super) fn push(&self, mend: Mend) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(mend);
        self.came.notify_one();
    }

    /// Puts back what could not be done, before what came meanwhile; nobody is
    /// woken for it.
    pub(super) fn put_back(&self, mends: impl IntoIterator<Item = Mend>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.splice(0..0, mends);
        let too_many = waiting.len().saturating_sub(MOST_WAITING);
        if too_many > 0 {
            tracing::error!(
                mends = too_many,
                "a store is gone for too long: deletions and edits \
                are lost, and found again only by pages that are fetched"
            );
            waiting.drain(..too_many);
        }
    }

    pub(super) fn take(&self) -> Vec<Mend> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting)
    }

    /// Waits until there is something to do. Holds nothing meanwhile, and may
    /// be dropped at any time.
    pub(in crate::memory) async fn came(&self) {
        self.came.notified().await;
    }

    /// A page lacked these: nothing of them goes into a prompt until Discord
    /// has been asked for each.
    pub(super) fn note_missing(&self, channel: ChannelId, ids: &BTreeSet<MessageId>) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if missing.len() + ids.len() > MOST_MISSING {
            missing.retain(|_, due| *due);
        }
        for id in ids {
            let is_full = missing.len() >= MOST_MISSING;
            match missing.entry((channel, *id)) {
                Entry::Vacant(_) if is_full => {
                    tracing::warn!(%channel, "pages lack more stored messages than can be noted");
                    break;
                }
                entry => *entry.or_default() = true,
            }
        }
        self.missing_due.notify_one();
    }

    /// These are there after all, or they are gone and purged.
    pub(in crate::memory) fn settle(
        &self,
        channel: ChannelId,
        is_settled: impl Fn(MessageId) -> bool,
    ) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.retain(|(of, id), _| *of != channel || !is_settled(*id));
    }

    /// Waits until messages have to be asked for, and names them, those of a
    /// channel together.
    pub(in crate::memory) async fn due_missing(&self) -> Vec<(ChannelId, MessageId)> {
        self.missing_due.notified().await;
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let due = missing.iter_mut().filter(|(_, due)| **due);
        due.map(|(key, due)| {
            *due = false;
            *key
        })
        .collect()
    }

    /// Those that could not be asked for are asked for once more.
    pub(in crate::memory) fn ask_again(&self, which: impl Fn(ChannelId, MessageId) -> bool) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        for ((channel, id), due) in missing.iter_mut() {
            *due |= which(*channel, *id);
        }
        self.missing_due.notify_one();
    }

    /// Whether a page lacked one of a channel's messages, and nothing is known
    /// of it yet.
    pub(in crate::memory) fn is_missing(&self, channel: ChannelId, id: MessageId) -> bool {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.contains_key(&(channel, id))
    }

    pub(super) fn note_deleted(&self, ids: &[MessageId]) {
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.extend(ids);
        while deleted.len() > RECENT_DELETIONS {
            deleted.pop_front();
        }
    }

    pub(in crate::memory) fn note_gone(&self, purge: Purge, now: UnixMillis) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.push_back((now, purge));
        while gone.len() > RECENTLY_GONE {
            gone.pop_front();
        }
    }

    /// What went since then of which one of these rows would be a part.
    pub(super) fn gone_of(&self, rows: &[StoredMessage], since: UnixMillis) -> Vec<Purge> {
        self.gone_since(since, |purge| rows.iter().any(|row| purge.names(row)))
    }

    /// Whether a conversation, or its asker, went since then.
    pub(in crate::memory) fn is_gone(&self, place: &Place, since: UnixMillis) -> bool {
        let reaches = |purge: &Purge| match purge {
            Purge::Channel(channel) => *channel == place.channel,
            Purge::Member { guild, user } => Some(*guild) == place.guild && *user == place.asker,
            Purge::User(user) => *user == place.asker,
            Purge::Messages { .. } | Purge::Guild(_) | Purge::Before(_) => false,
        };
        !self.gone_since(since, reaches).is_empty()
    }

    /// Who erases and asks in one moment asks afterwards.
    fn gone_since(&self, since: UnixMillis, reaches: impl Fn(&Purge) -> bool) -> Vec<Purge> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = |at: UnixMillis, purge: &Purge| {
            at > since || (at == since && !matches!(purge, Purge::User(_)))
        };
        let late = gone.iter().filter(|(at, purge)| is_late(*at, purge));
        let late = late.map(|(_, purge)| purge);
        late.filter(|purge| reaches(purge)).cloned().collect()
    }

    /// Something that a member told in a server is used outside of it: once a
    /// day it is looked up whether they are one still.
    pub(in crate::memory) fn used(&self, member: (GuildId, UserId), now: UnixMillis) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if members.looked_up.len() >= MEMBERS_REMEMBERED {
            members.looked_up.clear();
        }
        let last = members.looked_up.insert(member, now);
        if last.is_none_or(|last| now.since(last) >= A_DAY_MS) {
            members.due.push(member);
            self.member_due.notify_one();
        } else if let Some(last) = last {
            members.looked_up.insert(member, last);
        }
    }

    /// Waits until members have to be looked up, and names them.
    pub(in crate::memory) async fn due_members(&self) -> Vec<(GuildId, UserId)> {
        self.member_due.notified().await;
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut members.due)
    }

    /// Which of these were deleted lately.
    pub(in crate::memory) fn deleted_of(
        &self,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Vec<MessageId> {
        let deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        ids.into_iter().filter(|id| deleted.contains(id)).collect()
    }
}
