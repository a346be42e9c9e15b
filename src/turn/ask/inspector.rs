//! The built-in inspector: without a model the bot answers with what it
//! collected and why, in a few readable lines.

use crate::model::{count, cut, unformatted};
use clew_context::engine::frame;
use clew_context::engine::prepare::lone_in_window;
use clew_context::model::{Block, BlockEntry, BlockItem, BlockPlace, Marker, OmitReason, Scene};

use crate::turn::gather::TurnMaterial;
use clew_store::model::StoredRole;

/// How many messages are shown with their first words; the rest is counted.
const SHOWN: usize = 6;
/// The most of a message that is shown, in Unicode scalars.
const WORDS: usize = 80;

/// The answer, in Discord's formatting.
pub(super) fn answer(material: &TurnMaterial) -> String {
    let block = material.block();
    let title = block.title.as_deref();
    let failed = material.fallbacks.iter().map(|(stage, reason)| {
        format!(
            "- could not get part of it: {} ({})",
            stage.as_str(),
            reason.as_str()
        )
    });
    let mut lines = vec![summary(material)];
    lines.extend(title.map(|title| format!("- {}", unformatted(title))));
    lines.extend(reply_line(material));
    lines.extend(omitted_lines(block));
    lines.extend(heading_lines(block));
    lines.extend(left_out_lines(block));
    lines.extend(lone_line(material));
    lines.extend(failed);
    lines.extend(shown_lines(block));
    lines.extend(recalled_lines(material));
    lines.push("No model is set (LLM_BASE_URL), so this is what one would have read.".to_owned());
    lines.join("\n")
}

fn summary(material: &TurnMaterial) -> String {
    let (collected, block) = (&material.collected, material.block());
    let what = match collected.scene {
        Scene::Thread => "this thread",
        Scene::ReplyChain => "this chain of replies",
        Scene::Direct => "this direct conversation",
        Scene::Lone => "this channel",
    };
    format!(
        "**{} of {what}**, {} characters, {} to Discord in {} ms",
        count(block.items().count(), "message"),
        block.chars,
        count(collected.fetches, "call"),
        material.collected_in.as_millis()
    )
}

fn reply_line(material: &TurnMaterial) -> Option<String> {
    let adopted = material.collected.target.adopted.as_ref()?;
    let mut shown = material.block().items();
    let item = shown.find(|item| item.message.id == adopted.id)?;
    Some(format!(
        "- you wrote nothing yourself, so {}'s message is answered",
        unformatted(&item.name)
    ))
}

/// Each gap with the setting that caused it, worded as in the prompt.
fn omitted_lines(block: &Block) -> Vec<String> {
    let markers = block.entries.iter().filter_map(|entry| match entry {
        BlockEntry::Marker(marker @ (Marker::Gap(..) | Marker::EarlierChain(_))) => Some(*marker),
        BlockEntry::Marker(_) | BlockEntry::Message(_) | BlockEntry::Heading(_) => None,
    });
    markers
        .map(|marker| format!("- {}", unformatted(&frame::marker_line(marker))))
        .collect()
}

/// Where the messages behind links stand.
fn heading_lines(block: &Block) -> impl Iterator<Item = String> {
    let headings = block.entries.iter().filter_map(BlockEntry::heading);
    headings.map(|heading| format!("- {}", unformatted(heading.trim_end_matches(':'))))
}

/// What `LONE_CONTEXT` would have added, as far as it costs no call.
fn lone_line(material: &TurnMaterial) -> Option<String> {
    let (recent, of_conversation) = lone_in_window(&material.collected);
    let messages = match recent {
        0 => return None,
        1 => "the last message".to_owned(),
        count => format!("the last {count} messages"),
    };
    let theirs = match of_conversation {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    Some(format!(
        "- LONE_CONTEXT=recent would have shown {messages} of this channel that I remember, \
         LONE_CONTEXT=conversation {theirs} that seem to belong to your conversation"
    ))
}

/// What is left out and has no marker in the block; a conversation in a channel has none at all.
fn left_out_lines(block: &Block) -> impl Iterator<Item = String> {
    let is_conversation = |item: &BlockItem| matches!(item.place, BlockPlace::Conversation(_));
    let has_conversation = block.items().any(is_conversation);
    let is_told = move |reason: &OmitReason| match reason {
        OmitReason::OptedOut
        | OmitReason::OtherConversation
        | OmitReason::NewConversation
        | OmitReason::LongAgo => true,
        OmitReason::Msgs | OmitReason::Chars | OmitReason::LoneChars => has_conversation,
        _ => false,
    };
    let reasons = OmitReason::ALL.iter().copied().filter(is_told);
    let counted = reasons.map(|reason| (reason, block.omitted_for(reason)));
    let counted = counted.filter(|(_, number)| *number > 0);
    counted.map(|(reason, number)| format!("- {} {}", count(number, "message"), reason.text()))
}

/// The first message and the last few.
fn shown_lines(block: &Block) -> Vec<String> {
    let items: Vec<&BlockItem> = block.items().collect();
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

/// The questions of earlier exchanges that match this one.
fn recalled_lines(material: &TurnMaterial) -> Vec<String> {
    let Some(background) = &material.background else {
        return Vec::new();
    };
    let (recalled, _) = background.parts();
    let questions = recalled.iter().filter(|row| row.role == StoredRole::User);
    let questions: Vec<String> = questions
        .map(|row| {
            let name = unformatted(row.author_name.as_deref().unwrap_or("you"));
            let day = row.timestamp.date();
            format!("> {day} **{name}**: {}", unformatted(&short(&row.content)))
        })
        .collect();
    if questions.is_empty() {
        return questions;
    }
    let head = "- from earlier, found by your question (RECALL_MESSAGES):".to_owned();
    std::iter::once(head).chain(questions).collect()
}

/// The first words of a text, on one line.
fn short(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&words, WORDS, "…")
}

fn line(item: &BlockItem) -> String {
    let words = short(&item.text);
    let who = if item.ours { "me" } else { item.name.as_str() };
    let why = match item.place {
        BlockPlace::Conversation(tie) => format!(" *({})*", tie.as_str()),
        _ => String::new(),
    };
    format!("> {}{why}: {}", unformatted(who), unformatted(&words))
}
