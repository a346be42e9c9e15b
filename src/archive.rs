//! Recordings: exported channels and scenario files, read together as one set of
//! channels and messages.
//!
//! Invariant: `archive` imports only clew-context's `model`. Of an export it holds
//! 24 bytes per message and the distinct authors in memory, never the messages.
//!
//! # Exports
//! DiscordChatExporter's JSON, with one file per channel or thread, or
//! several (partitions or overlapping date ranges, which are merged: if an id
//! occurs twice, the last file's message is used). Files may run from newest
//! to oldest. A thread's `category` is its parent channel; if that is not
//! among the files, a thread that holds the message with its own id is a
//! forum post. What exports leave out is missing here: forum tags, the
//! archived and locked states, message flags. Mentions shown as `@name`
//! become `<@id>` again. A bot without a discriminator is a webhook. A reply
//! never carries the message that it refers to: see [`Recording::carry`].
//!
//! # Scenarios
//! A JSON object, kept in memory: `bot` and `users` (`id`, `username`,
//! `global_name`, `nick`, `bot`), `guilds` (`id`, `channels` with `id`, `type`,
//! `name`, `parent_id`, `available_tags`, `hidden`; `threads` with `id`,
//! `type`, `parent_id`, `name`, `owner_id`, `applied_tags`, `archived`,
//! `locked`), `dms` (channels), `timeline` and `trigger`. Types are Discord's
//! numbers; other keys are ignored. A timeline is a list of operations, each
//! with its `op`:
//!
//! - `create`: `message` with `id`, `channel_id`, `author_id`, `content`,
//!   `type` (0, or 19 with a `ref`), `ref` (`message_id`, `channel_id`,
//!   `type`), `ping` (whether a reply mentions the author it replies to), `ms` (when
//!   it was posted; by default the time in its id), `edited_ms`, `flags`,
//!   `webhook_id`, `application_id` (the owner of the webhook), `snapshots`, `embeds`,
//!   `attachments`, `stickers`, `components`, `poll`
//! - `thread`: `thread` as above, `starter_id` for its message of type 21
//! - `edit`: `channel_id`, `id`, `content`, `ms`; `delete`: `channel_id`, `id`
//! - `archive`: `channel_id`, `locked`
//! - `react`, `typing`: have no effect here
//!
//! `trigger` is one more operation, applied last. What is read is the final state,
//! after all edits and deletions.

mod build;
mod error;
mod export;
mod header;
mod index;
mod names;
mod ops;
mod participants;
mod parts;
mod scan;
mod scenario;
mod staged;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use parking_lot::Mutex;

pub use error::{ArchiveError, Report};
#[cfg(feature = "test-util")]
pub use index::BYTES_PER_MESSAGE;
pub use participants::Participant;

use index::{ArchiveFiles, IndexEntry, KEPT, Spans, WINDOW};
use participants::Participants;
use wire::ExportMessage;

use clew_context::model::{
    Channel, ChannelId, Message, MessageId, MessageKind, Referenced, UserId,
};

/// The read windows of all channels together, in bytes, when read side by side.
const ALL_WINDOWS: usize = 16 * 1024 * 1024;
/// The smallest window, in bytes: a few messages. Any less would mean a read for each.
const LEAST_WINDOW: usize = 4 * 1024;

/// Everything that was recorded.
#[derive(Debug, Default)]
pub struct Recording {
    channels: BTreeMap<ChannelId, RecordedChannel>,
    files: ArchiveFiles,
    /// The window of the last lookup of a single message: the next is often nearby.
    looked: Mutex<Spans>,
    /// Messages of scenarios.
    kept: Vec<Message>,
    participants: Participants,
    hidden: BTreeSet<ChannelId>,
    bot: Option<UserId>,
    report: Report,
}

