//! Early rows, which are few: what concerns them is judged here, row by row.

use super::messages::{self, OF_TURN};
use super::session::{Call, Outcome, write_scope};
use super::tables::MESSAGE;
use super::values::PostgresRow;
use crate::columns::{self, Cell};
use crate::model::StoredMessage;
use crate::sql::{Database as _, See, early_rows};
use crate::{Purge, Reach, TurnKey, append};

/// The table that they are in.
pub(super) const TABLE: &str = "early_messages";

/// See [`super::super::Backend::append_early`].
pub(super) async fn append_early(call: &Call<'_>, turn: &[StoredMessage]) -> Outcome<()> {
    let first = append::first_of(turn)?;
    let (place, _) = messages::place(call, first).await?;
    let sql = messages::insertion(TABLE);
    let rows = append::placed(turn, place.ordinal, place.newest, place.cleared);
    for placed in rows.iter().zip(0..) {
        messages::insert_row(call, &sql, placed).await?;
    }
    Ok(())
}

/// Removes a turn's early rows, and returns them in order.
pub(super) async fn take(call: &Call<'_>, key: &TurnKey) -> Outcome<Vec<StoredMessage>> {
    let sql = format!(
        "WITH gone AS (DELETE FROM {TABLE} WHERE {OF_TURN} RETURNING *)
         SELECT {MESSAGE} FROM gone ORDER BY position"
    );
    let read = |row: &PostgresRow<'_>| call.readable(columns::message(row));
    let gone = call
        .all(See::Lists, "messages", &sql, &key.cells(), read)
        .await?;
    Ok(gone.into_iter().flatten().collect())
}

/// See [`super::super::Backend::take_back`].
pub(super) async fn take_back(call: &Call<'_>, key: &TurnKey) -> Outcome<u64> {
    write_scope(call, key.scope).await?;
    Ok(take(call, key).await?.len() as u64)
}

/// Removes what a purge covers. Returns how many rows.
pub(super) async fn purge(call: &Call<'_>, purge: &Purge) -> Outcome<u64> {
    let (ids, rows): (Vec<i64>, Vec<_>) = early_rows(call).await?.into_iter().unzip();
    let reach = Reach::of(purge, &rows);
    let gone = ids.iter().zip(&rows).filter(|(_, row)| reach.holds(row));
    let gone: Vec<i64> = gone.map(|(id, _)| *id).collect();
    if gone.is_empty() {
        return Ok(0);
    }
    let sql = format!("DELETE FROM {TABLE} WHERE id = ANY (?1)");
    call.run(&sql, &[Cell::Numbers(gone)]).await
}
