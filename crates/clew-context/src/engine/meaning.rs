//! Whether a text says anything, in any script.

use super::cluster::is_emoji;
use super::sanitise::is_invisible;

/// Prefix of our refusals, progress lines and notes (small print in Discord's
/// markdown). They never enter a prompt.
pub const NOTE_PREFIX: &str = "-# ";

/// Most bytes examined inside a mention: a sigil and any 20-digit number.
const MAX_MENTION_BYTES: usize = 32;

/// Whether `text` has a letter, digit or emoji of any script. A custom emoji
/// (`<:name:id>`) has letters and counts. The caller must strip mentions of the
/// bot first, see [`strip_mentions`].
pub fn is_meaningful(text: &str) -> bool {
    text.chars().any(|character| {
        (character.is_alphanumeric() || is_emoji(character)) && !is_invisible(character)
    })
}

/// `text` without mentions of these users (`<@id>`, `<@!id>`) and roles
/// (`<@&id>`); ids are snowflakes. If there were any, double spaces left by them
/// are joined and the ends trimmed; otherwise it is unchanged.
pub fn strip_mentions(text: &str, user_ids: &[u64], role_ids: &[u64]) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<@") {
        let (before, from_mention) = rest.split_at(start);
        stripped.push_str(before);
        rest = if let Some(len) = mention_len(from_mention, user_ids, role_ids) {
            after_gap(&stripped, &from_mention[len..])
        } else {
            stripped.push_str("<@");
            &from_mention[2..]
        };
    }
    stripped.push_str(rest);
    if stripped.len() == text.len() {
        return stripped;
    }
    stripped.trim().to_owned()
}

/// Whether `text` is one of our own notes.
pub fn is_note(text: &str) -> bool {
    text.starts_with(NOTE_PREFIX)
}

/// The length in bytes of the mention at the start of `text`, if it is of one of these ids.
fn mention_len(text: &str, user_ids: &[u64], role_ids: &[u64]) -> Option<usize> {
    let inner = text.strip_prefix("<@")?;
    // A sigil and the digits of an id; anything longer is not searched.
    let mut bytes = inner.bytes().take(MAX_MENTION_BYTES);
    let inner = &inner[..bytes.position(|byte| byte == b'>')?];
    let (ids, digits) = match inner.strip_prefix('&') {
        Some(digits) => (role_ids, digits),
        None => (user_ids, inner.strip_prefix('!').unwrap_or(inner)),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let id = digits.parse().ok().filter(|_| is_number)?;
    ids.contains(&id).then_some("<@>".len() + inner.len())
}

/// `after` without its first space if `before` is empty or ends with one.
fn after_gap<'a>(before: &str, after: &'a str) -> &'a str {
    if before.is_empty() || before.ends_with(char::is_whitespace) {
        return after.strip_prefix(' ').unwrap_or(after);
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_script_is_meaningful() {
        for text in [
            "a",
            "?7",
            "はい",
            "да",
            "نعم",
            "हाँ",
            "ໂ",
            "👍",
            "🇩🇪",
            "❤️",
            "<:yes:1>",
            "٣",
            "한",
        ] {
            assert!(is_meaningful(text), "{text:?}");
        }
    }

    #[test]
    fn signs_and_blanks_are_not() {
        for text in [
            "",
            " \n",
            "?!",
            "...",
            "…",
            "\u{200B}",
            "\u{3164}",
            "\u{FFA0}",
            "\u{FE0F}",
            "-",
            "¿",
            "\u{E0061}",
        ] {
            assert!(!is_meaningful(text), "{text:?}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(strip_mentions(text, &[1, 22], &[3]), expected, "{text:?}");
    }

    #[test]
    fn only_our_mentions_are_stripped() {
        check("<@1>", "");
        check("<@!1> hello <@&3>", "hello");
        check("hey <@22> you", "hey you");
        check("hey<@22> you", "hey you");
        check("<@1><@1> x", "x");
        check("<@2> <@&1> <@!3> <@11>", "<@2> <@&1> <@!3> <@11>");
        check("<@<@1>>", "<@>");
        check("<@+1> <@> <@", "<@+1> <@> <@");
        check("  untouched ", "  untouched ");
        check("<@99999999999999999999999>", "<@99999999999999999999999>");
    }

    /// Searching the rest of the text for each would take hours.
    #[test]
    fn a_million_open_mentions_are_read_once() {
        let text = "<@".repeat(1_000_000);
        check(&text, &text);
    }

    #[test]
    fn notes_are_small_print() {
        assert!(is_note("-# Thinking"));
        assert!(!is_note("-#x"));
        assert!(!is_note("text\n-# x"));
    }
}
