//! Upkeep: saving, reconciling and sweeping in the background.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::{DiscordChange, EditOf, Memory, Result};
use crate::telemetry::Ids;
use crate::telemetry::event::{EntriesPurged, PurgeCause, StoreOperation};
use clew_context::model::{Fallback, GuildId, UnixMillis, UserId};
use clew_discord::guild_state::{GuildState, shard_of};
use clew_discord::rest::Rest;
use clew_discord::session::Claims;
use clew_store::model::ReceiptLimits;
use clew_store::{Purge, Purged};

/// How often expired data is looked for.
const SWEEP_EVERY: Duration = Duration::from_hours(1);
/// The most receipts that are kept of a person in a server, or in direct messages, and of a
/// server: some tens of KiB each at most. Between two sweeps there may be more.
const RECEIPTS_OF_A_PERSON: u32 = 2_000;
const RECEIPTS_OF_A_GUILD: u32 = 20_000;
/// How often a store that needs it clears away what deletions left behind.
const TIDY_EVERY: Duration = Duration::from_mins(1);
/// How often members who left unnoticed are looked for, and how long after the
/// start for the first time, when the servers are known.
const MEMBER_CHECK_EVERY: Duration = Duration::from_hours(24);
const FIRST_MEMBER_CHECK: Duration = Duration::from_hours(1);
/// The pause between two members of a membership check, so that it never gets in the way.
const MEMBER_CHECK_PACE: Duration = Duration::from_secs(1);
/// How long looking up one member may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

impl Memory {
    /// Runs along with the bot until `shutdown`; [`Memory::close`] handles what is left.
    pub async fn upkeep(
        &self,
        rest: &Rest,
        guild_state: &GuildState,
        claims: &Claims,
        edit_of: EditOf<'_>,
        shutdown: CancellationToken,
    ) {
        let work = async {
            tokio::join!(
                self.tend(&shutdown),
                self.recover(&shutdown),
                self.tidy(&shutdown),
                self.call_rolls(rest, guild_state, &shutdown),
                self.settle_doubts(rest, edit_of, &shutdown),
                self.settle_early(rest, claims, guild_state, &shutdown)
            );
        };
        tokio::select! {
            biased;
            () = work => {}
            () = self.gives_up(&shutdown) => {}
        }
    }

