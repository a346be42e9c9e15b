//! What is looked up at each scrape rather than counted. What cannot be looked up is left
//! out, so that no old value stands in for it.

use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::super::event::{CircuitChanged, CircuitState};
use super::PREFIX;
use super::process::Usage;
use clew_context::model::UnixMillis;

/// The state of a bot at one moment.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// The process's name in its cluster.
    pub node: Option<String>,
    /// Whether it answers, with everything that it remembers.
    pub is_ready: bool,
    /// Whether its loop answers in time.
    pub is_alive: bool,
    /// What the loop says of itself, if it does.
    pub of_loop: Option<LoopGauges>,
    /// The messages in windows, and their bytes.
    pub window: Option<(usize, usize)>,
    /// How the store is, and how many answered turns wait for it.
    pub store: Option<CircuitChanged>,
    /// Lines of telemetry that were lost since the start.
    pub dropped_lines: u64,
}

/// The state of the loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopGauges {
    /// Turns that run, without agent runs.
    pub running: usize,
    /// How many may run at once: `MAX_CONCURRENT_TURNS`.
    pub running_limit: usize,
    /// Triggers that wait for their turn.
    pub waiting: usize,
    pub runs: usize,
    /// The shards that Discord asked for; 0 before the first has connected.
    pub shards: usize,
    pub connected: usize,
    /// How long the one has been down that is down longest.
    pub down: Option<Duration>,
}

/// The gauges of the latest look.
#[derive(Debug)]
pub(super) struct Latest {
    started: UnixMillis,
    gauges: Mutex<Gauges>,
}

impl Latest {
    pub(super) fn new(started: UnixMillis) -> Self {
        Self {
            started,
            gauges: Mutex::default(),
        }
    }

    pub(super) fn set(&self, gauges: Gauges) {
        *self.gauges.lock() = gauges;
    }
}

impl Collector for Latest {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let gauges = self.gauges.lock().clone();
        let mut to = Encoding(encoder);
        let build = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("commit", env!("CLEW_COMMIT")),
        ];
        to.labelled("build_info", "Always 1; which Clew runs", &[(build, 1)])?;
        if let Some(node) = gauges.node {
            to.labelled(
                "cluster_node",
                "Always 1; which process this is",
                &[([("node", node)], 1)],
            )?;
        }
        let is_ready = usize::from(gauges.is_ready);
        to.gauge("ready", "Whether /readyz says so", is_ready)?;
        let is_alive = usize::from(gauges.is_alive);
        to.gauge("loop_alive", "Whether /healthz says so", is_alive)?;
        if let Some(of_loop) = gauges.of_loop {
            to.of_loop(of_loop)?;
        }
        if let Some((messages, bytes)) = gauges.window {
            to.gauge("window_messages", "Recent messages in memory", messages)?;
            to.bytes("window", "What they take, roughly", bytes)?;
        }
        if let Some(store) = gauges.store {
            to.store(&store)?;
        }
        let dropped = gauges.dropped_lines;
        let lines = "telemetry_lines_dropped";
        to.counter(lines, "Lines of telemetry that were lost", dropped)?;
        to.process(self.started)
    }
}

/// Writes what is about this bot under our prefix, which a collector gets no help with.
struct Encoding<'a>(DescriptorEncoder<'a>);

impl Encoding<'_> {
    fn of_loop(&mut self, now: LoopGauges) -> Result<(), std::fmt::Error> {
        let limit = "How many turns may run at once";
        let connected = "Shards that are connected";
        self.gauge("turns_running", "Turns that run", now.running)?;
        self.gauge("turns_running_limit", limit, now.running_limit)?;
        self.gauge("turns_waiting", "Triggers that wait", now.waiting)?;
        self.gauge("agent_runs_running", "Agent runs under way", now.runs)?;
        self.gauge("discord_shards", "Shards that there should be", now.shards)?;
        self.gauge("discord_shards_connected", connected, now.connected)
    }

    fn store(&mut self, now: &CircuitChanged) -> Result<(), std::fmt::Error> {
        let sides = [("read", now.read), ("write", now.write)];
        let series = sides.into_iter().flat_map(|(operation, is)| {
            CircuitState::ALL.iter().map(move |state| {
                let labels = [("operation", operation), ("state", state.as_str())];
                (labels, usize::from(is == *state))
            })
        });
        let series: Vec<_> = series.collect();
        let help = "1 for the state that the store is in, by kind of operation";
        self.labelled("store_circuit", help, &series)?;
        let help = "Answered turns that wait for the store";
        self.gauge("unsaved_turns", help, now.unsaved)
    }

    /// The names that Prometheus' own libraries give to these.
    fn process(&mut self, started: UnixMillis) -> Result<(), std::fmt::Error> {
        let (seconds, bytes) = (Some(&Unit::Seconds), Some(&Unit::Bytes));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^52")]
        let started = ConstGauge::new(started.0 as f64 / 1000.0);
        let help = "When the process started, since 1970";
        self.put("process_start_time", help, seconds, &started)?;
        let Some(usage) = Usage::now() else {
            return Ok(());
        };
        let cpu = ConstCounter::new(usage.cpu.as_secs_f64());
        let help = "Time of processors that was used";
        self.put("process_cpu", help, seconds, &cpu)?;
        let resident = ConstGauge::new(usage.resident_bytes);
        self.put("process_resident_memory", "Memory in use", bytes, &resident)?;
        let open = ConstGauge::new(usage.open_files as u64);
        let help = "Open files and connections";
        self.put("process_open_fds", help, None, &open)
    }

    fn gauge(&mut self, name: &str, help: &str, value: usize) -> Result<(), std::fmt::Error> {
        self.put(&ours(name), help, None, &ConstGauge::new(value as u64))
    }

    fn bytes(&mut self, name: &str, help: &str, value: usize) -> Result<(), std::fmt::Error> {
        let value = ConstGauge::new(value as u64);
        self.put(&ours(name), help, Some(&Unit::Bytes), &value)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), std::fmt::Error> {
        self.put(&ours(name), help, None, &ConstCounter::new(value))
    }

    fn labelled<S: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: &[(S, usize)],
    ) -> Result<(), std::fmt::Error> {
        let (name, help, kind) = (ours(name), format!("{help}."), MetricType::Gauge);
        let mut to = self.0.encode_descriptor(&name, &help, None, kind)?;
        for (labels, value) in series {
            let value = ConstGauge::new(*value as u64);
            value.encode(to.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        metric: &impl EncodeMetric,
    ) -> Result<(), std::fmt::Error> {
        let (help, kind) = (format!("{help}."), metric.metric_type());
        metric.encode(self.0.encode_descriptor(name, &help, unit, kind)?)
    }
}

fn ours(name: &str) -> String {
    format!("{PREFIX}_{name}")
}
