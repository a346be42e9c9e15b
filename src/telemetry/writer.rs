//! Writes emitted lines to files: a bounded queue, and a thread that writes the
//! lines in it and counts those lost because the queue was full or the disk failed.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_appender::rolling::{RollingFileAppender, Rotation};

use super::event::{Dropped, Event};
use super::line::{self, Ids};
use super::{Error, TelemetrySettings, with_sources};
use clew_context::model::{Clock, UnixMillis};
use clew_context::outside::has_threads;

/// The most lines that wait for the disk: about 3 MB of text, or seconds of a
/// busy bot's events.
pub const QUEUE_LINES: usize = 8_192;
/// How the names of files begin and end; the day is between.
const PREFIX: &str = "clew";
const SUFFIX: &str = "jsonl";
/// How long lines are gathered before they are written: a turn emits several
/// in quick succession, and waking the thread costs more than writing a line.
const GATHERING: Duration = Duration::from_millis(50);
/// How long to wait at the end for a disk that does not answer.
const CLOSING: Duration = Duration::from_secs(1);

/// The sending end of the queue.
#[derive(Clone)]
pub(super) struct LineQueue(Arc<SharedQueue>);

struct SharedQueue {
    /// Writes each line at once, instead of a thread.
    here: Option<Mutex<Accounted<Box<dyn Write + Send>>>>,
    waiting: Mutex<WaitingLines>,
    woken: Condvar,
    queue_lines: usize,
    /// All lines lost so far.
    dropped: AtomicU64,
}

/// What the thread has to write.
#[derive(Default)]
struct WaitingLines {
    lines: Vec<String>,
    /// Lines that could not be made, or that found the queue full.
    lost: usize,
    /// Whether the thread sleeps until there is something to do.
    is_idle: bool,
    is_closed: bool,
}

/// Keeps the writing thread alive. Dropping it writes what is queued and the
/// number of dropped lines, within a second; later events are lost.
#[must_use = "telemetry ends when its guard is dropped"]
pub struct Guard {
    shared: Arc<SharedQueue>,
    ended: Receiver<()>,
}

impl Guard {
    /// Writes everything out and ends the telemetry.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.waiting.lock().is_closed = true;
        self.shared.woken.notify_one();
        // Nothing is ever sent: the channel closes when the thread ends.
        let _ = self.ended.recv_timeout(CLOSING);
    }
}

impl LineQueue {
    /// Queues a line; `None` (a line that could not be made) is counted.
    pub(super) fn push(&self, line: Option<String>) {
        if let Some(here) = &self.0.here {
            let mut here = here.lock();
            let lost = usize::from(line.is_none());
            let lines = Vec::from_iter(line);
            return here.write(&self.0, &lines, lost);
        }
        let mut waiting = self.0.waiting.lock();
        match line {
            Some(line) if waiting.lines.len() < self.0.queue_lines => waiting.lines.push(line),
            _ => {
                waiting.lost += 1;
                self.0.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        if std::mem::take(&mut waiting.is_idle) {
            self.0.woken.notify_one();
        }
    }

    /// All lines lost so far.
    pub(super) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

impl SharedQueue {
    /// Waits for something to do and takes it.
    fn take(&self) -> WaitingLines {
        let mut waiting = self.waiting.lock();
        while waiting.lines.is_empty() && waiting.lost == 0 && !waiting.is_closed {
            waiting.is_idle = true;
            self.woken.wait(&mut waiting);
        }
        let is_open = |waiting: &mut WaitingLines| !waiting.is_closed;
        self.woken.wait_while_for(&mut waiting, is_open, GATHERING);
        let is_closed = waiting.is_closed;
        WaitingLines {
            is_closed,
            ..std::mem::take(&mut *waiting)
        }
    }
}

/// One file per day, made again when it is removed under us.
#[derive(Debug)]
pub(super) struct DailyFiles {
    dir: PathBuf,
    keep_days: usize,
    appender: RollingFileAppender,
    /// The file that is written to, as far as a look at the folder tells.
    file: Option<OpenFile>,
    /// Whether it was told that there is none and none can be made.
    is_lost: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct OpenFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
    /// Its bytes before the last write.
    bytes: u64,
}

impl OpenFile {
    fn look(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            path: path.to_owned(),
            id: (found.dev(), found.ino()),
            bytes: found.len(),
        })
    }

    /// The newest in a folder: its name is a day.
    fn newest(dir: &Path) -> Option<Self> {
        let names = std::fs::read_dir(dir).ok()?.flatten();
        let ours = names.filter_map(|entry| {
            let path = entry.path();
            is_of_ours(&path).then_some(path)
        });
        Self::look(&ours.max()?)
    }
}

/// Whether it has the name of a file of telemetry.
pub(crate) fn is_of_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

impl DailyFiles {
    /// # Errors
    /// If the folder cannot be created or written to.
    pub(super) fn open(settings: &TelemetrySettings) -> Result<Self, Error> {
        let appender = appender(&settings.dir, settings.keep_days)?;
        Ok(Self {
            file: OpenFile::newest(&settings.dir),
            is_lost: false,
            dir: settings.dir.clone(),
            keep_days: settings.keep_days,
            appender,
        })
    }

