//! Writes entries in both databases.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{Database, Outcome, Placed, See, ids, ready};
use crate::columns::{self, Cell};
use crate::model::StoredMessage;
use crate::{Record, TurnKey};
use clew_context::model::MessageId;

/// See [`Backend::write`](crate::Backend::write). The rows and files of snapshots are written
/// already.
pub(crate) async fn write<D: Database>(db: &D, records: &[Record]) -> Outcome<(), D> {
    let rows: Vec<_> = records.iter().filter_map(Record::message).collect();
    write_rows(db, &rows).await?;
    for record in records {
        match record {
            Record::Message(_) => {}
            Record::Snapshot(snapshot) => ready(db, &snapshot.info.id).await?,
            Record::Fact(fact) => {
                db.see(See::About(fact.subject)).await?;
                db.put_fact(fact).await?;
            }
            Record::Receipt(receipt) => db.put_receipt(receipt).await?,
            Record::Marker(..)
            | Record::OptOut(..)
            | Record::Settings(..)
            | Record::Agent(..)
            | Record::Departure(..) => put(db, record).await?,
        }
    }
    Ok(())
}

/// Writes a list's entry.
async fn put<D: Database>(db: &D, record: &Record) -> Outcome<(), D> {
    if let (Some(table), Some(key)) = (D::table(record.kind()), record.key()) {
        let cells = key.cells().into_iter().chain(columns::list_value(record));
        db.run(&table.put(), &cells.collect::<Vec<_>>()).await?;
    }
    Ok(())
}

/// Writes rows of turns unchanged, replacing earlier copies of them. Rows of one call stay
/// separate, even if they look identical.
async fn write_rows<D: Database>(db: &D, rows: &[&StoredMessage]) -> Outcome<(), D> {
    let same = format!(
        "id IN (SELECT id FROM messages WHERE {} AND role = ?4
             AND tool_call_id IS NOT DISTINCT FROM ?5 AND tool_calls IS NOT DISTINCT FROM ?6
             AND discord_message_id IS NOT DISTINCT FROM ?7)",
        D::OF_TURN
    );
    for row in rows {
        let key = TurnKey::of(row);
        let mut values = key.cells().to_vec();
        values.extend([
            Cell::text(row.role.as_str()),
            Cell::maybe(row.tool_call_id.as_deref()),
            Cell::maybe(row.tool_calls.as_deref()),
            Cell::maybe_id(row.message.map(MessageId::get)),
        ]);
        db.remove_where(&D::MESSAGES, &same, &values).await?;
    }
    let mut turns = BTreeMap::new();
    let mut placed: Vec<Placed<'_>> = Vec::with_capacity(rows.len());
    for row in rows.iter().copied() {
        let turn = (row.scope, row.agent.clone(), row.turn);
        let position = match turns.entry(turn) {
            Entry::Occupied(next) => next.into_mut(),
            Entry::Vacant(next) => next.insert(next_position(db, row).await?),
        };
        placed.push((row, *position));
        *position += 1;
    }
    db.insert_rows(&placed).await
}

/// The position after the existing rows of its turn.
async fn next_position<D: Database>(db: &D, row: &StoredMessage) -> Outcome<i64, D> {
    let of_turn = D::OF_TURN;
    let sql = format!("SELECT coalesce(max(position) + 1, 0) AS id FROM messages WHERE {of_turn}");
    let key = TurnKey::of(row);
    let next = ids(db, See::Lists, &sql, &key.cells(), u64::cast_signed).await?;
    Ok(next.first().copied().unwrap_or_default())
}
