//! What was deleted or edited, or is gone, for turns under way: what they are made from is
//! judged by it before each request and when they are stored.
//!
//! Whatever comes while a turn is under way stays noted until the turn is over. Room is
//! shared by servers: who fills it loses notes of their own, and is known to have lost them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::Edit;
use super::Key;
use super::party::{Party, largest};
use crate::memory::Place;
use clew_context::model::{
    ChannelId, ContentSource, GuildId, Message, MessageId, TurnId, UnixMillis,
};
use clew_store::Purge;
use clew_store::model::{StoredMessage, StoredReceipt};

/// The newest notes, which are kept even if nothing is under way: a store may still be
/// answering a question from before.
const MOST_AFTERWARDS: usize = 4_096;
/// The most notes over all servers, some 8 MiB.
const MOST: usize = 65_536;
/// The most servers and conversations of which it is remembered that they lost notes.
const MOST_LOSERS: usize = 4_096;

#[derive(Debug, Default)]
pub struct Noted {
    notes: Arc<Mutex<Notes>>,
}

/// While it lives, what is noted from now on stays noted.
#[derive(Debug)]
pub struct UnderWay {
    notes: Arc<Mutex<Notes>>,
    /// The number by then of what was noted.
    pub since: u64,
}

/// What became of a message after a turn read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// Nothing, as far as we were told.
    Unchanged,
    /// It was edited at that time.
    Edited(UnixMillis),
    /// It was deleted, or its channel was, or nobody knows what it says now.
    Gone,
}

/// Messages whose words rows have, with the time of the edit that they are from.
pub type Words = BTreeMap<Key, Option<UnixMillis>>;

/// What was noted since some time. Holds the notes: nothing can be noted meanwhile.
#[derive(Debug)]
pub struct NotedSince<'a> {
    notes: MutexGuard<'a, Notes>,
    since: u64,
}

#[derive(Debug, Default)]
struct Notes {
    /// How many notes and beginnings there have been.
    count: u64,
    /// Oldest first.
    order: VecDeque<Note>,
    messages: HashMap<Key, Fate>,
    channels: HashMap<ChannelId, u64>,
    /// Who lost notes, and when last.
    losers: HashMap<Party, u64>,
    /// When it was last forgotten who did.
    losers_lost: Option<u64>,
    /// When what is under way began, with the turn that it is; none if it is a change.
    under_way: BTreeMap<u64, Option<TurnId>>,
}

#[derive(Debug)]
struct Note {
    number: u64,
    party: Party,
    what: What,
}

#[derive(Debug)]
enum What {
    Message(Key),
    Gone(Purge, UnixMillis),
}

/// What was noted of a message.
#[derive(Debug, Default)]
struct Fate {
    number: u64,
    deleted: bool,
    edited: Option<UnixMillis>,
    /// When it changed into nobody knows what.
    unread: Option<u64>,
}

impl Noted {
    /// Something begins that goes by what is noted from now on.
    pub fn begins(&self, turn: Option<TurnId>) -> UnderWay {
        let mut notes = self.notes.lock();
        let since = notes.next();
        notes.under_way.insert(since, turn);
        UnderWay {
            notes: Arc::clone(&self.notes),
            since,
        }
    }

    pub(super) fn deleted(&self, guild: Option<GuildId>, channel: ChannelId, ids: &[MessageId]) {
        let party = Party::of(guild, channel);
        self.note(|notes| {
            for id in ids {
                notes.message(party, (channel, *id)).deleted = true;
            }
        });
    }

    /// Previews of links are not edits.
    pub(in crate::memory) fn edited(
        &self,
        guild: Option<GuildId>,
        channel: ChannelId,
        edits: &[Edit],
    ) {
        let party = Party::of(guild, channel);
        let edits = edits
            .iter()
            .filter_map(|edit| Some((edit.message, edit.at?)));
        self.note(|notes| {
            for (id, at) in edits {
                let fate = notes.message(party, (channel, id));
                let before = fate.edited.filter(|_| fate.unread.take().is_none());
                fate.edited = before.max(Some(at));
            }
        });
    }

    /// A message changed, and its event could not be read.
    pub(super) fn unread(&self, guild: Option<GuildId>, (channel, id): Key, now: UnixMillis) {
        let party = Party::of(guild, channel);
        self.note(|notes| {
            let fate = notes.message(party, (channel, id));
            fate.edited = fate.edited.max(Some(now));
            fate.unread = Some(fate.number);
        });
    }

    /// Notes what is gone with a channel, member or user.
    pub(super) fn gone(&self, party: Party, purge: &Purge, now: UnixMillis) {
        self.note(|notes| {
            let number = notes.push(party, What::Gone(purge.clone(), now));
            if let Purge::Channel(channel) = purge {
                notes.channels.insert(*channel, number);
            }
        });
    }