    /// Opens the file again if it is no longer in the folder. If the last write did not reach
    /// it, another day has begun.
    fn look_after(&mut self) -> io::Result<()> {
        if let Some(before) = &self.file
            && let Some(now) = OpenFile::look(&before.path)
            && now.id == before.id
        {
            if now.bytes > before.bytes {
                self.file = Some(now);
                return Ok(());
            }
            let newest = OpenFile::newest(&self.dir);
            if newest
                .as_ref()
                .is_some_and(|newest| newest.path >= now.path)
            {
                self.file = newest;
                return Ok(());
            }
        }
        self.file = None;
        match appender(&self.dir, self.keep_days) {
            Ok(appender) => {
                self.appender = appender;
                self.file = OpenFile::newest(&self.dir);
                self.is_lost = false;
                tracing::warn!(dir = %self.dir.display(),
                    "today's telemetry file was removed or replaced: a new one is written");
                Ok(())
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_lost, true) {
                    tracing::warn!(error = %with_sources(&error),
                        "today's telemetry file was removed and cannot be made again: lines are lost");
                }
                Err(io::Error::other(error))
            }
        }
    }
}

impl Write for DailyFiles {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.look_after()?;
        self.appender.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.appender.flush()
    }
}

/// Removes what is older than so many days. A process that writes removes its old files itself.
///
/// # Errors
/// A file, or the folder, cannot be read or removed.
pub fn remove_old(dir: &Path, keep_days: u32, now: UnixMillis) -> io::Result<()> {
    let day_of = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let date = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let midnight = format!("{}T00:00:00Z", date.trim_matches('.'));
        Some(UnixMillis::parse(&midnight)?.day())
    };
    for file in std::fs::read_dir(dir)? {
        let path = file?.path();
        if day_of(&path).is_some_and(|day| day < now.day() - i64::from(keep_days)) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// tracing-appender counts today's file among those it keeps, and makes room for it even if
/// it exists, hence one more.
fn appender(dir: &Path, keep_days: usize) -> Result<RollingFileAppender, Error> {
    std::fs::create_dir_all(dir).map_err(|source| Error::CreateFolder {
        dir: dir.to_owned(),
        source,
    })?;
    let mut files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(PREFIX)
        .filename_suffix(SUFFIX);
    if keep_days > 0 {
        files = files.max_log_files(keep_days.saturating_add(1));
    }
    files.build(dir).map_err(|source| Error::OpenFile {
        dir: dir.to_owned(),
        source,
    })
}

pub(super) fn start(
    writer: impl Write + Send + 'static,
    queue_lines: usize,
    log_subsys: &str,
    clock: &Clock,
) -> (LineQueue, Guard) {
    let accounted = Accounted {
        writer: Box::new(writer) as Box<dyn Write + Send>,
        lost: 0,
        torn: false,
        log_subsys: log_subsys.to_owned(),
        clock: Arc::clone(clock),
    };
    let (here, on_thread) = if has_threads() {
        (None, Some(accounted))
    } else {
        (Some(Mutex::new(accounted)), None)
    };
    let shared = Arc::new(SharedQueue {
        here,
        waiting: Mutex::default(),
        woken: Condvar::new(),
        queue_lines,
        dropped: AtomicU64::new(0),
    });
    let (ending, ended) = channel();
    let queue = LineQueue(Arc::clone(&shared));
    let Some(accounted) = on_thread else {
        return (queue, Guard { shared, ended });
    };
    let read = Arc::clone(&shared);
    let started = thread::Builder::new()
        .name("clew-telemetry".to_owned())
        .spawn(move || {
            accounted.write_until_closed(&read);
            drop(ending);
        });
    #[expect(
        clippy::expect_used,
        reason = "a process that cannot start a thread at its beginning cannot run"
    )]
    started.expect("the system gives us a thread");
    (queue, Guard { shared, ended })
}