/// How to open a recording.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Leave out what cannot be read and use the rest; the [`Report`] lists what
    /// was left out.
    pub lenient: bool,
    /// Called about once per megabyte with the bytes done and the total number of
    /// bytes, over all files.
    pub progress: Option<&'a dyn Fn(u64, u64)>,
}

#[derive(Debug)]
struct RecordedChannel {
    channel: Channel,
    /// Sorted by id once the recording is open.
    entries: Vec<IndexEntry>,
    anchored: bool,
}

impl Recording {
    /// Reads every file once and notes where its messages are. Blocking.
    ///
    /// # Errors
    /// For the first file that cannot be opened or is not a recording; without
    /// `lenient` also for the first message that cannot be read and the first file
    /// that is cut off.
    pub fn open(paths: &[PathBuf], options: ReadOptions<'_>) -> Result<Self, ArchiveError> {
        if paths.is_empty() {
            return Err(ArchiveError::NoFiles);
        }
        let mut total = 0;
        for path in paths {
            let file = std::fs::metadata(path).map_err(|error| ArchiveError::read(path, error))?;
            ArchiveError::unless_file(path, &file)?;
            total += file.len();
        }
        let mut recording = Self::default();
        let mut done = 0;
        for path in paths {
            let progress = |bytes| {
                if let Some(progress) = options.progress {
                    progress(done + bytes, total);
                }
            };
            recording.add(path, options.lenient, &progress)?;
            let file = std::fs::metadata(path).map_err(|error| ArchiveError::read(path, error))?;
            progress(file.len());
            done += file.len();
        }
        recording.settle();
        Ok(recording)
    }

