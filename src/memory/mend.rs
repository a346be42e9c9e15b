//! Mending: what was deleted or edited on Discord is deleted or edited in
//! every store. Events say so at once; a fetched page is evidence of what
//! happened while we were away.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;

use super::history::stored_words;
use super::{Memory, Place, Stores};
use crate::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
use crate::store::{self, Backend, Purge, Purged};
use crate::telemetry::Ids;
use crate::telemetry::event::{PurgeCause, PurgedEvent, StoreOperation};

/// Deletions remembered for a turn that is being stored while they come.
const RECENT_DELETIONS: usize = 4_096;
/// Channels and members that went, remembered for turns that were running.
const RECENTLY_GONE: usize = 1_024;
/// Mends that are done in one go.
const MENDS_AT_ONCE: usize = 256;
/// Mends that failed and wait for another try, the oldest going first.
const MOST_FAILED: usize = 4_096;

/// Something that happened on Discord and has to reach every store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mend {
    /// `MESSAGE_DELETE`, `MESSAGE_DELETE_BULK`.
    Deleted {
        /// Where they stood.
        channel: ChannelId,
        /// Which.
        ids: Vec<MessageId>,
    },
    /// `MESSAGE_UPDATE`: the words as a turn would store them.
    Edited {
        /// Where it stands.
        channel: ChannelId,
        /// Which.
        message: MessageId,
        /// Its words now.
        words: String,
    },
    /// `CHANNEL_DELETE` or `THREAD_DELETE`.
    ChannelDeleted(ChannelId),
    /// `GUILD_DELETE`, not for an outage.
    GuildLeft(GuildId),
    /// We are in that server.
    GuildJoined(GuildId),
    /// A member left a server.
    MemberLeft {
        /// The server.
        guild: GuildId,
        /// Who.
        user: UserId,
    },
    /// A page was fetched.
    Fetched(Fetched),
}

/// What a fetched page is evidence of: inside its range, what it lacks is
/// deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The channel.
    pub channel: ChannelId,
    /// The page reaches from here...
    pub from: MessageId,
    /// ...to here, both included.
    pub to: MessageId,
    /// What is there.
    pub present: BTreeSet<MessageId>,
    /// What was edited, with the words as a turn would store them.
    pub edited: Vec<(MessageId, String)>,
}

/// What waits to be mended. Nothing in it may be lost, so it has no bound; it
/// holds ids and edited texts only.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: mpsc::UnboundedSender<Mend>,
    next: tokio::sync::Mutex<mpsc::UnboundedReceiver<Mend>>,
    deleted: Mutex<VecDeque<MessageId>>,
    /// Channels and members, and when they went.
    gone: Mutex<VecDeque<(UnixMillis, Purge)>>,
    /// What a store could not do, for when it is back.
    failed: Mutex<VecDeque<Mend>>,
}

impl Queue {
    pub(super) fn new() -> Self {
        let (waiting, next) = mpsc::unbounded_channel();
        Self {
            waiting,
            next: tokio::sync::Mutex::new(next),
            deleted: Mutex::default(),
            gone: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    fn note_deleted(&self, ids: &[MessageId]) {
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.extend(ids);
        while deleted.len() > RECENT_DELETIONS {
            deleted.pop_front();
        }
    }

    fn note_gone(&self, purge: Purge, now: UnixMillis) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.push_back((now, purge));
        while gone.len() > RECENTLY_GONE {
            gone.pop_front();
        }
    }

    /// What reaches a turn that was asked then, and came after.
    fn gone_since(&self, place: &Place, asked: UnixMillis) -> Option<Purge> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let reaches = |purge: &Purge| match purge {
            Purge::Channel(channel) => *channel == place.channel,
            Purge::Member { guild, user } => Some(*guild) == place.guild && *user == place.asker,
            Purge::Messages { .. } | Purge::Guild(_) | Purge::User(_) | Purge::Before(_) => false,
        };
        let mut since = gone.iter().filter(|(at, _)| *at >= asked);
        let found = since.find(|(_, purge)| reaches(purge));
        found.map(|(_, purge)| purge.clone())
    }

