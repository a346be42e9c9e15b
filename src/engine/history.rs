//! History: which stored rows go into a prompt.
//!
//! Questions and answers alone: what tools gave was for its own turn. Whole turns go in
//! and out together. When there is more than fits, by rows or by characters, the window's
//! start moves by several turns at once: between two moves the prompts of a conversation
//! begin alike, so the prompt caches of model servers keep working.

use std::borrow::Cow;

use clew_context::engine::render::without_links;
use clew_context::engine::{frame, shorten};
use clew_context::model::{HistoryMessage, UnixMillis};
use clew_store::model::{StoredMessage, StoredRole};

/// The window's start moves by this fraction of the window at a time: an eighth.
const MOVES_A_WINDOW: usize = 8;
/// One row gets at most this fraction of the characters: a quarter.
const LONGEST_ROWS: usize = 4;

/// How much history a prompt carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// `MAX_CONTEXT_MESSAGES`, in rows.
    pub max_messages: usize,
    /// `MAX_CONTEXT_CHARS`, in Unicode scalars of the rows as the prompt shows
    /// them, headers included.
    pub max_chars: usize,
    /// `LOAD_PAST_CONVERSATIONS`: how many rows older than `started` may go in.
    pub load_past: usize,
    /// When the process started.
    pub started: UnixMillis,
}

impl HistoryLimits {
    /// How many rows to read: one more than may go in, which tells whether there
    /// are more.
    pub const fn to_read(self) -> usize {
        self.max_messages + 1
    }

    /// The longest that a row's text may be in a prompt, in Unicode scalars.
    pub const fn longest_row(self) -> usize {
        self.max_chars / LONGEST_ROWS
    }
}

/// Chooses from the newest rows of a conversation, given oldest first.
pub fn window<'a>(rows: &'a [StoredMessage], limits: &HistoryLimits) -> &'a [StoredMessage] {
    let chars: Vec<usize> = rows.iter().map(|row| chars(row, limits)).collect();
    let by_rows = cut(rows, &vec![1; rows.len()], limits.max_messages);
    let by_chars = cut(rows, &chars, limits.max_chars);
    let recent = &rows[by_rows.max(by_chars)..];
    // A turn that is stored again keeps its place, so times may be out of order.
    let is_past = |row: &StoredMessage| row.timestamp < limits.started;
    let past = recent.iter().enumerate().rev();
    let too_old = past.filter(|(_, row)| is_past(row)).nth(limits.load_past);
    let first = too_old.map_or(0, |(at, _)| at + 1);
    // Part of a turn may stay.
    &recent[first..]
}

/// The length of a row in the prompt, in Unicode scalars.
fn chars(row: &StoredMessage, limits: &HistoryLimits) -> usize {
    let header = header(row).map_or(0, |header| frame::marked_chars(&header));
    header + row.content.chars().count().min(limits.longest_row())
}

fn header(row: &StoredMessage) -> Option<String> {
    let name = row.author_name.as_deref().unwrap_or_default();
    let is_restored = row.restored_from.is_some();
    (row.role == StoredRole::User).then(|| frame::stored_header(name, row.timestamp, is_restored))
}

/// The index of the first row to keep, given the rows' sizes. Among the turns
/// that make up the first eighth of what fits, the window starts at the one
/// whose ordinal is divisible by the highest power of two. Ordinals never
/// change, so the start stays where it is until it no longer fits.
fn cut(rows: &[StoredMessage], sizes: &[usize], max: usize) -> usize {
    let mut room = max;
    let too_much = sizes
        .iter()
        .rposition(|size| match room.checked_sub(*size) {
            Some(left) => {
                room = left;
                false
            }
            None => true,
        });
    let Some(fits) = too_much.map(|at| at + 1) else {
        return 0;
    };
    let starts = (fits..rows.len()).filter(|at| is_start(rows, *at));
    let Some(first) = starts.clone().next() else {
        return fits;
    };
    let end = |at: usize| {
        let next = starts.clone().find(|next| *next > at);
        next.unwrap_or(rows.len())
    };
    let eighth = max / MOVES_A_WINDOW;
    let near = starts
        .clone()
        .take_while(|at| *at == first || sizes[first..end(*at)].iter().sum::<usize>() <= eighth);
    near.max_by_key(|at| rows[*at].ordinal.trailing_zeros())
        .unwrap_or(first)
}

