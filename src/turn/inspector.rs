//! The built-in inspector: without a model the bot answers with what it
//! collected and why, in a few readable lines.

use clew_context::engine::frame;
use clew_context::model::{Entry, Item, Marker, OmitReason, Scene};

use super::record::TurnRecord;

/// How many messages are shown with their first words; the rest is counted.
const SHOWN: usize = 6;
/// The most of a message that is shown, in Unicode scalars.
const WORDS: usize = 80;

/// The answer, in Discord's formatting.
pub(super) fn answer(record: &TurnRecord) -> String {
    let mut lines = vec![summary(record)];
    lines.extend(
        record
            .block
            .title
            .as_deref()
            .map(|title| format!("- {}", plain(title))),
    );
    lines.extend(reply_line(record));
    lines.extend(omitted_lines(record));
    lines.extend(private_line(record));
    lines.extend(record.fallbacks.iter().map(|(stage, reason)| {
        format!(
            "- could not get part of it: {} ({})",
            stage.as_str(),
            reason.as_str()
        )
    }));
    lines.extend(shown_lines(record));
    lines.push("No model is set (LLM_BASE_URL), so this is what one would have read.".to_owned());
    lines.join("\n")
}

fn summary(record: &TurnRecord) -> String {
    let what = match record.scene {
        Scene::Thread => "this thread",
        Scene::ReplyChain => "this chain of replies",
        Scene::Direct => "this direct conversation",
        Scene::Lone => "this channel",
    };
    let count = record.block.items().count();
    let messages = if count == 1 { "message" } else { "messages" };
    let calls = if record.fetches == 1 { "call" } else { "calls" };
    format!(
        "**{count} {messages} of {what}**, {} characters, {} {calls} to Discord in {} ms",
        record.block.chars,
        record.fetches,
        record.collected_in.as_millis()
    )
}

fn reply_line(record: &TurnRecord) -> Option<String> {
    let adopted = record.adopted?;
    let item = record
        .block
        .items()
        .find(|item| item.message.id == adopted)?;
    Some(format!(
        "- you wrote nothing yourself, so {}'s message is answered",
        plain(&item.name)
    ))
}

/// Each gap with the setting that caused it, worded as in the prompt.
fn omitted_lines(record: &TurnRecord) -> Vec<String> {
    let markers = record.block.entries.iter().filter_map(|entry| match entry {
        Entry::Marker(marker @ (Marker::Gap(..) | Marker::EarlierChain(_))) => Some(*marker),
        Entry::Marker(_) | Entry::Message(_) => None,
    });
    markers
        .map(|marker| format!("- {}", plain(&frame::marker_line(marker))))
        .collect()
}

fn private_line(record: &TurnRecord) -> Option<String> {
    let count = record.block.omitted_for(OmitReason::OptedOut);
    (count > 0).then(|| format!("- {count} messages kept private by their authors"))
}

/// The first message and the last few.
fn shown_lines(record: &TurnRecord) -> Vec<String> {
    let items: Vec<&Item> = record.block.items().collect();
    if items.len() <= SHOWN {
        return items.into_iter().map(line).collect();
    }
    let rest = items.len() - SHOWN;
    let mut lines = vec![line(items[0]), format!("> *... {rest} more ...*")];
    lines.extend(
        items[items.len() - (SHOWN - 1)..]
            .iter()
            .map(|item| line(item)),
    );
    lines
}

fn line(item: &Item) -> String {
    let words = item.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(WORDS).collect();
    let more = if short.len() < words.len() { "…" } else { "" };
    let who = if item.ours { "me" } else { item.name.as_str() };
    format!("> {}: {}{more}", plain(who), plain(&short))
}

/// Escapes a text, so that other people's words neither format nor ping.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(
            character,
            '*' | '_' | '`' | '~' | '|' | '<' | '>' | '[' | ']' | '\\'
        ) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
