//! The starter: the message a thread was started from (in the parent channel,
//! with the thread's id), a forum post's first message (in the thread, with its
//! id), or the first message of a thread that was not started from a message.

use std::sync::Arc;

use crate::engine::select::NamedMessage;
use crate::engine::turn::TurnInput;
use crate::model::{
    Channel, ChannelId, ChannelKind, Fallback, Message, MessageId, MessageKind, Referenced, Stage,
};

use super::fetch::Fetcher;
use super::history::History;
use super::negative_cache::NoStarter;
use super::source::{PageCursor, Source};

/// The first look, at the same time as the first page. `None`: only the thread's
/// first message can tell.
pub(super) async fn look<S: Source>(
    turn: &TurnInput,
    fetcher: &Fetcher<'_, S>,
    channel: Option<&Channel>,
) -> Option<NamedMessage> {
    let channel = channel?;
    let home = home(channel)?;
    if let Some(known) = turn.known_starter(home) {
        return Some(NamedMessage::Known(known));
    }
    let id = channel.id.starter();
    if home == channel.id && turn.view.deleted.contains(&id) {
        return Some(NamedMessage::Deleted(id));
    }
    if let Some(referenced) = turn
        .view
        .recent
        .first()
        .and_then(|first| included_in(first, Some(channel)))
    {
        return Some(referenced);
    }
    match fetcher.negative_cache().no_starter(channel.id) {
        Some(NoStarter::Deleted) => return Some(NamedMessage::Deleted(id)),
        Some(NoStarter::FirstMessage(first)) => return first_message(turn, fetcher, first).await,
        None => {}
    }
    // A thread inherits its parent's permissions, so what we computed here holds there.
    if turn.may_surely_not_read() {
        fetcher.bar(home);
    }
    match fetcher.message(Stage::Starter, home, id).await {
        Ok(message) => Some(NamedMessage::Known(Arc::new(message))),
        Err(Fallback::Deleted | Fallback::NotFound) if home == channel.id => {
            fetcher
                .negative_cache()
                .remember_no_starter(channel.id, NoStarter::Deleted);
            Some(NamedMessage::Deleted(id))
        }
        Err(Fallback::Deleted | Fallback::NotFound) => None,
        Err(_) => Some(NamedMessage::Unavailable(Some(id))),
    }
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

async fn first_message<S: Source>(
    turn: &TurnInput,
    fetcher: &Fetcher<'_, S>,
    first: MessageId,
) -> Option<NamedMessage> {
    if let Some(known) = turn.view.get(first) {
        return Some(NamedMessage::Known(Arc::clone(known)));
    }
    match fetcher
        .message(Stage::Starter, turn.channel_id(), first)
        .await
    {
        Ok(message) => Some(NamedMessage::Known(Arc::new(message))),
        Err(_) => None,
    }
}

/// The second look, at the thread's first message. That a thread was not started from a message is
/// not a failure.
pub(super) async fn from_first_message<S: Source>(
    turn: &TurnInput,
    fetcher: &Fetcher<'_, S>,
    channel: Option<&Channel>,
    history: &History,
) -> NamedMessage {
    let thread = turn.channel_id();
    if history.reaches_start() {
        return history
            .messages
            .first()
            .map_or(NamedMessage::None, |first| judge(fetcher, channel, first));
    }
    let cursor = PageCursor::After(thread.starter());
    match fetcher.sized_page(Stage::Starter, thread, cursor, 1).await {
        Some(page) => match page.messages.into_iter().next() {
            Some(first) => judge(fetcher, channel, &Arc::new(first)),
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
    let thread = first.channel;
    if first.kind != MessageKind::ThreadStarter {
        fetcher
            .negative_cache()
            .remember_no_starter(thread, NoStarter::FirstMessage(first.id));
        return NamedMessage::Known(Arc::clone(first));
    }
    if let Some(referenced) = included_in(first, channel) {
        return referenced;
    }
    // It was not included and, since the channel is unknown, not fetched either.
    if channel.is_none() && first.referenced == Referenced::Absent {
        return NamedMessage::Unavailable(Some(thread.starter()));
    }
    fetcher
        .negative_cache()
        .remember_no_starter(thread, NoStarter::Deleted);
    NamedMessage::Deleted(thread.starter())
}

/// The starter included in the thread's first message, if we have that message.
pub(super) fn included(history: &History, channel: Option<&Channel>) -> Option<NamedMessage> {
    let first = history.messages.first()?;
    included_in(first, channel)
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
