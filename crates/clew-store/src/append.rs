//! What appending a turn means, whatever stores it.

use crate::model::StoredMessage;
use clew_context::model::UnixMillis;

/// The first row of a turn, with the scope, agent and turn of all.
pub(crate) fn first_of(turn: &[StoredMessage]) -> Result<&StoredMessage, &'static str> {
    let first = turn.first().ok_or("a turn without rows")?;
    let is_one = |row: &StoredMessage| {
        row.scope == first.scope && row.agent == first.agent && row.turn == first.turn
    };
    if turn.iter().all(is_one) {
        Ok(first)
    } else {
        Err("rows of different turns")
    }
}

/// The rows of a turn as they are stored: with its ordinal, and with times that
/// are no earlier than the conversation's newest row, later than the owner's
/// clear marker, and never go back.
pub(crate) fn placed(
    turn: &[StoredMessage],
    ordinal: u64,
    newest: Option<UnixMillis>,
    cleared: Option<UnixMillis>,
) -> Vec<StoredMessage> {
    let after_clear = cleared.map(|at| UnixMillis(at.0.saturating_add(1)));
    let mut earliest = newest.max(after_clear);
    let rows = turn.iter().map(|row| {
        let timestamp = row.timestamp.max(earliest.unwrap_or(row.timestamp));
        earliest = Some(timestamp);
        StoredMessage {
            ordinal,
            timestamp,
            ..row.clone()
        }
    });
    rows.collect()
}
