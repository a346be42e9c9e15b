//! People's texts: appended after all others of their table, never moved, and
//! deleted by overwriting them in place.
//!
//! `secure_delete` clears a deleted row, but not the copies left in pages when
//! a b-tree moves rows between them. Rows that are only ever appended, or
//! replaced by equally many bytes, do not move (`texts_never_move` checks this
//! against the file's bytes). So nothing is left in the database; what the
//! write-ahead log still holds is removed when it is emptied, see
//! [`Session::scrub`].
//!
//! Overwritten texts take space until they are a large part of the file; see
//! [`drop_blank`].

use rusqlite::{Connection, Params, params};

use super::fault::Outcome;
use super::session::Session;
use super::statement::{all, run};
use crate::model::StoredMessage;

/// A table of texts.
pub(super) struct Texts {
    table: &'static str,
    /// All columns except `id`.
    columns: &'static [&'static str],
    /// The table that refers to them by `text_id`.
    rows: &'static str,
}

/// Texts of turns.
pub(super) const MESSAGES: Texts = Texts {
    table: "message_texts",
    columns: &[
        "content",
        "author_name",
        "tool_calls",
        "tool_call_id",
        "parts",
    ],
    rows: "message_rows",
};
pub(super) const FACTS: Texts = Texts {
    table: "fact_texts",
    columns: &["text"],
    rows: "fact_rows",
};
/// Summaries and descriptions of snapshots.
pub(super) const SNAPSHOTS: Texts = Texts {
    table: "snapshot_texts",
    columns: &["summary", "description"],
    rows: "snapshot_rows",
};
const ALL: [Texts; 3] = [MESSAGES, FACTS, SNAPSHOTS];

impl Texts {
    /// Appends a text and returns its number. Takes one value per column.
    pub(super) fn add(&self, connection: &Connection, values: impl Params) -> Outcome<i64> {
        let places: Vec<_> = (1..=self.columns.len())
            .map(|at| format!("?{at}"))
            .collect();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.table,
            self.columns.join(", "),
            places.join(", ")
        );
        Ok(connection.prepare_cached(&sql)?.insert(values)?)
    }

    /// Removes the rows that fulfil a condition, and their texts. Returns how many.
    pub(super) fn remove_where(
        &self,
        session: &Session,
        which: &str,
        key: impl Params,
    ) -> Outcome<u64> {
        let sql = format!("DELETE FROM {} WHERE {which} RETURNING text_id", self.rows);
        // Read to the end, or rows would remain.
        let gone: Vec<i64> = all(&session.connection, &sql, key, |row| Ok(row.get(0)?))?;
        for text in &gone {
            self.blank(session, *text)?;
        }
        Ok(gone.len() as u64)
    }

    /// Overwrites a text with as many spaces. Nothing may refer to it any more
    /// when the transaction ends.
    pub(super) fn blank(&self, session: &Session, text: i64) -> Outcome<()> {
        let connection = &session.connection;
        self.overwrite(session, text)?;
        let sql = format!(
            "UPDATE upkeep SET blank_bytes = blank_bytes + (SELECT {} FROM {} WHERE id = ?1)",
            self.bytes(),
            self.table
        );
        run(connection, &sql, [text]).map(drop)
    }

    fn overwrite(&self, session: &Session, text: i64) -> Outcome<()> {
        let blanks = self.columns.iter().map(|column| {
            format!(
                "{column} = CASE WHEN {column} IS NOT NULL
                     THEN printf('%*s', octet_length({column}), '') END"
            )
        });
        let blanks: Vec<_> = blanks.collect();
        let sql = format!(
            "UPDATE {} SET {} WHERE id = ?1",
            self.table,
            blanks.join(", ")
        );
        run(&session.connection, &sql, [text])?;
        session.overwrote();
        Ok(())
    }

    /// SQL for the size of a text, in bytes.
    fn bytes(&self) -> String {
        let each = self.columns.iter();
        let each = each.map(|column| format!("coalesce(octet_length({column}), 0)"));
        each.collect::<Vec<_>>().join(" + ")
    }

    /// Removes texts that nothing refers to.
    fn drop_blank(&self, connection: &Connection) -> Outcome<()> {
        let sql = format!(
            "DELETE FROM {} WHERE id NOT IN (SELECT text_id FROM {})",
            self.table, self.rows
        );
        connection.execute(&sql, [])?;
        Ok(())
    }
}

/// Appends the texts of a turn's row. `parts` is of rows from before they had it.
pub(super) fn add_message(connection: &Connection, message: &StoredMessage) -> Outcome<i64> {
    MESSAGES.add(
        connection,
        params![
            message.content,
            message.author_name,
            message.tool_calls,
            message.tool_call_id,
            None::<String>,
        ],
    )
}

/// Overwrites the texts of turns' rows and marks the rows as gone, which hides
/// them. `which` is a condition on `message_rows`. Returns how many there were.
pub(super) fn remove_messages(session: &Session, which: &str, key: impl Params) -> Outcome<u64> {
    remove_some_messages(session, which, key, u64::MAX)
}

/// The same with at most `most` of them, those stored first.
pub(super) fn remove_some_messages(
    session: &Session,
    which: &str,
    key: impl Params,
    most: u64,
) -> Outcome<u64> {
    let connection = &session.connection;
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT id, text_id FROM message_rows WHERE NOT gone AND ({which})
         ORDER BY text_id LIMIT {limit}"
    );
    let rows: Vec<(i64, i64)> = all(connection, &sql, key, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut remove = connection.prepare_cached("UPDATE message_rows SET gone = 1 WHERE id = ?1")?;
    for (id, text) in &rows {
        MESSAGES.overwrite(session, *text)?;
        remove.execute([id])?;
    }
    Ok(rows.len() as u64)
}

