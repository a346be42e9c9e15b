//! Threads and forum posts: title, starter, pointed-at message, tail and, for a
//! mention, the history. All of them share their fetches.

use std::sync::Arc;

use futures_util::future::join;

use crate::engine::select::{Found, GatheredThread, history_is_full, tail_wants_more};
use crate::engine::target::Target;
use crate::model::{Channel, Fallback, Message, Referenced, Stage};

use super::fetch::Fetcher;
use super::history::{self, History};
use super::source::Source;
use super::starter;
use super::view::Occasion;

/// What was collected from a thread.
pub(super) struct Thread {
    pub(super) gathered: GatheredThread,
    pub(super) target: Target,
    pub(super) history: History,
    pub(super) channel: Option<Channel>,
}

/// Fetches pages and starter at the same time, then what only the pages can tell.
pub(super) async fn collect<S: Source>(
    occasion: &Occasion<'_>,
    fetcher: &Fetcher<'_, S>,
) -> Thread {
    let more = |messages: &[Arc<Message>]| wants(occasion, messages);
    let first_look = async {
        let channel = channel(occasion, fetcher).await;
        let starter = starter::look(occasion, fetcher, channel.as_ref()).await;
        (channel, starter)
    };
    let (history, (channel, starter)) =
        join(history::collect(occasion, fetcher, more), first_look).await;
    let starter = match starter {
        Some(Found::Unavailable(id)) => {
            starter::carried(&history, channel.as_ref()).unwrap_or(Found::Unavailable(id))
        }
        Some(found) => found,
        None => starter::from_first_message(occasion, fetcher, channel.as_ref(), &history).await,
    };
    let pointed_at = pointed_at(occasion, fetcher, &history).await;
    let target = occasion.target(pointed_at.message(), Some(&history.messages));
    let gathered = GatheredThread {
        messages: history.messages.clone(),
        reaches_start: history.reaches_start(),
        total: channel.as_ref().and_then(total),
        starter,
        pointed_at,
        target: target.reply_to.clone(),
        history: occasion.wants_history(),
    };
    Thread {
        gathered,
        target,
        history,
        channel,
    }
}

/// Whether more pages are needed. Enough means as many eligible messages as fit,
/// or at least the tail before the target.
fn wants(occasion: &Occasion<'_>, messages: &[Arc<Message>]) -> bool {
    let (us, trigger, limits) = (occasion.us, occasion.trigger(), occasion.limits);
    let pointed_at = carried(occasion);
    let pointed_at = pointed_at.message();
    let resolved = occasion.target(pointed_at, Some(messages));
    // A bare mention needs the message whose text it adopts.
    if occasion.is_bare() && trigger.replies_to().is_none() && resolved.adopted.is_none() {
        return true;
    }
    let target = resolved.reply_to.map(|target| target.id);
    let before = target.map_or(messages.len(), |target| {
        messages.partition_point(|message| message.id < target)
    });
    let is_full = || history_is_full(us, trigger, messages, target, pointed_at, limits).is_some();
    tail_wants_more(us, trigger, &messages[..before], limits)
        || occasion.wants_history() && !is_full()
}

/// The channel if the caller knows it, else one fetch.
pub(super) async fn channel<S: Source>(
    occasion: &Occasion<'_>,
    fetcher: &Fetcher<'_, S>,
) -> Option<Channel> {
    match occasion.channel {
        Some(channel) => Some(channel.clone()),
        None => fetcher.channel(occasion.channel_id()).await,
    }
}

/// What the trigger and the window tell about the message it replies to.
pub(super) fn carried(occasion: &Occasion<'_>) -> Found {
    let trigger = occasion.trigger();
    let Some(id) = trigger.replies_to() else {
        return Found::None;
    };
    if occasion.view.deleted.contains(&id) {
        return Found::Deleted(id);
    }
    if let Some(known) = occasion.view.get(id) {
        return Found::Known(Arc::clone(known));
    }
    match (&trigger.referenced, trigger.carried()) {
        (_, Some(carried)) => Found::Known(Arc::new(carried.clone())),
        (Referenced::Deleted, None) => Found::Deleted(id),
        _ => Found::Unavailable(Some(id)),
    }
}

/// The message the trigger replies to: included, held, on a page, or fetched.
async fn pointed_at<S: Source>(
    occasion: &Occasion<'_>,
    fetcher: &Fetcher<'_, S>,
    history: &History,
) -> Found {
    let found = carried(occasion);
    let Found::Unavailable(Some(id)) = found else {
        return found;
    };
    if let Some(message) = history.messages.iter().find(|message| message.id == id) {
        return Found::Known(Arc::clone(message));
    }
    if history.shows_deleted(id) {
        return Found::Deleted(id);
    }
    match fetcher
        .message(Stage::PointedAt, occasion.channel_id(), id)
        .await
    {
        Ok(message) => Found::Known(Arc::new(message)),
        Err(Fallback::Deleted | Fallback::NotFound) => Found::Deleted(id),
        Err(_) => Found::Unavailable(Some(id)),
    }
}

fn total(channel: &Channel) -> Option<usize> {
    let count = channel.thread.as_ref()?.message_count?;
    usize::try_from(count).ok()
}
