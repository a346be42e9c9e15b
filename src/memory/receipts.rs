//! Receipts of answers: what each was made from, kept for a while.

use super::history::Exchange;
use super::unsaved::UnsavedTurn;
use super::{Memory, Place, Result};
use crate::telemetry::event::StoreOperation;
use clew_context::model::{ChannelId, MessageId, UnixMillis, UserId};
use clew_store::Record;
use clew_store::model::{ReceiptPerson, StoredReceipt};

impl Memory {
    /// The receipt of an answer, by one of its messages or by its trigger.
    ///
    /// # Errors
    /// The store's error.
    pub async fn receipt_of(
        &self,
        channel: ChannelId,
        message: MessageId,
    ) -> Result<Option<StoredReceipt>> {
        let is_it = |one: &StoredReceipt| {
            one.channel == channel && one.message_ids().any(|id| id == message)
        };
        match self.unsaved.last_receipt(is_it) {
            Some(waiting) => Ok(Some(waiting)),
            None => self.stores.lasting.receipt_of(channel, message).await,
        }
    }

    /// The receipt of the newest answer in a channel, passing over private answers to
    /// others than the reader.
    ///
    /// # Errors
    /// The store's error.
    pub async fn last_receipt(
        &self,
        channel: ChannelId,
        reader: UserId,
    ) -> Result<Option<StoredReceipt>> {
        let is_it = |one: &StoredReceipt| {
            one.channel == channel && (!one.is_private || one.owner == reader)
        };
        match self.unsaved.last_receipt(is_it) {
            Some(waiting) => Ok(Some(waiting)),
            None => self.stores.lasting.last_receipt(channel, reader).await,
        }
    }

    /// Stores a turn's receipt. It holds no text, so that it lasts even where
    /// conversations are kept in memory; there a store that fails loses it.
    pub(super) async fn store_receipt(&self, turn: &UnsavedTurn) -> Result<()> {
        let Some(receipt) = &turn.receipt else {
            return Ok(());
        };
        let record = Record::Receipt(StoredReceipt::clone(receipt));
        match self.stores.lasting.write(&[record]).await {
            Err(error) if !self.stores.are_one() => {
                self.failed(&turn.ids, StoreOperation::Append, &error);
                Ok(())
            }
            stored => stored,
        }
    }
}

/// The receipt of a turn as it is kept; none without one, or if nothing was posted.
pub(super) fn receipt(
    place: &Place,
    exchange: &Exchange,
    now: UnixMillis,
) -> Option<StoredReceipt> {
    let receipt = exchange.receipt.as_ref()?;
    exchange.messages.first()?;
    let prompt = &receipt.prompt;
    let shown = prompt.shown.iter().chain(&prompt.quoted);
    let shown = shown.map(|message| message.author);
    let omitted = prompt.omitted.iter().map(|message| message.author);
    let people = shown.chain(omitted).map(|author| ReceiptPerson {
        guild: place.guild,
        author: Some(author),
    });
    let elsewhere = exchange.sources.iter().map(|source| ReceiptPerson {
        guild: source.guild,
        author: source.author,
    });
    Some(StoredReceipt {
        turn: exchange.turn,
        scope: place.scope,
        guild: place.guild,
        channel: place.channel,
        owner: place.asker,
        is_private: receipt.is_private,
        trigger: exchange.trigger,
        messages: exchange.messages.clone(),
        at: now,
        people: people.chain(elsewhere).collect(),
        body: serde_json::to_string(receipt).ok()?,
    })
}
