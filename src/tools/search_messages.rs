//! `search_messages`: finds messages by words, among those held in memory and those
//! stored of the conversation.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::asker::Asker;
use super::reading::shown;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::engine::sources::place_of;
use crate::memory::Keywords;
use crate::model::{ToolDefinition, ToolName, ToolParameter};
use clew_context::engine::render::Renderer;
use clew_context::engine::{frame, shorten};
use clew_context::model::{ChannelId, ContentSource, Message, TurnId};
use clew_store::model::{StoredMessage, StoredRole};

pub(super) const SEARCH_MESSAGES: Tool = Tool {
    definition: ToolDefinition {
        name: ToolName::SearchMessages,
        about: "Finds recent messages of this Discord server, and what you and the asker said \
                earlier in this conversation, by words. Those with the most of the words come \
                first.",
        parameters: &[ToolParameter {
            name: WORDS,
            about: "Words that the messages have, in the language that they are written in.",
            is_required: true,
        }],
    },
    run: run!(search_messages),
    is_kept: true,
};

const WORDS: &str = "words";
/// Messages shown of each kind.
const MAX_SHOWN: usize = 15;
/// Channels that are looked at, those in use last.
const MAX_CHANNELS: usize = 64;
/// The longest that a stored message is shown, in Unicode scalars.
const MAX_STORED_CHARS: usize = 1_000;
/// What is said if nothing is found.
const NOTHING: &str = "No message with these words was found.";

async fn search_messages(
    asker: &Asker<'_>,
    arguments: &Arguments,
) -> Result<ToolOutput, ToolError> {
    let words = Keywords::of(&arguments.required(WORDS)?);
    let mut output = in_window(asker, &words).await;
    let stored = stored(asker, &words).await?;
    output.content.extend_from_slice(stored.content.as_slice());
    output.sources.extend(stored.sources);
    if output.content.is_empty() {
        return Ok(ToolOutput::line(NOTHING));
    }
    Ok(output)
}

/// The best messages held in memory, by channel.
async fn in_window(asker: &Asker<'_>, words: &Keywords) -> ToolOutput {
    let channels = match asker.guild() {
        Some(guild) => asker.held(guild),
        None => vec![asker.place.channel],
    };
    let mut found: Vec<(usize, Arc<Message>)> = Vec::new();
    let readable = channels
        .into_iter()
        .filter(|channel| asker.may_read(*channel));
    for channel in readable.take(MAX_CHANNELS) {
        let older = |message: &&Arc<Message>| message.id < asker.trigger && !message.withheld;
        let view = asker.view(channel);
        let scored = view.recent.iter().filter(older).map(|message| {
            let score = words.shared_with(&message.content);
            (score, Arc::clone(message))
        });
        found.extend(scored.filter(|(score, _)| *score > 0));
        // A channel takes some milliseconds.
        tokio::task::yield_now().await;
    }
    found.sort_by_key(|(score, message)| Reverse((*score, message.id)));
    found.truncate(MAX_SHOWN);
    let mut by_channel: Vec<(ChannelId, Vec<Arc<Message>>)> = Vec::new();
    for (_, message) in found {
        let channel = message.channel;
        match by_channel.iter_mut().find(|(known, _)| *known == channel) {
            Some((_, messages)) => messages.push(message),
            None => by_channel.push((channel, vec![message])),
        }
    }
    let mut output = ToolOutput::default();
    for (channel, messages) in by_channel {
        let part = shown(asker, channel, &messages, asker.max_message_chars);
        output.content.extend(part.content);
        output.sources.extend(part.sources);
    }
    output
}

/// The best of what is stored of the asker's conversation here.
async fn stored(asker: &Asker<'_>, words: &Keywords) -> Result<ToolOutput, ToolError> {
    if asker.owns_nothing {
        return Ok(ToolOutput::default());
    }
    let mut rows = asker.memory.said_before(asker.place).await?;
    let guild = asker.place.guild;
    asker.retain_readable(&mut rows, |row| place_of(row, guild), |row| &row.sources);
    // An answer goes with its question.
    let mut messages: BTreeMap<TurnId, Vec<ContentSource>> = BTreeMap::new();
    for row in &rows {
        let of_turn = messages.entry(row.turn).or_default();
        of_turn.extend(message_of(row));
    }
    let scored = rows
        .into_iter()
        .map(|row| (words.shared_with(&row.content), row));
    let mut found: Vec<(usize, StoredMessage)> = scored.filter(|(score, _)| *score > 0).collect();
    found.sort_by_key(|(score, row)| Reverse((*score, row.timestamp)));
    found.truncate(MAX_SHOWN);
    let mut renderer = Renderer::new(asker.us, asker.names);
    let mut output = ToolOutput::default();
    for (_, row) in found {
        let line = line(&mut renderer, &row);
        output.content.extend_from_slice(line.as_bytes());
        output
            .sources
            .extend(messages.get(&row.turn).into_iter().flatten());
        output.sources.extend(row.sources);
    }
    Ok(output)
}

/// The message that a row is of, as what a result was made from.
fn message_of(row: &StoredMessage) -> Option<ContentSource> {
    let message = row.message?;
    Some(ContentSource {
        guild: row.guild,
        channel: row.channel,
        message: Some(message),
        author: Some(row.owner),
    })
}

fn line(renderer: &mut Renderer<'_>, row: &StoredMessage) -> String {
    let text = renderer.stored(&row.content);
    let text = shorten::head_and_tail(&text, MAX_STORED_CHARS).unwrap_or(text);
    let name = match (row.role, &row.author_name) {
        (StoredRole::User, Some(name)) => renderer.named(row.owner, name),
        _ => renderer.our_name().to_owned(),
    };
    let header = frame::stored_header(&name, row.timestamp, row.restored_from.is_some());
    let mut line = String::new();
    let _ = writeln!(line, "(said earlier) {header}: {}", frame::indented(&text));
    line
}
