//! Receipts of answers.

use super::session::{Call, Outcome};
use crate::columns::{self, Cell, guild_key, user_key};
use crate::model::StoredReceipt;
use crate::sql::Database as _;
use crate::table::Table;

const PUT: &str = "
WITH added AS (
    INSERT INTO receipts (turn_id, scope, guild_id, channel_id, owner_id, is_private, trigger_id,
        messages, at, people, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    RETURNING turn_id, channel_id
), held AS (
    INSERT INTO receipt_ids (channel_id, message_id, turn_id)
    SELECT DISTINCT added.channel_id, held.message_id, added.turn_id
    FROM added, unnest(?12::bigint[]) AS held (message_id)
)
INSERT INTO receipt_people (turn_id, guild_id, author_id)
SELECT added.turn_id, named.guild_id, named.author_id
FROM added, unnest(?13::bigint[], ?14::bigint[]) AS named (guild_id, author_id)";

/// Writes a receipt, replacing the one of its turn.
pub(super) async fn put(call: &Call<'_>, receipt: &StoredReceipt) -> Outcome<()> {
    let turn = [Cell::id(receipt.turn.0)];
    let table = Table::RECEIPTS;
    call.run(&table.delete(&table.of_key()), &turn).await?;
    let ids = receipt.message_ids();
    let ids = ids.map(|id| id.get().cast_signed()).collect();
    let named = receipt.everybody().into_iter();
    let named = named.map(|one| (guild_key(one.guild), user_key(one.author)));
    let (guilds, people): (Vec<i64>, Vec<i64>) = named.unzip();
    let mut values = columns::receipt_cells(receipt).to_vec();
    values.extend([ids, guilds, people].map(Cell::Numbers));
    call.run(PUT, &values).await?;
    Ok(())
}
