//! Where each message is: 24 bytes per message in memory, while the messages
//! themselves stay on disk.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
#[cfg(feature = "test-util")]
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::error::ArchiveError;
use clew_context::model::MessageId;

/// The memory held per message of an export, in bytes.
#[cfg(feature = "test-util")]
pub const BYTES_PER_MESSAGE: usize = size_of::<IndexEntry>();
/// The number of bytes per read.
pub(super) const WINDOW: usize = 64 * 1024;
/// The most files kept open between reads, below the usual limit of 1,024 per process.
const MAX_OPEN: usize = 64;
/// `IndexEntry::file` of a message kept in memory (from a scenario).
pub(super) const KEPT: u32 = u32::MAX;

/// The place of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexEntry {
    pub(super) id: MessageId,
    /// The byte offset in the file; for a kept message, its number.
    pub(super) offset: u64,
    pub(super) length: u32,
    /// The file's number, or [`KEPT`].
    pub(super) file: u32,
}

/// Sorts entries by id and keeps the last file's if an id occurs more than once.
/// Returns how many were removed.
pub(super) fn settle(entries: &mut Vec<IndexEntry>) -> u64 {
    let key = |entry: &IndexEntry| (entry.id, entry.file, entry.offset);
    if !entries.is_sorted_by_key(key) {
        entries.sort_unstable_by_key(key);
    }
    let before = entries.len();
    entries.dedup_by(|later, earlier| {
        let same = later.id == earlier.id;
        if same {
            *earlier = *later;
        }
        same
    });
    entries.shrink_to_fit();
    (before - entries.len()) as u64
}

/// The newest `limit` entries before an id, oldest first.
pub(super) fn before(entries: &[IndexEntry], id: MessageId, limit: usize) -> &[IndexEntry] {
    let end = entries.partition_point(|entry| entry.id < id);
    &entries[end.saturating_sub(limit)..end]
}

/// The oldest `limit` entries after an id, oldest first.
pub(super) fn after(entries: &[IndexEntry], id: MessageId, limit: usize) -> &[IndexEntry] {
    let start = entries.partition_point(|entry| entry.id <= id);
    &entries[start..entries.len().min(start.saturating_add(limit))]
}

pub(super) fn find(entries: &[IndexEntry], id: MessageId) -> Option<&IndexEntry> {
    let at = entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
    entries.get(at)
}

/// The files of a recording, opened on demand.
#[derive(Debug, Default)]
pub(super) struct ArchiveFiles {
    pub(super) paths: Vec<PathBuf>,
    /// Most recently used last.
    open: Mutex<Vec<(u32, File)>>,
    #[cfg(feature = "test-util")]
    reads: AtomicUsize,
}

impl ArchiveFiles {
    /// Reads up to `length` bytes; fewer only at the end of the file.
    fn read(&self, file: u32, offset: u64, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let mut open = self.open.lock();
        let mut handle = match open.iter().position(|(number, _)| *number == file) {
            Some(at) => open.remove(at).1,
            None => File::open(self.path(file))?,
        };
        into.clear();
        #[cfg(feature = "test-util")]
        self.reads.fetch_add(1, Ordering::Relaxed);
        handle.seek(SeekFrom::Start(offset))?;
        let read = Read::by_ref(&mut handle)
            .take(length as u64)
            .read_to_end(into);
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push((file, handle));
        read.map(|_| ())
    }

    #[cfg(feature = "test-util")]
    pub(super) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    pub(super) fn path(&self, file: u32) -> &Path {
        &self.paths[file as usize]
    }
}

/// Reads the bytes of entries, mostly close to each other, one window at a time.
#[derive(Debug)]
pub(super) struct Spans {
    /// The number of bytes per read.
    window: usize,
    file: u32,
    start: u64,
    bytes: Vec<u8>,
}

impl Default for Spans {
    fn default() -> Self {
        Self::new(WINDOW)
    }
}

impl Spans {
    pub(super) fn new(window: usize) -> Self {
        Self {
            window,
            file: KEPT,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// The bytes of one entry that is not kept in memory.
    pub(super) fn get(
        &mut self,
        files: &ArchiveFiles,
        entry: &IndexEntry,
    ) -> Result<&[u8], ArchiveError> {
        let length = entry.length as usize;
        let path = || files.path(entry.file);
        if self.within(entry).is_none() {
            // If the file runs from newest to oldest, the next entry comes
            // before this one, so the window should end with this one.
            let backwards = self.file == entry.file && entry.offset < self.start;
            let window = self.window.max(length);
            let end = entry.offset + length as u64;
            let start = if backwards {
                end.saturating_sub(window as u64)
            } else {
                entry.offset
            };
            files
                .read(entry.file, start, window, &mut self.bytes)
                .map_err(|source| ArchiveError::read(path(), source))?;
            (self.file, self.start) = (entry.file, start);
        }
        match self.within(entry) {
            Some(at) => Ok(&self.bytes[at..at + length]),
            None => Err(ArchiveError::Changed {
                path: path().to_owned(),
                id: entry.id,
            }),
        }
    }

    /// Where the entry begins in the window, if all of it is there.
    fn within(&self, entry: &IndexEntry) -> Option<usize> {
        let at = entry.offset.checked_sub(self.start)?;
        let at = usize::try_from(at).ok()?;
        let whole = at + entry.length as usize <= self.bytes.len();
        (self.file == entry.file && whole).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(ids: &[(u64, u32)]) -> Vec<IndexEntry> {
        let entry = |&(id, file)| IndexEntry {
            id: MessageId::new(id),
            offset: 0,
            length: 0,
            file,
        };
        ids.iter().map(entry).collect()
    }

    fn ids(entries: &[IndexEntry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.id.get()).collect()
    }

    #[test]
    fn an_entry_is_twenty_four_bytes() {
        assert_eq!(BYTES_PER_MESSAGE, 24);
    }

    #[test]
    fn the_last_files_entry_stays() {
        let mut both = entries(&[(5, 0), (9, 0), (5, 1), (2, 1)]);
        assert_eq!(settle(&mut both), 1);
        assert_eq!(ids(&both), [2, 5, 9]);
        assert_eq!(both[1].file, 1);
    }

    #[test]
    fn pages_end_and_begin_beside_their_anchor() {
        let all = entries(&[(2, 0), (4, 0), (6, 0), (8, 0)]);
        let at = MessageId::new;
        assert_eq!(ids(before(&all, at(8), 2)), [4, 6]);
        assert_eq!(ids(before(&all, at(7), 2)), [4, 6]);
        assert_eq!(ids(before(&all, at(2), 2)), [] as [u64; 0]);
        assert_eq!(ids(after(&all, at(4), 9)), [6, 8]);
        assert_eq!(ids(after(&all, at(1), 1)), [2]);
        assert_eq!(ids(after(&all, at(8), usize::MAX)), [] as [u64; 0]);
        assert!(find(&all, at(6)).is_some() && find(&all, at(7)).is_none());
    }
}
