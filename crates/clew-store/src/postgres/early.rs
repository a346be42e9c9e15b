//! Early rows, which are few: what concerns them is judged here, row by row.

use super::messages::{self, VALUES, readable};
use super::session::{Call, Outcome, rows, see_all, touched, write_scope};
use super::tables::MESSAGE;
use crate::model::StoredMessage;
use crate::{Purge, Reach, TurnKey, append};
use clew_context::model::{ChannelId, MessageId};

/// The table that they are in.
pub(super) const TABLE: &str = "early_messages";

/// See [`super::super::Backend::append_early`].
pub(super) async fn append_early(call: &Call<'_>, turn: &[StoredMessage]) -> Outcome<()> {
    let first = append::first_of(turn).map_err(super::session::Failure::Refused)?;
    let (place, _) = messages::place(call, first).await?;
    let sql = format!("INSERT INTO clew.{TABLE} {VALUES}");
    let rows = append::placed(turn, place.ordinal, place.newest, place.cleared);
    for placed in rows.iter().zip(0..) {
        messages::insert_row(call, &sql, placed).await?;
    }
    Ok(())
}

/// Removes a turn's early rows, and returns them in order.
pub(super) async fn take(call: &Call<'_>, key: &TurnKey) -> Outcome<Vec<StoredMessage>> {
    let sql = format!(
        "WITH gone AS (DELETE FROM clew.{TABLE}
             WHERE scope = $1 AND turn_id = $2 AND agent_name = $3 RETURNING *)
         SELECT {MESSAGE} FROM gone ORDER BY position"
    );
    let (scope, turn) = (key.scope.to_string(), key.turn.0.cast_signed());
    let gone = rows(call, &sql, &[&scope, &turn, &key.agent.as_str()]).await?;
    Ok(gone.iter().filter_map(readable).collect())
}

/// See [`super::super::Backend::take_back`].
pub(super) async fn take_back(call: &Call<'_>, key: &TurnKey) -> Outcome<u64> {
    write_scope(call, key.scope).await?;
    Ok(take(call, key).await?.len() as u64)
}

/// See [`super::super::Backend::early`].
pub(super) async fn early(call: &Call<'_>, limit: usize) -> Outcome<Vec<StoredMessage>> {
    see_all(call).await?;
    let found = all(call).await?;
    let found = found.into_iter().map(|(_, row)| row).collect();
    Ok(append::first_turns(found, limit))
}

/// All early rows, turn by turn, with their numbers; in a transaction that sees everything.
async fn all(call: &Call<'_>) -> Outcome<Vec<(i64, StoredMessage)>> {
    let sql = format!(
        "SELECT {MESSAGE} FROM clew.early_messages
         ORDER BY scope, agent_name, turn_id, position"
    );
    let mut found = Vec::new();
    for row in rows(call, &sql, &[]).await? {
        let id = row.try_get("id")?;
        found.extend(readable(&row).map(|message| (id, message)));
    }
    Ok(found)
}

/// Removes what a purge covers. Returns how many rows.
pub(super) async fn purge(call: &Call<'_>, purge: &Purge) -> Outcome<u64> {
    let (ids, rows): (Vec<i64>, Vec<_>) = all(call).await?.into_iter().unzip();
    let reach = Reach::of(purge, &rows);
    let gone = ids.iter().zip(&rows).filter(|(_, row)| reach.holds(row));
    let gone: Vec<i64> = gone.map(|(id, _)| *id).collect();
    if gone.is_empty() {
        return Ok(0);
    }
    let sql = "DELETE FROM clew.early_messages WHERE id = ANY ($1)";
    touched(call, sql, &[&gone]).await
}

/// The messages of a channel that early rows are made of.
pub(super) async fn held(call: &Call<'_>, channel: ChannelId) -> Outcome<Vec<MessageId>> {
    let rows = all(call).await?;
    let held = rows.iter().flat_map(|(_, row)| row.made_of());
    let held = held.filter_map(|(of, id)| (of == channel).then_some(id));
    Ok(held.collect())
}
