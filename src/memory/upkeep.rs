//! Upkeep: saving, mending, sweeping, beside everything else.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::{Memory, Mend};
use crate::telemetry::Ids;
use crate::telemetry::event::{PurgeCause, StoreOperation};
use clew_context::model::{ChannelId, Fallback, GuildId, MessageId, UnixMillis, UserId};
use clew_discord::facts::Facts;
use clew_discord::rest::Rest;
use clew_store::{Backend, Purge, Purged};

/// What expires is looked for this often.
const SWEEP_EVERY: Duration = Duration::from_hours(1);
/// Who left unseen is looked for this often, the first time an hour after the
/// start, when the servers are known.
const ROLL_CALL_EVERY: Duration = Duration::from_hours(24);
const FIRST_ROLL_CALL: Duration = Duration::from_hours(1);
/// Between two members of a roll call, so that it never is in the way.
const ROLL_CALL_PACE: Duration = Duration::from_secs(1);
/// One look at a member or a message.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two messages that a page lacked.
const MISSING_PACE: Duration = Duration::from_millis(250);
/// As many unknown ones are purged at once, about.
const MISSING_TOGETHER: usize = 100;
/// What could not be asked for is asked for again after this long.
const MISSING_AGAIN: Duration = Duration::from_mins(1);

impl Memory {
    /// Runs beside the bot until `shutdown`, then does what waits and saves.
    pub async fn upkeep(&self, rest: &Rest, facts: &Facts, shutdown: CancellationToken) {
        tokio::join!(
            self.tend(&shutdown),
            self.call_rolls(rest, facts, &shutdown),
            self.ask_for_missing(rest, &shutdown)
        );
        self.mend_all().await;
        self.flush().await;
    }