    fn note_failed(&self, mend: Mend) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.push_back(mend);
        while failed.len() > MOST_FAILED {
            failed.pop_front();
        }
    }

    /// What failed and is out of date by now is not tried again.
    fn supersede(&self, newer: &Mend) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match newer {
            Mend::Edited { message, .. } => {
                failed.retain(
                    |old| !matches!(old, Mend::Edited { message: same, .. } if same == message),
                );
                for old in failed.iter_mut() {
                    if let Mend::Fetched(page) = old {
                        page.edited.retain(|(same, _)| same != message);
                    }
                }
            }
            Mend::GuildJoined(guild) | Mend::GuildLeft(guild) => failed.retain(|old| {
                !matches!(old, Mend::GuildJoined(same) | Mend::GuildLeft(same) if same == guild)
            }),
            Mend::Deleted { .. }
            | Mend::ChannelDeleted(_)
            | Mend::MemberLeft { .. }
            | Mend::Fetched(_) => {}
        }
    }

    /// Which of these were deleted lately.
    pub(super) fn deleted_of(&self, ids: impl IntoIterator<Item = MessageId>) -> Vec<MessageId> {
        let deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        ids.into_iter().filter(|id| deleted.contains(id)).collect()
    }
}

impl Memory {
    /// Notes what happened; never waits. [`upkeep`](Memory::upkeep) does it.
    pub fn mend(&self, mend: Mend) {
        match &mend {
            Mend::Deleted { ids, .. } => self.mends.note_deleted(ids),
            Mend::ChannelDeleted(channel) => {
                self.mends.note_gone(Purge::Channel(*channel), self.now());
            }
            Mend::MemberLeft { guild, user } => {
                let (guild, user) = (*guild, *user);
                let member = Purge::Member { guild, user };
                self.mends.note_gone(member, self.now());
            }
            Mend::Edited { .. } | Mend::GuildLeft(_) | Mend::GuildJoined(_) | Mend::Fetched(_) => {}
        }
        self.mends.supersede(&mend);
        // The receiver lives as long as the sender.
        let _ = self.mends.waiting.send(mend);
    }

    /// Waits for the next mends. Nothing is lost when this is dropped.
    pub(super) async fn next_mends(&self) -> Vec<Mend> {
        let mut next = self.mends.next.lock().await;
        let mut mends = Vec::new();
        next.recv_many(&mut mends, MENDS_AT_ONCE).await;
        mends
    }

    /// Does all that waits.
    pub async fn mend_all(&self) {
        let mut mends = Vec::new();
        {
            let mut next = self.mends.next.lock().await;
            while let Ok(mend) = next.try_recv() {
                mends.push(mend);
            }
        }
        self.do_mends(mends).await;
    }

    pub(super) async fn do_mends(&self, mends: Vec<Mend>) {
        for mend in together(mends) {
            self.do_mend(mend).await;
        }
    }

    /// What failed waits its turn once more.
    pub(super) fn mend_again(&self) {
        let mut failed = self
            .mends
            .failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for mend in failed.drain(..) {
            let _ = self.mends.waiting.send(mend);
        }
    }

    async fn do_mend(&self, mend: Mend) {
        let cause = cause(&mend);
        let done = match mend.clone() {
            Mend::Deleted { channel, ids } => self.purge(&Purge::Messages { channel, ids }).await,
            Mend::ChannelDeleted(channel) => self.purge(&Purge::Channel(channel)).await,
            Mend::MemberLeft { guild, user } => self.purge(&Purge::Member { guild, user }).await,
            Mend::Edited {
                channel,
                message,
                words,
            } => self.edit(channel, message, &words).await,
            Mend::GuildLeft(guild) => self.depart(guild).await,
            Mend::GuildJoined(guild) => self.rejoin(guild).await,
            Mend::Fetched(page) => self.compare(page).await,
        };
        match done {
            Ok(purged) => self.tell_purged(cause, &purged),
            Err(error) => {
                self.failed(&Ids::default(), StoreOperation::Purge, &error);
                self.mends.note_failed(mend);
            }
        }
    }

    pub(super) fn tell_purged(&self, cause: PurgeCause, purged: &Purged) {
        if purged.total() > 0 {
            let entries = purged.total();
            self.telemetry
                .emit(&Ids::default(), PurgedEvent { cause, entries });
        }
    }

    /// Removes from every store and from memory.
    ///
    /// # Errors
    /// What the first failing store says; the others were purged all the same.
    pub(super) async fn purge(&self, purge: &Purge) -> Result<Purged, store::Error> {
        // Large, with all back ends in it, and in every turn's future.
        Box::pin(self.beneath_facts(purge, purge_all(&self.stores, purge))).await
    }

