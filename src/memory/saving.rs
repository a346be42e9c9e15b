//! Saving turns: each on its own once answered; those waiting for a failed store
//! together, once it is back.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::circuit::{Side, Trouble};
use super::early::EarlyTurn;
use super::history::{Exchange, rows};
use super::receipts::receipt;
use super::reconcile::traces;
use super::unsaved::{EarlyRows, Moving, Next, UnsavedTurn};
use super::{Memory, Place, Result};
use crate::telemetry::event::{DropReason, Recorded, StoreOperation, TurnsDropped};
use crate::telemetry::{Ids, Ms};
use clew_context::model::{UnixMillis, UserId};
use clew_store::Purge;
use clew_store::model::{StoredMessage, StoredReceipt};

impl Memory {
    /// Keeps a turn, except for a user who opted out and for anything purged since
    /// it was asked. A store that fails gets it later. What was stored of it before it was
    /// answered is confirmed, or taken back.
    pub async fn record(
        &self,
        ids: &Ids,
        place: &Place,
        exchange: &Exchange,
        early: Option<EarlyTurn<'_>>,
    ) {
        let Some(mut turn) = self.unsaved_turn(ids, place, exchange) else {
            return;
        };
        if self
            .changes
            .noted
            .is_unknown(exchange.turn, &turn.rows, turn.receipt.as_deref())
        {
            tracing::warn!("too much was deleted during a turn to know whether it may be stored");
            self.tell_dropped(ids, 1, DropReason::Unknown);
            return;
        }
        turn.early = early.as_ref().map(|early| early.rows).unwrap_or_default();
        let (rows, receipt) = (Arc::clone(&turn.rows), turn.receipt.clone());
        for dropped in self.unsaved.keep(turn) {
            self.tell_dropped(&dropped, 1, DropReason::Room);
        }
        let heard = rows.iter().flat_map(traces);
        let heard = heard.map(|trace| trace.heard(exchange.asked));
        self.doubts.hide_unconfirmed(heard, self.now());
        if let Some(early) = early {
            early.answered();
        }
        self.purge_unsaved(place.asker, &rows, receipt.as_deref(), exchange.asked);
        let circuit = self.circuit(&self.stores.conversations);
        let is_ours = |turn: &UnsavedTurn| turn.key.scope == place.scope;
        let asked = self.save_turns(|turn| is_ours(turn) && !circuit.is_open(Side::Write));
        if asked.await.is_err() || self.unsaved.waits(is_ours) {
            self.recovery.notify_one();
        }
    }

    /// A turn as it waits for its store; none if nothing of it is to be stored.
    pub(super) fn unsaved_turn(
        &self,
        ids: &Ids,
        place: &Place,
        exchange: &Exchange,
    ) -> Option<UnsavedTurn> {
        if self.opted_out(place.asker) {
            return None;
        }
        let mut rows = if exchange.answer.is_empty() {
            Vec::new()
        } else {
            rows(place, exchange, self.limits())
        };
        if !self.settings.keeps_tools() {
            rows.retain(|row| row.role.is_spoken());
        }
        let now = self.now();
        let receipt = receipt(place, exchange, now);
        UnsavedTurn::new(*ids, now, &place.agent, rows, receipt)
    }

    /// Applies what was purged since then to a turn that waits by now: later purges find it
    /// there by themselves.
    pub(super) fn purge_unsaved(
        &self,
        asker: UserId,
        rows: &[StoredMessage],
        receipt: Option<&StoredReceipt>,
        since: UnixMillis,
    ) {
        for purge in self.late_purges(rows, receipt, since) {
            self.unsaved.purge(&purge);
        }
        if self.opted_out(asker) {
            self.unsaved.purge(&Purge::User(asker));
        }
    }

    /// Stores the matching turns that wait, in order. If the store refuses a turn,
    /// the rest of its conversation waits and others go on.
    ///
    /// # Errors
    /// The store is gone or does not answer.
    pub(super) async fn save_turns(
        &self,
        is_meant: impl Fn(&UnsavedTurn) -> bool + Send + Sync,
    ) -> Result<(), Trouble> {
        let mut held_up = BTreeSet::new();
        loop {
            let ended = self.unsaved.ended.notified();
            let moving = match self.unsaved.next(&held_up, &is_meant) {
                Next::Turn(moving) => moving,
                Next::Wait => {
                    ended.await;
                    continue;
                }
                Next::Nothing => return Ok(()),
            };
            match self.attempt(self.store_turn(&moving.turn)).await {
                Ok(ordinal) => self.stored(*moving, ordinal).await,
                Err(trouble) => {
                    self.append_failed(&moving.turn, &trouble);
                    if !matches!(trouble, Trouble::Refused(_)) {
                        return Err(trouble);
                    }
                    held_up.extend(self.unsaved.held_up_by(&moving.turn));
                }
            }
        }
    }

