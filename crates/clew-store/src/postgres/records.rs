//! Reads and writes all entries of a kind, page by page, for exports, copies
//! and statistics.

use super::super::backend::Visit;
use super::super::pages::PAGE;
use super::super::{Cursor, Kind, PartSize, Record};
use super::session::{Call, Failure, LONG_PATIENCE, Outcome, write_all};
use super::values::PostgresRow;
use crate::columns::Columns as _;
use crate::sql::{self, Database as _, See};

/// See [`super::super::Backend::each_record`].
pub(super) async fn each(call: &Call<'_>, visit: Visit<'_>) -> Outcome<()> {
    for kind in Kind::ALL {
        let mut after: Option<Cursor> = None;
        loop {
            let page = sql::records(call, kind, None, after.as_ref(), PAGE);
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
        write_all(call).await?;
    }
    sql::write(call, records).await
}

/// Whether writing takes time, and keeps out all other writers.
pub(super) fn is_bulk(records: &[Record]) -> bool {
    let is_bulk = |record| matches!(record, &Record::Message(_) | &Record::Snapshot(_));
    records.iter().any(is_bulk)
}

/// See [`super::super::Backend::try_writing`].
pub(super) async fn try_writing(call: &Call<'_>) -> Outcome<()> {
    let sql = "UPDATE owner SET application_id = application_id";
    call.run(sql, &[]).await?;
    Ok(())
}

/// What the tables take, with their indexes.
pub(super) async fn sizes(call: &Call<'_>) -> Outcome<Vec<PartSize>> {
    let sql = "SELECT 'clew.' || relname AS part, pg_total_relation_size(pg_class.oid) AS bytes \
         FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
         WHERE nspname = 'clew' AND relkind = 'r' ORDER BY 2 DESC, 1";
    let read = |row: &PostgresRow<'_>| {
        let bytes = row.id("bytes", |bytes| bytes)?;
        Ok(PartSize::new(row.whole("part")?, bytes))
    };
    call.all(See::Lists, "pg_class", sql, &[], read).await
}
