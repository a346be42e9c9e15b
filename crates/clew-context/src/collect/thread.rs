//! Threads and forum posts: title, starter, pointed-at message, tail and, for a
//! mention, the history. All of them share their fetches.

use std::sync::Arc;

use futures_util::future::join;

use crate::engine::select::{GatheredThread, NamedMessage};
use crate::engine::target::Target;
use crate::engine::turn::TurnInput;
use crate::model::{Channel, Fallback, Message, Referenced, Stage};

use super::Collector;
use super::history::{self, History};
use super::source::Source;
use super::starter::{self, FirstLook};

pub(super) struct CollectedThread {
    pub(super) gathered: GatheredThread,
    pub(super) target: Target,
    pub(super) history: History,
    pub(super) channel: Option<Channel>,
}

/// Fetches pages and starter at the same time, then what only the pages can tell.
pub(super) async fn collect<S: Source>(by: &Collector<'_, S>) -> CollectedThread {
    let more = |messages: &[Arc<Message>]| wants(by.turn, messages);
    let first_look = async {
        let channel = channel(by).await;
        let starter = starter::look(by, channel.as_ref()).await;
        (channel, starter)
    };
    let (history, (channel, starter)) = join(history::collect(by, more), first_look).await;
    let starter = match starter {
        FirstLook::Found(found) => found,
        FirstLook::InThread => starter::from_first_message(by, channel.as_ref(), &history).await,
        FirstLook::Failed(id, reason) => {
            let (messages, reaches_start) = (&history.messages, history.reaches_start());
            let shown = starter::among(messages, reaches_start, channel.as_ref(), id);
            shown.unwrap_or_else(|| by.fetcher.no_starter(Stage::Starter, id, reason))
        }
    };
    let pointed_at = pointed_at(by, &history).await;
    let target = by
        .turn
        .target(pointed_at.message(), Some(&history.messages));
    let gathered = GatheredThread {
        messages: history.messages.clone(),
        reaches_start: history.reaches_start(),
        total: channel.as_ref().and_then(total),
        starter,
        pointed_at,
        target: target.reply_to.clone(),
        history: by.turn.wants_history(),
    };
    CollectedThread {
        gathered,
        target,
        history,
        channel,
    }
}

/// Whether more pages are needed. Enough means as many eligible messages as fit,
/// or at least the tail before the target.
fn wants(turn: &TurnInput, messages: &[Arc<Message>]) -> bool {
    let (trigger, by) = (turn.trigger(), turn.selector());
    let pointed_at = known_pointed_at(turn);
    let pointed_at = pointed_at.message();
    let resolved = turn.target(pointed_at, Some(messages));
    // A bare mention needs the message whose text it adopts.
    if turn.is_bare() && trigger.replies_to().is_none() && resolved.adopted.is_none() {
        return true;
    }
    let target = resolved.reply_to.map(|target| target.id);
    let before = target.map_or(messages.len(), |target| {
        messages.partition_point(|message| message.id < target)
    });
    let is_full = || by.history_is_full(messages, target, pointed_at).is_some();
    by.tail_wants_more(&messages[..before]) || turn.wants_history() && !is_full()
}

/// The channel if the caller knows it, else one fetch.
pub(super) async fn channel<S: Source>(by: &Collector<'_, S>) -> Option<Channel> {
    match &by.turn.channel {
        Some(channel) => Some(channel.clone()),
        None => by.fetcher.channel(by.turn.channel_id()).await,
    }
}

/// What the trigger and the window tell about the message it replies to.
pub(super) fn known_pointed_at(turn: &TurnInput) -> NamedMessage {
    let trigger = turn.trigger();
    let Some(id) = trigger.replies_to() else {
        return NamedMessage::None;
    };
    if turn.view.deleted.contains(&id) {
        return NamedMessage::Deleted(id);
    }
    if let Some(known) = turn.view.get(id) {
        return NamedMessage::Known(Arc::clone(known));
    }
    match (&trigger.referenced, trigger.referenced_message()) {
        (_, Some(referenced)) => NamedMessage::Known(Arc::new(referenced.clone())),
        (Referenced::Deleted, None) => NamedMessage::Deleted(id),
        _ => NamedMessage::Unavailable(Some(id)),
    }
}

/// The message the trigger replies to: included, held, on a page, or fetched.
async fn pointed_at<S: Source>(by: &Collector<'_, S>, history: &History) -> NamedMessage {
    let found = known_pointed_at(by.turn);
    let NamedMessage::Unavailable(Some(id)) = found else {
        return found;
    };
    if let Some(message) = history.messages.iter().find(|message| message.id == id) {
        return NamedMessage::Known(Arc::clone(message));
    }
    if history.shows_deleted(id) {
        return NamedMessage::Deleted(id);
    }
    match by
        .fetcher
        .message(Stage::PointedAt, by.turn.channel_id(), id)
        .await
    {
        Ok(message) => NamedMessage::Known(Arc::new(message)),
        Err(Fallback::Deleted | Fallback::NotFound) => NamedMessage::Deleted(id),
        Err(_) => NamedMessage::Unavailable(Some(id)),
    }
}

fn total(channel: &Channel) -> Option<usize> {
    let count = channel.thread.as_ref()?.message_count?;
    usize::try_from(count).ok()
}