    /// Reconciles, saves and sweeps. What has begun is finished: a change dropped halfway
    /// is lost.
    async fn tend(&self, shutdown: &CancellationToken) {
        let mut saving = every(self.settings.save_interval, self.settings.save_interval);
        let mut sweeping = every(SWEEP_EVERY, SWEEP_EVERY);
        self.sweep().await;
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                // Before changes, which may arrive without a pause.
                _ = saving.tick() => {
                    self.reconcile_all().await;
                    self.flush().await;
                }
                _ = sweeping.tick() => self.sweep().await,
                () = self.resumed.notified() => self.sweep_departed().await,
                () = self.changes.came.notified() => self.reconcile_all().await,
            }
        }
    }

    /// Clears away what deletions left behind, separately: it may take long, and
    /// may be cancelled.
    async fn tidy(&self, shutdown: &CancellationToken) {
        let mut tidying = every(TIDY_EVERY, TIDY_EVERY);
        let tidy = async {
            loop {
                tidying.tick().await;
                if self.is_well() && self.owes_opt_outs.swap(false, Ordering::Relaxed) {
                    self.done(StoreOperation::Purge, self.finish_opt_outs().await);
                }
                self.sweep_outputs().await;
                for (_, store) in self.stores.all() {
                    if self.is_well() {
                        self.done(StoreOperation::Sweep, store.tidy().await);
                    }
                }
            }
        };
        let _ = shutdown.run_until_cancelled(tidy).await;
    }

    /// Runs membership checks, separately: they take a second per member.
    async fn call_rolls(
        &self,
        rest: &Rest,
        guild_state: &GuildState,
        shutdown: &CancellationToken,
    ) {
        let mut calling = every(FIRST_MEMBER_CHECK, MEMBER_CHECK_EVERY);
        let calls = async {
            loop {
                tokio::select! {
                    biased;
                    _ = calling.tick() => self.check_members(rest, guild_state.guilds()).await,
                    due = self.changes.due_members() => {
                        for (guild, user) in due {
                            self.check_member(rest, guild, user).await;
                        }
                    }
                }
            }
        };
        let _ = shutdown.run_until_cancelled(calls).await;
    }

    /// Removes expired data, data past its retention, and servers left long ago.
    pub async fn sweep(&self) {
        let now = self.now();
        for (_, store) in self.stores.all() {
            let swept = self.done(StoreOperation::Sweep, store.sweep(now).await);
            if swept.is_some_and(|rows| rows > 0) {
                self.recall.forget_all();
            }
        }
        self.forget_beyond_windows(now).await;
        let old = match self.settings.retention {
            Some(retention) => self.purge(&Purge::Before(now.before(retention))).await,
            None => Ok(Purged::default()),
        };
        self.swept(PurgeCause::Retention, old);
        self.expire_receipts(now).await;
        self.sweep_departed().await;
    }

    /// Removes conversations in memory that no prompt would include any more: they
    /// are older than the operator's window and the longest window of a server or
    /// agent used so far.
    async fn forget_beyond_windows(&self, now: UnixMillis) {
        if self.stores.are_one() {
            return;
        }
        let conversations = &self.stores.conversations;
        let longest = self.longest_window.load(Ordering::Relaxed);
        let longest = Duration::from_millis(longest.max(0).cast_unsigned());
        let old = Purge::Before(now.before(longest.max(self.settings.rolling_window)));
        let purged = conversations.purge(&old).await;
        self.forget_purged(&old, &purged);
        self.swept(PurgeCause::Retention, purged);
    }

    fn swept(&self, cause: PurgeCause, done: Result<Purged>) {
        if let Some(purged) = self.done(StoreOperation::Sweep, done) {
            self.tell_purged(cause, &purged);
        }
    }

    /// `RECEIPT_DAYS`, and the most that are kept.
    async fn expire_receipts(&self, now: UnixMillis) {
        let limits = ReceiptLimits {
            since: now.before(self.settings.receipts.unwrap_or_default()),
            of_person: RECEIPTS_OF_A_PERSON,
            of_guild: RECEIPTS_OF_A_GUILD,
        };
        let expired = self.stores.lasting.expire_receipts(limits).await;
        if let Some(entries @ 1..) = self.done(StoreOperation::Sweep, expired) {
            let cause = PurgeCause::Retention;
            let expired = EntriesPurged { cause, entries };
            self.telemetry.emit(&Ids::default(), expired);
        }
    }

    /// Servers of shards that were told.
    async fn sweep_departed(&self) {
        let heard = self.heard.lock().clone();
        // It may have been told that we are back.
        let (_until_purged, true) = self.reconciled().await else {
            return;
        };
        let is_told = |guild| {
            let mut heard = heard.iter();
            heard.any(|(shard, shards)| shard_of(guild, *shards) == Some(*shard))
        };
        let left = self.purge_departed(self.now(), is_told).await;
        self.swept(PurgeCause::Guild, left);
    }

    /// Purges such servers that we left `GUILD_RETENTION_DAYS` ago.
    pub(super) async fn purge_departed(
        &self,
        now: UnixMillis,
        is_meant: impl Fn(GuildId) -> bool,
    ) -> Result<Purged> {
        let due = now.before(self.settings.guild_retention);
        let mut purged = Purged::default();
        for (guild, at) in self.stores.lasting.departures().await? {
            if at <= due && is_meant(guild) {
                purged.merge(&self.purge(&Purge::Guild(guild)).await?);
                self.guilds.lock().remove(&guild);
            }
        }
        Ok(purged)
    }

    /// Looks up the members that something is kept of, and purges those who left
    /// unnoticed (without the members intent Discord does not say).
    async fn check_members(&self, rest: &Rest, guilds: Vec<GuildId>) {
        for guild in guilds {
            for user in self.members_kept(guild).await {
                tokio::time::sleep(MEMBER_CHECK_PACE).await;
                self.check_member(rest, guild, user).await;
            }
        }
    }

    /// Asks Discord whether somebody is still a member, and purges them if not.
    pub async fn check_member(&self, rest: &Rest, guild: GuildId, user: UserId) {
        let deadline = Instant::now() + LOOK_TIMEOUT;
        match rest.reader().is_member(guild, user, deadline).await {
            Ok(true) => {}
            Ok(false) => self.reconcile(DiscordChange::MemberLeft { guild, user }),
            Err(error) if error.reason == Fallback::RateLimited => {}
            Err(error) => tracing::debug!(%error, "a member could not be looked up"),
        }
    }

    async fn members_kept(&self, guild: GuildId) -> Vec<UserId> {
        let mut members = Vec::new();
        for (_, store) in self.stores.all() {
            let found = self.done(StoreOperation::Read, store.members(guild).await);
            members.extend(found.unwrap_or_default());
        }
        members.sort();
        members.dedup();
        members
    }
}

fn every(first: Duration, period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + first, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
