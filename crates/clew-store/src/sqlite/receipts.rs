//! Receipts of answers.

use rusqlite::{Connection, params_from_iter};

use super::fault::Outcome;
use super::row::{SqliteRow, number};
use super::session::Session;
use super::statement::{first, run};
use crate::columns::{self, RECEIPT};
use crate::model::{ReceiptLimits, StoredReceipt};
use crate::table::{Table, receipts_beyond};
use clew_context::model::{ChannelId, MessageId, UserId};

/// Writes a receipt, replacing the one of its turn.
pub(super) fn put(connection: &Connection, receipt: &StoredReceipt) -> Outcome<()> {
    let turn = number(receipt.turn.0);
    run(
        connection,
        "DELETE FROM receipts WHERE turn_id = ?1",
        [turn],
    )?;
    let sql = format!(
        "INSERT INTO receipts ({RECEIPT}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    );
    let values = params_from_iter(columns::receipt_cells(receipt));
    run(connection, &sql, values).map(drop)
}

/// See [`super::super::Backend::receipt_of`].
pub(super) fn receipt_of(
    session: &Session,
    channel: ChannelId,
    message: MessageId,
) -> Outcome<Option<StoredReceipt>> {
    let which = "turn_id = (SELECT max(turn_id) FROM receipt_keys
         WHERE kind = 0 AND id = ?1 AND other = ?2)";
    one(
        session,
        which,
        [number(channel.get()), number(message.get())],
    )
}

/// See [`super::super::Backend::last_receipt`].
pub(super) fn last_receipt(
    session: &Session,
    channel: ChannelId,
    reader: UserId,
) -> Outcome<Option<StoredReceipt>> {
    let which = "turn_id IN (SELECT turn_id FROM receipt_keys WHERE kind = 0 AND id = ?1)
         AND (NOT is_private OR owner_id = ?2)
         ORDER BY at DESC, turn_id DESC LIMIT 1";
    one(
        session,
        which,
        [number(channel.get()), number(reader.get())],
    )
}

fn one(
    session: &Session,
    which: &str,
    key: impl rusqlite::Params,
) -> Outcome<Option<StoredReceipt>> {
    let sql = format!("SELECT {RECEIPT} FROM receipts WHERE {which}");
    first(&session.connection, &sql, key, |row| {
        columns::receipt(&SqliteRow::of("receipts", row))
    })
}

/// See [`super::super::Backend::expire_receipts`].
pub(super) fn expire_receipts(session: &Session, limits: ReceiptLimits) -> Outcome<u64> {
    session.transact(|connection| {
        let beyond = receipts_beyond("", limits).into_iter();
        let gone =
            beyond.map(|(which, value)| run(connection, &Table::RECEIPTS.delete(&which), [value]));
        gone.sum()
    })
}
