//! Removes lines that repeat the prompt's frames from a streamed answer: small
//! models produce such lines.

use super::frame;

/// Bytes of a line that are held back until they cannot contain a mark. A line
/// with a mark within them is dropped; in a longer one, whose beginning has
/// already been shown, the rest is dropped from the mark on.
const HELD_BYTES: usize = 48;

/// An answer that ends with at least this many bytes of a mark was cut off within
/// the mark; a shorter match is taken for coincidence.
const MIN_BROKEN_BYTES: usize = 7;

/// A filter for one answer. What it lets through contains no mark, however the
/// text is split into pieces.
#[derive(Debug, Default)]
pub struct Echo {
    marks: Vec<MarkMatcher>,
    /// The part of the current line that is held back.
    held: String,
    state: LineState,
}

/// A mark, and how much of it the text ends with (Knuth, Morris and Pratt).
#[derive(Debug)]
struct MarkMatcher {
    /// In lower case.
    text: Vec<u8>,
    /// For each length of a beginning, the longest shorter beginning it ends with.
    borders: Vec<usize>,
    /// How many of its bytes the text ends with.
    matched: usize,
}

impl MarkMatcher {
    fn new(text: &str) -> Self {
        let text = text.to_ascii_lowercase().into_bytes();
        let border = |length: usize| {
            let mut shorter = (1..length).rev();
            shorter.find(|shorter| text[..length].ends_with(&text[..*shorter]))
        };
        Self {
            borders: (0..text.len())
                .map(|one| border(one).unwrap_or(0))
                .collect(),
            matched: 0,
            text,
        }
    }

    /// Takes the text's next byte. Returns whether the text ends with the mark now.
    fn advance(&mut self, byte: u8) -> bool {
        let byte = byte.to_ascii_lowercase();
        while self.matched > 0 && self.text[self.matched] != byte {
            self.matched = self.borders[self.matched];
        }
        self.matched += usize::from(self.text[self.matched] == byte);
        self.matched == self.text.len()
    }
}

/// The state of the current line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LineState {
    /// All of it is held back.
    #[default]
    Held,
    /// Its beginning was let through.
    Begun,
    /// A mark was found: the rest is dropped.
    Dropped,
}

impl Echo {
    /// A filter for the answer to a prompt whose frames contain `nonce`.
    pub fn of(nonce: &str) -> Self {
        let tags = frame::TAGS
            .iter()
            .flat_map(|tag| [format!("<{tag}"), format!("</{tag}")]);
        Self {
            marks: tags
                .chain([format!("[{nonce}"), nonce.to_owned()])
                .map(|text| MarkMatcher::new(&text))
                .collect(),
            ..Self::default()
        }
    }

    /// Takes the next piece and returns the text that can be shown now; may be
    /// empty. Without marks (the default) it returns everything.
    pub fn strip(&mut self, piece: &str) -> String {
        if self.marks.is_empty() {
            return piece.to_owned();
        }
        let mut shown = String::new();
        for part in piece.split_inclusive('\n') {
            if self.state != LineState::Dropped {
                self.take(part, &mut shown);
            }
            if part.ends_with('\n') {
                self.state = LineState::Held;
            }
        }
        shown
    }

