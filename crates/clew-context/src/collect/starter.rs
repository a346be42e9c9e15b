//! The starter: the message a thread was started from (in the parent channel,
//! with the thread's id), a forum post's first message (in the thread, with its
//! id), or the first message of an unanchored thread.

use std::sync::Arc;

use crate::engine::select::Found;
use crate::engine::turn::TurnInput;
use crate::model::{
    Channel, ChannelId, ChannelKind, Fallback, Message, MessageId, MessageKind, Referenced, Stage,
};

use super::fetch::Fetcher;
use super::history::History;
use super::recall::NoAnchor;
use super::source::{Anchor, Source};

/// The first look, at the same time as the first page. `None`: only the thread's
/// first message can tell.
pub(super) async fn look<S: Source>(
    turn: &TurnInput,
    fetcher: &Fetcher<'_, S>,
    channel: Option<&Channel>,
) -> Option<Found> {
    let channel = channel?;
    let home = home(channel)?;
    if let Some(known) = turn.known_starter(home) {
        return Some(Found::Known(known));
    }
    let id = channel.id.starter();
    if home == channel.id && turn.view.deleted.contains(&id) {
        return Some(Found::Deleted(id));
    }
    if let Some(carried) = turn
        .view
        .recent
        .first()
        .and_then(|first| carried_by(first, Some(channel)))
    {
        return Some(carried);
    }
    match fetcher.recall().no_anchor(channel.id) {
        Some(NoAnchor::Deleted) => return Some(Found::Deleted(id)),
        Some(NoAnchor::Unanchored(first)) => return unanchored(turn, fetcher, first).await,
        None => {}
    }
    // A thread inherits its parent's permissions, so what we computed here holds there.
    if turn.may_surely_not_read() {
        fetcher.bar(home);
    }
    match fetcher.message(Stage::Starter, home, id).await {
        Ok(message) => Some(Found::Known(Arc::new(message))),
        Err(Fallback::Deleted | Fallback::NotFound) if home == channel.id => {
            fetcher.recall().learn_anchor(channel.id, NoAnchor::Deleted);
            Some(Found::Deleted(id))
        }
        Err(Fallback::Deleted | Fallback::NotFound) => None,
        Err(_) => Some(Found::Unavailable(Some(id))),
    }
}

/// The channel the starter is in; `None` for private threads, which are never
/// started from a message.
fn home(channel: &Channel) -> Option<ChannelId> {
    match channel.kind {
        ChannelKind::PrivateThread => None,
        _ if channel.parent_kind.is_some_and(ChannelKind::is_forum) => Some(channel.id),
        _ => channel.parent,
    }
}

async fn unanchored<S: Source>(
    turn: &TurnInput,
    fetcher: &Fetcher<'_, S>,
    first: MessageId,
) -> Option<Found> {
    if let Some(known) = turn.view.get(first) {
        return Some(Found::Known(Arc::clone(known)));
    }
    match fetcher
        .message(Stage::Starter, turn.channel_id(), first)
        .await
    {
        Ok(message) => Some(Found::Known(Arc::new(message))),
        Err(_) => None,
    }
}

/// The second look, at the thread's first message. That a thread has no anchor is
/// not a failure.
pub(super) async fn from_first_message<S: Source>(
    turn: &TurnInput,
    fetcher: &Fetcher<'_, S>,
    channel: Option<&Channel>,
    history: &History,
) -> Found {
    let thread = turn.channel_id();
    if history.reaches_start() {
        return history
            .messages
            .first()
            .map_or(Found::None, |first| judge(fetcher, channel, first));
    }
    let anchor = Anchor::After(thread.starter());
    match fetcher.sized_page(Stage::Starter, thread, anchor, 1).await {
        Some(page) => match page.messages.into_iter().next() {
            Some(first) => judge(fetcher, channel, &Arc::new(first)),
            None => Found::None,
        },
        None => Found::Unavailable(None),
    }
}

/// If a thread was started from a message, its first message has type 21.
fn judge<S: Source>(
    fetcher: &Fetcher<'_, S>,
    channel: Option<&Channel>,
    first: &Arc<Message>,
) -> Found {
    let thread = first.channel;
    if first.kind != MessageKind::ThreadStarter {
        fetcher
            .recall()
            .learn_anchor(thread, NoAnchor::Unanchored(first.id));
        return Found::Known(Arc::clone(first));
    }
    if let Some(carried) = carried_by(first, channel) {
        return carried;
    }
    // It was not included and, since the channel is unknown, not fetched either.
    if channel.is_none() && first.referenced == Referenced::Absent {
        return Found::Unavailable(Some(thread.starter()));
    }
    fetcher.recall().learn_anchor(thread, NoAnchor::Deleted);
    Found::Deleted(thread.starter())
}

/// The starter included in the thread's first message, if we have that message.
pub(super) fn carried(history: &History, channel: Option<&Channel>) -> Option<Found> {
    let first = history.messages.first()?;
    carried_by(first, channel)
}

/// Somebody who may read the thread may read its parent, but no other channel.
fn carried_by(first: &Arc<Message>, channel: Option<&Channel>) -> Option<Found> {
    if first.kind != MessageKind::ThreadStarter {
        return None;
    }
    let parent = channel.and_then(|channel| channel.parent);
    let starter = first.carried()?;
    let stands_there = parent.is_none_or(|parent| parent == starter.channel);
    stands_there.then(|| Found::Known(Arc::new(starter.clone())))
}
