//! The queue of changes, and what they say to turns under way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::noted::{Noted, UnderWay};
use super::party::{Party, Shared};
use super::{DiscordChange, Edit};
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// The most members for whom it is remembered when they were last looked up.
const MEMBERS_REMEMBERED: usize = 10_000;
/// The time between two lookups of a member.
const A_DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// The most that may wait for a store that is gone or slow, in bytes, over all servers.
const MOST_BYTES: usize = 4 << 20;
/// The most deleted channels that may wait beside them, and the most to be rechecked.
const MOST_CHANNELS: usize = 65_536;
const MOST_RECHECKS: usize = 4_096;

/// The changes that wait: at most [`MOST_BYTES`]. Beyond, those who take most lose
/// what is known about single messages, until half of the room is free. What nothing makes
/// up for takes nobody's room: there is one such change a server, shard or channel, and of
/// deleted channels there are at most [`MOST_CHANNELS`].
#[derive(Debug, Default)]
pub(in crate::memory) struct ChangeQueue {
    waiting: Mutex<WaitingChanges>,
    /// Notified when something arrives.
    pub(in crate::memory) came: Notify,
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
    /// Those that are being carried out.
    in_hand: Arc<[DiscordChange]>,
    /// What those that may be dropped take.
    bytes: usize,
    deleted: Shared<ChannelId, (), MOST_CHANNELS>,
    /// The channels to recheck, from some message on.
    rechecks: Shared<ChannelId, MessageId, MOST_RECHECKS>,
    /// What is noted of them stays noted until all are carried out.
    under_way: Option<UnderWay>,
    /// The same of those in hand.
    in_hand_under_way: Option<UnderWay>,
}

impl DiscordChange {
    /// What counts towards [`MOST_BYTES`].
    fn shared_bytes(&self) -> usize {
        self.droppable().map_or(0, |_| self.bytes())
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
            Self::ChannelDeleted { .. }
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
    /// The channels of the messages concerned, with their servers.
    pub(super) channels: BTreeMap<ChannelId, Option<GuildId>>,
    /// The servers that deleted too many channels.
    pub(super) guilds: BTreeSet<GuildId>,
}

impl WaitingChanges {
    /// Adds one, behind the others.
    fn add(&mut self, change: DiscordChange, overflow: &mut Overflow) {
        match change {
            DiscordChange::ChannelDeleted { guild, channel } => {
                let party = Party::of(guild, channel);
                let Some((most, lost)) = self.deleted.insert(party, channel, ()) else {
                    return;
                };
                overflow.changes += lost.len();
                match most.guild() {
                    Some(guild) => overflow.guilds.extend([guild]),
                    None => overflow
                        .channels
                        .extend(lost.into_iter().map(|one| (one, None))),
                }
            }
            // Without it the channel's messages are asked for when next used.
            DiscordChange::Recheck {
                guild,
                channel,
                from,
            } => {
                let before = self.rechecks.get(&channel).copied();
                let from = before.map_or(from, |before| before.min(from));
                let party = Party::of(guild, channel);
                self.rechecks.insert(party, channel, from);
            }
            change => {
                self.bytes += change.shared_bytes();
                if change.droppable().is_none() {
                    self.changes.retain(|earlier| !change.replaces(earlier));
                }
                self.changes.push(change);
            }
        }
    }

    /// Drops changes of single messages, starting with those who have most, until
    /// half of the room is free.
    fn make_room(&mut self, overflow: &mut Overflow) {
        if self.bytes <= MOST_BYTES {
            return;
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
                let place = place.map(|channel| (channel, party.guild()));
                overflow.channels.extend(place);
                false
            }
            _ => true,
        });
        self.bytes = self.changes.iter().map(DiscordChange::shared_bytes).sum();
    }

    /// Takes all out: deleted channels first, after which nothing of theirs is left to do.
    fn take(&mut self) -> Vec<DiscordChange> {
        self.bytes = 0;
        let deleted = self.deleted.take();
        let deleted = deleted.map(|(party, channel, ())| DiscordChange::ChannelDeleted {
            guild: party.guild(),
            channel,
        });
        let rechecks = self.rechecks.take();
        let rechecks = rechecks.map(|(party, channel, from)| DiscordChange::Recheck {
            guild: party.guild(),
            channel,
            from,
        });
        let changes = std::mem::take(&mut self.changes);
        deleted.chain(changes).chain(rechecks).collect()
    }
}

