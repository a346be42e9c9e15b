//! Spoilers: what stands between two `||` outside code, on as many lines as it takes.

use std::ops::Range;

use super::MAX_MESSAGE_UNITS;
use super::fence::{Fence, after_line};

/// What begins and ends a spoiler.
pub(super) const MARK: &str = "||";

/// The insides of a text's spoilers, in bytes, and where one begins that has no end.
pub(super) fn spoilers(text: &str) -> (Vec<Range<usize>>, Option<usize>) {
    let (mut spoilers, mut begun) = (Vec::new(), None::<Range<usize>>);
    let mut fence: Option<Fence> = None;
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end_matches('\n');
        let prose = match &fence {
            Some(open) => open.end_on(line).unwrap_or_default(),
            None => line,
        };
        let start = at + line.len() - prose.len();
        for mark in marks(prose) {
            let mark = start + mark.start..start + mark.end;
            match begun.take() {
                Some(first) => {
                    spoilers.push(first.end..mark.start);
                    // Of four bars, two begin the next.
                    let next = mark.end - MARK.len()..mark.end;
                    begun = (mark.len() >= 2 * MARK.len()).then_some(next);
                }
                None => begun = Some(mark),
            }
        }
        fence = after_line(fence, line);
        at += whole.len();
    }
    (spoilers, begun.map(|mark| mark.start))
}

/// Where a spoiler begins that has no end yet. Two bars before a blank are more likely an operator:
/// they hide the rest of their line at most; nothing hides more than a message.
pub(super) fn unended(text: &str) -> Option<usize> {
    let at = spoilers(text).1?;
    let after = text[at..].trim_start_matches('|');
    let is_in_word = text[..at].ends_with(char::is_alphanumeric);
    let is_operator = is_in_word || after.starts_with([' ', '\t']);
    let is_over = is_operator && after.contains('\n') || after.len() > MAX_MESSAGE_UNITS;
    (!is_over).then_some(at)
}

/// The runs of two bars or more of a line, outside of backticks.
pub(super) fn marks(line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + line[at..].find(['|', '`', '\\'])?;
            let sign = line.as_bytes()[start];
            at = start + run(&line[start..]);
            match sign {
                b'\\' => at = line.ceil_char_boundary(start + 2),
                b'`' => match code_end(line, start..at) {
                    Some(end) => at = end,
                    // A block begins.
                    None if at - start > 2 => return None,
                    None => {}
                },
                _ if at - start > 1 => return Some(start..at),
                _ => {}
            }
        }
    })
}

/// Where the code ends that these backticks begin.
fn code_end(line: &str, ticks: Range<usize>) -> Option<usize> {
    let mut at = ticks.end;
    loop {
        let start = at + line[at..].find('`')?;
        at = start + run(&line[start..]);
        if at - start == ticks.len() {
            return Some(at);
        }
    }
}

/// How often the first byte is repeated, in bytes.
fn run(text: &str) -> usize {
    let first = text.bytes().next();
    text.bytes().take_while(|byte| Some(*byte) == first).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what is hidden, and what follows a mark without a partner.
    #[track_caller]
    fn check(text: &str, hidden: &[&str], begun: Option<&str>) {
        let (found, start) = spoilers(text);
        let found: Vec<&str> = found.into_iter().map(|inside| &text[inside]).collect();
        assert_eq!(found, hidden, "{text:?}");
        assert_eq!(start.map(|at| &text[at..]), begun, "{text:?}");
    }

    #[test]
    fn spoilers_are_found_outside_code() {
        check("it ends: ||he dies||.", &["he dies"], None);
        check("||he\n\ndies|| or ||not", &["he\n\ndies"], Some("||not"));
        check("a | b, `a || b`, ``a ` || b`` and \\||", &[], None);
        check("a `|| b\nc` ||", &[" b\nc` "], None);
        check("```\na || b\n```\nc || d", &[], Some("|| d"));
        check("```rust\na || b", &[], None);
        check("||```\na || b\n```||.", &["```\na || b\n```"], None);
        check("|||é|||", &["é"], None);
        check("\\", &[], None);
        check("||a||||b", &["a"], Some("||b"));
        check("||a||||b||", &["a", "b"], None);
    }

    #[test]
    fn two_bars_that_hide_nothing_are_not_waited_for() {
        for (text, waits) in [
            ("it ends: ||he", true),
            ("it ends: ||he\n\ndies", true),
            ("it ends: || he", true),
            ("In SQL, || joins strings.\nSo", false),
            ("x||\ny", false),
            ("||```\na", true),
        ] {
            assert_eq!(unended(text).is_some(), waits, "{text:?}");
        }
        assert_eq!(
            unended(&format!("||{}", "a ".repeat(MAX_MESSAGE_UNITS))),
            None
        );
    }
}
