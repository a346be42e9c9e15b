//! The queue of changes, and what they say to turns under way.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::noted::{Noted, UnderWay};
use super::{DiscordChange, Edit};
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// The most members for whom it is remembered when they were last looked up.
const MEMBERS_REMEMBERED: usize = 10_000;
/// The time between two lookups of a member.
const A_DAY_MS: i64 = 24 * 60 * 60 * 1_000;
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
    /// What they say to turns under way.
    pub(in crate::memory) noted: Noted,
    /// The members to look up, and when others were.
    members: Mutex<Members>,
    member_due: Notify,
}

#[derive(Debug, Default)]
struct WaitingChanges {
    changes: Vec<DiscordChange>,
    bytes: usize,
    /// What is noted of them stays noted until all are carried out.
    under_way: Option<UnderWay>,
}

/// Who a change counts against when room is shared out: a server, a direct
/// conversation, or somebody of whom nothing is kept any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Party {
    Guild(GuildId),
    Channel(ChannelId),
    User(UserId),
}

impl Party {
    pub(super) fn of(guild: Option<GuildId>, channel: ChannelId) -> Self {
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
        let mut waiting = self.waiting();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.changes)
    }

    /// A change that waits is noted until all are carried out.
    pub(super) fn waits(&self, under_way: UnderWay) {
        self.waiting().under_way.get_or_insert(under_way);
    }

    /// All that was taken is carried out.
    pub(super) fn carried_out(&self) {
        let mut waiting = self.waiting();
        if waiting.changes.is_empty() {
            waiting.under_way = None;
        }
    }

    /// Waits until something arrives. Safe to cancel: it holds nothing while
    /// waiting.
    pub(in crate::memory) async fn came(&self) {
        self.came.notified().await;
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
}

#[cfg(test)]
mod tests;
