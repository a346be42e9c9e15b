//! Makes a server's message fit for the log: servers echo keys and prompts.

use crate::model::{ChatMessage, Secret};

/// Characters of a server's message that are kept: enough to act upon.
const MAX_MESSAGE_CHARS: usize = 200;

/// Lines of the prompt shorter than this many bytes are not looked for: they
/// say nothing about anyone, and taking them out would garble the message.
const MIN_ECHO_BYTES: usize = 12;

/// What must not be in a message.
pub(super) struct Scrub<'a> {
    key: Option<&'a Secret>,
    prompt: &'a [ChatMessage],
}

impl<'a> Scrub<'a> {
    pub(super) fn new(key: Option<&'a Secret>, prompt: &'a [ChatMessage]) -> Self {
        Self { key, prompt }
    }

    /// The message on one line, without key, prompt and control characters,
    /// shortened.
    pub(super) fn clean(&self, message: &str) -> String {
        let mut message = message.to_owned();
        if let Some(key) = self.key.map(Secret::expose)
            && !key.is_empty()
        {
            message = message.replace(key, "[key]");
        }
        let contents = self.prompt.iter().map(|message| message.content.as_str());
        for line in contents.flat_map(str::lines).map(str::trim) {
            if line.len() >= MIN_ECHO_BYTES && message.contains(line) {
                message = message.replace(line, "[prompt]");
            }
        }
        shorten(&on_one_line(&message))
    }
}

fn on_one_line(message: &str) -> String {
    let words = message.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn shorten(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}...", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Scrub;
    use crate::model::{ChatMessage, Role, Secret};

    #[track_caller]
    fn check(message: &str, expected: &str) {
        let key = Secret::new("sk-very-secret");
        let prompt = [ChatMessage::new(
            Role::User,
            "hi\n  my diary of last summer  \n",
        )];
        assert_eq!(Scrub::new(Some(&key), &prompt).clean(message), expected);
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
}
