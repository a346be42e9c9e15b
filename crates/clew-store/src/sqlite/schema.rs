//! The schema's versions, and migrating a file to the newest.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::fault::Outcome;
use crate::Error;

/// Marks the file as ours in its header: `Clew` in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x436c_6577;
/// The newest version this program knows.
pub(super) const VERSION: usize = MIGRATIONS.len();
/// One migration per version, starting from an empty file. Never changed once
/// released: a change is a new entry.
const MIGRATIONS: [&str; 7] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
];

/// Migrates a file to the newest version, each step in its own transaction. A
/// file that is not empty and not ours is refused before anything is written.
pub(super) fn migrate(connection: &Connection, place: &str) -> Outcome<()> {
    let found = version(connection, place)?;
    for (at, step) in MIGRATIONS.iter().enumerate().skip(found) {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        // Another process may have done this step.
        if version(connection, place)? > at {
            continue;
        }
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(
            None,
            "user_version",
            u32::try_from(at + 1).unwrap_or(u32::MAX),
        )?;
        transaction.commit()?;
    }
    Ok(())
}

/// The version of our file; 0 for an empty one.
pub(super) fn version(connection: &Connection, place: &str) -> Outcome<usize> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (owner, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if owner == 0 && version == 0 && tables == 0 {
        return Ok(0);
    }
    let known = VERSION;
    match usize::try_from(version) {
        Ok(found) if owner == i64::from(APPLICATION_ID) && found <= known && found > 0 => Ok(found),
        Ok(found) if owner == i64::from(APPLICATION_ID) && found > known => {
            let number = |version| u32::try_from(version).unwrap_or(u32::MAX);
            Err(Error::newer(place, number(found), number(known)).into())
        }
        _ => {
            let remedy = "it is the database of another program; name another file in \
                          CONTEXT_STORE=sqlite:PATH";
            Err(Error::unopened(place, remedy, None).into())
        }
    }
}
