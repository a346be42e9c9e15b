//! Search Guild Messages: the messages of a server that fit a query, from an index that may
//! lag behind.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::answer::Refusal;
use super::body::{Call, decode};
use super::parts::too_many;
use crate::gateway::intent::MESSAGE_CONTENT;
use crate::ids::Id;
use crate::permissions::Permissions;
use crate::render;
use crate::state::State;
use crate::world::{Channel, ChannelKind, Guild, Message};

/// The most of a page, and of what goes before it.
const MAX_LIMIT: u64 = 25;
const MAX_OFFSET: u64 = 9_975;

/// What is looked for. An empty list stands for anything.
struct Query {
    words: Vec<String>,
    channels: BTreeSet<Id>,
    authors: BTreeSet<Id>,
    replied_to: BTreeSet<Id>,
    has: Vec<String>,
    pinned: Option<bool>,
    /// Older than this, and newer than that.
    max: u64,
    min: u64,
    with_nsfw: bool,
}

impl State {
    pub(super) fn search(&self, call: &Call, guild: &Guild) -> Result<Value, Refusal> {
        if self.world.settings.disallowed_intents & MESSAGE_CONTENT != 0 {
            return Err(Refusal::missing_access());
        }
        let needed = Permissions::READ_MESSAGE_HISTORY;
        let held = guild.permissions(self.world.bot);
        if !held.contains(needed) && !held.contains(Permissions::ADMINISTRATOR) {
            return Err(Refusal::missing_permissions());
        }
        let query = Query::read(call)?;
        let limit = call.within("limit", MAX_LIMIT, 1..=MAX_LIMIT)?;
        let offset = call.within("offset", 0, 0..=MAX_OFFSET)?;
        let by_relevance = call.query("sort_by").as_deref() == Some("relevance");
        let is_ascending = call.query("sort_order").as_deref() == Some("asc");
        let mut found: Vec<(usize, &Message)> = self
            .indexed()
            .filter(|message| self.is_searched(guild.id, message.channel, &query))
            .filter_map(|message| Some((self.score(message, &query)?, message)))
            .collect();
        found.sort_by_key(|(score, message)| {
            let score = if by_relevance { *score } else { 0 };
            Reverse((score, message.id))
        });
        if is_ascending && !by_relevance {
            found.reverse();
        }
        let total = found.len();
        let page = found.into_iter().skip(offset).take(limit);
        let page: Vec<&Message> = page.map(|(_, message)| message).collect();
        let threads: BTreeSet<Id> = page.iter().map(|message| message.channel).collect();
        let threads = threads.iter().filter_map(|id| self.world.channels.get(id));
        let threads: Vec<&Channel> = threads.filter(|one| one.thread.is_some()).collect();
        let mut body = render::thread_listing(&self.world, &threads, false);
        let messages = page.iter().map(|message| {
            let mut object = render::message(&self.world, message, render::Audience::Rest);
            if let Some(fields) = object.as_object_mut() {
                fields.remove("reactions");
                fields.insert("hit".to_owned(), true.into());
            }
            json!([object])
        });
        body["messages"] = messages.collect();
        body["total_results"] = total.into();
        body["doing_deep_historical_index"] = false.into();
        if let Some(fields) = body.as_object_mut() {
            fields.remove("has_more");
        }
        Ok(body)
    }

    /// What the index has.
    fn indexed(&self) -> impl Iterator<Item = &Message> {
        let held = self.world.search_index.as_ref();
        let channels = self.world.channels.values().filter(move |_| held.is_none());
        let live = channels.flat_map(|channel| channel.messages.values());
        held.into_iter().flatten().chain(live)
    }

