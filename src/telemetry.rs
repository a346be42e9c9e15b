//! What the bot reports to its operators: one JSON line per event, typed, without a
//! word of any message.
//!
//! Invariant: `telemetry` imports only words (`model`, `config`, clew-context's `model`);
//! emitting never waits, and no line is lost without being counted.

mod duration;
pub mod event;
mod line;
mod log;
#[cfg(feature = "test-util")]
mod memory;
mod metrics;
mod stages;
#[cfg(feature = "otel")]
mod traces;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use clew_context::model::{Clock, MessageId};
#[cfg(feature = "test-util")]
use clew_context::model::{UnixMillis, fixed_clock};
use clew_store::model::Scope;

pub use duration::{Ms, Seconds};
pub use event::Event;
use event::TurnDone;
pub use line::{IdStyle, Ids};
#[cfg(feature = "test-util")]
pub use log::log_filter;
pub use log::{init_log, with_sources};
#[cfg(feature = "test-util")]
pub use memory::{Lines, RecordedLine};
pub use metrics::{Gauges, LoopGauges, Metrics, MetricsFormat};
pub use stages::{StageTimes, Stopwatch, TurnStage};
#[cfg(feature = "otel")]
pub use traces::{Exporter, SetupError, Traces};
pub(crate) use writer::is_of_ours;
pub use writer::{Guard, QUEUE_LINES, remove_old};

/// The handle through which the whole bot emits events. Clones share one sink.
///
/// It has no process-wide state: several bots in one process write to folders of
/// their own.
#[derive(Clone)]
pub struct Telemetry {
    sink: Sink,
    ids: IdStyle,
    keep_days: usize,
    log_subsys: Arc<str>,
    clock: Clock,
    /// None without `METRICS_ADDR`.
    metrics: Option<Arc<Metrics>>,
    tap: Option<LineTap>,
    /// None without `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[cfg(feature = "otel")]
    traces: Option<Traces>,
}

/// Gets each line as it is queued.
pub type LineTap = mpsc::UnboundedSender<TappedLine>;

/// A line, and what it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TappedLine {
    /// The trigger; none if it belongs to no turn.
    pub message: Option<MessageId>,
    /// The JSON object, with its line break.
    pub line: String,
}

/// How telemetry is written (`TELEMETRY_DIR`, `TELEMETRY_KEEP_DAYS`,
/// `TELEMETRY_IDS`, `MEM_LOG_SUBSYS`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The folder of the files; it is created if absent.
    pub dir: PathBuf,
    /// How many daily files to keep besides today's; 0 keeps all.
    pub keep_days: usize,
    /// The subsystem's name in `collect_*` and `merge_ok` lines.
    pub log_subsys: String,
    pub ids: IdStyle,
}

/// Telemetry could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder could not be created.
    #[error(
        "cannot create the telemetry folder `{}`: create it for the user that runs clew, or set TELEMETRY_DIR to another folder",
        .dir.display()
    )]
    CreateFolder {
        dir: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Today's file could not be opened in the folder.
    #[error(
        "cannot write into the telemetry folder `{}`: make it writable for the user that runs clew, or set TELEMETRY_DIR to another folder",
        .dir.display()
    )]
    OpenFile {
        dir: PathBuf,
        #[source]
        source: tracing_appender::rolling::InitError,
    },
}

#[derive(Clone)]
enum Sink {
    #[cfg(feature = "test-util")]
    Off,
    #[cfg(feature = "test-util")]
    Memory(Lines),
    Files(writer::LineQueue),
}

impl Telemetry {
    /// Writes files `clew.YYYY-MM-DD.jsonl` (days in UTC) until the guard is
    /// dropped. The clock gives the lines' times; files change by the system's.
    ///
    /// # Errors
    /// If the folder cannot be created or written to.
    pub fn start(settings: &TelemetrySettings, clock: Clock) -> Result<(Self, Guard), Error> {
        let files = writer::DailyFiles::open(settings)?;
        let (plain, guard) = Self::start_with(files, QUEUE_LINES, &settings.log_subsys, clock);
        let telemetry = Self {
            ids: settings.ids.clone(),
            keep_days: settings.keep_days,
            ..plain
        };
        Ok((telemetry, guard))
    }

