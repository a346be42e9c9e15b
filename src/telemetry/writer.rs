//! From emitted lines to files, through tracing and tracing-appender: a
//! dispatcher of our own hands each line to a bounded queue, a thread writes
//! it and accounts for those that found the queue full or the disk failing.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Dispatch, Metadata, dispatcher};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::event::{Dropped, Event};
use super::line::{self, Ids};
use super::{Error, Settings};
use clew_context::model::Clock;

/// Lines that wait for the disk: about 3 MB of text at most, and seconds of a
/// busy bot's events.
pub const QUEUE_LINES: usize = 8_192;
/// Tells our events from everything else that tracing carries.
const TARGET: &str = "clew::telemetry::line";
/// The field that holds the line.
const FIELD: &str = "line";

/// The entrance of the queue.
#[derive(Clone)]
pub(super) struct Queue {
    dispatch: Dispatch,
    unwritable: Arc<AtomicUsize>,
}

/// Keeps the writing thread alive. Dropping it writes what is queued and the
/// count of what was dropped, within a second; later events are lost.
#[derive(Debug)]
#[must_use = "telemetry ends when its guard is dropped"]
pub struct Guard {
    _worker: WorkerGuard,
}

impl Guard {
    /// Writes everything out and ends the telemetry.
    pub fn close(self) {
        drop(self);
    }
}

impl Queue {
    /// Queues a line; `None` (a line that could not be made) is counted.
    pub(super) fn push(&self, line: Option<&str>) {
        let Some(line) = line else {
            self.unwritable.fetch_add(1, Ordering::Relaxed);
            return;
        };
        dispatcher::with_default(&self.dispatch, || {
            tracing::event!(target: TARGET, tracing::Level::INFO, line);
        });
    }
}

/// One file a day. tracing-appender counts today's file among those it keeps,
/// and makes room for it also when it exists, hence one more.
pub(super) fn daily_files(settings: &Settings) -> Result<RollingFileAppender, Error> {
    let dir = &settings.dir;
    std::fs::create_dir_all(dir).map_err(|source| Error::CreateFolder {
        dir: dir.clone(),
        source,
    })?;
    let mut files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("clew")
        .filename_suffix("jsonl");
    if settings.keep_days > 0 {
        files = files.max_log_files(settings.keep_days.saturating_add(1));
    }
    files.build(dir).map_err(|source| Error::OpenFile {
        dir: dir.clone(),
        source,
    })
}

/// Starts the thread.
pub(super) fn start(
    writer: impl Write + Send + 'static,
    queue_lines: usize,
    log_subsys: &str,
    clock: &Clock,
) -> (Queue, Guard) {
    let full = Arc::new(OnceLock::new());
    let unwritable = Arc::new(AtomicUsize::new(0));
    let accounted = Accounted {
        writer,
        full: Arc::clone(&full),
        unwritable: Arc::clone(&unwritable),
        reported: 0,
        torn: false,
        log_subsys: log_subsys.to_owned(),
        clock: Arc::clone(clock),
    };
    let (lines, worker) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(queue_lines)
        .thread_name("clew-telemetry")
        .finish(accounted);
    // The counter comes with the queue, after the writer went into it.
    full.get_or_init(|| lines.error_counter());
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(LineLayer { lines }));
    let queue = Queue {
        dispatch,
        unwritable,
    };
    (queue, Guard { _worker: worker })
}

/// Passes our lines on as they are and takes no interest in anything else.
struct LineLayer {
    lines: NonBlocking,
}

impl<S: tracing::Subscriber> Layer<S> for LineLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == TARGET {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target() == TARGET
    }

    /// Without it every library's trace events would be made for nothing.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        event.record(&mut LineVisitor(self.lines.clone()));
    }
}

struct LineVisitor(NonBlocking);

impl Visit for LineVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == FIELD {
            // A full queue is not an error here: it is counted.
            let _ = self.0.write_all(value.as_bytes());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// The writer on the thread. Whenever it has something to write, and at the
/// end, it first says how many lines were lost since it last said so: there
/// is always room on this side of the queue.
struct Accounted<W> {
    writer: W,
    /// Lines that found the queue full.
    full: Arc<OnceLock<ErrorCounter>>,
    /// Lines that could not be made or written.
    unwritable: Arc<AtomicUsize>,
    reported: usize,
    /// A failed write may have left half a line.
    torn: bool,
    log_subsys: String,
    clock: Clock,
}

impl<W: Write> Accounted<W> {
    fn report(&mut self) {
        let full = self.full.get().map_or(0, ErrorCounter::dropped_lines);
        let lost = full.saturating_add(self.unwritable.load(Ordering::Relaxed));
        if lost <= self.reported {
            return;
        }
        let event = Event::from(Dropped {
            count: lost - self.reported,
        });
        let line = line::render((self.clock)(), &self.log_subsys, &Ids::default(), &event);
        if line.is_some_and(|line| self.put(line.as_bytes()).is_ok()) {
            self.reported = lost;
        }
    }

    fn put(&mut self, line: &[u8]) -> io::Result<()> {
        let separate: &[u8] = if self.torn { b"\n" } else { b"" };
        self.torn = true;
        self.writer.write_all(separate)?;
        self.writer.write_all(line)?;
        self.torn = false;
        Ok(())
    }
}

impl<W: Write> Write for Accounted<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.report();
        if self.put(line).is_err() {
            self.unwritable.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.report();
        self.writer.flush()
    }
}
