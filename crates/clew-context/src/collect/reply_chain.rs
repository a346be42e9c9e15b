//! The reply chain. For a missing ancestor we fetch the page that ends at it: all
//! further ancestors are older, so one call often brings several.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::chain::{ChainLookup, ChainStep, ChainWalk};
use crate::engine::select::Gathered;
use crate::engine::turn::TurnInput;
use crate::engine::window::CHANNEL_START;
use crate::model::{Fallback, Message, MessageId, Referenced, Stage};

use super::Collector;
use super::fetch::Fetcher;
use super::source::{MessagePage, PAGE_LIMIT, PageCursor, Source};

/// Everything known about messages by id while one chain is walked.
struct Pool<'a> {
    turn: &'a TurnInput,
    fetched: HashMap<MessageId, ChainLookup>,
    /// First and last id of each range that was fetched completely: a message
    /// missing from it was deleted.
    whole: Vec<(MessageId, MessageId)>,
}

/// Walks from the trigger up to the root, a cap or a missing link. Returns the
/// links.
pub(super) async fn collect<S: Source>(by: &Collector<'_, S>) -> Gathered {
    let mut pool = Pool {
        turn: by.turn,
        fetched: HashMap::new(),
        whole: Vec::new(),
    };
    pool.note_referenced(by.turn.trigger());
    let mut walk = ChainWalk::new(by.turn.trigger(), &by.turn.limits);
    while let ChainStep::Need(id) = walk.advance(&by.turn.us, |id| pool.lookup(id)) {
        let cursor = PageCursor::Before(id.next());
        let page = by
            .fetcher
            .page(Stage::Chain, by.turn.channel_id(), cursor, PAGE_LIMIT);
        match page.await {
            Some(page) => pool.add(by.fetcher, id, page),
            None => pool.put(id, ChainLookup::Unavailable),
        }
    }
    let (links, cut) = walk.finish();
    let around = Vec::new();
    Gathered::Chain { links, cut, around }
}

impl Pool<'_> {
    fn lookup(&self, id: MessageId) -> ChainLookup {
        if self.turn.view.deleted.contains(&id) {
            return ChainLookup::Deleted;
        }
        if let Some(message) = self.turn.view.get(id) {
            return ChainLookup::Here(Arc::clone(message));
        }
        match self.fetched.get(&id) {
            Some(found) => found.clone(),
            None if self.shows_deleted(id) => ChainLookup::Deleted,
            None => ChainLookup::Unknown,
        }
    }

    fn shows_deleted(&self, id: MessageId) -> bool {
        let view = &self.turn.view;
        let held = view.whole_from.is_some_and(|from| from <= id) && view.newest >= Some(id);
        held || self
            .whole
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&id))
    }

    fn put(&mut self, id: MessageId, found: ChainLookup) {
        self.fetched.insert(id, found);
    }

    /// Stores what a message tells about the one it replies to.
    fn note_referenced(&mut self, message: &Message) {
        let Some(id) = message.replies_to() else {
            return;
        };
        if message.referenced == Referenced::Deleted {
            self.put(id, ChainLookup::Deleted);
        } else if let Some(referenced) = message.referenced_message() {
            let referenced = ChainLookup::Here(Arc::new(referenced.clone()));
            self.fetched.entry(id).or_insert(referenced);
        }
    }

    /// Adds the page that ends at `id`. If `id` is missing from it, it was deleted,
    /// unless the page is empty because we may not read.
    fn add<S: Source>(&mut self, fetcher: &Fetcher<'_, S>, id: MessageId, page: MessagePage) {
        let empty = page.messages.is_empty() && page.unreadable.is_empty();
        if !page.messages.is_empty() && page.unreadable.is_empty() {
            let first = page.messages.iter().map(|message| message.id).min();
            let first = first.filter(|_| !page.complete).unwrap_or(CHANNEL_START);
            self.whole.push((first, id));
        }
        for message in page.messages {
            self.note_referenced(&message);
            self.put(message.id, ChainLookup::Here(Arc::new(message)));
        }
        if page.unreadable.contains(&id) {
            fetcher.fail(Stage::Chain, Fallback::Malformed);
            self.put(id, ChainLookup::Unavailable);
        } else if empty && !self.turn.may_surely_read() {
            fetcher.refused(Stage::Chain, self.turn.channel_id());
            self.put(id, ChainLookup::Unavailable);
        } else if !matches!(self.fetched.get(&id), Some(ChainLookup::Here(_))) {
            self.put(id, ChainLookup::Deleted);
        }
    }
}
