//! Reconciling: what is deleted or edited on Discord is deleted or edited in every
//! store. Events are acted on at once. A message missing from a fetched page is
//! only a hint at what happened while we were away, never proof: it is left out of
//! prompts and asked for, and only Discord's "Unknown Message" (10008) purges it.

mod change;
mod doubt;
mod noted;
mod party;
mod queue;

use std::collections::{BTreeMap, BTreeSet};

pub use change::{DiscordChange, Edit, Fetched};
pub(super) use doubt::{Asking, Doubts, Key, Trace, trace_of_fact, traces};
pub(super) use noted::Noted;
pub use noted::{Became, UnderWay, Words};
pub(super) use party::largest;
pub(super) use queue::ChangeQueue;

use change::together;
use party::Party;
use queue::Overflow;

use super::{Memory, Result};
use crate::telemetry::Ids;
use crate::telemetry::event::{ChangesDropped, EntriesPurged, PurgeCause, StoreOperation};
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
use clew_discord::guild_state::shard_of;
use clew_discord::session::{Gap, Missed};
use clew_store::model::{StoredMessage, StoredReceipt};
use clew_store::{Purge, Purged, Reach};

impl Memory {
    /// Queues a change, without waiting. [`upkeep`](Memory::upkeep) carries it out.
    pub fn reconcile(&self, mut change: DiscordChange) {
        let noted = &self.changes.noted;
        let under_way = noted.begins(None);
        if let DiscordChange::Fetched(page) = &mut change {
            // It may have been read before an edit that is known by now.
            let channel = page.channel;
            page.edited
                .retain(|edit| !noted.is_edited_after((channel, edit.message), edit.at));
        }
        match &change {
            DiscordChange::Deleted {
                guild,
                channel,
                ids,
            } => noted.deleted(*guild, *channel, ids),
            DiscordChange::Unknown { channel, ids } => noted.deleted(None, *channel, ids),
            DiscordChange::ChannelDeleted { guild, channel } => {
                let party = Party::of(*guild, *channel);
                noted.gone(party, &Purge::Channel(*channel), self.now_apart());
            }
            DiscordChange::MemberLeft { guild, user } => {
                let (guild, user) = (*guild, *user);
                let left = Purge::Member { guild, user };
                noted.gone(Party::Guild(guild), &left, self.now_apart());
            }
            // Nobody told us what happened before.
            DiscordChange::Connected { shard, shards, .. } => {
                let (shard, shards) = (*shard, *shards);
                self.missed(Missed::Shard { shard, shards });
            }
            DiscordChange::Edited {
                guild,
                channel,
                edit,
            } => noted.edited(*guild, *channel, std::slice::from_ref(edit)),
            DiscordChange::Fetched(page) => noted.edited(page.guild, page.channel, &page.edited),
            DiscordChange::GuildLeft(_)
            | DiscordChange::GuildJoined(_)
            | DiscordChange::Recheck { .. } => {}
        }
        self.reconcile_unsaved(&change);
        let overflow = self.changes.push(change, Some(under_way));
        self.make_up_for(overflow);
    }

    /// What is deleted or edited, as noted for turns under way and for what is stored later.
    pub const fn noted(&self) -> &Noted {
        &self.changes.noted
    }

    /// An earlier process erased everything of a user at that time.
    pub fn was_erased(&self, user: UserId, at: UnixMillis) {
        let (noted, purge) = (&self.changes.noted, Purge::User(user));
        noted.gone(Party::User(user), &purge, at);
        if let Some(outputs) = &self.stores.outputs {
            outputs.note(&purge, at);
        }
    }

    /// A message was edited or deleted by an event that nobody could read.
    pub fn changed(&self, guild: Option<GuildId>, channel: ChannelId, message: MessageId) {
        let key = (channel, message);
        self.changes.noted.unread(guild, key, self.now());
    }

