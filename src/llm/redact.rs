//! Makes a server's message safe to log: servers echo keys and prompts.

use crate::model::cut;
use clew_context::model::{ChatMessage, Secret};

/// How many characters of a server's message are kept: enough to act on.
const MAX_MESSAGE_CHARS: usize = 200;

/// Lines of the prompt with fewer bytes are not looked for: they reveal
/// nothing about anyone, and removing them would garble the message.
const MIN_ECHO_BYTES: usize = 12;

/// A run of this many characters that the prompt has too is no coincidence.
const ECHO_CHARS: usize = 20;

/// A run of this many characters of Base64 is part of an image, if the prompt has one.
const IMAGE_CHARS: usize = 40;

/// How many bytes of a server's message are checked; more is not shown anyway.
const MAX_READ_BYTES: usize = 1_000;

/// What must not be in a message.
pub(super) struct Redactor<'a> {
    key: Option<&'a Secret>,
    prompt: &'a [ChatMessage],
}

impl<'a> Redactor<'a> {
    pub(super) fn new(key: Option<&'a Secret>, prompt: &'a [ChatMessage]) -> Self {
        Self { key, prompt }
    }

    /// The message as below, shortened.
    pub(super) fn clean(&self, message: &str) -> String {
        cut(&self.without_prompt(message), MAX_MESSAGE_CHARS, "...")
    }

    /// The message on one line, without key, prompt and control characters.
    pub(super) fn without_prompt(&self, message: &str) -> String {
        let mut message = message.to_owned();
        if let Some(key) = self.key.map(Secret::expose)
            && !key.is_empty()
        {
            message = message.replace(key, "[key]");
        }
        if self.prompt.iter().any(|one| !one.images().is_empty()) {
            message = without_base64(&message);
        }
        let texts = self.prompt.iter().flat_map(ChatMessage::texts);
        for line in texts.flat_map(str::lines).map(str::trim) {
            if line.len() >= MIN_ECHO_BYTES && message.contains(line) {
                message = message.replace(line, "[prompt]");
            }
        }
        on_one_line(&self.without_echo(&message))
    }
}

impl Redactor<'_> {
    /// The message without partial lines of the prompt: servers quote the
    /// beginning of what they refuse.
    fn without_echo(&self, message: &str) -> String {
        let from = |at: usize| &message[at..];
        let mut clean = String::new();
        let mut at = 0;
        while let Some(next) = from(at).chars().next() {
            if clean.len() > MAX_READ_BYTES {
                break;
            }
            let echo = self.echo(from(at));
            if echo == 0 {
                clean.push(next);
                at += next.len_utf8();
            } else {
                clean.push_str("[prompt]");
                at += echo;
            }
        }
        clean
    }

    /// How many bytes at the start of the text are also in the prompt; 0 if fewer
    /// than [`ECHO_CHARS`] characters are.
    fn echo(&self, text: &str) -> usize {
        let ends = text.char_indices().map(|(at, next)| at + next.len_utf8());
        let Some(least) = ends.clone().nth(ECHO_CHARS - 1) else {
            return 0;
        };
        let quoted = |end: usize| {
            let mut texts = self.prompt.iter().flat_map(ChatMessage::texts);
            texts.any(|known| known.contains(&text[..end]))
        };
        if !quoted(least) {
            return 0;
        }
        let longer = ends.skip(ECHO_CHARS).take_while(|end| quoted(*end));
        longer.last().unwrap_or(least)
    }
}

fn without_base64(message: &str) -> String {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let mut clean = String::new();
    let mut rest = message;
    while !rest.is_empty() {
        let run = rest.find(|c| !is_base64(c)).unwrap_or(rest.len());
        let run_or_next = rest.ceil_char_boundary(run.max(1));
        let (run, after) = rest.split_at(run_or_next);
        clean.push_str(if run.len() < IMAGE_CHARS {
            run
        } else {
            "[image]"
        });
        rest = after;
    }
    clean
}

fn on_one_line(message: &str) -> String {
    let words = message.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::Redactor;
    use clew_context::model::{ChatMessage, Image, Role, Secret};

    #[track_caller]
    fn check(message: &str, expected: &str) {
        let key = Secret::new("sk-very-secret");
        let prompt = [ChatMessage::new(
            Role::User,
            "hi\n  my diary of last summer  \n",
        )];
        assert_eq!(Redactor::new(Some(&key), &prompt).clean(message), expected);
    }

    #[test]
    fn messages_are_fit_for_the_log() {
        check("", "");
        check("no\nsuch\t\u{1b}[31mmodel", "no such [31mmodel");
        check("key sk-very-secret is bad", "key [key] is bad");
        check("hi: got 'my diary of last summer'", "hi: got '[prompt]'");
        check(&"é".repeat(201), &format!("{}...", "é".repeat(200)));
        check(&"é".repeat(200), &"é".repeat(200));
    }

    #[test]
    fn an_image_is_taken_out() {
        let prompt = [ChatMessage::WithImages {
            content: String::new(),
            images: Vec::from_iter(Image::of_bytes(b"GIF89a")),
        }];
        let redactor = Redactor::new(None, &prompt);
        let encoded = "iVBORw0K+/".repeat(40);
        assert_eq!(
            redactor.clean(&format!("é bad url: data:image/png;base64,{encoded}=='")),
            "é bad url: data:image/png;base64,[image]'"
        );
    }

    #[test]
    fn a_quoted_beginning_is_taken_out() {
        let prompt = [ChatMessage::new(
            Role::User,
            "Ada: the xylophone in the cellar is broken",
        )];
        let redactor = Redactor::new(None, &prompt);
        let said = "cannot read \"Ada: the xylophone in the cel\": the line is too long";
        assert_eq!(
            redactor.clean(said),
            "cannot read \"[prompt]\": the line is too long"
        );
    }
}
