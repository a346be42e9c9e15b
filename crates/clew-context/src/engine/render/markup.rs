//! Discord's markup: `<@id>`, `<#id>`, `<:emoji:id>`, `<t:unix>`, message links.
//! Code is left unchanged.

use crate::engine::links;
use crate::model::{ChannelId, RoleId, UnixMillis, UserId};

/// An id that can be replaced by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkupId {
    User(UserId),
    Role(RoleId),
    Channel(ChannelId),
    /// A link to a message, with its channel.
    Link(ChannelId),
}

/// Longest `<...>` in bytes, angle brackets included: a command of three words
/// with 32 characters each, or an emoji's name.
const MAX_TOKEN_BYTES: usize = 129;

/// Replaces markup outside code; `name` supplies the text for each id.
pub(super) fn replace(text: &str, mut name: impl FnMut(MarkupId) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', '<', 'h']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (shown, length) = token(rest, &mut name);
        out.push_str(&shown.unwrap_or_else(|| rest[..length].to_owned()));
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// The replacement for the token at the start of `text` (`None`: keep it), and
/// the token's length in bytes.
fn token(text: &str, name: &mut impl FnMut(MarkupId) -> String) -> (Option<String>, usize) {
    let found = match text.as_bytes()[0] {
        b'`' => return (None, code_length(text)),
        b'<' => angle(text, name),
        _ => link(text, name),
    };
    match found {
        Some((shown, length)) => (Some(shown), length),
        None => (None, 1),
    }
}

/// The length in bytes of the code span or block at the start, fences included;
/// only of the backticks if nothing closes them.
pub(in crate::engine) fn code_length(text: &str) -> usize {
    let ticks = text.bytes().take_while(|byte| *byte == b'`').count();
    let fence = &text[..ticks];
    let mut from = ticks;
    while let Some(at) = text[from..].find(fence) {
        let start = from + at;
        let run = text[start..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        if run == ticks || ticks >= 3 {
            return start + run;
        }
        from = start + run;
    }
    ticks
}

fn angle(text: &str, name: &mut impl FnMut(MarkupId) -> String) -> Option<(String, usize)> {
    let mut bytes = text.bytes().take(MAX_TOKEN_BYTES);
    let end = bytes.position(|byte| byte == b'>')?;
    let inner = &text[1..end];
    let shown = if let Some(role) = inner.strip_prefix("@&") {
        name(MarkupId::Role(role.parse().ok()?))
    } else if let Some(user) = inner.strip_prefix("@!").or_else(|| inner.strip_prefix('@')) {
        name(MarkupId::User(user.parse().ok()?))
    } else if let Some(channel) = inner.strip_prefix('#') {
        name(MarkupId::Channel(channel.parse().ok()?))
    } else if let Some(time) = inner.strip_prefix("t:") {
        timestamp(time)?
    } else if let Some(command) = inner.strip_prefix('/') {
        named_by_text(command).map(|command| format!("/{command}"))?
    } else {
        let emoji = inner
            .strip_prefix("a:")
            .or_else(|| inner.strip_prefix(':'))?;
        named_by_text(emoji).map(|emoji| format!(":{emoji}:"))?
    };
    Some((shown, end + 1))
}

/// The name in `name:id`, the form of emoji and commands.
fn named_by_text(text: &str) -> Option<&str> {
    let (name, id) = text.rsplit_once(':')?;
    let plain = |character: char| character.is_alphanumeric() || "_- ".contains(character);
    let valid = !name.is_empty() && name.chars().all(plain) && id.parse::<u64>().is_ok();
    valid.then_some(name)
}

/// `unix` or `unix:style`.
fn timestamp(text: &str) -> Option<String> {
    let seconds: i64 = text.split(':').next()?.parse().ok()?;
    let millis = seconds.checked_mul(1_000)?;
    Some(format!("{} UTC", UnixMillis(millis).minute()))
}

fn link(text: &str, name: &mut impl FnMut(MarkupId) -> String) -> Option<(String, usize)> {
    let (link, length) = links::at_start(text)?;
    link.message?;
    Some((name(MarkupId::Link(link.channel)), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(id: MarkupId) -> String {
        match id {
            MarkupId::User(id) => format!("@u{id}"),
            MarkupId::Role(id) => format!("@r{id}"),
            MarkupId::Channel(id) => format!("#c{id}"),
            MarkupId::Link(id) => format!("(link c{id})"),
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(replace(text, shown), expected);
    }

    #[test]
    fn ids_become_names() {
        check(
            "hi <@12> and <@!12>, <@&3> in <#4>",
            "hi @u12 and @u12, @r3 in #c4",
        );
        check("<:pump:55> <a:spin:56>", ":pump: :spin:");
        check("at <t:1700000000:R>", "at 2023-11-14 22:13 UTC");
        check("run </context show:99>", "run /context show");
        check("```<@1>```` <@12>", "```<@1>```` @u12");
        check(
            "see https://discord.com/channels/1/22/333 now",
            "see (link c22) now",
        );
        check(
            "https://discord.com/channels/1/22",
            "https://discord.com/channels/1/22",
        );
    }

    #[test]
    fn code_and_comparisons_keep_every_letter() {
        for text in [
            "`<@12>` and ```rust\nlet x: Vec<String> = a<b;\n<@12>\n```",
            "if a < b && c > d { Vec<String> }",
            "<https://example.org>",
            "``a ` <@12>``",
            "``a ``` <@12>``",
            "<:p!mp:55> <:pump:5x> <::55>",
            "<t:999999999999999999999>",
            "<@>",
            "< @12>",
            "<@12",
        ] {
            check(text, text);
        }
    }

    /// Searching the rest of the text for each would take hours.
    #[test]
    fn a_million_open_tokens_are_read_once() {
        for open in ["<", "<:e:", "a` "] {
            let text = open.repeat(1_000_000);
            check(&text, &text);
        }
    }

    #[test]
    fn an_open_backtick_hides_nothing() {
        check("it`s <@12>", "it`s @u12");
    }
}
