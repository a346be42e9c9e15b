//! `search_messages`: finds messages of the server, by Discord's search where it may be asked
//! and in the window, and what is stored of the conversation.
//!
//! Invariant: Discord is asked for channels that everybody who reads the answer may read, and
//! each message that it gives is judged again by its own channel or thread. Up to ten hidden
//! messages among 25 change neither what is said nor how often Discord is asked.

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
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};
use crate::telemetry::event::SearchedBy;
use clew_context::engine::window::View;
use clew_context::model::{ChannelId, Message, MessageId};
use query::{PAGE_SIZE, Query};

pub(super) const SEARCH_MESSAGES: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::SearchMessages,
        "Finds messages of this Discord server, and what you and the asker said earlier \
                in this conversation. Give words, or anything else that is known of them.",
        &[
            ToolParameter::optional(
                WORDS,
                "A few words that the message has, in the language that it is written in.",
            ),
            ToolParameter::optional(AUTHOR, "Who wrote it: a name as shown, or an id."),
            ToolParameter::optional(
                CHANNEL,
                "The channel or thread: its name as shown (`#name`), its id, or a link to it.",
            ),
            ToolParameter::optional(
                AFTER,
                "The earliest time in UTC, as `2026-03-19 10:30` or `2026-03-19`.",
            ),
            ToolParameter::optional(BEFORE, "Only before this time, likewise."),
            ToolParameter::optional(
                HAS,
                "What it has: `file`, `image` or `link`, or several of them.",
            ),
            ToolParameter::optional(PINNED, "`true` for pinned messages, `false` for others."),
            ToolParameter::optional(REPLIES_TO, "Whom it replies to: a name as shown, or an id."),
            ToolParameter::optional(
                ORDER,
                "`relevance` (those with the most of the words first) or `time` (the newest first).",
            ),
            ToolParameter::optional(PAGE, "A number from 2 for those after the first."),
        ],
    ),
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
/// What is said if nothing is found, and if nothing more is.
const NOTHING: &str = "No message with these words was found.";
const NOTHING_MORE: &str = "No more messages were found.";

/// What is said if nothing is found of somebody whom Discord could not be asked for.
const NO_ID: &str =
    "(Who that is is not known here: only the first messages were looked through. Give an id.)\n";

/// Messages that were found, each with how many of the words it has.
type Matches = BTreeMap<MessageId, (usize, Arc<Message>)>;

async fn search_messages(
    asker: &Asker<'_>,
    arguments: &Arguments,
) -> Result<ToolOutput, ToolError> {
    let query = Query::read(asker, arguments)?;
    let results = results(asker, &query).await;
    let (first, end) = (query.page * PAGE_SIZE, query.end());
    let page = results.ranked.iter().take(end).skip(first);
    let mut output = in_order(asker, page.map(|(_, message)| message));
    if query.page == 0 && query.words.is_some() && query.names_nobody() {
        let shown = output.sources.iter().filter_map(|source| source.message);
        let stored = stored::found(asker, &query, &shown.collect()).await?;
        output.content.extend_from_slice(stored.content.as_slice());
        output.sources.extend(stored.sources);
    }
    if output.content.is_empty() {
        let nothing = if query.page == 0 {
            NOTHING
        } else {
            NOTHING_MORE
        };
        output = ToolOutput::line(nothing);
    } else if results.ranked.len() >= end {
        let next = format!("(`page` {} may have more.)\n", query.page + 2);
        output.content.extend_from_slice(next.as_bytes());
    }
    if let Some(note) = results.note() {
        output.content.extend_from_slice(note.as_bytes());
    }
    output.search = Some(results.by);
    Ok(output)
}

/// What is known by now of what is looked for.
struct Results {
    /// Best first; what comes with a further page of Discord follows.
    ranked: Vec<(usize, Arc<Message>)>,
    by: SearchedBy,
    /// Whether a page of Discord is in it.
    has_index: bool,
    /// Whether Discord's pages were searched for somebody whose id is not known.
    is_by_name: bool,
}