    fn note(&self, note: impl FnOnce(&mut Notes)) {
        let mut notes = self.notes.lock();
        note(&mut notes);
        notes.tidy();
    }

    /// Which of these messages of a channel were deleted.
    pub(in crate::memory) fn deleted_of(
        &self,
        channel: ChannelId,
        ids: impl IntoIterator<Item = MessageId>,
    ) -> Vec<MessageId> {
        let notes = self.notes.lock();
        let ids = ids.into_iter();
        ids.filter(|id| notes.is_deleted((channel, *id))).collect()
    }

    /// Whether a later edit of a message was noted.
    pub(in crate::memory) fn is_edited_after(&self, key: Key, at: Option<UnixMillis>) -> bool {
        let notes = self.notes.lock();
        notes
            .messages
            .get(&key)
            .is_some_and(|fate| fate.edited > at)
    }

    /// Whether a message was deleted, or edited after that time: what was made from its words then
    /// is gone with them.
    pub(in crate::memory) fn is_withdrawn(&self, key: Key, at: UnixMillis) -> bool {
        self.is_any_deleted([key]) || self.is_edited_after(key, Some(at))
    }

    /// Whether any of these messages was.
    pub(in crate::memory) fn is_any_deleted(
        &self,
        messages: impl IntoIterator<Item = Key>,
    ) -> bool {
        let notes = self.notes.lock();
        messages.into_iter().any(|key| notes.is_deleted(key))
    }

    /// The edits of what these rows were made from, as purges.
    pub(in crate::memory) fn edits_of(&self, rows: &[StoredMessage]) -> Vec<Purge> {
        let notes = self.notes.lock();
        let edit_of = |source: &ContentSource| {
            let (channel, message) = (source.channel, source.message?);
            let at = notes.messages.get(&(channel, message))?.edited?;
            let edited = Purge::Edited {
                channel,
                message,
                at,
            };
            Some((message, edited))
        };
        let sources = rows.iter().flat_map(|row| &row.sources);
        let purges: BTreeMap<MessageId, Purge> = sources.filter_map(edit_of).collect();
        purges.into_values().collect()
    }

    /// What has gone since then that would have covered any of these rows, or this
    /// receipt.
    pub(in crate::memory) fn gone_of(
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
    pub fn is_gone(&self, place: &Place, since: UnixMillis) -> bool {
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
        let notes = self.notes.lock();
        let late = notes.order.iter().filter_map(|note| match &note.what {
            What::Gone(purge, at) => {
                let is_late = *at > since || (*at == since && !matches!(purge, Purge::User(_)));
                is_late.then_some(purge)
            }
            What::Message(..) => None,
        });
        late.filter(|purge| reaches(purge)).cloned().collect()
    }

    /// Whether notes were lost, while a turn was under way, of a server or channel that its
    /// rows or its receipt are of or were made from: unknown is no.
    pub(in crate::memory) fn is_unknown(
        &self,
        turn: TurnId,
        rows: &[StoredMessage],
        receipt: Option<&StoredReceipt>,
    ) -> bool {
        let notes = self.notes.lock();
        let Some(since) = notes.began(turn) else {
            return false;
        };
        let lost = |(guild, channel)| notes.has_lost(guild, channel, since);
        let sources = rows.iter().flat_map(|row| &row.sources);
        let made_of = sources.map(|source| (source.guild, source.channel));
        let own = rows.iter().map(|row| (row.guild, row.channel));
        let of_receipt = receipt.map(|receipt| (receipt.guild, receipt.channel));
        own.chain(made_of).chain(of_receipt).any(lost)
    }

    /// Another number whenever something was noted.
    pub fn revision(&self) -> u64 {
        self.notes.lock().count
    }

    /// Up to this number all changes that were noted are carried out.
    pub fn stored_revision(&self) -> u64 {
        let notes = self.notes.lock();
        let mut under_way = notes.under_way.iter();
        let oldest = under_way.find(|(_, turn)| turn.is_none());
        oldest.map_or(notes.count, |(since, _)| *since)
    }

    /// What was noted after the number was this.
    pub fn after(&self, revision: u64) -> NotedSince<'_> {
        NotedSince {
            notes: self.notes.lock(),
            since: revision,
        }
    }
}

