//! Asking Discord about stored messages: by the page of a channel, or for one message.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::EditOf;
use crate::memory::reconcile::{Asking, Key};
use crate::memory::{Edit, Fetched, Memory};
use clew_context::collect::PageCursor;
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, Fallback, Message, MessageId, UnixMillis};
use clew_discord::rest::Rest;

/// From this many messages of a channel on, a page is asked for instead of each.
const WORTH_A_PAGE: usize = 2;

/// How Discord is asked.
pub(super) struct Asker<'a> {
    pub(super) rest: &'a Rest,
    pub(super) edit_of: EditOf<'a>,
    /// Nothing is asked after this.
    pub(super) deadline: Instant,
    /// Whether a turn waits for the answer.
    pub(super) is_waited_for: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// For that message.
    Single(Key),
    /// For the page of a channel whose newest message it is.
    Page(Key),
}

impl Look {
    pub(super) const fn channel(self) -> ChannelId {
        let (Self::Single((channel, _)) | Self::Page((channel, _))) = self;
        channel
    }
}

pub(super) enum Answer {
    /// The message exists; with its edit, if it has one.
    There(Option<Edit>),
    /// What a page shows.
    Page(Fetched),
    /// The message does not exist.
    Gone,
    /// We may not read the channel.
    Refused,
    /// No answer in time.
    Unanswered,
    /// An answer that settles nothing.
    Unclear,
}

impl Answer {
    fn of(error: &RestError) -> Self {
        match error.reason {
            Fallback::Deleted => Self::Gone,
            Fallback::Forbidden | Fallback::NotFound => Self::Refused,
            reason if reason.is_unanswered() => Self::Unanswered,
            _ => Self::Unclear,
        }
    }
}

/// How far down the pages of each channel have been read; none where pages settle nothing.
#[derive(Default)]
pub(super) struct Paged(pub(super) BTreeMap<ChannelId, Option<MessageId>>);

impl Paged {
    /// Whether a page has been read that would show the message.
    fn covers(&self, (channel, id): Key) -> bool {
        let from = self.0.get(&channel).copied().flatten();
        from.is_some_and(|from| from <= id)
    }

    /// The next requests, one a channel, for the first messages that no page covers.
    pub(super) fn next(&self, asking: &Asking<'_>, most: usize) -> Vec<Look> {
        let mut looks: Vec<Look> = Vec::new();
        for key in &asking.keys {
            let is_asked = looks.iter().any(|look| look.channel() == key.0);
            if looks.len() < most && !is_asked && !self.covers(*key) {
                looks.push(self.look(*key, asking));
            }
        }
        looks
    }

    /// The next request of a round, which asks for each message that its page lacks.
    pub(super) fn next_of_round(&self, asking: &Asking<'_>) -> Option<Look> {
        let first = || asking.keys.first().copied().map(Look::Single);
        self.next(asking, 1).pop().or_else(first)
    }

    /// A page, if it is worth its request.
    fn look(&self, key: Key, asking: &Asking<'_>) -> Look {
        let of_channel = asking.keys.iter().filter(|other| other.0 == key.0);
        let open = of_channel.filter(|other| !self.covers(**other));
        let (count, newest) = open.fold((0, key), |(count, newest), other| {
            (count + 1, newest.max(*other))
        });
        let has_pages = self.0.get(&key.0).is_none_or(Option::is_some);
        if has_pages && count >= WORTH_A_PAGE {
            Look::Page(newest)
        } else {
            Look::Single(key)
        }
    }
}

impl Memory {
    /// Asks Discord; with the time before.
    pub(super) async fn ask_discord(&self, look: Look, asker: &Asker<'_>) -> (UnixMillis, Answer) {
        let at = self.now();
        let answer = match look {
            Look::Single((channel, id)) => {
                let reader = asker.rest.reader();
                let message = reader.check(channel, id, asker.deadline).await;
                message.map(|message| Answer::There(edited(&message, asker.edit_of)))
            }
            Look::Page(newest) => self.look_at_page(newest, asker, at).await,
        };
        (at, answer.unwrap_or_else(|error| Answer::of(&error)))
    }

    /// Asks for the page whose newest message is that one. What it lacks is not settled: a
    /// page may be short for many reasons.
    async fn look_at_page(
        &self,
        (channel, newest): Key,
        asker: &Asker<'_>,
        at: UnixMillis,
    ) -> Result<Answer, RestError> {
        let (reader, deadline) = (asker.rest.reader(), asker.deadline);
        let before = PageCursor::Before(newest.next());
        let page = if asker.is_waited_for {
            reader.confirming_page(channel, before, deadline).await?
        } else {
            reader.missed_page(channel, before, deadline).await?
        };
        // One that cannot be read is as unknown as those before it.
        let unreadable = page.unreadable.iter().max().map(|id| id.next());
        let oldest = page.messages.first().map(|message| message.id);
        let oldest = oldest.filter(|_| !page.complete);
        let of_channel = page.messages.iter().filter(|one| one.channel == channel);
        Ok(Answer::Page(Fetched {
            at,
            guild: self.doubts.guild_of((channel, newest)),
            channel,
            from: unreadable.max(oldest).unwrap_or(MessageId::new(0)),
            to: newest,
            present: of_channel.clone().map(|message| message.id).collect(),
            edited: of_channel
                .filter_map(|one| edited(one, asker.edit_of))
                .collect(),
        }))
    }
}

/// What a message says now, if a person edited it.
pub(super) fn edited(message: &Message, edit_of: EditOf<'_>) -> Option<Edit> {
    edit_of(message).filter(|edit| edit.at.is_some())
}
