//! The queue of changes, and recent deletions and purges, which turns being stored
//! meanwhile have to respect.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{DiscordChange, Edit};
use crate::memory::Place;
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UnixMillis, UserId};
use clew_store::Purge;
use clew_store::model::{StoredMessage, StoredReceipt};

/// Deletions, and edits, remembered for turns that are being stored at that time.
const RECENT_MESSAGES: usize = 4_096;
/// The most members for whom it is remembered when they were last looked up.
const MEMBERS_REMEMBERED: usize = 10_000;
/// The time between two lookups of a member.
const A_DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Channels, members and users that are gone, remembered for turns under way.
const RECENTLY_GONE: usize = 1_024;
/// The most that may wait for a store that is gone or slow, in bytes, over all servers.
const MOST_BYTES: usize = 4 << 20;

/// The changes that wait: at most [`MOST_BYTES`]. Beyond, those who take most lose
/// what is known about single messages, until half of the room is free.
#[derive(Debug, Default)]
pub(in crate::memory) struct ChangeQueue {
    waiting: Mutex<WaitingChanges>,
    came: Notify,
    /// Held while changes are carried out, so that waiting for all of them includes
    /// those that another task has begun.
    pub(super) doing: tokio::sync::Mutex<()>,
    deleted: Mutex<Recent>,
    edited: Mutex<Recent>,
    /// The members to look up, and when others were.
    members: Mutex<Members>,
    member_due: Notify,
    /// Channels, members and users that are gone, and since when.
    gone: Mutex<VecDeque<(UnixMillis, Purge)>>,
}

#[derive(Debug, Default)]
struct WaitingChanges {
    changes: Vec<DiscordChange>,
    bytes: usize,
}

/// Who a change counts against when room is shared out: a server or a direct
/// conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Party {
    Guild(GuildId),
    Channel(ChannelId),
}

impl Party {
    fn of(guild: Option<GuildId>, channel: ChannelId) -> Self {
        guild.map_or(Self::Channel(channel), Self::Guild)
    }
}

impl DiscordChange {
    /// The memory that it takes, roughly.
    fn bytes(&self) -> usize {
        let texts = |edits: &[Edit]| -> usize {
            let one = |edit: &Edit| size_of::<Edit>() + edit.bytes();
            edits.iter().map(one).sum()
        };
        // There is at most one per channel.
        if let Self::Recheck { .. } = self {
            return 0;
        }
        size_of::<Self>()
            + match self {
                Self::Deleted { ids, .. } | Self::Unknown { ids, .. } => size_of_val(&**ids),
                Self::Edited { edit, .. } => edit.bytes(),
                Self::Connected { guilds, .. } => size_of_val(&**guilds),
                Self::Fetched(page) => {
                    // A set takes about twice the size of its elements.
                    2 * page.present.len() * size_of::<MessageId>() + texts(&page.edited)
                }
                Self::ChannelDeleted(_)
                | Self::GuildLeft(_)
                | Self::GuildJoined(_)
                | Self::MemberLeft { .. }
                | Self::Recheck { .. } => 0,
            }
    }

    /// Whose it is and in which channel, if it may be dropped because something
    /// else makes up for it: asking for what is kept of that channel, or the roll
    /// call of members.
    fn droppable(&self) -> Option<(Party, Option<ChannelId>)> {
        match self {
            Self::Deleted { guild, channel, .. } | Self::Edited { guild, channel, .. } => {
                Some((Party::of(*guild, *channel), Some(*channel)))
            }
            Self::Fetched(page) => Some((Party::of(page.guild, page.channel), Some(page.channel))),
            Self::Unknown { channel, .. } => Some((Party::Channel(*channel), Some(*channel))),
            Self::MemberLeft { guild, .. } => Some((Party::Guild(*guild), None)),
            Self::ChannelDeleted(_)
            | Self::GuildLeft(_)
            | Self::GuildJoined(_)
            | Self::Connected { .. }
            | Self::Recheck { .. } => None,
        }
    }
}

/// What was dropped for lack of room.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Overflow {
    /// Changes that were dropped.
    pub(super) changes: usize,
    /// The channels of the messages concerned.
    pub(super) channels: BTreeSet<ChannelId>,
}

impl WaitingChanges {
    /// Drops changes of single messages, starting with those who have most, until
    /// half of the room is free.
    fn make_room(&mut self) -> Overflow {
        let mut overflow = Overflow::default();
        if self.bytes <= MOST_BYTES {
            return overflow;
        }
        let mut parties: HashMap<Party, usize> = HashMap::new();
        for change in &self.changes {
            if let Some((party, _)) = change.droppable() {
                *parties.entry(party).or_default() += change.bytes();
            }
        }
        let mut parties: Vec<(usize, Party)> = parties
            .into_iter()
            .map(|(party, bytes)| (bytes, party))
            .collect();
        parties.sort_unstable();
        let mut too_much = self.bytes.saturating_sub(MOST_BYTES / 2);
        let mut dropped = HashSet::new();
        while let Some((bytes, party)) = parties.pop().filter(|_| too_much > 0) {
            too_much = too_much.saturating_sub(bytes);
            dropped.insert(party);
        }
        self.changes.retain(|change| match change.droppable() {
            Some((party, place)) if dropped.contains(&party) => {
                overflow.changes += 1;
                overflow.channels.extend(place);
                false
            }
            _ => true,
        });
        self.bytes = self.changes.iter().map(DiscordChange::bytes).sum();
        overflow
    }
}

