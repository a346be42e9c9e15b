//! A source that asks another one each thing only once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::recorded::RecordedSource;
use crate::archive::ArchiveError;
use clew_context::collect::{FetchError, MessagePage, OtherChannels, PageCursor, Source};
use clew_context::model::{Attachment, Channel, ChannelId, Message, MessageId};

/// A recording as one trigger sees it, for several collections. A recording answers
/// the same request always alike, so that each collection gets what it would get
/// from [`RecordedSource`].
#[derive(Debug)]
pub(super) struct RememberedSource<'a> {
    source: RecordedSource<'a>,
    pages: Remembered<(ChannelId, PageCursor, usize), MessagePage>,
    messages: Remembered<(ChannelId, MessageId), Message>,
}

/// Answers by request.
type Remembered<K, T> = Mutex<HashMap<K, Result<T, FetchError>>>;

impl<'a> RememberedSource<'a> {
    pub(super) fn new(source: RecordedSource<'a>) -> Self {
        Self {
            source,
            pages: Mutex::default(),
            messages: Mutex::default(),
        }
    }

    /// See [`RecordedSource::finish`].
    pub(super) fn finish(self) -> Result<(), ArchiveError> {
        self.source.finish()
    }
}

async fn once<K: Eq + Hash, T: Clone>(
    remembered: &Remembered<K, T>,
    key: K,
    ask: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    let known = {
        let remembered = remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(&key).cloned()
    };
    if let Some(known) = known {
        return known;
    }
    let answer = ask.await;
    let mut remembered = remembered.lock().unwrap_or_else(PoisonError::into_inner);
    remembered.insert(key, answer.clone());
    answer
}

impl Source for RememberedSource<'_> {
    async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        deadline: Instant,
    ) -> Result<MessagePage, FetchError> {
        let key = (channel, cursor, limit);
        let ask = self.source.page(channel, cursor, limit, deadline);
        once(&self.pages, key, ask).await
    }

    async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        deadline: Instant,
    ) -> Result<Message, FetchError> {
        let ask = self.source.message(channel, id, deadline);
        once(&self.messages, (channel, id), ask).await
    }

    async fn channel(&self, id: ChannelId, deadline: Instant) -> Result<Channel, FetchError> {
        Source::channel(&self.source, id, deadline).await
    }

    async fn file(
        &self,
        file: &Attachment,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<String, FetchError> {
        self.source.file(file, max_bytes, deadline).await
    }

    fn other_channels(&self) -> Option<&dyn OtherChannels> {
        self.source.other_channels()
    }
}