/// The writer on the thread. Before each line and at the end it reports how many lines
/// were lost since the last report: there is always room on this side of the queue.
struct Accounted<W> {
    writer: W,
    /// Lines that were neither written nor reported as lost.
    lost: usize,
    /// Whether a failed write may have left half a line.
    torn: bool,
    log_subsys: String,
    clock: Clock,
}

impl<W: Write> Accounted<W> {
    fn write_until_closed(mut self, shared: &SharedQueue) {
        loop {
            let taken = shared.take();
            self.write(shared, &taken.lines, taken.lost);
            if taken.is_closed {
                return;
            }
        }
    }

    /// Writes lines, and how many others were lost.
    fn write(&mut self, shared: &SharedQueue, lines: &[String], lost: usize) {
        self.lost += lost;
        self.report();
        let lost = self.put(lines);
        self.lost += lost;
        shared.dropped.fetch_add(lost as u64, Ordering::Relaxed);
        self.report();
        // A failure will show at the next write.
        let _ = self.writer.flush();
    }

    fn report(&mut self) {
        if self.lost == 0 {
            return;
        }
        let event = Event::from(Dropped { count: self.lost });
        let line = line::render((self.clock)(), &self.log_subsys, &Ids::default(), &event);
        let Some(line) = line else { return };
        if self.put(&[line]) == 0 {
            self.lost = 0;
        }
    }

    /// Writes the lines in one go if possible. A line that the file does not
    /// take is lost, and the rest is tried. Returns how many were lost.
    fn put(&mut self, lines: &[String]) -> usize {
        let bytes = lines.concat();
        let bytes = bytes.as_bytes();
        let mut begin = 0;
        let mut ends = Vec::with_capacity(lines.len());
        for line in lines {
            begin += line.len();
            ends.push(begin);
        }
        let (mut done, mut lost) = (0, 0);
        while done < bytes.len() {
            if self.torn && write_most(&mut self.writer, b"\n") == 1 {
                self.torn = false;
            }
            let written = if self.torn {
                done
            } else {
                done + write_most(&mut self.writer, &bytes[done..])
            };
            let broken = ends.partition_point(|end| *end <= written);
            let Some(end) = ends.get(broken) else { break };
            let begin = broken.checked_sub(1).map_or(0, |before| ends[before]);
            self.torn |= written > begin;
            lost += 1;
            done = *end;
        }
        lost
    }
}

/// Writes until something fails; returns how many bytes were written.
fn write_most(writer: &mut impl Write, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match writer.write(&bytes[written..]) {
            Ok(0) => break,
            Ok(taken) => written += taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::IdStyle;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Once when it is made again, and once while it cannot be.
    #[test]
    fn a_folder_that_disappears_is_told() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
        // A second one keeps tracing from taking what other tests want for all.
        let _other = tracing::Dispatch::new(tracing_subscriber::registry());
        let _logged = tracing::subscriber::set_default(subscriber.finish());
        let warnings = || {
            let told = String::from_utf8(std::mem::take(&mut *log.0.lock())).unwrap();
            let warnings = told.lines().filter(|line| line.contains("WARN"));
            warnings.count()
        };
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("telemetry");
        let settings = TelemetrySettings {
            dir: dir.clone(),
            keep_days: 30,
            log_subsys: "mem.ctx".to_owned(),
            ids: IdStyle::Plain,
        };
        let mut files = DailyFiles::open(&settings).unwrap();
        files.write_all(b"1\n").unwrap();
        assert_eq!(warnings(), 0);
        std::fs::remove_dir_all(&dir).unwrap();
        files.write_all(b"2\n").unwrap();
        files.write_all(b"3\n").unwrap();
        assert_eq!(warnings(), 1);
        std::fs::remove_dir_all(&dir).unwrap();
        std::fs::write(&dir, "in its place").unwrap();
        for _ in 0..3 {
            assert!(files.write_all(b"4\n").is_err());
        }
        assert_eq!(warnings(), 1, "told once");
        std::fs::remove_file(&dir).unwrap();
        files.write_all(b"5\n").unwrap();
        assert_eq!(warnings(), 1);
    }
}
