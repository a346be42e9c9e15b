//! The kinds of metrics: counters and histograms, each a family of series by labels.

use std::time::Duration;

use prometheus_client::metrics::counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// A series' labels: name and value each.
type Labels<const N: usize> = [(&'static str, String); N];
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The upper bounds of durations, in seconds: from a look into memory to a long agent run.
const SECONDS: [f64; 16] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1800.0,
];
/// The upper bounds of counts: of the messages in a block, of the characters in a prompt.
const SIZES: [f64; 16] = [
    0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 250.0, 1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 1e5,
];

/// How often something happened.
#[derive(Debug)]
pub(super) struct Counter<const N: usize> {
    labels: [&'static str; N],
    family: Family<Labels<N>, counter::Counter>,
}

/// How long something took.
#[derive(Debug)]
pub(super) struct Seconds<const N: usize> {
    labels: [&'static str; N],
    family: Histograms<N>,
}

/// How large something was.
#[derive(Debug)]
pub(super) struct Sizes<const N: usize> {
    labels: [&'static str; N],
    family: Histograms<N>,
}

impl<const N: usize> Counter<N> {
    pub(super) fn new(
        registry: &mut Registry,
        name: &str,
        help: &str,
        labels: [&'static str; N],
    ) -> Self {
        let family = Family::default();
        registry.register(name, plain(help), family.clone());
        Self { labels, family }
    }

    pub(super) fn add(&self, values: [&str; N], count: u64) {
        let labels = labelled(self.labels, values);
        self.family.get_or_create(&labels).inc_by(count);
    }

    pub(super) fn one(&self, values: [&str; N]) {
        self.add(values, 1);
    }

    /// Has a series of each of these at zero: of one that begins with its first event,
    /// Prometheus does not see that event as an increase.
    pub(super) fn begin(&self, all: impl IntoIterator<Item = [&'static str; N]>) {
        for values in all {
            self.add(values, 0);
        }
    }
}

impl<const N: usize> Seconds<N> {
    pub(super) fn new(
        registry: &mut Registry,
        name: &str,
        help: &str,
        labels: [&'static str; N],
    ) -> Self {
        let family = Histograms::new_with_constructor(|| Histogram::new(SECONDS));
        registry.register_with_unit(name, plain(help), Unit::Seconds, family.clone());
        Self { labels, family }
    }

    pub(super) fn observe(&self, values: [&str; N], took: Duration) {
        let labels = labelled(self.labels, values);
        self.family
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }
}

impl<const N: usize> Sizes<N> {
    pub(super) fn new(
        registry: &mut Registry,
        name: &str,
        help: &str,
        labels: [&'static str; N],
    ) -> Self {
        let family = Histograms::new_with_constructor(|| Histogram::new(SIZES));
        registry.register(name, plain(help), family.clone());
        Self { labels, family }
    }

    pub(super) fn observe(&self, values: [&str; N], size: usize) {
        let labels = labelled(self.labels, values);
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
        self.family.get_or_create(&labels).observe(size as f64);
    }
}

fn labelled<const N: usize>(labels: [&'static str; N], values: [&str; N]) -> Labels<N> {
    let mut values = values.into_iter();
    labels.map(|label| (label, values.next().unwrap_or_default().to_owned()))
}

/// A documentation comment as help; the period comes with the encoding.
fn plain(help: &str) -> &str {
    help.trim().trim_end_matches('.')
}