    async fn edit(
        &self,
        channel: ChannelId,
        message: MessageId,
        words: &str,
    ) -> Result<Purged, store::Error> {
        let words = stored_words(words);
        for (_, store) in self.stores.all() {
            // Most edited messages were never part of a turn.
            if !store
                .held_messages(channel, message, message)
                .await?
                .is_empty()
            {
                store.edit_message(channel, message, words).await?;
            }
        }
        if let Some(transcripts) = &self.stores.transcripts {
            transcripts.edit_message(channel, message, words).await?;
        }
        Ok(Purged::default())
    }

    /// We left; what is stored goes after `GUILD_RETENTION_DAYS`.
    async fn depart(&self, guild: GuildId) -> Result<Purged, store::Error> {
        let now = self.now();
        self.stores.lasting.set_departure(guild, Some(now)).await?;
        self.purge_departed(now).await
    }

    async fn rejoin(&self, guild: GuildId) -> Result<Purged, store::Error> {
        // Every start says it of every server, and of few we ever left.
        let departures = self.stores.lasting.departures().await?;
        if departures.iter().any(|(left, _)| *left == guild) {
            self.stores.lasting.set_departure(guild, None).await?;
        }
        Ok(Purged::default())
    }

    async fn compare(&self, page: Fetched) -> Result<Purged, store::Error> {
        let Fetched {
            channel,
            from,
            to,
            present,
            edited,
        } = page;
        let mut gone = BTreeSet::new();
        for (_, store) in self.stores.all() {
            let held = store.held_messages(channel, from, to).await?;
            gone.extend(held.into_iter().filter(|id| !present.contains(id)));
        }
        if let Some(transcripts) = &self.stores.transcripts {
            let held = transcripts.held_messages(channel, from, to).await?;
            gone.extend(held.into_iter().filter(|id| !present.contains(id)));
        }
        for (message, words) in edited {
            self.edit(channel, message, &words).await?;
        }
        if gone.is_empty() {
            return Ok(Purged::default());
        }
        let ids = gone.into_iter().collect();
        self.purge(&Purge::Messages { channel, ids }).await
    }

    /// What was deleted while the turn that it is part of was being stored, or
    /// where, or whose.
    pub(super) async fn purge_if_gone(
        &self,
        place: &Place,
        asked: UnixMillis,
        ids: Vec<MessageId>,
    ) {
        let channel = place.channel;
        let ids = self.mends.deleted_of(ids);
        let messages = (!ids.is_empty()).then_some(Purge::Messages { channel, ids });
        let gone = self.mends.gone_since(place, asked);
        for purge in messages.into_iter().chain(gone) {
            if let Err(error) = self.purge(&purge).await {
                self.failed(&Ids::default(), StoreOperation::Purge, &error);
            }
        }
    }
}

/// Every store is purged, whatever becomes of one.
async fn purge_all(stores: &Stores, purge: &Purge) -> Result<Purged, store::Error> {
    let mut purged = Purged::default();
    let mut result = Ok(());
    for (_, store) in stores.all() {
        match store.purge(purge).await {
            Ok(gone) => purged.merge(&gone),
            Err(error) => result = result.and(Err(error)),
        }
    }
    if let Some(transcripts) = &stores.transcripts {
        match transcripts.purge(purge).await {
            Ok(gone) => purged.merge(&gone),
            Err(error) => result = result.and(Err(error)),
        }
    }
    result.map(|()| purged)
}

/// Deletions of one channel in a row become one.
fn together(mends: Vec<Mend>) -> Vec<Mend> {
    let mut all: Vec<Mend> = Vec::with_capacity(mends.len());
    for mend in mends {
        match (all.last_mut(), mend) {
            (
                Some(Mend::Deleted { channel, ids }),
                Mend::Deleted {
                    channel: same,
                    ids: more,
                },
            ) if *channel == same => ids.extend(more),
            (_, mend) => all.push(mend),
        }
    }
    all
}

const fn cause(mend: &Mend) -> PurgeCause {
    match mend {
        Mend::Deleted { .. } | Mend::Edited { .. } => PurgeCause::Deleted,
        Mend::ChannelDeleted(_) => PurgeCause::Channel,
        Mend::GuildLeft(_) | Mend::GuildJoined(_) => PurgeCause::Guild,
        Mend::MemberLeft { .. } => PurgeCause::Member,
        Mend::Fetched(_) => PurgeCause::Evidence,
    }
}