    /// Reports a refusal only at the first try: each further try is refused as well.
    fn append_failed(&self, turn: &UnsavedTurn, trouble: &Trouble) {
        if turn.tries == 1 || !matches!(trouble, Trouble::Refused(_)) {
            let (store, append) = (&self.stores.conversations, StoreOperation::Append);
            self.trouble(&turn.ids, append, store, Side::Write, trouble);
        }
    }

    /// If the store may have the turn already, deletions since are applied to it
    /// before it is stored again. Returns its ordinal, if it has any rows.
    async fn store_turn(&self, turn: &UnsavedTurn) -> Result<Option<u64>> {
        let store = &self.stores.conversations;
        for purge in &turn.purges {
            store.purge(purge).await?;
            if let Some(transcripts) = &self.stores.transcripts {
                transcripts.purge(purge).await?;
            }
        }
        if let Some(receipt) = &turn.receipt
            && !turn.rows.is_empty()
            && self.stores.are_one()
        {
            return store.append_with(&turn.rows, receipt).await.map(Some);
        }
        let mut ordinal = None;
        if !turn.rows.is_empty() {
            ordinal = Some(store.append(&turn.rows).await?);
        } else if turn.early != EarlyRows::None {
            store.take_back(&turn.key).await?;
        }
        self.store_receipt(turn).await?;
        Ok(ordinal)
    }

    async fn stored(&self, moving: Moving<'_>, ordinal: Option<u64>) {
        let turn = moving.turn.clone();
        // A turn edited on its way is stored twice, but logged once.
        let is_first = !turn.is_logged && !turn.rows.is_empty();
        if is_first {
            self.log_direct(&turn).await;
        }
        moving.stored();
        if let Some(ordinal) = ordinal {
            self.recall.stored(&turn.key, ordinal);
        }
        if is_first {
            let recorded = Recorded {
                rows: turn.rows.len(),
                early: turn.early == EarlyRows::Stored,
                ms: Ms::from(self.elapsed(turn.answered)),
            };
            self.telemetry.emit(&turn.ids, recorded);
        }
    }

    /// `DM_LOGS_DIR`.
    async fn log_direct(&self, turn: &UnsavedTurn) {
        if let (None, Some(transcripts)) = (turn.ids.guild, &self.stores.transcripts)
            && let Err(error) = transcripts.append(&turn.rows).await
        {
            self.failed(&turn.ids, StoreOperation::Transcript, &error);
        }
    }

    /// For commands that read what is stored, or set what counts from then on:
    /// stores the turns answered before.
    ///
    /// # Errors
    /// The store is gone or does not answer.
    pub(super) async fn save_first(
        &self,
        is_meant: impl Fn(&UnsavedTurn) -> bool + Send + Sync,
    ) -> Result<()> {
        match self.save_turns(is_meant).await {
            Ok(()) => Ok(()),
            Err(Trouble::Gone(error) | Trouble::Refused(error)) => Err(error),
            Err(Trouble::Hung) => Err(clew_store::Error::Unavailable {
                operation: "store what was answered before",
                source: "no answer in time".into(),
            }),
        }
    }

    /// Gives up the turns that are left at the end of the process, and reports them.
    pub(super) fn drop_unsaved(&self) {
        let turns = self.unsaved.len();
        if turns > 0 {
            tracing::error!(turns, "answered turns could not be stored before the end");
            self.tell_dropped(&Ids::default(), turns, DropReason::Stopping);
        }
    }

    fn tell_dropped(&self, ids: &Ids, turns: usize, reason: DropReason) {
        if reason == DropReason::Room {
            tracing::warn!("too many answered turns wait for the store: one is dropped");
        }
        self.telemetry.emit(ids, TurnsDropped { turns, reason });
    }
}
