//! A recording as a source: exports and scenarios, as Discord would have
//! answered at a given moment.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::archive::{ArchiveError, Recording};
use clew_context::collect::{FetchError, MessagePage, OtherChannels, PageCursor, Source};
use clew_context::engine::window::View;
use clew_context::model::{Attachment, Channel, ChannelId, Fallback, Message, MessageId, Readers};

/// Reads a recording. Calls block on the disk for a moment but never wait, so
/// deadlines do not matter.
///
/// - nothing newer than `until` exists yet
/// - a message that was not recorded counts as deleted
/// - a channel that was not recorded is [`Fallback::Unavailable`]; one that
///   the scenario hides is [`Fallback::Forbidden`]
/// - files were not recorded: [`Fallback::Unavailable`]
///
/// The same request is answered alike each time, so that it is read only once, however
/// often the same trigger is collected for.
#[derive(Debug)]
pub struct RecordedSource<'a> {
    recording: &'a Recording,
    until: MessageId,
    /// The first read that failed.
    broken: Mutex<Option<ArchiveError>>,
    pages: Answers<(ChannelId, PageCursor, usize), MessagePage>,
    messages: Answers<(ChannelId, MessageId), Message>,
}

/// Answers by request.
type Answers<K, T> = Mutex<HashMap<K, Result<T, FetchError>>>;

fn once<K: Eq + Hash, T: Clone>(
    answers: &Answers<K, T>,
    request: K,
    read: impl FnOnce() -> Result<T, FetchError>,
) -> Result<T, FetchError> {
    let mut answers = answers.lock();
    answers.entry(request).or_insert_with(read).clone()
}

impl<'a> RecordedSource<'a> {
    /// The recording as it was right after `until` was posted.
    pub fn new(recording: &'a Recording, until: MessageId) -> Self {
        Self {
            recording,
            until,
            broken: Mutex::default(),
            pages: Mutex::default(),
            messages: Mutex::default(),
        }
    }

    /// Returns the first failed read of a file, if any: then what was collected is
    /// not what the recording says.
    ///
    /// # Errors
    /// That failure.
    pub fn finish(self) -> Result<(), ArchiveError> {
        self.broken.into_inner().map_or(Ok(()), Err)
    }

    fn readable(&self, channel: ChannelId) -> Result<(), FetchError> {
        if self.recording.hidden(channel) {
            return Err(FetchError::lasting(Fallback::Forbidden));
        }
        let channel = self.recording.channel(channel).map(drop);
        channel.ok_or(FetchError::lasting(Fallback::Unavailable))
    }

    fn read<T>(&self, result: Result<T, ArchiveError>) -> Result<T, FetchError> {
        result.map_err(|error| {
            self.broken.lock().get_or_insert(error);
            FetchError::lasting(Fallback::Unavailable)
        })
    }

    fn after(&self, channel: ChannelId, id: MessageId, limit: usize) -> Recorded {
        let mut page = self.recording.page_after(channel, id, limit)?;
        page.retain(|message| message.id <= self.until);
        Ok(page)
    }

    fn read_page(&self, channel: ChannelId, cursor: PageCursor, limit: usize) -> Recorded {
        let mut messages = match cursor {
            PageCursor::Before(id) => {
                let before = id.min(self.until.next());
                self.recording.page_before(channel, before, limit)?
            }
            PageCursor::After(id) => self.after(channel, id, limit)?,
            PageCursor::Around(id) => {
                let before = id.next().min(self.until.next());
                let half = limit.div_ceil(2);
                let mut page = self.recording.page_before(channel, before, half)?;
                page.extend(self.after(channel, id, limit - half)?);
                page
            }
        };
        for message in &mut messages {
            self.recording.carry(message)?;
        }
        Ok(messages)
    }
}

type Recorded = Result<Vec<Message>, ArchiveError>;

impl Source for RecordedSource<'_> {
    async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        _: Instant,
    ) -> Result<MessagePage, FetchError> {
        once(&self.pages, (channel, cursor, limit), || {
            self.readable(channel)?;
            let messages = self.read(self.read_page(channel, cursor, limit))?;
            Ok(MessagePage {
                complete: messages.len() < limit,
                messages,
                unreadable: Vec::new(),
            })
        })
    }

    async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        _: Instant,
    ) -> Result<Message, FetchError> {
        once(&self.messages, (channel, id), || {
            self.readable(channel)?;
            let deleted = FetchError::lasting(Fallback::Deleted);
            if id > self.until {
                return Err(deleted);
            }
            let message = self.read(self.recording.message(channel, id))?;
            let mut message = message.ok_or(deleted)?;
            self.read(self.recording.carry(&mut message))?;
            Ok(message)
        })
    }

    async fn channel(&self, id: ChannelId, _: Instant) -> Result<Channel, FetchError> {
        self.readable(id)?;
        let channel = self.recording.channel(id).cloned();
        channel.ok_or(FetchError::lasting(Fallback::NotFound))
    }

    async fn file(&self, _: &Attachment, _: u64, _: Instant) -> Result<String, FetchError> {
        Err(FetchError::lasting(Fallback::Unavailable))
    }

    fn other_channels(&self) -> Option<&dyn OtherChannels> {
        Some(self)
    }
}

/// A recording holds no roles: what the scenario does not hide, everybody may read.
impl OtherChannels for RecordedSource<'_> {
    fn channel(&self, id: ChannelId) -> Option<Channel> {
        self.recording.channel(id).cloned()
    }

    fn readers(&self, channel: &Channel) -> Readers {
        match self.readable(channel.id) {
            Ok(()) => Readers::Everybody,
            Err(_) => Readers::Nobody,
        }
    }

    fn may_surely_not_read(&self, _: ChannelId) -> bool {
        false
    }

    fn view(&self, _: ChannelId) -> View {
        View::default()
    }
}