/// The latest deletions or edits, in order of arrival.
#[derive(Debug, Default)]
struct Recent {
    order: VecDeque<MessageId>,
    /// With the time of the last edit.
    times: HashMap<MessageId, UnixMillis>,
}

impl Recent {
    fn note(&mut self, id: MessageId, at: UnixMillis) {
        let last = self.times.entry(id).or_insert_with(|| {
            self.order.push_back(id);
            at
        });
        *last = at.max(*last);
        while self.order.len() > RECENT_MESSAGES {
            if let Some(oldest) = self.order.pop_front() {
                self.times.remove(&oldest);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Members {
    due: Vec<(GuildId, UserId)>,
    looked_up: HashMap<(GuildId, UserId), UnixMillis>,
}

impl ChangeQueue {
    fn waiting(&self) -> MutexGuard<'_, WaitingChanges> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, change: DiscordChange) -> Overflow {
        let mut waiting = self.waiting();
        self.came.notify_one();
        if matches!(change, DiscordChange::Recheck { .. }) && waiting.changes.contains(&change) {
            return Overflow::default();
        }
        waiting.bytes += change.bytes();
        waiting.changes.push(change);
        waiting.make_room()
    }

    /// Puts changes that could not be carried out back in front of those that have
    /// arrived since; wakes nobody.
    pub(super) fn put_back(&self, changes: impl IntoIterator<Item = DiscordChange>) -> Overflow {
        let mut waiting = self.waiting();
        waiting.changes.splice(0..0, changes);
        waiting.bytes = waiting.changes.iter().map(DiscordChange::bytes).sum();
        waiting.make_room()
    }

    pub(super) fn take(&self) -> Vec<DiscordChange> {
        std::mem::take(&mut *self.waiting()).changes
    }

    /// Waits until something arrives. Safe to cancel: it holds nothing while
    /// waiting.
    pub(in crate::memory) async fn came(&self) {
        self.came.notified().await;
    }

    pub(super) fn note_deleted(&self, ids: &[MessageId]) {
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            deleted.note(*id, UnixMillis(i64::MAX));
        }
    }

    pub(super) fn note_edited(&self, edits: &[Edit]) {
        let mut edited = self.edited.lock().unwrap_or_else(PoisonError::into_inner);
        for edit in edits {
            if let Some(at) = edit.at {
                edited.note(edit.message, at);
            }
        }
    }

    /// The recent edits of what these rows were made from, as purges.
    pub(in crate::memory) fn edits_of(&self, rows: &[StoredMessage]) -> Vec<Purge> {
        let edited = self.edited.lock().unwrap_or_else(PoisonError::into_inner);
        let edit_of = |source: &ContentSource| {
            let (channel, message) = (source.channel, source.message?);
            let at = *edited.times.get(&message)?;
            Some((
                message,
                Purge::Edited {
                    channel,
                    message,
                    at,
                },
            ))
        };
        let sources = rows.iter().flat_map(|row| &row.sources);
        let purges: BTreeMap<MessageId, Purge> = sources.filter_map(edit_of).collect();
        purges.into_values().collect()
    }

    pub(in crate::memory) fn note_gone(&self, purge: Purge, now: UnixMillis) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.push_back((now, purge));
        while gone.len() > RECENTLY_GONE {
            gone.pop_front();
        }
    }

    /// What has gone since then that would have covered any of these rows, or this
    /// receipt.
    pub(super) fn gone_of(
        &self,
        rows: &[StoredMessage],
        receipt: Option<&StoredReceipt>,
        since: UnixMillis,
    ) -> Vec<Purge> {
        self.gone_since(since, |purge| {
            let names_row = rows.iter().any(|row| purge.names(row));
            names_row || receipt.is_some_and(|receipt| purge.takes_receipt(receipt))
        })
    }

    /// Whether a conversation, or its asker, has gone since then.
    pub(in crate::memory) fn is_gone(&self, place: &Place, since: UnixMillis) -> bool {
        let reaches = |purge: &Purge| match purge {
            Purge::Channel(channel) => *channel == place.channel,
            Purge::Member { guild, user } => Some(*guild) == place.guild && *user == place.asker,
            Purge::User(user) => *user == place.asker,
            Purge::Messages { .. } | Purge::Edited { .. } | Purge::Guild(_) | Purge::Before(_) => {
                false
            }
        };
        !self.gone_since(since, reaches).is_empty()
    }

    /// A question at the very time of its asker's erasure counts as asked after it.
    fn gone_since(&self, since: UnixMillis, reaches: impl Fn(&Purge) -> bool) -> Vec<Purge> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = |at: UnixMillis, purge: &Purge| {
            at > since || (at == since && !matches!(purge, Purge::User(_)))
        };
        let late = gone.iter().filter(|(at, purge)| is_late(*at, purge));
        let late = late.map(|(_, purge)| purge);
        late.filter(|purge| reaches(purge)).cloned().collect()
    }

    /// Something that a member said in a server is used elsewhere: once a day it
    /// is checked whether they are still a member.
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

    /// Waits until there are members to look up, and returns them.
    pub(in crate::memory) async fn due_members(&self) -> Vec<(GuildId, UserId)> {
        self.member_due.notified().await;
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut members.due)
    }

    /// Which of these were deleted recently.
    pub(in crate::memory) fn deleted_of(
        &self,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Vec<MessageId> {
        let deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        ids.into_iter()
            .filter(|id| deleted.times.contains_key(id))
            .collect()
    }
}

#[cfg(test)]
mod tests;