    /// Mends, saves, sweeps. What has begun is finished: a mend that is dropped
    /// half way is lost.
    async fn tend(&self, shutdown: &CancellationToken) {
        let mut saving = every(self.settings.save_interval, self.settings.save_interval);
        let mut sweeping = every(SWEEP_EVERY, SWEEP_EVERY);
        self.sweep().await;
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                // Before what may come without a pause.
                _ = saving.tick() => {
                    self.mend_all().await;
                    self.flush().await;
                }
                _ = sweeping.tick() => self.sweep().await,
                () = self.mends.came() => self.mend_all().await,
            }
        }
    }

    /// Beside all that: a roll call takes a second a member.
    async fn call_rolls(&self, rest: &Rest, facts: &Facts, shutdown: &CancellationToken) {
        let mut calling = every(FIRST_ROLL_CALL, ROLL_CALL_EVERY);
        let calls = async {
            loop {
                tokio::select! {
                    _ = calling.tick() => self.roll_call(rest, facts.guilds()).await,
                    due = self.mends.due_members() => {
                        for (guild, user) in due {
                            self.check_member(rest, guild, user).await;
                        }
                    }
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = calls => {}
        }
    }

    /// What pages lacked is asked for, each by its own id.
    async fn ask_for_missing(&self, rest: &Rest, shutdown: &CancellationToken) {
        let asking = async {
            loop {
                let due = self.mends.due_missing().await;
                let again = self.ask_for(rest, due).await;
                if !again.is_empty() {
                    tokio::time::sleep(MISSING_AGAIN).await;
                    self.mends
                        .ask_again(|channel, id| again.contains(&(channel, id)));
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = asking => {}
        }
    }

    /// Asks for messages, those of a channel one after the other. Gives back
    /// what is left when Discord stops answering. A channel that refuses us says
    /// nothing of its messages, and is not asked on: refused requests count
    /// towards a ban. They stay out of prompts until permissions change or a
    /// page shows them.
    async fn ask_for(
        &self,
        rest: &Rest,
        mut due: Vec<(ChannelId, MessageId)>,
    ) -> Vec<(ChannelId, MessageId)> {
        let (mut unknown, mut refused) = (Vec::new(), None);
        let mut asked = 0;
        for &(channel, id) in &due {
            if refused != Some(channel) {
                let deadline = Instant::now() + LOOK_TIMEOUT;
                match rest.reader().message(channel, id, deadline).await {
                    Ok(_) => self.mends.settle(channel, |one| one == id),
                    Err(error) => match error.reason {
                        Fallback::Deleted => unknown.push((channel, id)),
                        Fallback::Forbidden | Fallback::NotFound => refused = Some(channel),
                        Fallback::Timeout | Fallback::RateLimited | Fallback::Unavailable => break,
                        _ => {}
                    },
                }
                tokio::time::sleep(MISSING_PACE).await;
            }
            asked += 1;
            if unknown.len() >= MISSING_TOGETHER {
                self.mend_unknown(&mut unknown);
            }
        }
        self.mend_unknown(&mut unknown);
        due.split_off(asked)
    }

    /// Those of a channel go together: each purge may write a whole file.
    fn mend_unknown(&self, unknown: &mut Vec<(ChannelId, MessageId)>) {
        for of_channel in unknown.chunk_by(|(one, _), (next, _)| one == next) {
            let channel = of_channel[0].0;
            let ids = of_channel.iter().map(|(_, id)| *id).collect();
            self.mend(Mend::Unknown { channel, ids });
        }
        unknown.clear();
    }

    /// Finishes what is being written and closes the stores.
    pub async fn close(&self) {
        self.mend_all().await;
        self.flush().await;
        for (_, store) in self.stores.all() {
            if let Err(error) = store.close().await {
                self.failed(&Ids::default(), StoreOperation::Close, &error);
            }
        }
    }

    /// What expires, what is too old, and servers that we left long ago.
    pub async fn sweep(&self) {
        let now = self.now();
        for (_, store) in self.stores.all() {
            if let Err(error) = store.sweep(now).await {
                self.failed(&Ids::default(), StoreOperation::Sweep, &error);
            }
        }
        let old = match self.settings.retention {
            Some(retention) => self.purge(&Purge::Before(before(now, retention))).await,
            None => Ok(Purged::default()),
        };
        self.swept(PurgeCause::Retention, old);
        let left = self.purge_departed(now).await;
        self.swept(PurgeCause::Guild, left);
    }

    fn swept(&self, cause: PurgeCause, done: Result<Purged, clew_store::Error>) {
        match done {
            Ok(purged) => self.tell_purged(cause, &purged),
            Err(error) => self.failed(&Ids::default(), StoreOperation::Sweep, &error),
        }
    }

    /// Servers that we left `GUILD_RETENTION_DAYS` ago.
    pub(super) async fn purge_departed(
        &self,
        now: UnixMillis,
    ) -> Result<Purged, clew_store::Error> {
        let due = before(now, self.settings.guild_retention);
        let mut purged = Purged::default();
        for (guild, at) in self.stores.lasting.departures().await? {
            if at <= due {
                purged.merge(&self.purge(&Purge::Guild(guild)).await?);
            }
        }
        Ok(purged)
    }

    /// Members of whom something is kept are looked for: who left unseen
    /// (without the members intent Discord does not tell) is purged.
    async fn roll_call(&self, rest: &Rest, guilds: Vec<GuildId>) {
        for guild in guilds {
            for user in self.members_kept(guild).await {
                tokio::time::sleep(ROLL_CALL_PACE).await;
                self.check_member(rest, guild, user).await;
            }
        }
    }

    /// Asks Discord whether somebody is still a member; who is not is purged.
    pub async fn check_member(&self, rest: &Rest, guild: GuildId, user: UserId) {
        let deadline = Instant::now() + LOOK_TIMEOUT;
        match rest.reader().is_member(guild, user, deadline).await {
            Ok(true) => {}
            Ok(false) => self.mend(Mend::MemberLeft { guild, user }),
            Err(error) if error.reason == Fallback::RateLimited => {}
            Err(error) => tracing::debug!(%error, "a member could not be looked up"),
        }
    }

    async fn members_kept(&self, guild: GuildId) -> Vec<UserId> {
        let mut members = Vec::new();
        for (_, store) in self.stores.all() {
            match store.members(guild).await {
                Ok(found) => members.extend(found),
                Err(error) => self.failed(&Ids::default(), StoreOperation::Read, &error),
            }
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

fn before(now: UnixMillis, span: Duration) -> UnixMillis {
    let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    UnixMillis(now.0.saturating_sub(span))
}