    /// The remaining text, once the answer has ended.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        let broken = self.broken_mark();
        if broken >= MIN_BROKEN_BYTES {
            self.cut(self.held.len() - broken, &mut shown);
        }
        shown.push_str(&self.held);
        self.forget();
        shown
    }

    /// Takes more of the current line, and lets through what contains no mark.
    fn take(&mut self, part: &str, shown: &mut String) {
        let before = self.held.len();
        self.held.push_str(part);
        for (index, byte) in part.bytes().enumerate() {
            if let Some(length) = self.ended_mark(byte) {
                self.cut(before + index + 1 - length, shown);
                return;
            }
        }
        let safe = self.held.len() - self.broken_mark();
        let is_long = self.state == LineState::Begun || safe >= HELD_BYTES;
        if safe > 0 && (is_long || part.ends_with('\n')) {
            shown.extend(self.held.drain(..safe));
            self.state = LineState::Begun;
        }
    }

    /// Takes the text's next byte. The length of the longest mark that ends with it.
    fn ended_mark(&mut self, byte: u8) -> Option<usize> {
        let marks = self.marks.iter_mut();
        let ended = marks.filter_map(|mark| mark.advance(byte).then_some(mark.text.len()));
        ended.max()
    }

    /// Drops the rest of the line from a mark at `at` on, or the whole line if none
    /// of it was shown.
    fn cut(&mut self, at: usize, shown: &mut String) {
        if self.state == LineState::Begun || at >= HELD_BYTES {
            shown.push_str(&self.held[..at]);
            shown.push('\n');
        }
        self.forget();
        self.state = LineState::Dropped;
    }

    fn forget(&mut self) {
        self.held.clear();
        for mark in &mut self.marks {
            mark.matched = 0;
        }
    }

    /// How many bytes at the end could be the beginning of a mark.
    fn broken_mark(&self) -> usize {
        let matched = self.marks.iter().map(|mark| mark.matched);
        matched.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONCE: &str = "0a1b2c3d4e5f";

    /// The result is the same whether the text arrives whole or character by character.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut whole = Echo::of(NONCE);
        assert_eq!(whole.strip(text) + &whole.finish(), expected);
        let mut apart = Echo::of(NONCE);
        let mut shown = String::new();
        for c in text.chars() {
            shown += &apart.strip(&c.to_string());
            assert!(expected.starts_with(&shown), "{shown:?} was shown too soon");
        }
        assert_eq!(shown + &apart.finish(), expected);
    }

    #[test]
    fn lines_with_a_mark_are_dropped() {
        let header = format!("[{NONCE}] Ada | 12:00 UTC");
        check("", "");
        check("plain", "plain");
        check("two\nlines\n", "two\nlines\n");
        check(&header, "");
        check(&format!("{header}\nSeal it."), "Seal it.");
        check(&format!("One.\n{header}\n\nTwo."), "One.\n\nTwo.");
        check(
            &format!("It says {} here.\nTwo.\n", NONCE.to_uppercase()),
            "Two.\n",
        );
        check(
            &format!("<memory {NONCE}>\n- likes tea\n</memory {NONCE}>\n"),
            "- likes tea\n",
        );
        check("> <Discord-Context 99>\na\n</discord-context>\r\nb", "a\nb");
        check("<pointed-at-message ...>\n</pointed-at-message", "");
    }

    #[test]
    fn what_only_begins_like_a_mark_stays() {
        for text in [
            "<discord> a </disc",
            "[0a1b2c3d4e5x] and 0a1b2",
            "`<memory>` is a tag\n<memory>\n",
            "a grade of 0",
        ] {
            check(text, text);
            check(&format!("{text} it is"), &format!("{text} it is"));
        }
        check("Right.\n[0a1b2c", "Right.\n");
    }

    #[test]
    fn a_long_line_ends_before_the_mark() {
        let long = "word ".repeat(40);
        check(
            &format!("{long}[{NONCE}] Ada\nnext"),
            &format!("{long}\nnext"),
        );
        let mut echo = Echo::of(NONCE);
        assert_eq!(echo.strip(&long), long, "it need not wait for its end");
        assert_eq!(echo.strip("0a1b"), "");
        assert_eq!(echo.strip("c"), "0a1bc");
        assert_eq!(Echo::default().strip(NONCE), NONCE);
    }

    proptest! {
        /// What is let through contains no mark, however the text is split.
        #[test]
        fn pieces_change_nothing(
            pieces in prop::collection::vec(
                "(<|</|\\[|0a1b2c3d4e5f|0A1B|2c3d4e5f|0a|discord-context|DISCORD-|context|word |\n|é){0,9}",
                0..12,
            )
        ) {
            let text = pieces.concat();
            let mut whole = Echo::of(NONCE);
            let expected = whole.strip(&text) + &whole.finish();
            let mut apart = Echo::of(NONCE);
            let mut shown: String = pieces.iter().map(|piece| apart.strip(piece)).collect();
            shown += &apart.finish();
            prop_assert_eq!(&shown, &expected);
            let lower = shown.to_ascii_lowercase();
            for mark in [NONCE, "<discord-context", "</discord-context"] {
                prop_assert!(!lower.contains(mark), "{:?} in {:?}", mark, text);
            }
        }
    }
}
