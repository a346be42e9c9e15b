//! Removes the reasoning that some servers leave in the text: a `<think>`
//! section at the very start of an answer.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The position in the answer.
#[derive(Debug)]
pub(super) enum Thinking {
    /// All of it so far may be the start of [`OPEN`]: held back.
    Opening(String),
    /// Inside the section; holds back what may be the start of [`CLOSE`].
    Inside(String),
    /// After the section, before the first letter of the answer.
    Closed,
    /// In the answer itself.
    Over,
}

impl Default for Thinking {
    fn default() -> Self {
        Self::Opening(String::new())
    }
}

impl Thinking {
    /// The part of the next piece that belongs to the answer; may be empty.
    pub(super) fn strip(&mut self, piece: &str) -> String {
        match self {
            Self::Opening(held) => {
                held.push_str(piece);
                let held = std::mem::take(held);
                self.open(held)
            }
            Self::Inside(held) => {
                held.push_str(piece);
                let held = std::mem::take(held);
                self.close(&held)
            }
            Self::Closed => self.start(piece.trim_start()),
            Self::Over => piece.to_owned(),
        }
    }

    /// At the end: what was held back and turns out to be part of the answer.
    pub(super) fn finish(&mut self) -> String {
        match std::mem::replace(self, Self::Over) {
            Self::Opening(held) => held,
            Self::Inside(_) | Self::Closed | Self::Over => String::new(),
        }
    }

    fn open(&mut self, held: String) -> String {
        let seen = held.trim_start();
        if let Some(inside) = seen.strip_prefix(OPEN) {
            return self.close(inside);
        }
        if OPEN.starts_with(seen) {
            *self = Self::Opening(held);
            return String::new();
        }
        *self = Self::Over;
        held
    }

    fn close(&mut self, held: &str) -> String {
        if let Some((_, answer)) = held.split_once(CLOSE) {
            return self.start(answer.trim_start());
        }
        let keep = held.floor_char_boundary(held.len().saturating_sub(CLOSE.len() - 1));
        *self = Self::Inside(held[keep..].to_owned());
        String::new()
    }

    fn start(&mut self, answer: &str) -> String {
        *self = if answer.is_empty() {
            Self::Closed
        } else {
            Self::Over
        };
        answer.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Thinking;

    /// Checks that the text gives the same result in one piece and character by character.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut whole = Thinking::default();
        assert_eq!(whole.strip(text) + &whole.finish(), expected);
        let mut apart = Thinking::default();
        let mut answer = String::new();
        for c in text.chars() {
            answer += &apart.strip(&c.to_string());
        }
        assert_eq!(answer + &apart.finish(), expected);
    }

    #[test]
    fn only_a_leading_section_is_taken_out() {
        check("", "");
        check("plain", "plain");
        check("  plain ", "  plain ");
        check("<", "<");
        check("<thin", "<thin");
        check("<b>x</b>", "<b>x</b>");
        check("<think>é</think>yes", "yes");
        check("\n<think>\na < b </thin é\n</think>\n\nyes\n", "yes\n");
        check("<think></think>", "");
        check("<think>never ends", "");
        check("say `<think>x</think>`", "say `<think>x</think>`");
        check("<think>a</think>b</think>c", "b</think>c");
    }
}
