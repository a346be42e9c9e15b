//! Mending: what was deleted or edited on Discord is deleted or edited in
//! every store. Events say so at once. What a fetched page lacks is a hint of
//! what happened while we were away, never a proof: it is left out of prompts
//! and asked for, and only Discord's "Unknown Message" (10008) purges it.

mod queue;

use std::collections::BTreeSet;

pub(super) use queue::Queue;

use super::history::stored_words;
use super::{Memory, Stores};
use crate::telemetry::Ids;
use crate::telemetry::event::{PurgeCause, PurgedEvent, StoreOperation};
use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};
use clew_store::model::{StoredMessage, Subject};
use clew_store::{Backend, Kind, Purge, Purged};

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
    /// Discord was asked for these messages and knows none of them (10008).
    Unknown {
        /// Where they stood.
        channel: ChannelId,
        /// Which.
        ids: Vec<MessageId>,
    },
    /// `MESSAGE_UPDATE`.
    Edited {
        /// Where it stands.
        channel: ChannelId,
        /// What it says now.
        edit: Edit,
    },
    /// `CHANNEL_DELETE` or `THREAD_DELETE`.
    ChannelDeleted(ChannelId),
    /// `GUILD_DELETE`, not for an outage.
    GuildLeft(GuildId),
    /// We are in that server.
    GuildJoined(GuildId),
    /// A shard is connected anew, and these are its servers: others that it
    /// would have, by their ids, we left unseen.
    Connected {
        /// The shard.
        shard: u32,
        /// Of so many.
        shards: u32,
        /// Its servers.
        guilds: Vec<GuildId>,
    },
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

/// A message that was edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Which.
    pub message: MessageId,
    /// Whose.
    pub author: UserId,
    /// Its words now, as a turn would store them.
    pub words: String,
    /// When a person edited it; none if Discord only added a preview.
    pub at: Option<UnixMillis>,
}

/// What a fetched page tells: what was edited, and, inside its range, what it
/// lacks.
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
    /// What was edited.
    pub edited: Vec<Edit>,
}

impl Memory {
    /// Notes what happened; never waits. [`upkeep`](Memory::upkeep) does it.
    pub fn mend(&self, mend: Mend) {
        match &mend {
            Mend::Deleted { ids, .. } | Mend::Unknown { ids, .. } => self.mends.note_deleted(ids),
            Mend::ChannelDeleted(channel) => {
                self.mends.note_gone(Purge::Channel(*channel), self.now());
            }
            Mend::MemberLeft { guild, user } => {
                let (guild, user) = (*guild, *user);
                let member = Purge::Member { guild, user };
                self.mends.note_gone(member, self.now());
            }
            Mend::Edited { .. }
            | Mend::GuildLeft(_)
            | Mend::GuildJoined(_)
            | Mend::Connected { .. }
            | Mend::Fetched(_) => {}
        }
        self.mends.push(mend);
    }

    /// Does all that waits. Once begun it has to be waited for: what is taken
    /// from the queue is nowhere else. What a store that is locked, full or
    /// gone does not do, and what comes after it, waits for the next save.
    pub async fn mend_all(&self) {
        let _doing = self.mends.doing.lock().await;
        let mut mends = together(self.mends.take()).into_iter();
        while let Some(mend) = mends.next() {
            if !self.do_mend(&mend).await {
                self.mends.put_back(std::iter::once(mend).chain(mends));
                return;
            }
        }
    }

    /// Says whether it is over: done, or of no use to be tried again.
    async fn do_mend(&self, mend: &Mend) -> bool {
        let cause = cause(mend);
        match self.try_mend(mend.clone()).await {
            Ok(purged) => {
                self.tell_purged(cause, &purged);
                true
            }
            Err(error) => {
                self.failed(&Ids::default(), StoreOperation::Purge, &error);
                !matches!(error, clew_store::Error::Unavailable { .. })
            }
        }
    }

