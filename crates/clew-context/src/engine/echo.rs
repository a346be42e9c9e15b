//! Removes what repeats the prompt's frames from a streamed answer: small models produce
//! such lines. The frame goes, the words beside it stay.

use super::frame::{self, FrameKind};

/// Bytes at the beginning of a line that are held back as long as no word is among them: if
/// a frame follows, they go with it.
const HELD_BYTES: usize = 48;

/// The most bytes that are dropped after a mark, looking for the end of its tag or header.
const DROPPED_BYTES: usize = 200;

/// How the header of a question ends; what follows on its line are words.
const HEADER_END: &str = "asks you:";

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
    line: Line,
    dropping: Option<Dropping>,
}

/// What is known of the current line.
#[derive(Debug, Default, Clone, Copy)]
struct Line {
    /// Whether any of it was let through.
    has_begun: bool,
    /// Whether what was let through ends with a blank.
    ends_blank: bool,
    cut: Cut,
}

/// Whether a frame was cut out of a line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Cut {
    #[default]
    None,
    /// Just now, and what follows must not grow together with what stood before: it could
    /// be a mark.
    Joint,
    /// Earlier, or with a blank at its place.
    Done,
}

/// What is dropped now, at most to the end of the line.
#[derive(Debug)]
struct Dropping {
    end: MarkMatcher,
    dropped: usize,
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
        let mut borders = vec![0; text.len()];
        for length in 2..text.len() {
            let last = text[length - 1];
            let mut border = borders[length - 1];
            while border > 0 && text[border] != last {
                border = borders[border];
            }
            borders[length] = border + usize::from(text[border] == last);
        }
        Self {
            text,
            borders,
            matched: 0,
        }
    }

    /// Takes the text's next byte. Returns whether the text ends with the mark now.
    fn advance(&mut self, byte: u8) -> bool {
        let byte = byte.to_ascii_lowercase();
        if self.matched == self.text.len() {
            self.matched = 0;
        }
        while self.matched > 0 && self.text[self.matched] != byte {
            self.matched = self.borders[self.matched];
        }
        self.matched += usize::from(self.text[self.matched] == byte);
        self.matched == self.text.len()
    }
}

impl Echo {
    /// A filter for the answer to a prompt whose frames contain `nonce`.
    pub fn of(nonce: &str) -> Self {
        let tags = frame::TAGS.iter().map(|tag| (*tag).to_owned());
        let with_nonce = FrameKind::words().map(|tag| format!("{tag} {nonce}"));
        let tags = tags.chain(with_nonce);
        Self {
            marks: tags
                .flat_map(|tag| [format!("<{tag}"), format!("</{tag}")])
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
        for character in piece.chars() {
            if character == '\n' {
                self.end_line(&mut shown);
            } else if !self.is_dropped(character) {
                self.take(character, &mut shown);
            }
        }
        shown
    }

    /// The remaining text, once the answer has ended.
    pub fn finish(&mut self) -> String {
        let broken = self.broken_mark();
        if broken >= MIN_BROKEN_BYTES {
            self.held.truncate(self.held.len() - broken);
            self.line.cut = Cut::Done;
        }
        let mut shown = String::new();
        if !self.is_frame_alone() {
            shown.push_str(&self.held);
        }
        self.begin_line();
        shown
    }

    /// Whether the character belongs to a frame that has begun.
    fn is_dropped(&mut self, character: char) -> bool {
        let Some(dropping) = &mut self.dropping else {
            return false;
        };
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).bytes();
        let has_ended = { bytes }.any(|byte| dropping.end.advance(byte));
        dropping.dropped += character.len_utf8();
        if has_ended || dropping.dropped >= DROPPED_BYTES {
            self.dropping = None;
        }
        true
    }

    /// Takes more of the current line, and lets through what contains no mark.
    fn take(&mut self, character: char, shown: &mut String) {
        if self.line.cut == Cut::Joint {
            if !character.is_whitespace() {
                self.held.push(' ');
            }
            self.line.cut = Cut::Done;
        }
        self.held.push(character);
        let mut bytes = [0; 4];
        for byte in character.encode_utf8(&mut bytes).bytes() {
            if let Some(length) = self.ended_mark(byte) {
                self.cut(length);
                return;
            }
        }
        let safe = self.held.len() - self.broken_mark();
        let has_words = self.line.has_begun || !is_blank(&self.held[..safe]);
        if safe > 0 && (has_words || safe >= HELD_BYTES) {
            self.line.ends_blank = self.held[..safe].ends_with(char::is_whitespace);
            self.line.has_begun = true;
            shown.extend(self.held.drain(..safe));
        }
    }