    /// Whether a channel or thread of the server is asked for, and the bot may read it.
    fn is_searched(&self, guild: Id, channel: Id, query: &Query) -> bool {
        let Some(found) = self.world.channels.get(&channel) else {
            return false;
        };
        let parent = found.parent.filter(|_| found.kind.is_thread());
        let judged = parent.and_then(|parent| self.world.channels.get(&parent));
        let judged = judged.unwrap_or(found);
        let covers = self.world.settings.search_covers_threads;
        let by_parent = parent.is_some_and(|parent| covers && query.channels.contains(&parent));
        let is_asked = query.channels.is_empty() || query.channels.contains(&channel) || by_parent;
        let connects = if judged.kind == ChannelKind::Voice {
            Permissions::CONNECT
        } else {
            Permissions::NONE
        };
        let needed = Permissions::READ_MESSAGE_HISTORY | connects;
        found.guild == Some(guild)
            && is_asked
            && (query.with_nsfw || !judged.nsfw)
            && self.world.sees(self.world.bot, channel)
            && self.world.bot_may(channel, needed)
    }

    /// How often a message has the words, if it has all and fits.
    fn score(&self, message: &Message, query: &Query) -> Option<usize> {
        let words = words_of(&message.content);
        let has_all = query.words.iter().all(|word| words.contains(word));
        let replied = message.reference.filter(|one| one.kind == 0);
        let replied = replied.and_then(|one| self.world.message(one.channel, one.message?));
        let fits = |all: &BTreeSet<Id>, one: Option<Id>| {
            all.is_empty() || one.is_some_and(|one| all.contains(&one))
        };
        let is_found = has_all
            && message.flags & crate::world::flag::EPHEMERAL == 0
            && fits(&query.authors, Some(message.author))
            && fits(&query.replied_to, replied.map(|one| one.author))
            && query.has.iter().all(|thing| has(message, thing))
            && query
                .pinned
                .is_none_or(|pinned| message.pinned_ms.is_some() == pinned)
            && (query.min..query.max).contains(&message.id.0)
            && message.id.0 != query.min;
        let times = words.iter().filter(|word| query.words.contains(word));
        is_found.then(|| times.count())
    }
}

impl Query {
    fn read(call: &Call) -> Result<Self, Refusal> {
        let content = call.query("content").unwrap_or_default();
        if content.chars().count() > 1_024 {
            return Err(too_many("content", 1_024));
        }
        let flag = |key| call.query(key).map(|text| text == "true");
        Ok(Self {
            words: words_of(&content),
            channels: ids(call, "channel_id", 500)?,
            authors: ids(call, "author_id", 100)?,
            replied_to: ids(call, "replied_to_user_id", 100)?,
            has: list(call, "has"),
            pinned: flag("pinned"),
            max: call.number("max_id")?.unwrap_or(u64::MAX),
            min: call.number("min_id")?.unwrap_or(0),
            with_nsfw: flag("include_nsfw").unwrap_or(false),
        })
    }
}

/// The values of a parameter that may be given several times.
fn list(call: &Call, key: &str) -> Vec<String> {
    let pairs = call
        .raw_query
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let own = pairs.filter(|(name, _)| *name == key);
    own.map(|(_, value)| decode(value)).collect()
}

fn ids(call: &Call, key: &str, most: usize) -> Result<BTreeSet<Id>, Refusal> {
    let values = list(call, key);
    if values.len() > most {
        return Err(too_many(key, most));
    }
    values.iter().map(|value| super::body::id(value)).collect()
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|one: char| !one.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whether a message has a thing (Search Guild Messages, "Search Has Types"); those that
/// are not simulated are in none.
fn has(message: &Message, thing: &str) -> bool {
    let of_type = |kind: &str| {
        let mut files = message.attachments.iter();
        files.any(|one| one.file.content_type.starts_with(kind))
    };
    match thing {
        "file" => !message.attachments.is_empty(),
        "image" => of_type("image/"),
        "link" => message.content.contains("http://") || message.content.contains("https://"),
        "embed" => !message.embeds.is_empty(),
        "sticker" => !message.stickers.is_empty(),
        "poll" => message.poll.is_some(),
        _ => false,
    }
}
