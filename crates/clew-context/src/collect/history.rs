//! Fetches pages of a channel, newest first, until there is enough. Used for the
//! thread tail, the thread history and the tail of a channel.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::turn::{MessageRange, TurnInput};
use crate::engine::window::CHANNEL_START;
use crate::model::{Fallback, Message, MessageId, Stage};

use super::Collector;
use super::source::{MessagePage, PAGE_LIMIT, PageCursor, Source};

/// All messages of a channel from one id up to the turn's start.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Oldest first.
    pub(super) messages: Vec<Arc<Message>>,
    /// They are complete from this id on.
    pub(super) from: Option<MessageId>,
    /// Whether a page was fetched.
    pub(super) fetched: bool,
    /// The newest message that exists but could not be read.
    unread: Option<MessageId>,
}

impl History {
    pub(super) fn reaches_start(&self) -> bool {
        self.from == Some(CHANNEL_START)
    }

    /// Whether this message must have been deleted: it would be here otherwise.
    pub(super) fn shows_deleted(&self, id: MessageId) -> bool {
        let whole = self.from.is_some_and(|from| from <= id);
        whole && self.unread.is_none_or(|unread| unread < id)
    }
}

/// Starts with what the window holds and fetches while `wants_more` is true.
pub(super) async fn collect<S: Source>(
    by: &Collector<'_, S>,
    wants_more: impl Fn(&[Arc<Message>]) -> bool,
) -> History {
    let view = &by.turn.view;
    let horizon = by.turn.horizon();
    let mut known: BTreeMap<MessageId, Arc<Message>> = BTreeMap::new();
    known.extend(held(view.recent.iter(), horizon));
    let mut history = History {
        from: view.whole_from,
        ..History::default()
    };
    history.messages = known.values().cloned().collect();
    while !history.reaches_start() && (history.from.is_none() || wants_more(&history.messages)) {
        let cursor = match history.from.filter(|_| history.fetched) {
            Some(from) => PageCursor::Before(from),
            None => PageCursor::Before(first_end(&history.messages, horizon).next()),
        };
        let channel = by.turn.channel_id();
        let Some(page) = by
            .fetcher
            .page(Stage::History, channel, cursor, PAGE_LIMIT)
            .await
        else {
            break;
        };
        if !history.fetched && is_hidden(by.turn, &page) {
            by.fetcher.refused(Stage::History, channel);
            break;
        }
        take(by, page, &mut known, &mut history);
    }
    history
}

/// The message that ends the first page. It is one we know of, so the page shows
/// whether we may read at all: the trigger, or the oldest held message if we hold
/// a whole page.
fn first_end(messages: &[Arc<Message>], horizon: MessageId) -> MessageId {
    let oldest = messages.first().filter(|_| messages.len() >= PAGE_LIMIT);
    oldest.map_or(horizon, |oldest| oldest.id)
}

/// Without Read Message History Discord sends an empty list, not an error. So a
/// page that should end at a known message and is empty was refused. Before a
/// command the channel may really be empty, but we only believe it if we know
/// that we may read.
fn is_hidden(turn: &TurnInput, page: &MessagePage) -> bool {
    let knows_one = turn.trigger_is_message() || !turn.view.recent.is_empty();
    let is_empty = page.messages.is_empty() && page.unreadable.is_empty();
    is_empty && (knows_one || !turn.may_surely_read())
}

fn take<S: Source>(
    by: &Collector<'_, S>,
    page: MessagePage,
    known: &mut BTreeMap<MessageId, Arc<Message>>,
    history: &mut History,
) {
    let unread = page.unreadable.iter().copied().min();
    let lowest = page.messages.first().map(|message| message.id);
    let lowest = [unread, lowest].into_iter().flatten().min();
    if unread.is_some() {
        by.fetcher.fail(Stage::History, Fallback::Malformed);
        history.unread = history.unread.max(page.unreadable.iter().copied().max());
    }
    let deleted = &by.turn.view.deleted;
    for message in page
        .messages
        .into_iter()
        .filter(|message| !deleted.contains(&message.id))
    {
        known.entry(message.id).or_insert_with(|| Arc::new(message));
    }
    let reached = if page.complete {
        Some(CHANNEL_START)
    } else {
        lowest
    };
    history.from = match (history.from, reached) {
        (Some(from), Some(reached)) => Some(from.min(reached)),
        (from, reached) => reached.or(from),
    };
    history.messages = known.values().cloned().collect();
    history.fetched = true;
}

fn held<'a>(
    messages: impl Iterator<Item = &'a Arc<Message>>,
    horizon: MessageId,
) -> impl Iterator<Item = (MessageId, Arc<Message>)> {
    messages
        .filter(move |message| message.id <= horizon)
        .map(|message| (message.id, Arc::clone(message)))
}

impl History {
    /// What was fetched, for the window.
    pub(super) fn fetched_range(&self, turn: &TurnInput) -> Option<MessageRange> {
        let from = self.from.filter(|_| self.fetched)?;
        // The window never serves a gap, and an unreadable message is one.
        let from = self.unread.map_or(from, |unread| from.max(unread.next()));
        let first = self.messages.partition_point(|message| message.id < from);
        Some(MessageRange {
            channel: turn.channel_id(),
            from,
            to: turn.horizon(),
            messages: self.messages[first..].to_vec(),
        })
    }
}