#[derive(Debug, Default)]
struct Members {
    due: Vec<(GuildId, UserId)>,
    looked_up: HashMap<(GuildId, UserId), UnixMillis>,
}

impl ChangeQueue {
    /// Adds a change. What is noted from `under_way` on stays noted until it is carried out.
    pub(super) fn push(&self, change: DiscordChange, under_way: Option<UnderWay>) -> Overflow {
        let (mut waiting, mut overflow) = (self.waiting.lock(), Overflow::default());
        self.came.notify_one();
        waiting.under_way = waiting.under_way.take().or(under_way);
        waiting.add(change, &mut overflow);
        waiting.make_room(&mut overflow);
        overflow
    }

    /// Puts changes that could not be carried out back in front of those that have
    /// arrived since; wakes nobody.
    pub(super) fn put_back(&self, changes: impl IntoIterator<Item = DiscordChange>) -> Overflow {
        let (mut waiting, mut overflow) = (self.waiting.lock(), Overflow::default());
        waiting.in_hand = Arc::default();
        waiting.under_way = waiting
            .in_hand_under_way
            .take()
            .or(waiting.under_way.take());
        let since = waiting.take();
        for change in changes.into_iter().chain(since) {
            waiting.add(change, &mut overflow);
        }
        waiting.make_room(&mut overflow);
        overflow
    }

    /// Takes all to carry them out, as `together` puts them together.
    pub(super) fn take(
        &self,
        together: impl FnOnce(Vec<DiscordChange>) -> Vec<DiscordChange>,
    ) -> Arc<[DiscordChange]> {
        let mut waiting = self.waiting.lock();
        let taken: Arc<[DiscordChange]> = together(waiting.take()).into();
        waiting.in_hand = Arc::clone(&taken);
        waiting.in_hand_under_way = waiting.under_way.take();
        taken
    }

    /// The edits of messages that are not carried out yet, earlier ones first.
    pub(in crate::memory) fn edits_waiting(
        &self,
        is_wanted: impl Fn(ChannelId, MessageId) -> bool,
    ) -> Vec<(ChannelId, Edit)> {
        let waiting = self.waiting.lock();
        let changes = waiting.in_hand.iter().chain(&waiting.changes);
        let edits = changes.filter_map(|change| match change {
            DiscordChange::Edited { channel, edit, .. } => {
                Some((*channel, std::slice::from_ref(edit)))
            }
            DiscordChange::Fetched(page) => Some((page.channel, &*page.edited)),
            _ => None,
        });
        let edits =
            edits.flat_map(|(channel, edits)| edits.iter().map(move |edit| (channel, edit)));
        let wanted = edits.filter(|(channel, edit)| is_wanted(*channel, edit.message));
        wanted
            .map(|(channel, edit)| (channel, edit.clone()))
            .collect()
    }

    /// The channels of messages with changes that are not carried out yet, with their servers.
    pub(super) fn channels(&self) -> BTreeMap<ChannelId, Option<GuildId>> {
        let waiting = self.waiting.lock();
        let changes = waiting.in_hand.iter().chain(&waiting.changes);
        let of_messages = changes.filter_map(|change| {
            let (party, channel) = change.droppable()?;
            Some((channel?, party.guild()))
        });
        let deleted = waiting.deleted.iter();
        let deleted = deleted.map(|(party, channel, ())| (*channel, party.guild()));
        of_messages.chain(deleted).collect()
    }

    /// All that was taken is carried out.
    pub(super) fn carried_out(&self) {
        let mut waiting = self.waiting.lock();
        waiting.in_hand = Arc::default();
        waiting.in_hand_under_way = None;
    }

    /// Something that a member said in a server is used elsewhere: once a day it
    /// is checked whether they are still a member.
    pub(in crate::memory) fn used(&self, member: (GuildId, UserId), now: UnixMillis) {
        let mut members = self.members.lock();
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
        let mut members = self.members.lock();
        std::mem::take(&mut members.due)
    }
}

#[cfg(test)]
mod tests;