fn is_start(rows: &[StoredMessage], at: usize) -> bool {
    // What came before the very first row is unknown.
    at > 0 && rows[at - 1].turn != rows[at].turn
}

/// The rows as the prompt shows them, each with at most `longest` Unicode scalars of text.
pub fn messages(rows: &[StoredMessage], longest: usize) -> Vec<HistoryMessage> {
    let messages = rows.iter().map(|row| {
        let ours = row.role == StoredRole::Assistant;
        let name = row.author_name.clone().unwrap_or_default();
        HistoryMessage {
            ours,
            author: (!ours).then_some((row.owner, name)),
            message: row.message,
            timestamp: row.timestamp,
            restored: row.restored_from.is_some(),
            text: shorten::head_and_tail(&words(row), longest)
                .unwrap_or_else(|| words(row).into_owned()),
        }
    });
    messages.collect()
}

/// What a model is shown of a row.
pub fn words(row: &StoredMessage) -> Cow<'_, str> {
    match row.role {
        StoredRole::Assistant => without_links(&row.content),
        _ => Cow::Borrowed(&row.content),
    }
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
            sources: Vec::new(),
        }
    }

    /// Takes the window of this many turns, those before `started` belonging to an
    /// earlier process. Returns the turns that stay and the number of their rows.
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
            max_chars: usize::MAX,
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
        assert_eq!(starts, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 6, 8, 8]);
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

    /// One turn per length, with a question and an answer that long.
    fn turns(lengths: &[usize]) -> Vec<StoredMessage> {
        let texts = lengths.iter().map(|length| "é".repeat(*length));
        let turns = (1..).zip(texts).flat_map(|(turn, content)| {
            [StoredRole::User, StoredRole::Assistant].map(|role| StoredMessage {
                content: content.clone(),
                author_name: Some("Ada".to_owned()),
                ..row(turn, role)
            })
        });
        turns.collect()
    }

    const CHARS: HistoryLimits = HistoryLimits {
        max_messages: 1_000,
        max_chars: 16_000,
        load_past: 1_000,
        started: UnixMillis(0),
    };

    #[test]
    fn characters_are_capped_whole_turns_together_and_the_start_moves_by_several() {
        let mut starts = Vec::new();
        // A turn takes 440 with the header above its question: 36 fit, an eighth is 4.
        for count in 30..=100 {
            let rows = turns(&vec![200; count]);
            let kept = window(&rows, &CHARS);
            let total: usize = kept.iter().map(|row| chars(row, &CHARS)).sum();
            assert!(total <= CHARS.max_chars, "{total}");
            assert!(
                count < 36 || total > CHARS.max_chars * 7 / 8 - 440,
                "{total}"
            );
            assert_eq!(kept[0].role, StoredRole::User);
            starts.push(kept[0].ordinal);
        }
        assert!(starts.is_sorted());
        starts.dedup();
        assert_eq!(starts[..4], [1, 4, 8, 12]);
        assert!(starts.len() <= 71 / 4 + 1, "{starts:?}");
    }

    #[test]
    fn a_row_has_at_most_a_quarter_of_the_characters() {
        let rows = turns(&[9_000, 9_000, 10]);
        let shown = messages(window(&rows, &CHARS), CHARS.longest_row());
        let lengths: Vec<usize> = shown.iter().map(|one| one.text.chars().count()).collect();
        // With its header, the first turn no longer fits.
        assert_eq!(lengths, [4_000, 4_000, 10, 10]);
        assert!(shown[0].text.contains(" [... 5,0"));
        assert!(shown[0].text.ends_with('é'));
    }

    #[test]
    fn whatever_the_sizes_the_start_only_moves_on() {
        let lengths: Vec<usize> = (0..300_usize).map(|at| at * 7_919 % 1_500).collect();
        let mut before = 0;
        for count in 1..=lengths.len() {
            let rows = turns(&lengths[..count]);
            let kept = window(&rows, &CHARS);
            let total: usize = kept.iter().map(|row| chars(row, &CHARS)).sum();
            assert!(total <= CHARS.max_chars);
            assert!(kept[0].ordinal >= before, "{count}");
            before = kept[0].ordinal;
        }
    }
}