    /// The recorded channels and threads, by id.
    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.values().map(|recorded| &recorded.channel)
    }

    /// A recorded channel. A recorded thread's parent may not be recorded.
    pub fn channel(&self, id: ChannelId) -> Option<&Channel> {
        Some(&self.channels.get(&id)?.channel)
    }

    /// Whether the scenario says that the bot cannot see this channel.
    pub fn hidden(&self, channel: ChannelId) -> bool {
        self.hidden.contains(&channel)
    }

    /// The newest `limit` messages before an id, oldest first. Empty for a
    /// channel that was not recorded.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn page_before(
        &self,
        channel: ChannelId,
        before: MessageId,
        limit: usize,
    ) -> Result<Vec<Message>, ArchiveError> {
        self.read_all(channel, index::before(self.entries(channel), before, limit))
    }

    /// The oldest `limit` messages after an id, oldest first. Empty for a
    /// channel that was not recorded.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn page_after(
        &self,
        channel: ChannelId,
        after: MessageId,
        limit: usize,
    ) -> Result<Vec<Message>, ArchiveError> {
        self.read_all(channel, index::after(self.entries(channel), after, limit))
    }

    /// One message; none if it was not recorded.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
    ) -> Result<Option<Message>, ArchiveError> {
        let Some(entry) = index::find(self.entries(channel), id) else {
            return Ok(None);
        };
        let mut spans = self.looked.lock();
        self.read(channel, entry, &mut spans).map(Some)
    }

    /// The channel that holds a message. Searches every channel.
    pub fn channel_of(&self, id: MessageId) -> Option<ChannelId> {
        let holds = |recorded: &&RecordedChannel| index::find(&recorded.entries, id).is_some();
        Some(self.channels.values().find(holds)?.channel.id)
    }

    /// The ids of a channel's messages, oldest first.
    #[cfg(feature = "test-util")]
    pub fn ids(&self, channel: ChannelId) -> impl ExactSizeIterator<Item = MessageId> {
        self.entries(channel).iter().map(|entry| entry.id)
    }

    /// A channel's messages, oldest first, read as the iterator advances: several
    /// per read, so that all channels can be read side by side.
    pub fn messages(&self, channel: ChannelId) -> Messages<'_> {
        let share = ALL_WINDOWS / self.channels.len().max(1);
        Messages {
            recording: self,
            channel,
            entries: self.entries(channel).iter(),
            spans: Spans::new(share.clamp(LEAST_WINDOW, WINDOW)),
        }
    }

    /// The number of reads from the files since they were indexed.
    #[cfg(feature = "test-util")]
    pub fn reads(&self) -> usize {
        self.files.reads()
    }

    /// Attaches the message that a reply or thread starter refers to, as Discord's
    /// own pages do. Does nothing if that message was not recorded.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn carry(&self, message: &mut Message) -> Result<(), ArchiveError> {
        let reference = message.reference.as_ref();
        let reference = reference.filter(|_| carries(message.kind));
        let Some((reference, id)) = reference.and_then(|to| Some((to, to.message?))) else {
            return Ok(());
        };
        let channel = reference.channel.unwrap_or(message.channel);
        if let Some(referenced) = self.message(channel, id)? {
            message.referenced = Referenced::Known(Box::new(referenced));
        }
        Ok(())
    }

    /// Everyone who wrote or was mentioned, by id.
    pub fn participants(&self) -> impl Iterator<Item = &Participant> {
        self.participants.0.values()
    }

    pub fn participant(&self, id: UserId) -> Option<&Participant> {
        self.participants.0.get(&id)
    }

    /// The scenario's bot; with several scenarios, the first one's.
    pub fn bot(&self) -> Option<UserId> {
        self.bot
    }

    /// What was read and what was left out.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The size of the index in bytes: [`BYTES_PER_MESSAGE`] per message.
    #[cfg(feature = "test-util")]
    pub fn index_bytes(&self) -> usize {
        let entries = self.channels.values();
        let capacity: usize = entries.map(|recorded| recorded.entries.capacity()).sum();
        capacity * BYTES_PER_MESSAGE
    }

    fn entries(&self, channel: ChannelId) -> &[IndexEntry] {
        match self.channels.get(&channel) {
            Some(recorded) => &recorded.entries,
            None => &[],
        }
    }

    fn kept(&self, entry: &IndexEntry) -> Option<&Message> {
        let number = usize::try_from(entry.offset).ok()?;
        self.kept.get(number).filter(|_| entry.file == KEPT)
    }

    fn read_all(
        &self,
        channel: ChannelId,
        entries: &[IndexEntry],
    ) -> Result<Vec<Message>, ArchiveError> {
        let mut spans = Spans::default();
        entries
            .iter()
            .map(|entry| self.read(channel, entry, &mut spans))
            .collect()
    }

    fn read(
        &self,
        channel: ChannelId,
        entry: &IndexEntry,
        spans: &mut Spans,
    ) -> Result<Message, ArchiveError> {
        if let Some(kept) = self.kept(entry) {
            return Ok(kept.clone());
        }
        let changed = || ArchiveError::Changed {
            path: self.files.path(entry.file).to_owned(),
            id: entry.id,
        };
        let guild = self.channel(channel).and_then(|channel| channel.guild);
        let wire = ExportMessage::parse(spans.get(&self.files, entry)?).map_err(|_| changed())?;
        let message = wire.message(channel, guild).map_err(|_| changed())?;
        if message.id == entry.id {
            Ok(message)
        } else {
            Err(changed())
        }
    }
}

/// Whether Discord's pages attach to such a message the one that it refers to.
const fn carries(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Reply | MessageKind::ThreadStarter)
}

/// A channel's messages, oldest first.
#[derive(Debug)]
pub struct Messages<'a> {
    recording: &'a Recording,
    channel: ChannelId,
    entries: std::slice::Iter<'a, IndexEntry>,
    spans: Spans,
}

impl Messages<'_> {
    /// The id of the next message, without reading it.
    pub fn next_id(&self) -> Option<MessageId> {
        self.entries.as_slice().first().map(|entry| entry.id)
    }
}

impl Iterator for Messages<'_> {
    type Item = Result<Message, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        Some(self.recording.read(self.channel, entry, &mut self.spans))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}