/// Gives a turn's row a new text.
pub(super) fn edit_message(session: &Session, row: i64, text: &str) -> Outcome<()> {
    let connection = &session.connection;
    let mut old = connection.prepare_cached("SELECT text_id FROM message_rows WHERE id = ?1")?;
    let old: i64 = old.query_row([row], |row| row.get(0))?;
    let mut add = connection.prepare_cached(
        "INSERT INTO message_texts (content, author_name, tool_calls, tool_call_id, parts)
         SELECT ?2, author_name, tool_calls, tool_call_id, parts FROM message_texts WHERE id = ?1",
    )?;
    let new = add.insert((old, text))?;
    let point = "UPDATE message_rows SET text_id = ?2 WHERE id = ?1";
    run(connection, point, (row, new))?;
    MESSAGES.blank(session, old)
}

/// Sweeps at most `most` deleted rows of turns, in one short transaction.
/// Returns how many.
pub(super) fn sweep_rows(session: &Session, most: usize) -> Outcome<usize> {
    session.transact(|connection| {
        let sql = "SELECT id, text_id FROM message_rows INDEXED BY messages_gone WHERE gone
             ORDER BY id LIMIT ?1";
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let rows: Vec<(i64, i64)> = all(connection, sql, [limit], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        let mut sweep = connection.prepare_cached("DELETE FROM message_rows WHERE id = ?1")?;
        let sql = format!(
            "SELECT {} FROM message_texts WHERE id = ?1",
            MESSAGES.bytes()
        );
        let mut bytes = connection.prepare_cached(&sql)?;
        let mut blank = 0;
        for (id, text) in &rows {
            blank += bytes.query_row([text], |row| row.get::<_, i64>(0))?;
            sweep.execute([id])?;
        }
        let note = "UPDATE upkeep SET blank_bytes = blank_bytes + ?1";
        run(connection, note, [blank])?;
        Ok(rows.len())
    })
}

/// Drops deleted rows and texts. Only in memory, where texts may move.
pub(super) fn clear(connection: &Connection) -> Outcome<()> {
    connection.execute("DELETE FROM message_rows WHERE gone", [])?;
    for texts in ALL {
        texts.drop_blank(connection)?;
    }
    connection.execute("UPDATE upkeep SET blank_bytes = 0", [])?;
    Ok(())
}

/// Drops turns' rows with their texts. Only in memory, as [`clear`].
pub(super) fn drop_rows(connection: &Connection, rows: &[(i64, i64)]) -> Outcome<()> {
    let mut row = connection.prepare_cached("DELETE FROM message_rows WHERE id = ?1")?;
    let mut text = connection.prepare_cached("DELETE FROM message_texts WHERE id = ?1")?;
    for (id, text_id) in rows {
        row.execute([id])?;
        text.execute([text_id])?;
    }
    Ok(())
}

/// Whether enough rows are deleted to make sweeping cheap per row: one in
/// [`SWEPT_SHARE`], so that they share index pages.
pub(super) fn is_sweep_due(session: &Session) -> Outcome<bool> {
    let sql = "SELECT (SELECT count(*) FROM message_rows INDEXED BY messages_gone WHERE gone),
             coalesce((SELECT max(id) FROM message_rows) - (SELECT min(id) FROM message_rows), 0)";
    let (gone, all): (i64, i64) = session
        .connection
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(gone > 0 && gone >= all / SWEPT_SHARE)
}

/// See [`is_sweep_due`].
const SWEPT_SHARE: i64 = 16;

/// Whether more than half of the file is overwritten texts and rewriting pays:
/// each byte rewritten is matched by one deleted.
pub(super) fn is_rewrite_due(session: &Session) -> Outcome<bool> {
    let pragma = |name| {
        let value = session
            .connection
            .pragma_query_value(None, name, |row| row.get(0));
        value.map(|value: i64| value)
    };
    let used = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
    let sql = "SELECT blank_bytes FROM upkeep";
    let blank: i64 = session.connection.query_row(sql, [], |row| row.get(0))?;
    Ok(blank >= LEAST_REWRITTEN && blank > used / 2)
}

/// Smaller files, in bytes, are not rewritten to save space.
const LEAST_REWRITTEN: i64 = 1 << 20;

/// Removes overwritten texts. This moves others and leaves copies of them, so
/// the same transaction records that the file must be rewritten.
pub(super) fn drop_blank(session: &Session) -> Outcome<()> {
    session.transact(|connection| {
        for texts in ALL {
            texts.drop_blank(connection)?;
        }
        connection.execute("UPDATE upkeep SET blank_bytes = 0, rewrite_owed = 1", [])?;
        Ok(())
    })
}

/// Whether the file must be rewritten before anything deleted counts as gone.
pub(super) fn is_rewrite_owed(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT rewrite_owed FROM upkeep", [], |row| row.get(0))
}

/// Records that the file must be rewritten, or was.
pub(super) fn owe_rewrite(connection: &Connection, is_owed: bool) -> rusqlite::Result<()> {
    connection.execute("UPDATE upkeep SET rewrite_owed = ?1", [is_owed])?;
    Ok(())
}
