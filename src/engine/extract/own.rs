//! Reduces a message to the asker's own words: no quotes, no code, and no names
//! of people who are mentioned.

use clew_context::model::UserId;

/// The most words given to the model, in Unicode scalars: what a message without
/// Nitro can hold.
const MAX_CHARS: usize = 2_000;
/// The fewest Unicode scalars of a message that can say anything lasting.
const MIN_CHARS: usize = 12;
/// The fewest letters, of any script, that such a message has.
const MIN_LETTERS: usize = 6;
/// This many words between quotation marks are a quotation; fewer are a title.
const QUOTED_WORDS: usize = 3;
/// Replaces a mention.
const SOMEBODY: &str = "@somebody";
/// Replaces a passage between quotation marks.
const QUOTED: &str = "(quoted)";
/// Starts and ends a code block.
const FENCE: &str = "```";
/// Quotation marks, in pairs.
const MARKS: [(char, char); 6] = [
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('»', '«'),
    ('「', '」'),
];

/// Replaces mentions of others (`<@id>`, `<@!id>`) in raw Discord text, so that
/// no names are passed on. Mentions of `us` stay.
pub fn without_others(content: &str, us: UserId) -> String {
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(start) = rest.find("<@") {
        let (before, mention) = rest.split_at(start);
        out.push_str(before);
        if let Some((id, len)) = user(mention) {
            let is_us = us.get() == id;
            out.push_str(if is_us { &mention[..len] } else { SOMEBODY });
            rest = &mention[len..];
        } else {
            out.push_str("<@");
            rest = &mention[2..];
        }
    }
    out + rest
}

/// The user id of the mention at the start of a text, and its length in bytes.
fn user(mention: &str) -> Option<(u64, usize)> {
    let (inner, _) = mention.strip_prefix("<@")?.split_once('>')?;
    let id = inner.strip_prefix('!').unwrap_or(inner).parse().ok()?;
    Some((id, "<@>".len() + inner.len()))
}

/// The author's own words in a message, as typed: without quoted lines, code blocks
/// and passages between quotation marks. `None` if too little is left to learn from.
pub fn own(words: &str) -> Option<String> {
    let mut own = String::new();
    let mut in_code = false;
    for line in words.lines() {
        let outside = outside_code(line, &mut in_code);
        let start = line.trim_start();
        if start.starts_with(">>>") {
            // Everything from here on is quoted.
            break;
        }
        if !start.starts_with('>') && !outside.trim().is_empty() {
            own.push_str(&without_passages(&outside));
            own.push('\n');
        }
    }
    let own: String = own.trim().chars().take(MAX_CHARS).collect();
    let said = own.replace(SOMEBODY, "").replace(QUOTED, "");
    let letters = said.chars().filter(|one| one.is_alphabetic()).count();
    (said.chars().count() >= MIN_CHARS && letters >= MIN_LETTERS).then_some(own)
}

/// The part of a line outside of code blocks; `in_code` carries over between lines.
fn outside_code(line: &str, in_code: &mut bool) -> String {
    let mut outside = String::new();
    for (at, part) in line.split(FENCE).enumerate() {
        if at > 0 {
            *in_code = !*in_code;
        }
        if !*in_code {
            outside.push_str(part);
        }
    }
    outside
}

/// A line without the passages that it quotes.
fn without_passages(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((start, open)) = rest.char_indices().find(|(_, one)| is_mark(*one)) {
        let (before, from) = rest.split_at(start);
        let inside = &from[open.len_utf8()..];
        out.push_str(before);
        match passage(open, inside) {
            Some((passage, after)) if passage.split_whitespace().count() >= QUOTED_WORDS => {
                out.push_str(QUOTED);
                rest = after;
            }
            _ => {
                out.push(open);
                rest = inside;
            }
        }
    }
    out + rest
}

fn is_mark(one: char) -> bool {
    MARKS.iter().any(|(open, _)| *open == one)
}

/// The text up to the closing mark, and what comes after the mark.
fn passage(open: char, inside: &str) -> Option<(&str, &str)> {
    let closes = |one: char| MARKS.contains(&(open, one));
    let end = inside.find(closes)?;
    let close = inside[end..].chars().next()?;
    Some((&inside[..end], &inside[end + close.len_utf8()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &str, expected: &str) {
        assert_eq!(own(words).unwrap_or_default(), expected, "{words:?}");
    }

    #[test]
    fn what_is_own_stays() {
        check(" I live in Oslo. ", "I live in Oslo.");
        check(
            "I use `tokio` and \"Dune\" daily",
            "I use `tokio` and \"Dune\" daily",
        );
        check("1 is > than 0, I think", "1 is > than 0, I think");
        check(
            "私は大阪で働いている看護師です",
            "私は大阪で働いている看護師です",
        );
    }

    #[test]
    fn quotes_and_code_go() {
        check("> I live in Oslo\nso do I, since May", "so do I, since May");
        check(
            "  >no space either\nso do I, since May",
            "so do I, since May",
        );
        check("so do I, since May\n>>> all\nof this", "so do I, since May");
        check(
            "before the block ```rs\nlet ada = 1;\n``` and after",
            "before the block \n and after",
        );
        check("I never close it ```\nlet ada = 1;", "I never close it");
        check("> ```\nnobody's words in a quote", "");
        check(
            "Boris said \"I live in Oslo\" to me",
            "Boris said (quoted) to me",
        );
        check(
            "Boris said “I live in Oslo” and „ich auch, ja, sehr“ then",
            "Boris said (quoted) and (quoted) then",
        );
    }

    #[test]
    fn trivial_messages_are_skipped() {
        for words in [
            "",
            "thanks!",
            "1234567890 1234567890",
            "??????????????",
            "@somebody @somebody ok",
            "\"all of it is quoted here\"",
        ] {
            check(words, "");
        }
    }

    #[test]
    fn no_more_than_a_message() {
        let long = own(&"word ".repeat(1_000)).unwrap();
        assert_eq!(long.chars().count(), MAX_CHARS);
    }

    #[test]
    fn mentions_of_others_lose_their_names() {
        #[track_caller]
        fn check(content: &str, expected: &str) {
            assert_eq!(without_others(content, UserId::new(1)), expected);
        }
        check(
            "<@1> I know <@2> and <@!3>",
            "<@1> I know @somebody and @somebody",
        );
        check("<@&4> <@ <@x> <@2", "<@&4> <@ <@x> <@2");
        check("<@<@2>>", "<@@somebody>");
    }
}