    /// Writes whole lines to the given writer, on a thread of its own behind a
    /// queue of `queue_lines`.
    pub fn start_with(
        writer: impl std::io::Write + Send + 'static,
        queue_lines: usize,
        log_subsys: &str,
        clock: Clock,
    ) -> (Self, Guard) {
        let (queue, guard) = writer::start(writer, queue_lines, log_subsys, &clock);
        (Self::new(Sink::Files(queue), log_subsys, clock), guard)
    }

    /// Keeps the lines in memory. Nothing is ever dropped: tests that emit a lot
    /// must take the lines out in between.
    #[cfg(feature = "test-util")]
    pub fn to_memory(log_subsys: &str, clock: Clock) -> (Self, Lines) {
        let lines = Lines::default();
        let sink = Sink::Memory(lines.clone());
        (Self::new(sink, log_subsys, clock), lines)
    }

    /// Counts what is emitted from now on.
    #[must_use]
    pub fn counted(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Makes traces of the turns whose events are emitted from now on.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn traced(mut self, traces: Traces) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Discards all events.
    #[cfg(feature = "test-util")]
    pub fn off() -> Self {
        let clock = fixed_clock(UnixMillis(0));
        Self::new(Sink::Off, "", clock)
    }

    /// The same, and `tap` gets each line as well.
    #[must_use]
    pub fn tapped(mut self, tap: LineTap) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Writes one event. Never waits: if the queue is full the line is dropped,
    /// and the number of dropped lines is written once there is room
    /// (`process`/`dropped`).
    pub fn emit(&self, ids: &Ids, event: impl Into<Event>) {
        let event = event.into();
        if let Some(metrics) = &self.metrics {
            metrics.count(&event);
        }
        let message = ids.message;
        #[cfg(feature = "otel")]
        if let Some(traces) = &self.traces {
            traces.note(ids, &event);
        }
        let ids = &self.ids.style(ids);
        match &self.sink {
            #[cfg(feature = "test-util")]
            Sink::Off => {}
            Sink::Files(queue) => {
                let line = line::render((self.clock)(), &self.log_subsys, ids, &event);
                self.tap(message, line.as_deref());
                queue.push(line);
            }
            #[cfg(feature = "test-util")]
            Sink::Memory(lines) => {
                let line = line::render((self.clock)(), &self.log_subsys, ids, &event);
                lines.push(*ids, event, line.unwrap_or_default());
            }
        }
    }

    /// Writes that a turn is over. How long its stages took metrics and traces say, and traces
    /// to which conversation it belongs.
    #[cfg_attr(
        not(feature = "otel"),
        expect(unused_variables, reason = "only traces tell the conversation")
    )]
    pub fn turn_over(
        &self,
        ids: &Ids,
        conversation: Option<Scope>,
        done: TurnDone,
        stages: &StageTimes,
    ) {
        if let Some(metrics) = &self.metrics {
            metrics.timed(&stages.all);
        }
        #[cfg(feature = "otel")]
        if let Some(traces) = &self.traces {
            let styled = traces::TurnIds {
                ids: self.ids.style(ids),
                conversation: conversation.map(|scope| self.ids.style_scope(scope)),
            };
            traces.turn_over(ids.turn, &styled, &done, stages, (self.clock)());
        }
        self.emit(ids, done);
    }

    /// How many lines were lost since the start.
    pub fn dropped(&self) -> u64 {
        match &self.sink {
            #[cfg(feature = "test-util")]
            Sink::Off | Sink::Memory(_) => 0,
            Sink::Files(queue) => queue.dropped(),
        }
    }

    fn tap(&self, message: Option<MessageId>, line: Option<&str>) {
        if let (Some(tap), Some(line)) = (&self.tap, line) {
            let line = line.to_owned();
            // It fails once nobody listens any more.
            let _ = tap.send(TappedLine { message, line });
        }
    }

    /// The ids as they may appear in the log: pseudonyms if the events have
    /// them.
    pub fn styled(&self, ids: &Ids) -> Ids {
        self.ids.style(ids)
    }

    /// How many days files are kept besides today's; 0 if for ever.
    pub fn keep_days(&self) -> usize {
        self.keep_days
    }

    /// Whether people appear under pseudonyms.
    pub fn is_keyed(&self) -> bool {
        self.ids != IdStyle::Plain
    }

    fn new(sink: Sink, log_subsys: &str, clock: Clock) -> Self {
        Self {
            sink,
            ids: IdStyle::Plain,
            keep_days: 0,
            log_subsys: log_subsys.into(),
            clock,
            metrics: None,
            tap: None,
            #[cfg(feature = "otel")]
            traces: None,
        }
    }
}
