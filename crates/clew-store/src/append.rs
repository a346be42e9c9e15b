//! What appending a turn means, whatever stores it.

use crate::TurnKey;
use crate::model::StoredMessage;
use clew_context::model::{MessageId, UnixMillis};

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

/// The ordinal of a turn's early rows. Earlier versions gave them none in files and `PostgreSQL`.
pub(crate) fn early_ordinal(early: &[StoredMessage]) -> Option<u64> {
    let ordinal = early.first().map(|row| row.ordinal);
    ordinal.filter(|ordinal| *ordinal > 0)
}

/// The rows of a turn that its early rows say, with their ordinal and times: they kept its place.
/// `None` if it says something else, if its owner cleared since, or if they have no place.
pub(crate) fn confirmed(
    early: &[StoredMessage],
    turn: &[StoredMessage],
    cleared: Option<UnixMillis>,
) -> Option<Vec<StoredMessage>> {
    let (earliest, ordinal) = (early.first()?, early_ordinal(early)?);
    let is_cleared = cleared.is_some_and(|at| at >= earliest.timestamp);
    if is_cleared || !is_said_by(early, turn) {
        return None;
    }
    let rows = early.iter().zip(turn).map(|(early, row)| StoredMessage {
        ordinal,
        timestamp: early.timestamp,
        ..row.clone()
    });
    Some(rows.collect())
}

/// Whether a turn is what its early rows say: the same rows in order, whose messages it still
/// has. Only what is known once it is posted may differ.
fn is_said_by(early: &[StoredMessage], turn: &[StoredMessage]) -> bool {
    let is_same = |early: &StoredMessage, row: &StoredMessage| {
        let posted = StoredMessage {
            ordinal: early.ordinal,
            timestamp: early.timestamp,
            message: early.message,
            parts: early.parts.clone(),
            target: early.target,
            ..row.clone()
        };
        let mut held = early.message.iter().chain(&early.parts);
        let has = |id: &MessageId| row.message == Some(*id) || row.parts.contains(id);
        posted == *early && held.all(has)
    };
    early.len() == turn.len() && early.iter().zip(turn).all(|(one, row)| is_same(one, row))
}

/// The rows of the first `limit` turns; rows of a turn stand together.
pub(crate) fn first_turns(mut rows: Vec<StoredMessage>, limit: usize) -> Vec<StoredMessage> {
    let turns = rows.chunk_by(|one, next| TurnKey::of(one) == TurnKey::of(next));
    let most = turns.take(limit).map(<[_]>::len).sum();
    rows.truncate(most);
    rows
}
