//! History: which stored rows go into a prompt.
//!
//! Whole turns go in and out together, so that no tool result stands without
//! its call. When there are more rows than fit, the window's start moves by
//! several turns at once: between two moves the prompts of a conversation
//! begin alike, and the caches of model servers hold.

use clew_context::model::{HistoryMessage, UnixMillis};
use clew_store::model::{StoredMessage, StoredRole};

/// The window's start moves by this part of it.
const MOVES_A_WINDOW: usize = 8;
/// Rows of a turn without tools.
const ROWS_A_TURN: usize = 2;

/// How much history a prompt carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// `MAX_CONTEXT_MESSAGES`: rows.
    pub max_messages: usize,
    /// `LOAD_PAST_CONVERSATIONS`: rows older than `started`.
    pub load_past: usize,
    /// When the process started.
    pub started: UnixMillis,
}

impl HistoryLimits {
    /// How many rows have to be read to decide: one more than may go in tells
    /// whether there are more.
    pub const fn to_read(self) -> usize {
        self.max_messages + 1
    }
}

/// Chooses among the newest rows of a conversation, given oldest first.
pub fn window<'a>(rows: &'a [StoredMessage], limits: &HistoryLimits) -> &'a [StoredMessage] {
    let recent = &rows[cut(rows, limits.max_messages)..];
    // A turn that was stored again keeps its place: times need not grow.
    let is_past = |row: &StoredMessage| row.timestamp < limits.started;
    let past = recent.iter().enumerate().rev();
    let too_old = past.filter(|(_, row)| is_past(row)).nth(limits.load_past);
    let first = too_old.map_or(0, |(at, _)| at + 1);
    // A part of a turn may stay, but never from the middle of its tool calls.
    let whole = recent[first..]
        .iter()
        .position(|row| matches!(row.role, StoredRole::User | StoredRole::Assistant));
    whole.map_or(&[], |skipped| &recent[first + skipped..])
}

/// The first row that stays.
fn cut(rows: &[StoredMessage], max: usize) -> usize {
    if rows.len() <= max {
        return 0;
    }
    let starts = (0..rows.len()).filter(|at| is_start(rows, *at) && rows.len() - at <= max);
    let stride = (max / ROWS_A_TURN / MOVES_A_WINDOW).max(1) as u64;
    let aligned = |at: &usize| rows[*at].ordinal.is_multiple_of(stride);
    let mut fitting = starts.clone();
    starts
        .clone()
        .find(aligned)
        .or_else(|| fitting.next())
        .unwrap_or_else(|| tail_of_turn(rows, max))
}

/// The last turn alone is too long: what follows its last tool row fits best.
fn tail_of_turn(rows: &[StoredMessage], max: usize) -> usize {
    let is_tool =
        |row: &StoredMessage| matches!(row.role, StoredRole::ToolUse | StoredRole::ToolResult);
    let after_tools = rows.iter().rposition(is_tool).map_or(0, |at| at + 1);
    after_tools.max(rows.len() - max)
}

fn is_start(rows: &[StoredMessage], at: usize) -> bool {
    // Of the very first row nobody knows what stands before it.
    at > 0 && rows[at - 1].turn != rows[at].turn
}

/// As the prompt shows it. Tool rows are for the tool loop alone.
pub fn messages(rows: &[StoredMessage]) -> Vec<HistoryMessage> {
    let spoken = rows.iter().filter_map(|row| {
        let ours = match row.role {
            StoredRole::User => false,
            StoredRole::Assistant => true,
            StoredRole::ToolUse | StoredRole::ToolResult => return None,
        };
        let name = row.author_name.clone().unwrap_or_default();
        Some(HistoryMessage {
            ours,
            author: (!ours).then_some((row.owner, name)),
            message: row.message,
            timestamp: row.timestamp,
            restored: row.restored_from.is_some(),
            text: row.content.clone(),
        })
    });
    spoken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clew_context::model::{ChannelId, TurnId, UserId};
    use clew_store::model::{AgentName, Scope};

    fn row(turn: u64, role: StoredRole) -> StoredMessage {
        StoredMessage {
            scope: Scope::Direct(UserId::new(1)),
            agent: AgentName::default_agent(),
            turn: TurnId(turn),
            ordinal: turn,
            role,
            guild: None,
            channel: ChannelId::new(2),
            owner: UserId::new(1),
            author_name: None,
            content: String::new(),
            tool_calls: None,
            tool_call_id: None,
            timestamp: UnixMillis(i64::try_from(turn).unwrap()),
            message: None,
            parts: Vec::new(),
            target: None,
            restored_from: None,
        }
    }

    /// So many turns, those before `started` of an earlier process; gives the
    /// turns and rows that stay.
    fn kept(turns: u64, max: usize, load_past: usize, started: i64) -> (Vec<u64>, usize) {
        let rows: Vec<StoredMessage> = (1..=turns)
            .flat_map(|turn| {
                [
                    row(turn, StoredRole::User),
                    row(turn, StoredRole::Assistant),
                ]
            })
            .collect();
        let limits = HistoryLimits {
            max_messages: max,
            load_past,
            started: UnixMillis(started),
        };
        let read = rows.len().saturating_sub(limits.to_read());
        let kept = window(&rows[read..], &limits);
        let mut turns: Vec<u64> = kept.iter().map(|row| row.ordinal).collect();
        turns.dedup();
        (turns, kept.len())
    }

    #[test]
    fn the_start_stands_still_for_some_turns() {
        let starts: Vec<u64> = (15..=30).map(|turns| kept(turns, 48, 0, 0).0[0]).collect();
        assert_eq!(starts, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 6, 6, 6, 9]);
        for turns in 1..200 {
            assert!(kept(turns, 30, 0, 0).1 <= 30);
            assert!(kept(turns, 30, 0, 0).1 >= 28.min(2 * usize::try_from(turns).unwrap()));
        }
    }

    #[test]
    fn of_an_earlier_process_as_many_as_are_wanted() {
        assert_eq!(kept(5, 30, 5, 6).1, 5);
        assert_eq!(kept(5, 30, 0, 6).1, 0);
        assert_eq!(kept(5, 30, 100, 6).1, 10);
        assert_eq!(kept(5, 30, 2, 4), (vec![3, 4, 5], 6));
    }

    #[test]
    fn few_and_none_are_possible() {
        assert_eq!(kept(5, 0, 30, 0).1, 0);
        assert_eq!(kept(5, 1, 30, 0).1, 1);
        assert_eq!(kept(5, 2, 30, 0).0, [5]);
    }

    #[test]
    fn no_tool_result_stands_without_its_call() {
        use StoredRole::{Assistant, ToolResult, ToolUse, User};
        let roles = [User, ToolUse, ToolResult, ToolUse, ToolResult, Assistant];
        let rows: Vec<StoredMessage> = (1..=3)
            .flat_map(|turn| roles.map(|role| row(turn, role)))
            .collect();
        for max in 0..20 {
            for load_past in 0..20 {
                for read in 0..rows.len() {
                    let limits = HistoryLimits {
                        max_messages: max,
                        load_past,
                        started: UnixMillis(3),
                    };
                    let kept = window(
                        &rows[read.max(rows.len().saturating_sub(max + 1))..],
                        &limits,
                    );
                    let first = kept.first().map(|row| row.role);
                    assert!(
                        !matches!(first, Some(ToolUse | ToolResult)),
                        "{max} {load_past}"
                    );
                    assert!(kept.len() <= max);
                }
            }
        }
    }
}
