//! Code blocks fenced by backticks, as Discord shows them.
//!
//! Discord ends a block of three backticks at the next three, wherever they are,
//! and does not know `~~~`. A longer fence is read as in standard Markdown: it ends
//! at a line of at least as many backticks.

/// An open code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    /// What comes before the backticks on each fence line: indentation or quote
    /// marks.
    prefix: String,
    ticks: usize,
    language: String,
}

/// Longer runs of backticks are rulers or art, not fences.
const MAX_TICKS: usize = 8;

/// A longer prefix is not repeated when a block is reopened.
const MAX_PREFIX_CHARS: usize = 8;

/// A longer word after the backticks is not a language.
const MAX_LANGUAGE_CHARS: usize = 32;

impl Fence {
    /// The line that reopens the block, with its line break.
    pub(super) fn reopen(&self) -> String {
        format!(
            "{}{}{}\n",
            self.prefix,
            "`".repeat(self.ticks),
            self.language
        )
    }

    /// `text` with the block closed at its end. A closing line that is only
    /// partly there is completed.
    pub(super) fn close(&self, text: &str) -> String {
        let text = text.trim_end();
        let begun = text
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start()
            .len();
        let ticks = text.len() - text.trim_end_matches('`').len();
        if ticks > 0 && ticks == begun && ticks < self.ticks {
            return format!("{text}{}", "`".repeat(self.ticks - ticks));
        }
        format!("{text}\n{}{}", self.prefix, "`".repeat(self.ticks))
    }

    /// Whether all that `line` does is close the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let ticks = line.trim_start_matches(is_prefix).trim_end();
        ticks.len() >= self.ticks && ticks.bytes().all(|byte| byte == b'`')
    }

    /// The rest of `line` after the end of the block, if the block ends there.
    pub(super) fn end_on<'a>(&self, line: &'a str) -> Option<&'a str> {
        if self.is_closed_by(line) {
            return Some("");
        }
        if self.ticks > 3 {
            return None;
        }
        runs(line)
            .next()
            .map(|(start, ticks)| &line[start + ticks..])
    }
}

/// The block that is open after `text`, given the one that was `open` before it.
pub(super) fn after_text(open: Option<Fence>, text: &str) -> Option<Fence> {
    text.lines().fold(open, after_line)
}

/// The block that is open after `line`, given the one that was `open` before it.
pub(super) fn after_line(open: Option<Fence>, line: &str) -> Option<Fence> {
    let mut rest = line;
    if let Some(fence) = open {
        match fence.end_on(line) {
            Some(after) => rest = after,
            None => return Some(fence),
        }
    }
    while let Some((start, ticks)) = runs(rest).next() {
        let after = &rest[start + ticks..];
        if let Some((end, _)) = runs(after).find(|(_, others)| *others == ticks) {
            // Opened and closed on one line.
            rest = &after[end + ticks..];
            continue;
        }
        let before = &line[..line.len() - after.len() - ticks];
        if ticks <= MAX_TICKS && opens(before, after.trim()) {
            return Some(opened(before, ticks, after.trim()));
        }
        rest = after;
    }
    None
}

/// Whether backticks with this text around them open a block. In a line of prose
/// they may be what the sentence is about.
fn opens(before: &str, after: &str) -> bool {
    let at_start = before.chars().all(is_prefix);
    let introduced = before.trim_end().ends_with([':', '.', '-', '*', '>', '|']);
    at_start || (is_language(after) && (introduced || !after.is_empty()))
}

fn opened(before: &str, ticks: usize, after: &str) -> Fence {
    let repeats = before.len() <= MAX_PREFIX_CHARS && before.chars().all(is_prefix);
    Fence {
        prefix: if repeats {
            before.to_owned()
        } else {
            String::new()
        },
        ticks,
        language: if is_language(after) {
            after.to_owned()
        } else {
            String::new()
        },
    }
}

fn is_prefix(character: char) -> bool {
    matches!(character, ' ' | '\t' | '>')
}

/// Whether `word` can be a language on Discord: a word of these characters only.
fn is_language(word: &str) -> bool {
    word.len() <= MAX_LANGUAGE_CHARS
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_+-.#".contains(&byte))
}

/// The start and length, in bytes, of each run of three or more backticks.
fn runs(line: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + line[from..].find("```")?;
        let ticks = line[start..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        from = start + ticks;
        Some((start, ticks))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks how the block that is open after `text` would be reopened.
    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let open = after_text(None, text).map(|fence| fence.reopen());
        assert_eq!(open.as_deref(), expected, "{text:?}");
    }

    #[test]
    fn blocks_open_and_close_as_discord_shows_them() {
        check("text", None);
        check("```", Some("```\n"));
        check("```rust\nlet x;", Some("```rust\n"));
        check("```rust\nlet x;\n```", None);
        check("```rust\nlet x;```", None);
        check("```rust\nlet x;\n``", Some("```rust\n"));
        check("  ```c++\n  x", Some("  ```c++\n"));
        check("> ```js\n> x", Some("> ```js\n"));
        check("> ```js\n> x\n> ```", None);
        check("- a: ```js\nx", Some("```js\n"));
        check("1. ```\nx", Some("```\n"));
        check("||```\nx\n```||", None);
        check("~~~\nx", None);
        check("```let x = 1;", Some("```\n"));
    }

    #[test]
    fn backticks_within_a_line_open_nothing() {
        check("`code` and ``code``", None);
        check("```code``` there", None);
        check("write ```` ``` ```` for it", None);
        check("the ``` marker starts a block", None);
        check(&"`".repeat(40), None);
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones() {
        check("````md\n```rust\nx\n```\ny", Some("````md\n"));
        check("````md\n```rust\nx\n```\n````", None);
        check("````md\n`````", None);
    }

    #[track_caller]
    fn check_close(text: &str, expected: &str) {
        let fence = after_text(None, text).unwrap();
        assert_eq!(fence.close(text), expected);
    }

    #[test]
    fn an_open_block_is_closed() {
        check_close("```\nx", "```\nx\n```");
        check_close("```\nx\n", "```\nx\n```");
        check_close("```\nx\n``", "```\nx\n```");
        check_close("```\nx``", "```\nx``\n```");
        check_close("````\nx\n```", "````\nx\n````");
        check_close("> ```\n> x", "> ```\n> x\n> ```");
        check_close("```", "```\n```");
    }
}
