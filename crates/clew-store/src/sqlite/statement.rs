//! Statements, prepared once for a connection, and what is read of their rows.

use rusqlite::{Connection, Params, Row};

use super::fault::Outcome;

/// Runs a statement. Returns how many rows it changed.
pub(super) fn run(connection: &Connection, sql: &str, values: impl Params) -> Outcome<u64> {
    Ok(connection.prepare_cached(sql)?.execute(values)? as u64)
}

/// Reads every row.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let mut select = connection.prepare_cached(sql)?;
    select.query_and_then(values, read)?.collect()
}

/// Reads the first row, if there is one.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> Outcome<T>,
) -> Outcome<Option<T>> {
    let mut select = connection.prepare_cached(sql)?;
    select.query(values)?.next()?.map(read).transpose()
}

/// The ids in the first column.
pub(super) fn ids<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    make: impl Fn(u64) -> T,
) -> Outcome<Vec<T>> {
    all(connection, sql, values, |row| {
        Ok(make(row.get::<_, i64>(0)?.cast_unsigned()))
    })
}