    async fn try_mend(&self, mend: Mend) -> Result<Purged, clew_store::Error> {
        match mend {
            Mend::Deleted { channel, ids } | Mend::Unknown { channel, ids } => {
                self.deleted(channel, ids).await
            }
            Mend::ChannelDeleted(channel) => {
                let purged = self.purge(&Purge::Channel(channel)).await?;
                self.mends.settle(channel, |_| true);
                Ok(purged)
            }
            Mend::MemberLeft { guild, user } => self.purge(&Purge::Member { guild, user }).await,
            Mend::Edited { channel, edit } => self.edited(channel, &edit).await,
            Mend::GuildLeft(guild) => self.depart(guild).await,
            Mend::GuildJoined(guild) => self.rejoin(guild).await,
            Mend::Connected {
                shard,
                shards,
                guilds,
            } => self.left_unseen(shard, shards, &guilds).await,
            Mend::Fetched(page) => self.compare(page).await,
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
    pub(super) async fn purge(&self, purge: &Purge) -> Result<Purged, clew_store::Error> {
        Ok(total(&self.purge_by_store(purge).await?))
    }

    /// The same, told by store.
    pub(super) async fn purge_by_store(
        &self,
        purge: &Purge,
    ) -> Result<Vec<(&'static str, Purged)>, clew_store::Error> {
        if !matches!(purge, Purge::Messages { .. } | Purge::Before(_)) {
            self.lessons.purged();
        }
        if matches!(purge, Purge::User(_)) {
            self.mends.note_gone(purge.clone(), self.now());
        }
        // Boxed: it is large, and rare.
        Box::pin(self.beneath_facts(purge, purge_all(&self.stores, purge))).await
    }

    /// Most edited messages were never part of anything.
    async fn edited(&self, channel: ChannelId, edit: &Edit) -> Result<Purged, clew_store::Error> {
        let message = edit.message;
        if self.held(channel, message, message).await?.is_empty() {
            return Ok(Purged::default());
        }
        self.edit(channel, edit).await
    }

    /// A message that something is kept of gets its new words everywhere.
    async fn edit(&self, channel: ChannelId, edit: &Edit) -> Result<Purged, clew_store::Error> {
        let Edit { message, words, .. } = edit;
        let words = stored_words(words);
        for (_, store) in self.stores.all() {
            store.edit_message(channel, *message, words).await?;
        }
        if let Some(transcripts) = &self.stores.transcripts {
            transcripts.edit_message(channel, *message, words).await?;
        }
        self.unlearn(channel, edit).await
    }

    /// What was learnt from the words that stood there before goes: nobody
    /// says it any longer.
    async fn unlearn(&self, channel: ChannelId, edit: &Edit) -> Result<Purged, clew_store::Error> {
        let mut gone = Purged::default();
        let Some(at) = edit.at else {
            return Ok(gone);
        };
        self.lessons.purged();
        let subject = Subject::User(edit.author);
        for fact in self.facts_of(subject).await? {
            let is_older = fact.link == Some((channel, edit.message)) && fact.at < at;
            if is_older && self.forget(subject, fact.id).await?.is_some() {
                gone.add(Kind::UserFacts, 1);
            }
        }
        Ok(gone)
    }

    /// Most deleted messages were never part of anything.
    async fn deleted(
        &self,
        channel: ChannelId,
        ids: Vec<MessageId>,
    ) -> Result<Purged, clew_store::Error> {
        let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
            return Ok(Purged::default());
        };
        let mut held = self.held(channel, *first, *last).await?;
        held.retain(|id| ids.contains(id));
        let purged = if held.is_empty() {
            Purged::default()
        } else {
            let ids = held.into_iter().collect();
            self.purge(&Purge::Messages { channel, ids }).await?
        };
        self.mends.settle(channel, |id| ids.contains(&id));
        Ok(purged)
    }

    /// Which messages of a channel anything is kept of, in any store or in
    /// memory.
    async fn held(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<BTreeSet<MessageId>, clew_store::Error> {
        let mut held: BTreeSet<MessageId> = self.facts.links(channel).collect();
        held.retain(|id| (from..=to).contains(id));
        for (_, store) in self.stores.all() {
            held.extend(store.held_messages(channel, from, to).await?);
        }
        if let Some(transcripts) = &self.stores.transcripts {
            held.extend(transcripts.held_messages(channel, from, to).await?);
        }
        Ok(held)
    }

    /// Servers of this shard that Discord no longer names. A server belongs to
    /// shard `(id >> 22) % shards` (Discord's reference, "Sharding"). Nothing
    /// goes before the next sweep: a server that turns up after all is back.
    async fn left_unseen(
        &self,
        shard: u32,
        shards: u32,
        guilds: &[GuildId],
    ) -> Result<Purged, clew_store::Error> {
        if guilds.is_empty() {
            // Some Discord-compatible servers do not name them.
            return Ok(Purged::default());
        }
        let departed = self.stores.lasting.departures().await?;
        let mut kept = BTreeSet::new();
        for (_, store) in self.stores.all() {
            kept.extend(store.guilds().await?);
        }
        let is_of_shard =
            |guild: &GuildId| (guild.get() >> 22) % u64::from(shards) == u64::from(shard);
        let is_known = |guild: &GuildId| {
            guilds.contains(guild) || departed.iter().any(|(departed, _)| departed == guild)
        };
        let now = self.now();
        for guild in kept
            .into_iter()
            .filter(|guild| is_of_shard(guild) && !is_known(guild))
        {
            self.stores.lasting.set_departure(guild, Some(now)).await?;
        }
        Ok(Purged::default())
    }

    /// We left; what is stored goes after `GUILD_RETENTION_DAYS`.
    async fn depart(&self, guild: GuildId) -> Result<Purged, clew_store::Error> {
        let now = self.now();
        self.stores.lasting.set_departure(guild, Some(now)).await?;
        self.purge_departed(now).await
    }

    async fn rejoin(&self, guild: GuildId) -> Result<Purged, clew_store::Error> {
        // Every start says it of every server, and of few we ever left.
        let lasting = &self.stores.lasting;
        let departed = lasting.departures().await?;
        if departed.iter().any(|(departed, _)| *departed == guild) {
            lasting.set_departure(guild, None).await?;
        }
        Ok(Purged::default())
    }

    /// An absence purges nothing: a page may be short for many reasons.
    async fn compare(&self, page: Fetched) -> Result<Purged, clew_store::Error> {
        let Fetched {
            channel,
            from,
            to,
            present,
            edited,
        } = page;
        let mut held = self.held(channel, from, to).await?;
        for edit in edited.iter().filter(|edit| held.contains(&edit.message)) {
            self.edit(channel, edit).await?;
        }
        self.mends.settle(channel, |id| present.contains(&id));
        held.retain(|id| !present.contains(id));
        if !held.is_empty() {
            self.mends.note_missing(channel, &held);
        }
        Ok(Purged::default())
    }

    /// Without the turns of messages that a page lacked and of which nothing
    /// else is known yet.
    pub(super) fn leave_out_missing(&self, rows: &mut Vec<StoredMessage>) {
        let is_missing = |row: &&StoredMessage| {
            let mut ids = row.message.iter().chain(&row.parts);
            ids.any(|id| self.mends.is_missing(row.channel, *id))
        };
        let missing: BTreeSet<TurnId> =
            rows.iter().filter(is_missing).map(|row| row.turn).collect();
        rows.retain(|row| !missing.contains(&row.turn));
    }

    /// Permissions changed in these channels: what they refused to tell before
    /// is asked for once more.
    pub fn permissions_changed(&self, may_be_of: impl Fn(ChannelId) -> bool) {
        self.mends.ask_again(|channel, _| may_be_of(channel));
    }

    /// Whether these rows would be part of what was purged since then.
    pub(super) fn is_purged(&self, rows: &[StoredMessage], since: UnixMillis) -> bool {
        !self.mends.gone_of(rows, since).is_empty()
    }

    /// What was deleted or purged while these rows were on their way to a
    /// store goes once more.
    pub(super) async fn purge_late(&self, rows: &[StoredMessage], since: UnixMillis) {
        let mut late = self.mends.gone_of(rows, since);
        for of_channel in rows.chunk_by(|one, next| one.channel == next.channel) {
            let held = of_channel
                .iter()
                .flat_map(|row| row.message.iter().chain(&row.parts));
            let ids = self.mends.deleted_of(held.copied());
            if let (Some(row), false) = (of_channel.first(), ids.is_empty()) {
                let channel = row.channel;
                late.push(Purge::Messages { channel, ids });
            }
        }
        for purge in late {
            if let Err(error) = self.purge(&purge).await {
                self.failed(&Ids::default(), StoreOperation::Purge, &error);
            }
        }
    }
}

/// Every store is purged, whatever becomes of one.
async fn purge_all(
    stores: &Stores,
    purge: &Purge,
) -> Result<Vec<(&'static str, Purged)>, clew_store::Error> {
    let mut by_store = Vec::new();
    let mut result = Ok(());
    for (name, store) in stores.all() {
        match store.purge(purge).await {
            Ok(gone) => by_store.push((name, gone)),
            Err(error) => result = result.and(Err(error)),
        }
    }
    if let Some(transcripts) = &stores.transcripts {
        match transcripts.purge(purge).await {
            Ok(gone) => by_store.push(("files", gone)),
            Err(error) => result = result.and(Err(error)),
        }
    }
    result.map(|()| by_store)
}

/// What all stores lost together.
pub(super) fn total(by_store: &[(&'static str, Purged)]) -> Purged {
    let mut all = Purged::default();
    for (_, purged) in by_store {
        all.merge(purged);
    }
    all
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
        Mend::GuildLeft(_) | Mend::GuildJoined(_) | Mend::Connected { .. } => PurgeCause::Guild,
        Mend::MemberLeft { .. } => PurgeCause::Member,
        Mend::Unknown { .. } | Mend::Fetched(_) => PurgeCause::Evidence,
    }
}
