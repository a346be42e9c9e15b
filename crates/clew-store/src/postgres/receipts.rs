//! Receipts of answers.

use super::session::{Call, Outcome, Parameters, rows, touched};
use super::tables::SCHEMA;
use super::values::{PostgresRow, borrowed, dollars};
use crate::columns::{self, Cell, RECEIPT, guild_key, user_key};
use crate::model::{ReceiptLimits, StoredReceipt};
use crate::table::receipts_beyond;
use clew_context::model::{ChannelId, MessageId, UserId};

const PUT: &str = "
WITH added AS (
    INSERT INTO clew.receipts (turn_id, scope, guild_id, channel_id, owner_id, is_private, trigger_id,
        messages, at, sources, body)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    RETURNING turn_id, channel_id
), held AS (
    INSERT INTO clew.receipt_ids (channel_id, message_id, turn_id)
    SELECT DISTINCT added.channel_id, held.message_id, added.turn_id
    FROM added, unnest($12::bigint[]) AS held (message_id)
)
INSERT INTO clew.receipt_people (turn_id, guild_id, author_id)
SELECT added.turn_id, named.guild_id, named.author_id
FROM added, unnest($13::bigint[], $14::bigint[]) AS named (guild_id, author_id)";

/// Writes a receipt, replacing the one of its turn.
pub(super) async fn put(call: &Call<'_>, receipt: &StoredReceipt) -> Outcome<()> {
    let signed = |id: u64| id.cast_signed();
    let turn = signed(receipt.turn.0);
    let forget = "DELETE FROM clew.receipts WHERE turn_id = $1";
    touched(call, forget, &[&turn]).await?;
    let ids: Vec<i64> = receipt.message_ids().map(|id| signed(id.get())).collect();
    let named = receipt.people().into_iter();
    let named = named.map(|(guild, user)| (guild_key(guild), user_key(user)));
    let (guilds, people): (Vec<i64>, Vec<i64>) = named.unzip();
    let mut values = columns::receipt_cells(receipt).to_vec();
    values.extend([ids, guilds, people].map(Cell::Numbers));
    touched(call, PUT, &borrowed(&values)).await?;
    Ok(())
}

/// See [`super::super::Backend::receipt_of`].
pub(super) async fn receipt_of(
    call: &Call<'_>,
    channel: ChannelId,
    message: MessageId,
) -> Outcome<Option<StoredReceipt>> {
    let which = "turn_id = (SELECT max(turn_id) FROM clew.receipt_ids
        WHERE channel_id = $1 AND message_id = $2)";
    let (channel, message) = (channel.get().cast_signed(), message.get().cast_signed());
    one(call, which, &[&channel, &message]).await
}

/// See [`super::super::Backend::last_receipt`].
pub(super) async fn last_receipt(
    call: &Call<'_>,
    channel: ChannelId,
    reader: UserId,
) -> Outcome<Option<StoredReceipt>> {
    let which = "channel_id = $1 AND (NOT is_private OR owner_id = $2)
        ORDER BY at DESC, turn_id DESC LIMIT 1";
    let (channel, reader) = (channel.get().cast_signed(), reader.get().cast_signed());
    one(call, which, &[&channel, &reader]).await
}

async fn one(
    call: &Call<'_>,
    which: &str,
    parameters: Parameters<'_>,
) -> Outcome<Option<StoredReceipt>> {
    let sql = format!("SELECT {RECEIPT} FROM clew.receipts WHERE {which}");
    let found = rows(call, &sql, parameters).await?;
    let found = found.first().map(|row| PostgresRow::of("receipts", row));
    found.map(|row| columns::receipt(&row)).transpose()
}

/// See [`super::super::Backend::expire_receipts`].
pub(super) async fn expire_receipts(call: &Call<'_>, limits: ReceiptLimits) -> Outcome<u64> {
    let mut gone = 0;
    for (which, value) in receipts_beyond(SCHEMA, limits) {
        let sql = dollars(&format!("DELETE FROM clew.receipts WHERE {which}"));
        gone += touched(call, &sql, &borrowed(&[value])).await?;
    }
    Ok(gone)
}