    /// Notes that events were missed there: what was stored before is confirmed
    /// when next used.
    pub fn missed(&self, missed: Missed) {
        self.doubts.missed(missed, self.now_apart());
    }

    /// What the next process has to know: where something was missed and is not made up for,
    /// and where changes wait that the stores have not taken.
    pub fn gaps(&self) -> Vec<Gap> {
        let at = self.now_apart();
        let waiting = self.changes.channels().into_iter();
        let waiting = waiting.map(|(channel, guild)| Gap {
            at: at.0,
            missed: Missed::Channel { guild, channel },
        });
        let gaps = self.doubts.gaps(at).into_iter();
        gaps.chain(waiting).collect()
    }

    /// Takes over what the process before has missed.
    pub fn take_over(&self, gaps: &[Gap]) {
        for gap in gaps {
            self.doubts.missed(gap.missed, UnixMillis(gap.at));
        }
    }

    /// If deletions and edits were dropped for lack of room, nothing of the
    /// channels concerned is shown until Discord has been asked for each message.
    fn make_up_for(&self, overflow: Overflow) {
        let Overflow {
            changes,
            channels,
            guilds,
        } = overflow;
        if changes == 0 {
            return;
        }
        let event = ChangesDropped {
            changes,
            channels: channels.len(),
        };
        self.telemetry.emit(&Ids::default(), event);
        for guild in guilds {
            self.doubts.lost(Missed::Guild(guild), self.now_apart());
        }
        for (channel, guild) in channels {
            let lost = Missed::Channel { guild, channel };
            self.doubts.lost(lost, self.now_apart());
            let recheck = DiscordChange::Recheck {
                guild,
                channel,
                from: MessageId::new(0),
            };
            self.changes.push(recheck, None);
        }
    }

    /// Applies a change at once to turns that are not stored yet.
    fn reconcile_unsaved(&self, change: &DiscordChange) {
        let purge = match change {
            DiscordChange::Deleted { channel, ids, .. }
            | DiscordChange::Unknown { channel, ids } => Purge::Messages {
                channel: *channel,
                ids: ids.clone(),
            },
            DiscordChange::ChannelDeleted { channel, .. } => Purge::Channel(*channel),
            DiscordChange::MemberLeft { guild, user } => Purge::Member {
                guild: *guild,
                user: *user,
            },
            DiscordChange::Edited { channel, edit, .. } => {
                if let Some(words) = edit.stored_words() {
                    self.unsaved.edit(*channel, edit.message, words);
                }
                match edit.withdraws(*channel) {
                    Some(purge) => purge,
                    None => return,
                }
            }
            DiscordChange::GuildLeft(_)
            | DiscordChange::GuildJoined(_)
            | DiscordChange::Connected { .. }
            | DiscordChange::Fetched(_)
            | DiscordChange::Recheck { .. } => return,
        };
        self.unsaved.purge(&purge);
    }

    /// Carries out all that is queued. Must not be cancelled once begun: a change
    /// taken from the queue is nowhere else. If a store is locked, full or gone,
    /// its change and those after it wait for the next save.
    pub async fn reconcile_all(&self) {
        drop(self.reconciled().await);
    }

    /// The same; while the guard is held, nothing else is carried out. Also whether nothing waits
    /// for a store.
    pub(super) async fn reconciled(&self) -> (tokio::sync::MutexGuard<'_, ()>, bool) {
        let doing = self.changes.doing.lock().await;
        let changes = self.changes.take(together);
        for (at, change) in changes.iter().enumerate() {
            if !self.reconcile_one(change).await {
                let overflow = self.changes.put_back(changes[at..].iter().cloned());
                self.make_up_for(overflow);
                return (doing, false);
            }
        }
        self.changes.carried_out();
        (doing, true)
    }

    /// Returns whether the change is finished: done, or not worth another try.
    async fn reconcile_one(&self, change: &DiscordChange) -> bool {
        let cause = cause(change);
        match self.try_reconcile(change.clone()).await {
            Ok(purged) => {
                self.tell_purged(cause, &purged);
                true
            }
            Err(error) => {
                self.failed(&Ids::default(), StoreOperation::Purge, &error);
                !error.is_of_store()
            }
        }
    }

