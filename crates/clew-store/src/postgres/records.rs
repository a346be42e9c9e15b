//! Reads and writes all entries of a kind, page by page, for exports, copies
//! and statistics.

use super::super::backend::Visit;
use super::super::pages::PAGE;
use super::super::{Cursor, Kind, KindStats, PartSize, Record, RecordKey, Records};
use super::session::{
    Call, Failure, LONG_PATIENCE, Outcome, rows, see, see_all, touched, write_all,
};
use super::tables::table;
use super::values::{PostgresRow, borrowed, dollars};
use super::{facts, messages, receipts, snapshots};
use crate::columns;
use clew_context::model::UserId;

/// See [`super::super::Backend::records`].
pub(super) async fn records(
    call: &Call<'_>,
    kind: Kind,
    owner: Option<UserId>,
    after: Option<&Cursor>,
    most: usize,
) -> Outcome<Records> {
    let Some(table) = table(kind) else {
        return Ok(Records::default());
    };
    let page = table.page(owner, after, most).map_err(Failure::Refused)?;
    let Some((sql, values)) = page else {
        return Ok(Records::default());
    };
    if kind.is_text() {
        see_all(call).await?;
    }
    let found = rows(call, &dollars(&sql), &borrowed(&values)).await?;
    let found = found
        .iter()
        .map(|row| columns::entry(kind, &table, &PostgresRow::of(table.name, row)));
    let mut page = Records::first(most, found.collect::<Outcome<_>>()?);
    for snapshot in page.records.iter_mut().filter_map(Record::snapshot_mut) {
        *snapshot = snapshots::what_is_left(call, snapshot.info.clone()).await?;
    }
    Ok(page)
}

/// See [`super::super::Backend::each_record`].
pub(super) async fn each(call: &Call<'_>, visit: Visit<'_>) -> Outcome<()> {
    for kind in Kind::ALL {
        let mut after: Option<Cursor> = None;
        loop {
            let page = records(call, kind, None, after.as_ref(), PAGE);
            let page = tokio::time::timeout(LONG_PATIENCE, page).await;
            let page = page.unwrap_or(Err(Failure::Slow))?;
            page.records.into_iter().try_for_each(&mut *visit)?;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// See [`super::super::Backend::write`].
pub(super) async fn write(call: &Call<'_>, records: &[Record]) -> Outcome<()> {
    if is_bulk(records) {
        let of_turns: Vec<_> = records.iter().filter_map(Record::message).collect();
        write_all(call).await?;
        messages::write(call, &of_turns).await?;
    }
    for record in records {
        write_one(call, record).await?;
    }
    Ok(())
}

/// Whether writing takes time, and keeps out all other writers.
pub(super) fn is_bulk(records: &[Record]) -> bool {
    let is_bulk = |record| matches!(record, &Record::Message(_) | &Record::Snapshot(_));
    records.iter().any(is_bulk)
}

async fn write_one(call: &Call<'_>, record: &Record) -> Outcome<()> {
    match record {
        // Already written, all together.
        Record::Message(_) => Ok(()),
        // `Postgres::write` has written its row and file.
        Record::Snapshot(snapshot) => snapshots::ready(call, &snapshot.info.id).await,
        Record::Fact(fact) => {
            see(call, fact.subject).await?;
            facts::put(call, fact).await
        }
        Record::Receipt(receipt) => receipts::put(call, receipt).await,
        Record::Marker(..)
        | Record::OptOut(..)
        | Record::Settings(..)
        | Record::Agent(..)
        | Record::Departure(..) => put(call, record).await,
    }
}

/// Writes a list's entry.
async fn put(call: &Call<'_>, record: &Record) -> Outcome<()> {
    if let (Some(table), Some(key)) = (table(record.kind()), record.key()) {
        let mut cells = key.cells();
        cells.extend(columns::list_value(record));
        touched(call, &dollars(&table.put()), &borrowed(&cells)).await?;
    }
    Ok(())
}

/// See [`super::super::Backend::remove`].
pub(super) async fn remove(call: &Call<'_>, keys: &[RecordKey]) -> Outcome<u64> {
    if keys.iter().any(|key| matches!(key, RecordKey::Fact(_))) {
        see_all(call).await?;
    }
    let mut gone = 0;
    for key in keys {
        // Both kinds of facts are in one table.
        let table = key.kinds().first().and_then(|kind| table(*kind));
        let Some(table) = table else { continue };
        let sql = dollars(&table.remove());
        gone += touched(call, &sql, &borrowed(&key.cells())).await?;
    }
    Ok(gone)
}

/// See [`super::super::Backend::stats`]. Logs of direct messages are counted
/// elsewhere.
pub(super) async fn stats(call: &Call<'_>) -> Outcome<Vec<KindStats>> {
    see_all(call).await?;
    let mut stats = Vec::with_capacity(Kind::ALL.len());
    for kind in Kind::ALL {
        let Some(table) = table(kind) else { continue };
        if let Some(row) = rows(call, &table.count(), &[]).await?.first() {
            stats.push(columns::stats(kind, &PostgresRow::of(table.name, row))?);
        }
    }
    Ok(stats)
}

/// What the tables take, with their indexes.
pub(super) async fn sizes(call: &Call<'_>) -> Outcome<Vec<PartSize>> {
    let sql = "SELECT 'clew.' || relname AS part, pg_total_relation_size(pg_class.oid) AS bytes \
         FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
         WHERE nspname = 'clew' AND relkind = 'r' ORDER BY 2 DESC, 1";
    let found = rows(call, sql, &[]).await?;
    let sizes = found.iter().map(|row| {
        let part: String = row.try_get("part")?;
        let bytes: i64 = row.try_get("bytes")?;
        Ok(PartSize::new(part, bytes.cast_unsigned()))
    });
    sizes.collect()
}