    /// Takes the text's next byte. The length of the longest mark that ends with it.
    fn ended_mark(&mut self, byte: u8) -> Option<usize> {
        let marks = self.marks.iter_mut();
        let ended = marks.filter_map(|mark| mark.advance(byte).then_some(mark.text.len()));
        ended.max()
    }

    /// Drops a mark of that length, which has just ended, and what belongs to it: the rest
    /// of a tag, the rest of a header.
    fn cut(&mut self, length: usize) {
        let mark = self.held.split_off(self.held.len() - length);
        let end = match mark.as_bytes().first() {
            Some(b'<') => Some(">"),
            Some(b'[') => Some(HEADER_END),
            _ => None,
        };
        self.dropping = end.map(|end| Dropping {
            end: MarkMatcher::new(end),
            dropped: 0,
        });
        let ends_blank = if self.held.is_empty() {
            !self.line.has_begun || self.line.ends_blank
        } else {
            self.held.ends_with(char::is_whitespace)
        };
        self.line.cut = if ends_blank { Cut::Done } else { Cut::Joint };
        self.forget_marks();
    }

    fn end_line(&mut self, shown: &mut String) {
        if !self.is_frame_alone() {
            shown.push_str(&self.held);
            shown.push('\n');
        }
        self.begin_line();
    }

    /// Whether nothing stands on this line but a frame.
    fn is_frame_alone(&self) -> bool {
        self.line.cut != Cut::None && !self.line.has_begun && is_blank(&self.held)
    }

    fn begin_line(&mut self) {
        self.held.clear();
        self.line = Line::default();
        self.dropping = None;
        self.forget_marks();
    }

    fn forget_marks(&mut self) {
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

/// Whether there is no word: white space and marks of quotes, lists and emphasis.
fn is_blank(text: &str) -> bool {
    let is_mark = |character: char| "><`*_-#|".contains(character);
    text.chars().all(|one| one.is_whitespace() || is_mark(one))
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
    fn a_frame_goes_and_the_words_beside_it_stay() {
        let header = format!("[{NONCE}] Ada | 12:00 UTC");
        check("", "");
        check("plain", "plain");
        check("two\nlines\n", "two\nlines\n");
        check(&header, "");
        check(&format!("{header}\nSeal it."), "Seal it.");
        check(&format!("One.\n{header}\n\nTwo."), "One.\n\nTwo.");
        check(
            &format!("It says {} here.\nTwo.\n", NONCE.to_uppercase()),
            "It says  here.\nTwo.\n",
        );
        check(
            &format!("<pointed-at-message {NONCE}>\n- likes tea\n</pointed-at-message {NONCE}>\n"),
            "- likes tea\n",
        );
        check(
            &format!("<discord-context {NONCE}>Four.</discord-context {NONCE}>\nTwo."),
            "Four.\nTwo.",
        );
        check(
            &format!("Four.</discord-context {NONCE}> And more."),
            "Four. And more.",
        );
        check(
            &format!("{header} | asks you: Seal it.\nTwo."),
            " Seal it.\nTwo.",
        );
        check(
            &format!("Right: {header} | asks you:\nSeal it."),
            "Right: \nSeal it.",
        );
        check(&format!("a{NONCE}b"), "a b");
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
    fn nothing_waits_once_a_line_has_a_word() {
        let long = "word ".repeat(40);
        check(
            &format!("{long}[{NONCE}] Ada\nnext"),
            &format!("{long}\nnext"),
        );
        let mut echo = Echo::of(NONCE);
        assert_eq!(echo.strip("word"), "word", "it need not wait for its end");
        assert_eq!(echo.strip(" 0a1b"), " ");
        assert_eq!(echo.strip("c"), "0a1bc");
        assert_eq!(Echo::default().strip(NONCE), NONCE);
    }

    /// A tag without an end hides no more than its bound.
    #[test]
    fn a_tag_without_an_end_drops_a_bounded_part() {
        let mut echo = Echo::of(NONCE);
        let text = format!("<discord-context {}", "word ".repeat(100));
        let shown = echo.strip(&text) + &echo.finish();
        assert_eq!(
            shown.len(),
            text.len() - "<discord-context".len() - DROPPED_BYTES
        );
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
