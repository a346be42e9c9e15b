//! `search_messages`: finds messages of the server, by Discord's search where it may be asked
//! and in the window, and what is stored of the conversation.
//!
//! Invariant: Discord is asked for channels that everybody who reads the answer may read, and
//! each message that it gives is judged again by its own channel or thread. Nothing that is
//! hidden decides what is said, how often Discord is asked, or when.

mod index;
mod query;
mod stored;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::asker::Asker;
use super::reading::shown;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::model::{ToolDefinition, ToolName, ToolParameter};
use crate::telemetry::event::SearchedBy;
use clew_context::engine::window::View;
use clew_context::model::{ChannelId, Message, MessageId};
use query::{PAGE_SIZE, Query};

/// A parameter that may be left out.
const fn optional(name: &'static str, about: &'static str) -> ToolParameter {
    ToolParameter {
        name,
        about,
        is_required: false,
    }
}

pub(super) const SEARCH_MESSAGES: Tool = Tool {
    definition: ToolDefinition {
        name: ToolName::SearchMessages,
        about: "Finds messages of this Discord server, and what you and the asker said earlier \
                in this conversation. Give words, or anything else that is known of them.",
        parameters: &[
            optional(
                WORDS,
                "A few words that the message has, in the language that it is written in.",
            ),
            optional(AUTHOR, "Who wrote it: a name as shown, or an id."),
            optional(
                CHANNEL,
                "The channel or thread: its name as shown (`#name`), its id, or a link to it.",
            ),
            optional(
                AFTER,
                "The earliest time in UTC, as `2026-03-19 10:30` or `2026-03-19`.",
            ),
            optional(BEFORE, "The latest time, likewise."),
            optional(
                HAS,
                "What it has: `file`, `image` or `link`, or several of them.",
            ),
            optional(PINNED, "`true` for pinned messages, `false` for others."),
            optional(REPLIES_TO, "Whom it replies to: a name as shown, or an id."),
            optional(
                ORDER,
                "`relevance` (those with the most of the words first) or `time` (the newest first).",
            ),
            optional(PAGE, "A number from 2 for those after the first."),
        ],
    },
    run: run!(search_messages),
    is_kept: true,
};

const WORDS: &str = "words";
const AUTHOR: &str = "author";
const CHANNEL: &str = "channel";
const AFTER: &str = "after";
const BEFORE: &str = "before";
const HAS: &str = "has";
const PINNED: &str = "pinned";
const REPLIES_TO: &str = "replies_to";
const ORDER: &str = "order";
const PAGE: &str = "page";
/// Channels of the window that are looked at, those in use last.
const MAX_CHANNELS: usize = 64;
/// What is said if nothing is found.
const NOTHING: &str = "No message with these words was found.";

/// Messages that were found, each with how many of the words it has.
type Found = BTreeMap<MessageId, (usize, Arc<Message>)>;

async fn search_messages(
    asker: &Asker<'_>,
    arguments: &Arguments,
) -> Result<ToolOutput, ToolError> {
    let query = Query::read(asker, arguments)?;
    let views = views(asker, &query).await;
    let held = in_window(&query, &views);
    let (mut found, by) = match index::search(asker, &query, &views).await {
        Ok(hits) => (hits, SearchedBy::Discord),
        Err(by) => (Found::new(), by),
    };
    if query.page == 0 {
        found.extend(held);
    } else {
        // The first page has these.
        found.retain(|id, _| !held.contains_key(id));
    }
    let mut output = in_order(asker, &query, found);
    let is_found = !output.content.is_empty();
    if query.page == 0 && query.words.is_some() && query.names_nobody() {
        let shown = output.sources.iter().filter_map(|source| source.message);
        let stored = stored::found(asker, &query, &shown.collect()).await?;
        output.content.extend_from_slice(stored.content.as_slice());
        output.sources.extend(stored.sources);
    }
    if output.content.is_empty() {
        output = ToolOutput::line(NOTHING);
    }
    if let Some(note) = note(by, &query, is_found) {
        output.content.extend_from_slice(note.as_bytes());
    }
    output.search = Some(by);
    Ok(output)
}

/// What the model is told beside the messages.
fn note(by: SearchedBy, query: &Query, is_found: bool) -> Option<String> {
    let why = match by {
        SearchedBy::Discord => {
            // Whether there is more is not told: it could be what is hidden.
            let next = query.page + 2;
            return is_found.then(|| format!("(`page` {next} may have more.)\n"));
        }
        SearchedBy::Window => return None,
        SearchedBy::NotIndexed => "is still being prepared for this server",
        SearchedBy::RateLimited | SearchedBy::Limit => "was asked too often",
        SearchedBy::Forbidden => "is closed to this bot",
        SearchedBy::Failed => "did not answer",
    };
    Some(format!(
        "\n(Discord's search {why}: only recent messages were looked at.)\n"
    ))
}

/// What is held of the channels that are searched.
async fn views(asker: &Asker<'_>, query: &Query) -> Vec<(ChannelId, View)> {
    let held = match asker.guild() {
        Some(guild) => asker.held(guild),
        None => vec![asker.place.channel],
    };
    let is_asked = |channel: &ChannelId| {
        query
            .channel
            .is_none_or(|of| *channel == of || thread_parent(asker, *channel) == Some(of))
    };
    let readable = held
        .into_iter()
        .filter(|channel| is_asked(channel) && asker.may_read(*channel));
    let mut views = Vec::new();
    for channel in readable.take(MAX_CHANNELS) {
        views.push((channel, asker.view(channel)));
        // A channel takes some milliseconds.
        tokio::task::yield_now().await;
    }
    views
}

/// The channel that a thread is in; none of anything else.
fn thread_parent(asker: &Asker<'_>, channel: ChannelId) -> Option<ChannelId> {
    let (kind, parent) = asker.guild_state.kind_and_parent(channel)?;
    parent.filter(|_| kind.is_thread())
}

/// The best messages held in memory; of pins nothing is known there.
fn in_window(query: &Query, views: &[(ChannelId, View)]) -> Found {
    if query.pinned.is_some() {
        return Found::new();
    }
    let scored = views.iter().flat_map(|(_, view)| {
        let recent = view.recent.iter();
        recent.filter_map(|message| Some((query.score(message, view)?, Arc::clone(message))))
    });
    let mut best: Vec<(usize, Arc<Message>)> = scored.collect();
    best.sort_by_key(|(score, message)| rank(query, *score, message));
    best.truncate(PAGE_SIZE);
    let best = best.into_iter();
    best.map(|one| (one.1.id, one)).collect()
}

/// By which messages are ordered.
fn rank(query: &Query, score: usize, message: &Message) -> Reverse<(usize, MessageId)> {
    Reverse((if query.by_relevance { score } else { 0 }, message.id))
}

/// Shows what was found, by channel, those with the best first.
fn in_order(asker: &Asker<'_>, query: &Query, found: Found) -> ToolOutput {
    let mut found: Vec<(usize, Arc<Message>)> = found.into_values().collect();
    found.sort_by_key(|(score, message)| rank(query, *score, message));
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