    async fn try_reconcile(&self, change: DiscordChange) -> Result<Purged> {
        match change {
            DiscordChange::Deleted { channel, ids, .. }
            | DiscordChange::Unknown { channel, ids } => self.deleted(channel, ids).await,
            DiscordChange::ChannelDeleted { channel, .. } => {
                let purged = self.purge(&Purge::Channel(channel)).await?;
                self.doubts.forget(channel);
                Ok(purged)
            }
            DiscordChange::MemberLeft { guild, user } => {
                self.purge(&Purge::Member { guild, user }).await
            }
            DiscordChange::Edited { channel, edit, .. } => self.edited(channel, &edit).await,
            DiscordChange::GuildLeft(guild) => self.depart(guild).await,
            DiscordChange::GuildJoined(guild) => self.rejoin(guild).await,
            DiscordChange::Connected {
                shard,
                shards,
                guilds,
            } => self.left_unseen(shard, shards, &guilds).await,
            DiscordChange::Fetched(page) => self.compare(page).await,
            DiscordChange::Recheck {
                guild,
                channel,
                from,
            } => self.recheck((guild, channel), from).await,
        }
    }

    pub(super) fn tell_purged(&self, cause: PurgeCause, purged: &Purged) {
        if purged.total() > 0 {
            let entries = purged.total();
            self.telemetry
                .emit(&Ids::default(), EntriesPurged { cause, entries });
        }
    }

    /// Purges from every store and from memory.
    ///
    /// # Errors
    /// The error of the first store that failed; the others were purged all the same.
    pub(super) async fn purge(&self, purge: &Purge) -> Result<Purged> {
        if !matches!(purge, Purge::Messages { .. } | Purge::Before(_)) {
            self.extractions.discard();
        }
        if let Purge::User(user) = purge {
            let noted = &self.changes.noted;
            noted.gone(Party::User(*user), purge, self.now_apart());
        }
        self.unsaved.purge(purge);
        // Boxed: the future is large, and purges are rare.
        let purged = Box::pin(self.beneath_facts(purge, self.purge_all(purge))).await;
        self.forget_purged(purge, &purged);
        purged
    }

