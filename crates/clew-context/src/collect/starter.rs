//! The starter: the message a thread was started from (in the parent channel,
//! with the thread's id), a forum post's first message (in the thread, with its
//! id), or the first message of a thread that was not started from a message.

use std::sync::Arc;

use crate::engine::select::NamedMessage;
use crate::model::{
    Channel, ChannelId, ChannelKind, Fallback, Message, MessageId, MessageKind, Referenced, Stage,
};

use super::Collector;
use super::fetch::Fetcher;
use super::history::History;
use super::negative_cache::NoStarter;
use super::source::{PageCursor, Source};

/// What the first look at a starter tells.
pub(super) enum FirstLook {
    /// It is this one, or deleted.
    Found(NamedMessage),
    /// Only the thread's first message can tell.
    InThread,
    /// It could not be fetched; the thread's messages may show it.
    Failed(MessageId, Fallback),
}

impl FirstLook {
    /// A starter in its home.
    pub(super) async fn fetched<S: Source>(
        fetcher: &Fetcher<'_, S>,
        stage: Stage,
        thread: ChannelId,
        home: ChannelId,
    ) -> Self {
        let id = thread.starter();
        match fetcher.message_unnoted(stage, home, id).await {
            Ok(message) => Self::Found(NamedMessage::Known(Arc::new(message))),
            Err(Fallback::Deleted | Fallback::NotFound) if home == thread => {
                Self::Found(NamedMessage::Deleted(id))
            }
            Err(Fallback::Deleted | Fallback::NotFound) => Self::InThread,
            Err(reason) => Self::Failed(id, reason),
        }
    }
}

/// The first look, at the same time as the first page.
pub(super) async fn look<S: Source>(by: &Collector<'_, S>, channel: Option<&Channel>) -> FirstLook {
    let Some((channel, home)) = channel.and_then(|one| Some((one, home(one)?))) else {
        return FirstLook::InThread;
    };
    if let Some(known) = by.turn.known_starter(home) {
        return FirstLook::Found(NamedMessage::Known(known));
    }
    let id = channel.id.starter();
    if home == channel.id && by.turn.view.deleted.contains(&id) {
        return FirstLook::Found(NamedMessage::Deleted(id));
    }
    let first = by.turn.view.recent.first();
    if let Some(referenced) = first.and_then(|first| included_in(first, Some(channel))) {
        return FirstLook::Found(referenced);
    }
    let cache = by.fetcher.negative_cache();
    match cache.no_starter(channel.id) {
        Some(NoStarter::Deleted) => return FirstLook::Found(NamedMessage::Deleted(id)),
        Some(NoStarter::FirstMessage(first)) => return first_message(by, first).await,
        None => {}
    }
    // A thread inherits its parent's permissions, so what we computed here holds there.
    if by.turn.may_surely_not_read() {
        by.fetcher.bar(home);
    }
    let found = FirstLook::fetched(by.fetcher, Stage::Starter, channel.id, home).await;
    if matches!(found, FirstLook::Found(NamedMessage::Deleted(_))) {
        cache.remember_no_starter(channel.id, NoStarter::Deleted);
    }
    found
}

/// The channel the starter is in; `None` for private threads, which are never
/// started from a message.
pub(super) fn home(channel: &Channel) -> Option<ChannelId> {
    match channel.kind {
        ChannelKind::PrivateThread => None,
        _ if channel.parent_kind.is_some_and(ChannelKind::is_forum) => Some(channel.id),
        _ => channel.parent,
    }
}

async fn first_message<S: Source>(by: &Collector<'_, S>, first: MessageId) -> FirstLook {
    if let Some(known) = by.turn.view.get(first) {
        return FirstLook::Found(NamedMessage::Known(Arc::clone(known)));
    }
    let thread = by.turn.channel_id();
    let message = by
        .fetcher
        .message_unnoted(Stage::Starter, thread, first)
        .await;
    message.map_or(FirstLook::InThread, |message| {
        FirstLook::Found(NamedMessage::Known(Arc::new(message)))
    })
}

/// The second look, at the thread's first message. That a thread was not started from a message is
/// not a failure.
pub(super) async fn from_first_message<S: Source>(
    by: &Collector<'_, S>,
    channel: Option<&Channel>,
    history: &History,
) -> NamedMessage {
    let thread = by.turn.channel_id();
    if history.reaches_start() {
        return history
            .messages
            .first()
            .map_or(NamedMessage::None, |first| {
                judge(by.fetcher, channel, first)
            });
    }
    let cursor = PageCursor::After(thread.starter());
    match by.fetcher.page(Stage::Starter, thread, cursor, 1).await {
        Some(page) => match page.messages.into_iter().next() {
            Some(first) => judge(by.fetcher, channel, &Arc::new(first)),
            None => NamedMessage::None,
        },
        None => NamedMessage::Unavailable(None),
    }
}

/// If a thread was started from a message, its first message has type 21.
fn judge<S: Source>(
    fetcher: &Fetcher<'_, S>,
    channel: Option<&Channel>,
    first: &Arc<Message>,
) -> NamedMessage {
    let (thread, cache) = (first.channel, fetcher.negative_cache());
    if first.kind != MessageKind::ThreadStarter {
        cache.remember_no_starter(thread, NoStarter::FirstMessage(first.id));
        return NamedMessage::Known(Arc::clone(first));
    }
    if let Some(referenced) = included_in(first, channel) {
        return referenced;
    }
    // It was not included and, since the channel is unknown, not fetched either.
    if channel.is_none() && first.referenced == Referenced::Absent {
        return NamedMessage::Unavailable(Some(thread.starter()));
    }
    cache.remember_no_starter(thread, NoStarter::Deleted);
    NamedMessage::Deleted(thread.starter())
}

/// A starter that could not be fetched, as the thread's messages show it: a post's is one of
/// them; another is included in the first of all, or is that, unless Discord put it there.
pub(super) fn among(
    messages: &[Arc<Message>],
    reaches_start: bool,
    channel: Option<&Channel>,
    id: MessageId,
) -> Option<NamedMessage> {
    if let Some(itself) = messages.iter().find(|message| message.id == id) {
        return Some(NamedMessage::Known(Arc::clone(itself)));
    }
    let first = messages.first()?;
    let is_post = channel.is_some_and(|channel| home(channel) == Some(channel.id));
    let is_starter = reaches_start && !is_post && first.kind != MessageKind::ThreadStarter;
    let first_is = || is_starter.then(|| NamedMessage::Known(Arc::clone(first)));
    included_in(first, channel).or_else(first_is)
}

/// Somebody who may read the thread may read its parent, but no other channel.
fn included_in(first: &Arc<Message>, channel: Option<&Channel>) -> Option<NamedMessage> {
    if first.kind != MessageKind::ThreadStarter {
        return None;
    }
    let parent = channel.and_then(|channel| channel.parent);
    let starter = first.referenced_message()?;
    let stands_there = parent.is_none_or(|parent| parent == starter.channel);
    stands_there.then(|| NamedMessage::Known(Arc::new(starter.clone())))
}
