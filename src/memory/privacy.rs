//! Privacy: who opts out, what is erased, what is exported.

use super::Memory;
use crate::telemetry::event::PurgeCause;
use clew_context::model::{OptedOut, UnixMillis, UserId};
use clew_store::{Backend, Cursor, Kind, Purge, Purged, Record};

/// Entries read at once for an export.
const EXPORT_PAGE: usize = 500;

/// Everything that is kept of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// When.
    pub at: UnixMillis,
    /// JSON objects as text, one an entry, each with its `kind`.
    pub entries: Vec<String>,
}

impl Memory {
    /// From now on nothing of this user is kept, learnt or read, and what is
    /// kept goes. Who holds messages has to let go of theirs too.
    ///
    /// # Errors
    /// What the store says. The opt-out may be noted already; asking again
    /// finishes it.
    pub async fn opt_out(&self, user: UserId) -> Result<Purged, clew_store::Error> {
        self.unsaved.purge(&Purge::User(user));
        let lasting = &self.stores.lasting;
        lasting.set_opt_out(user, Some(self.now())).await?;
        self.read_opt_outs().await?;
        let purged = self.purge(&Purge::User(user)).await?;
        self.tell_purged(PurgeCause::OptOut, &purged);
        Ok(purged)
    }

    /// From now on this user is treated as everybody.
    ///
    /// # Errors
    /// What the store says.
    pub async fn opt_in(&self, user: UserId) -> Result<(), clew_store::Error> {
        self.stores.lasting.set_opt_out(user, None).await?;
        self.read_opt_outs().await
    }

    async fn read_opt_outs(&self) -> Result<(), clew_store::Error> {
        let all = self.stores.lasting.opt_outs().await?;
        let all: OptedOut = all.into_iter().map(|(user, _)| user).collect();
        self.opt_outs.set(all);
        Ok(())
    }

    /// Everything of a user goes, from every store and from memory; an
    /// opt-out stays. Says what went.
    ///
    /// # Errors
    /// What a store says; the others were purged all the same.
    pub async fn erase(&self, user: UserId) -> Result<Purged, clew_store::Error> {
        // What is on its way to a store goes with the rest.
        self.mend_all().await;
        let purged = self.purge(&Purge::User(user)).await?;
        self.tell_purged(PurgeCause::Erase, &purged);
        Ok(purged)
    }

    /// How much of each kind is kept of a user.
    ///
    /// # Errors
    /// What the store says.
    pub async fn kept_of(&self, user: UserId) -> Result<Purged, clew_store::Error> {
        let mut kept = Purged::default();
        for record in self.records_of(user).await? {
            kept.add(record.kind(), 1);
        }
        if let Some(transcripts) = &self.stores.transcripts {
            let lines = transcripts.lines(user).await?.len();
            kept.add(Kind::Transcripts, u64::try_from(lines).unwrap_or(u64::MAX));
        }
        Ok(kept)
    }

    /// Everything that is kept of a user.
    ///
    /// # Errors
    /// What the store says.
    pub async fn export(&self, user: UserId) -> Result<Exported, clew_store::Error> {
        self.flush().await;
        let records = self.records_of(user).await?;
        let mut entries: Vec<String> = records.iter().map(Record::to_line).collect();
        if let Some(transcripts) = &self.stores.transcripts {
            entries.extend(transcripts.lines(user).await?);
        }
        Ok(Exported {
            at: self.now(),
            entries,
        })
    }

    async fn records_of(&self, user: UserId) -> Result<Vec<Record>, clew_store::Error> {
        self.save_first(|turn| turn.is_by(user)).await?;
        let mut records = Vec::new();
        for (_, store) in self.stores.all() {
            for kind in Kind::ALL {
                let mut after: Option<Cursor> = None;
                loop {
                    let page = store
                        .records(kind, Some(user), after.as_ref(), EXPORT_PAGE)
                        .await?;
                    records.extend(page.records);
                    match page.next {
                        Some(next) => after = Some(next),
                        None => break,
                    }
                }
            }
        }
        Ok(records)
    }
}