impl NotedSince<'_> {
    /// What became of a message that was read by then.
    pub fn became(&self, guild: Option<GuildId>, message: &Message) -> Became {
        let (notes, key) = (&self.notes, (message.channel, message.id));
        let fate = notes.messages.get(&key);
        let is_unread = fate.is_some_and(|fate| fate.unread > Some(self.since));
        let guild = message.guild.or(guild);
        let is_gone = notes.is_deleted(key)
            || notes.channels.contains_key(&message.channel)
            || notes.has_lost(guild, message.channel, self.since);
        if is_unread || is_gone {
            return Became::Gone;
        }
        let edited = fate.filter(|fate| fate.unread.is_none() && fate.edited > message.edited);
        let edited = edited.and_then(|fate| fate.edited);
        edited.map_or(Became::Unchanged, Became::Edited)
    }

    /// Whether a row's messages, or what it was made from, changed into something that the row
    /// does not say.
    pub fn changed_row(&self, row: &StoredMessage, says: &Words) -> bool {
        let is_said = |key| {
            let fate = self.notes.messages.get(&key);
            let is_newest = |edited: &Option<UnixMillis>| {
                fate.is_none_or(|fate| {
                    !fate.deleted && fate.unread.is_none() && fate.edited <= *edited
                })
            };
            says.get(&key).is_some_and(is_newest)
        };
        let mut made_of = row.made_of();
        made_of.any(|key| self.changed_message(key) && !is_said(key))
            || row.sources.iter().any(|one| self.changed(one))
    }

    /// Whether what a text was made from changed.
    pub fn changed(&self, source: &ContentSource) -> bool {
        let channel = source.channel;
        let message = source.message.map(|id| (channel, id));
        message.is_some_and(|key| self.changed_message(key))
            || self.notes.channels.contains_key(&channel)
            || self.notes.has_lost(source.guild, channel, self.since)
    }

    fn changed_message(&self, key: Key) -> bool {
        let fate = self.notes.messages.get(&key);
        fate.is_some_and(|fate| fate.number > self.since)
    }
}

impl Notes {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn push(&mut self, party: Party, what: What) -> u64 {
        let number = self.next();
        self.order.push_back(Note {
            number,
            party,
            what,
        });
        number
    }

    fn message(&mut self, party: Party, key: Key) -> &mut Fate {
        let number = self.push(party, What::Message(key));
        let fate = self.messages.entry(key).or_default();
        fate.number = number;
        fate
    }

    fn is_deleted(&self, key: Key) -> bool {
        self.messages.get(&key).is_some_and(|fate| fate.deleted)
    }

    /// When a turn that is under way began.
    fn began(&self, turn: TurnId) -> Option<u64> {
        let mut under_way = self.under_way.iter();
        let of_turn = under_way.find(|(_, of)| **of == Some(turn));
        of_turn.map(|(since, _)| *since)
    }

    fn has_lost(&self, guild: Option<GuildId>, channel: ChannelId, since: u64) -> bool {
        let parties = [guild.map(Party::Guild), Some(Party::Channel(channel))];
        let lost = parties
            .into_iter()
            .flatten()
            .filter_map(|one| self.losers.get(&one).copied());
        lost.chain(self.losers_lost).any(|lost| lost > since)
    }

    /// Forgets what nothing under way goes by any more, and makes room.
    fn tidy(&mut self) {
        let oldest = self.under_way.keys().next().copied().unwrap_or(u64::MAX);
        while self.order.len() > MOST_AFTERWARDS
            && let Some(note) = self.order.pop_front_if(|note| note.number < oldest)
        {
            self.forget(note);
        }
        self.losers.retain(|_, lost| *lost > oldest);
        while self.order.len() > MOST {
            self.drop_largest();
        }
    }

    /// Drops the notes of the server or conversation that has most.
    fn drop_largest(&mut self) {
        let Some(largest) = largest(self.order.iter().map(|note| (note.party, 1))) else {
            return;
        };
        let (dropped, kept) = std::mem::take(&mut self.order)
            .into_iter()
            .partition::<VecDeque<Note>, _>(|note| note.party == largest);
        self.order = kept;
        for note in dropped {
            self.forget(note);
        }
        let now = self.next();
        if self.losers.len() >= MOST_LOSERS {
            self.losers.clear();
            self.losers_lost = Some(now);
        }
        self.losers.insert(largest, now);
    }

    /// Forgets what a note said, unless a later one says it as well.
    fn forget(&mut self, Note { number, what, .. }: Note) {
        match what {
            What::Message(key) => {
                if self
                    .messages
                    .get(&key)
                    .is_some_and(|fate| fate.number == number)
                {
                    self.messages.remove(&key);
                }
            }
            What::Gone(Purge::Channel(channel), _) => {
                if self.channels.get(&channel) == Some(&number) {
                    self.channels.remove(&channel);
                }
            }
            What::Gone(..) => {}
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut notes = self.notes.lock();
        notes.under_way.remove(&self.since);
        notes.tidy();
    }
}

#[cfg(test)]
mod tests;
