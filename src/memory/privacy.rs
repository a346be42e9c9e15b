//! Privacy: opting out, erasing and exporting.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::{Memory, Result};
use crate::telemetry::event::PurgeCause;
use clew_context::model::{OptedOut, UnixMillis, UserId};
use clew_store::{Kind, Pages, Purge, Purged, Record};

/// The pause between two users whose opt-outs are looked after, some reads each.
const BETWEEN_OPT_OUTS: Duration = Duration::from_millis(100);
/// After this time an opt-out has long been finished, unless something is kept of its user.
const FINISHED: Duration = Duration::from_hours(7 * 24);

/// Everything that is kept about a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// When it was exported.
    pub at: UnixMillis,
    /// One JSON object as text per entry, each with its `kind`.
    pub entries: Vec<String>,
}

impl Memory {
    /// From now on nothing of this user is kept, learnt or read, and what is kept
    /// is purged. Callers that hold messages must drop this user's themselves.
    ///
    /// # Errors
    /// The store's error. The opt-out may have been noted already: it holds until the store
    /// says, and is finished then.
    pub async fn opt_out(&self, user: UserId) -> Result<Purged> {
        self.unsaved.purge(&Purge::User(user));
        let opted_out = self.set_opt_out(user, true).await;
        self.owe_opt_outs(&opted_out);
        if opted_out.is_err() {
            let _reads = self.reads_opt_outs.lock().await;
            let current = self.opt_outs.current();
            self.opt_outs.set(current.users().chain([user]).collect());
        }
        opted_out
    }

    /// From now on this user is treated like everyone else.
    ///
    /// # Errors
    /// The store's error. The user may be opted in already: what the store says holds, once
    /// it says.
    pub async fn opt_in(&self, user: UserId) -> Result<()> {
        let opted_in = self.set_opt_out(user, false).await;
        self.owe_opt_outs(&opted_in);
        opted_in.map(drop)
    }

    async fn set_opt_out(&self, user: UserId, is_out: bool) -> Result<Purged> {
        let since = is_out.then(|| self.now());
        self.stores.lasting.set_opt_out(user, since).await?;
        self.read_opt_outs().await?;
        if !is_out {
            return Ok(Purged::default());
        }
        let purged = self.purge(&Purge::User(user)).await?;
        self.tell_purged(PurgeCause::OptOut, &purged);
        Ok(purged)
    }

    /// What failed may have been carried out all the same.
    fn owe_opt_outs<T>(&self, done: &Result<T>) {
        if done.is_err() {
            self.owes_opt_outs.store(true, Ordering::Relaxed);
        }
    }

    /// Finishes opt-outs that an earlier process was stopped in, or whose outcome the store
    /// did not tell.
    ///
    /// # Errors
    /// A store's error; the next call finishes the rest.
    pub(super) async fn finish_opt_outs(&self) -> Result<()> {
        let finished = self.finish_opt_outs_now().await;
        self.owe_opt_outs(&finished);
        finished
    }

    async fn finish_opt_outs_now(&self) -> Result<()> {
        let opt_outs = self.read_opt_outs().await?;
        let owners = self.owners_of_outputs().await?;
        let lately = self.now().before(FINISHED);
        for (user, since) in opt_outs {
            // Of somebody's words in others' answers nobody would know.
            let keeps = since > lately || owners.contains(&user) || self.keeps_any(user).await?;
            // Whoever opted in meanwhile is remembered again.
            if keeps && self.opted_out(user) {
                let purged = self.purge(&Purge::User(user)).await?;
                self.tell_purged(PurgeCause::OptOut, &purged);
            }
            sleep(BETWEEN_OPT_OUTS).await;
        }
        Ok(())
    }

    /// Whether anything but the opt-out and results of tools is kept of a user.
    async fn keeps_any(&self, user: UserId) -> Result<bool> {
        for (_, store) in self.stores.all() {
            for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::OptOuts) {
                let found = store.records(kind, Some(user), None, 1).await?;
                if !found.records.is_empty() {
                    return Ok(true);
                }
            }
        }
        Ok(match &self.stores.transcripts {
            Some(transcripts) => !transcripts.lines(user).await?.is_empty(),
            None => false,
        })
    }

    async fn read_opt_outs(&self) -> Result<Vec<(UserId, UnixMillis)>> {
        let _reads = self.reads_opt_outs.lock().await;
        let all = self.stores.lasting.opt_outs().await?;
        let users: OptedOut = all.iter().map(|(user, _)| *user).collect();
        self.opt_outs.set(users);
        Ok(all)
    }

    /// Removes everything about a user from every store and from memory, except
    /// for an opt-out. Returns what was removed.
    ///
    /// # Errors
    /// A store's error; the other stores were purged all the same.
    pub async fn erase(&self, user: UserId) -> Result<Purged> {
        // Changes on their way to a store are applied first, to go with the rest.
        self.reconcile_all().await;
        let purged = self.purge(&Purge::User(user)).await?;
        self.tell_purged(PurgeCause::Erase, &purged);
        Ok(purged)
    }

    /// How much of each kind is kept about a user.
    ///
    /// # Errors
    /// The store's error.
    pub async fn kept_of(&self, user: UserId) -> Result<Purged> {
        let mut kept = Purged::default();
        self.each_of(user, |record| kept.add(record.kind(), 1))
            .await?;
        if let Some(transcripts) = &self.stores.transcripts {
            let lines = transcripts.lines(user).await?.len();
            kept.add(Kind::Transcripts, u64::try_from(lines).unwrap_or(u64::MAX));
        }
        kept.add(Kind::Outputs, self.count_outputs(user).await?);
        Ok(kept)
    }

    /// Everything that is kept about a user.
    ///
    /// # Errors
    /// The store's error.
    pub async fn export(&self, user: UserId) -> Result<Exported> {
        self.flush().await;
        let mut entries = Vec::new();
        self.each_of(user, |record| entries.push(record.to_line()))
            .await?;
        if let Some(transcripts) = &self.stores.transcripts {
            entries.extend(transcripts.lines(user).await?);
        }
        entries.extend(self.export_outputs(user).await?);
        Ok(Exported {
            at: self.now(),
            entries,
        })
    }

    /// Reads every record about a user, some at a time.
    async fn each_of(&self, user: UserId, mut take: impl FnMut(Record) + Send) -> Result<()> {
        self.save_first(|turn| turn.ids.user == Some(user)).await?;
        for (_, store) in self.stores.all() {
            for kind in Kind::ALL {
                let mut pages = Pages::of(&***store, kind, Some(user));
                while let Some(page) = pages.next().await? {
                    page.into_iter().for_each(&mut take);
                }
            }
        }
        Ok(())
    }
}
