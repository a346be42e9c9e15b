//! Purges, by kind, and edits, which also remove text.

use rusqlite::params_from_iter;

use super::fault::Outcome;
use super::row::number;
use super::session::Session;
use super::statement::{all, at_once};
use super::texts;
use crate::sql::{self, Dialect as _};
use crate::{Kind, Purge};
use clew_context::model::{ChannelId, MessageId};

/// Removes some of the rows of turns that a purge reaches, so that other calls get a turn
/// before the next, and a process that ends need not wait for the last. Returns how many.
pub(super) fn some_messages(session: &Session, purge: &Purge, most: u64) -> Outcome<u64> {
    let which = Session::table(Kind::Messages).map(|table| table.purged(Kind::Messages, purge));
    session.transact(|_| {
        let mut gone = 0;
        for which in which.unwrap_or_default() {
            let key = params_from_iter(purge.cells());
            let left = most.saturating_sub(gone);
            gone += texts::remove_some_messages(session, &which, key, left)?;
        }
        Ok(gone)
    })
}

/// Gives a message's rows, and their copies in snapshots, a new text. An answer
/// of several messages keeps its text, since one message is only part of it.
pub(super) fn edit_message(
    session: &Session,
    channel: ChannelId,
    message: MessageId,
    text: &str,
) -> Outcome<u64> {
    session.transact(|connection| {
        at_once(sql::edit_snapshots(session, channel, message, text))?;
        let sql = "SELECT r.id
             FROM (SELECT id FROM message_holders
                     WHERE channel_id = ?1 AND message_id = ?2 AND kind = 0
                 UNION ALL SELECT id FROM message_row_ids
                     WHERE early = 1 AND channel_id = ?1 AND message_id = ?2) h
                 CROSS JOIN message_rows r ON r.id = h.id
                 CROSS JOIN message_texts t ON t.id = r.text_id
             WHERE NOT r.gone AND r.discord_message_id = ?2
                 AND (r.parts IS NULL OR r.role = 'user')
                 AND t.content <> ?3";
        let values = (number(channel.get()), number(message.get()), text);
        let rows: Vec<i64> = all(connection, sql, values, |row| Ok(row.get(0)?))?;
        for id in &rows {
            texts::edit_message(session, *id, text)?;
        }
        Ok(rows.len() as u64)
    })
}