    /// Purges every store, even if one fails.
    async fn purge_all(&self, purge: &Purge) -> Result<Purged> {
        let mut all = Purged::default();
        let mut result = Ok(());
        for (_, store) in self.stores.all() {
            match store.purge(purge).await {
                Ok(gone) => all.merge(&gone),
                Err(error) => result = result.and(Err(error)),
            }
        }
        match self.purge_outputs(purge).await {
            Ok(gone) => all.merge(&gone),
            Err(error) => result = result.and(Err(error)),
        }
        if let Some(transcripts) = &self.stores.transcripts {
            match transcripts.purge(purge).await {
                Ok(gone) => all.merge(&gone),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result.map(|()| all)
    }

    /// Drops indexes of what was purged, or may have been; most purges remove nothing.
    pub(super) fn forget_purged(&self, purge: &Purge, purged: &Result<Purged>) {
        if purged.as_ref().map_or(1, Purged::total) > 0 {
            self.recall.forget_changed(purge);
        }
    }

    /// Applies an edit. Most edited messages never became part of anything.
    async fn edited(&self, channel: ChannelId, edit: &Edit) -> Result<Purged> {
        let message = edit.message;
        if !self.held(channel, message, message).await?.is_empty() {
            return self.edit(channel, edit).await;
        }
        // A tool may be reading it.
        match edit.withdraws(channel) {
            Some(purge) => self.purge_outputs(&purge).await,
            None => Ok(Purged::default()),
        }
    }

    /// Gives a message that something is kept of its new words everywhere, and
    /// removes what was made from its former words.
    async fn edit(&self, channel: ChannelId, edit: &Edit) -> Result<Purged> {
        // The author has withdrawn its former words.
        let gone = match edit.withdraws(channel) {
            Some(purge) => self.purge(&purge).await?,
            None => Purged::default(),
        };
        let Some(words) = edit.stored_words() else {
            return Ok(gone);
        };
        let message = edit.message;
        self.unsaved.edit(channel, message, words);
        for (_, store) in self.stores.all() {
            store.edit_message(channel, message, words).await?;
        }
        let ids = vec![message];
        self.recall
            .forget_changed(&Purge::Messages { channel, ids });
        if let Some(transcripts) = &self.stores.transcripts {
            transcripts.edit_message(channel, message, words).await?;
        }
        Ok(gone)
    }

    /// Applies deletions. Most deleted messages never became part of anything.
    async fn deleted(&self, channel: ChannelId, ids: Vec<MessageId>) -> Result<Purged> {
        let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
            return Ok(Purged::default());
        };
        let mut held = self.held(channel, *first, *last).await?;
        held.retain(|id| ids.contains(id));
        self.doubts.drop_questions(channel, &ids);
        // A tool may be reading those of which nothing is held.
        let all = Purge::Messages { channel, ids };
        let purged = if held.is_empty() {
            self.purge_outputs(&all).await?
        } else {
            self.purge(&all).await?
        };
        self.doubts.settle(channel, held, self.now());
        Ok(purged)
    }

    /// The messages of a channel, within a range of ids, that something is kept
    /// of, in any store or in memory.
    async fn held(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<BTreeSet<MessageId>> {
        let mut held: BTreeSet<MessageId> = self.facts.links(channel).collect();
        held.extend(self.unsaved.messages(channel));
        held.retain(|id| (from..=to).contains(id));
        for (_, store) in self.stores.all() {
            held.extend(store.held_messages(channel, from, to).await?);
        }
        if let Some(transcripts) = &self.stores.transcripts {
            held.extend(transcripts.held_messages(channel, from, to).await?);
        }
        Ok(held)
    }

    /// Marks servers of this shard that Discord no longer names as left, and those that it names
    /// as ours. Those that were left before are purged when it is time; the others not before the
    /// next sweep, in case one turns up after all.
    async fn left_unseen(&self, shard: u32, shards: u32, guilds: &[GuildId]) -> Result<Purged> {
        if guilds.is_empty() {
            // Some Discord-compatible servers do not list them.
            return Ok(Purged::default());
        }
        // In another bot's store, the servers not named are not ones that we left.
        if let Some(application) = self.application.get() {
            self.stores.lasting.claim(*application).await?;
        }
        let departed = self.stores.lasting.departures().await?;
        let mut kept = BTreeSet::new();
        for (_, store) in self.stores.all() {
            kept.extend(store.guilds().await?);
        }
        let is_of_shard = |guild: &GuildId| shard_of(*guild, shards) == Some(shard);
        let was_left = |guild: &GuildId| departed.iter().any(|(departed, _)| departed == guild);
        let is_known = |guild: &GuildId| guilds.contains(guild) || was_left(guild);
        let now = self.now();
        for guild in kept
            .into_iter()
            .filter(|guild| is_of_shard(guild) && !is_known(guild))
        {
            self.stores.lasting.set_departure(guild, Some(now)).await?;
        }
        let back = departed.iter().map(|(guild, _)| *guild);
        for guild in back.filter(|guild| guilds.contains(guild)) {
            self.stores.lasting.set_departure(guild, None).await?;
        }
        let is_due = |left| is_of_shard(&left) && was_left(&left);
        self.purge_departed(now, is_due).await
    }

    /// Notes that we left; what is stored is purged after `GUILD_RETENTION_DAYS`.
    async fn depart(&self, guild: GuildId) -> Result<Purged> {
        let now = self.now();
        self.stores.lasting.set_departure(guild, Some(now)).await?;
        self.purge_departed(now, |left| left == guild).await
    }

    async fn rejoin(&self, guild: GuildId) -> Result<Purged> {
        // Sent for every server at each start; we had left only few of them.
        let lasting = &self.stores.lasting;
        let departed = lasting.departures().await?;
        if departed.iter().any(|(departed, _)| *departed == guild) {
            lasting.set_departure(guild, None).await?;
        }
        Ok(Purged::default())
    }

    /// Absence purges nothing: a page may be short for many reasons.
    async fn compare(&self, page: Fetched) -> Result<Purged> {
        let channel = page.channel;
        let held = self.held(channel, page.from, page.to).await?;
        for edit in page
            .edited
            .iter()
            .filter(|edit| held.contains(&edit.message))
        {
            self.edit(channel, edit).await?;
        }
        let (shown, lacking): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|id| page.present.contains(id));
        self.doubts.settle(channel, shown, page.at);
        self.doubts.lacking((page.guild, channel), lacking, page.at);
        Ok(Purged::default())
    }

    /// Asks for all that is kept of a channel from some message on.
    async fn recheck(
        &self,
        (guild, channel): (Option<GuildId>, ChannelId),
        from: MessageId,
    ) -> Result<Purged> {
        let held = self.held(channel, from, MessageId::new(u64::MAX)).await?;
        self.doubts.lacking((guild, channel), held, self.now());
        Ok(Purged::default())
    }

    /// Permissions changed in these channels: messages that we could not read
    /// before are asked for once more.
    pub fn permissions_changed(&self, may_be_of: impl Fn(ChannelId) -> bool) {
        self.doubts.ask_refused(may_be_of);
    }

    /// The deletions and purges since then that would have covered any of these
    /// rows, or this receipt.
    pub(super) fn late_purges(
        &self,
        rows: &[StoredMessage],
        receipt: Option<&StoredReceipt>,
        since: UnixMillis,
    ) -> Vec<Purge> {
        let noted = &self.changes.noted;
        let mut late = noted.gone_of(rows, receipt, since);
        let mut held: BTreeMap<ChannelId, BTreeSet<MessageId>> = BTreeMap::new();
        for (channel, id) in rows.iter().flat_map(StoredMessage::made_of) {
            held.entry(channel).or_default().insert(id);
        }
        if let Some(receipt) = receipt {
            let of = held.entry(receipt.channel).or_default();
            of.extend(receipt.message_ids());
        }
        for (channel, held) in held {
            let ids = noted.deleted_of(channel, held);
            if !ids.is_empty() {
                late.push(Purge::Messages { channel, ids });
            }
        }
        // An edit that the turn began after is old news.
        let is_late = |edited: &Purge| {
            let reach = Reach::of(edited, rows);
            rows.iter().any(|row| reach.holds(row))
        };
        late.extend(noted.edits_of(rows).into_iter().filter(is_late));
        late
    }

    /// Repeats the deletions and purges that came while these rows were on their
    /// way to a store.
    pub(super) async fn purge_late(&self, rows: &[StoredMessage], since: UnixMillis) {
        for purge in self.late_purges(rows, None, since) {
            self.done(StoreOperation::Purge, self.purge(&purge).await);
        }
    }
}

const fn cause(change: &DiscordChange) -> PurgeCause {
    match change {
        DiscordChange::Deleted { .. } | DiscordChange::Edited { .. } => PurgeCause::Deleted,
        DiscordChange::ChannelDeleted { .. } => PurgeCause::Channel,
        DiscordChange::GuildLeft(_)
        | DiscordChange::GuildJoined(_)
        | DiscordChange::Connected { .. } => PurgeCause::Guild,
        DiscordChange::MemberLeft { .. } => PurgeCause::Member,
        DiscordChange::Unknown { .. }
        | DiscordChange::Fetched(_)
        | DiscordChange::Recheck { .. } => PurgeCause::Evidence,
    }
}

#[cfg(test)]
mod tests;
