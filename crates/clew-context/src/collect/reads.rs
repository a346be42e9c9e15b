//! Reads on demand, outside of a block: what a model's tools ask for.

use super::fetch::Fetcher;
use super::negative_cache::NegativeCache;
use super::source::{MessagePage, PageCursor, Source};
use crate::model::{Channel, ChannelId, Fallback, Limits, Message, MessageId, OptedOut, Stage};

/// Reads under one deadline and one budget, like a collector's: words of users who
/// opted out are withheld, and channels that refused us are not asked again.
#[derive(Debug)]
pub struct Reads<'a, S> {
    fetcher: Fetcher<'a, S>,
}

impl<'a, S: Source> Reads<'a, S> {
    /// The deadline and the budget are those of the limits
    /// ([`Limits::fetch_timeout`], [`Limits::max_fetches`]).
    pub fn new(
        source: &'a S,
        negative_cache: &'a NegativeCache,
        opted_out: &'a OptedOut,
        limits: &Limits,
    ) -> Self {
        Self {
            fetcher: Fetcher::new(source, negative_cache, opted_out, limits),
        }
    }

    /// One message.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn message(&self, channel: ChannelId, id: MessageId) -> Result<Message, Fallback> {
        self.fetcher.message(Stage::PointedAt, channel, id).await
    }

    /// At most `limit` messages at `cursor`.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
    ) -> Result<MessagePage, Fallback> {
        self.fetcher
            .page_or_why(Stage::History, channel, cursor, limit)
            .await
    }

    /// A channel that somebody named, of any server; none if it is not there, not for us or
    /// cannot be told. Which channels are known changes neither the calls nor their time.
    pub async fn look_up(&self, id: ChannelId) -> Option<Channel> {
        self.fetcher.look_up(id).await
    }

    /// The REST calls made.
    pub fn used(&self) -> usize {
        self.fetcher.used()
    }
}