/// As many results as the page needs, and with them all that are held.
///
/// Each page of ours reads one more of Discord's, which is larger, and a second one if what may
/// be shown does not fill it. So it takes many hidden messages (of 25, more than ten) to cost a
/// request more, and more (of 50, more than 35) to leave a gap.
async fn results(asker: &Asker<'_>, query: &Query) -> Results {
    let views = views(asker, query).await;
    let mut results = Results {
        ranked: Vec::new(),
        by: SearchedBy::Discord,
        has_index: false,
        is_by_name: false,
    };
    let mut index = match index::Index::of(asker, query, &views).await {
        Ok(index) => index,
        Err(by) => {
            results.by = by;
            None
        }
    };
    results.is_by_name = index.as_ref().is_some_and(index::Index::is_by_name);
    let mut found = in_window(query, &views);
    while let Some(index) = &mut index {
        let is_short = results.ranked.len() < query.end();
        if index.read > query.page && !(is_short && index.read < query.page + 2) {
            break;
        }
        match index.next().await {
            Ok(Some(page)) => {
                found.extend(page);
                results.add(query, &mut found);
                results.has_index = true;
            }
            Ok(None) => break,
            Err(by) => {
                results.by = by;
                break;
            }
        }
    }
    results.add(query, &mut found);
    if let Some(index) = index.filter(|_| results.ranked.len() < query.end()) {
        index.ends(results.by);
    }
    results
}

impl Results {
    /// Adds what is new of what was found.
    fn add(&mut self, query: &Query, found: &mut Matches) {
        for (_, known) in &self.ranked {
            found.remove(&known.id);
        }
        let mut new: Vec<_> = std::mem::take(found).into_values().collect();
        new.sort_by_key(|(score, message)| {
            Reverse((if query.by_relevance { *score } else { 0 }, message.id))
        });
        self.ranked.extend(new);
    }

    /// What the model is told beside the messages.
    fn note(&self) -> Option<String> {
        let why = match self.by {
            SearchedBy::Discord if self.is_by_name && self.ranked.is_empty() => {
                return Some(NO_ID.to_owned());
            }
            SearchedBy::Discord | SearchedBy::Window => return None,
            SearchedBy::NotIndexed => "is still being prepared for this server",
            SearchedBy::RateLimited | SearchedBy::Limit => "was asked too often",
            SearchedBy::Forbidden => "is closed to this bot",
            SearchedBy::Failed => "did not answer",
        };
        let so = if self.has_index {
            "there may be more than this"
        } else {
            "only recent messages were looked at"
        };
        Some(format!("\n(Discord's search {why}: {so}.)\n"))
    }
}

/// Whether a channel is asked for, and everybody who reads the answer may read it.
fn is_searched(asker: &Asker<'_>, query: &Query, channel: ChannelId) -> bool {
    query.covers(asker, channel) && asker.may_read(channel)
}

/// What is held of the channels that are searched.
async fn views(asker: &Asker<'_>, query: &Query) -> Vec<(ChannelId, View)> {
    let held = match asker.guild() {
        Some(guild) => asker.held(guild),
        None => vec![asker.place.channel],
    };
    let searched = held.into_iter();
    let searched = searched.filter(|channel| is_searched(asker, query, *channel));
    let mut views = Vec::new();
    for channel in searched.take(MAX_CHANNELS) {
        views.push((channel, asker.view(channel)));
        // A channel takes some milliseconds.
        tokio::task::yield_now().await;
    }
    views
}

/// The messages held in memory; of pins nothing is known there.
fn in_window(query: &Query, views: &[(ChannelId, View)]) -> Matches {
    if query.pinned.is_some() {
        return Matches::new();
    }
    let scored = views.iter().flat_map(|(_, view)| {
        let recent = view.recent.iter();
        recent.filter_map(|message| Some((query.score(message, view)?, Arc::clone(message))))
    });
    scored.map(|one| (one.1.id, one)).collect()
}

/// Shows messages by channel, those with the best first.
fn in_order<'m>(asker: &Asker<'_>, found: impl Iterator<Item = &'m Arc<Message>>) -> ToolOutput {
    let mut by_channel: Vec<(ChannelId, Vec<Arc<Message>>)> = Vec::new();
    for message in found.map(Arc::clone) {
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
