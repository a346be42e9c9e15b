//! The documents name the metrics that there are, with the labels that they have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use clew::telemetry::event::{CircuitChanged, CircuitState};
use clew::telemetry::{Gauges, LoopGauges, Metrics, StageTime, Telemetry, TurnStage};
use clew_context::model::fixed_clock;

use super::scrape::Scrape;
use crate::support::START;
use crate::telemetry::samples::{one_of_each, turn_ids};

/// The labels of each metric, by the name under which queries find it; of a histogram by its name alone.
type Names = BTreeMap<String, BTreeSet<String>>;

/// A scrape after one of each event, with everything that can be looked up.
fn everything() -> Scrape {
    let metrics = Arc::new(Metrics::new(START));
    let (telemetry, _) = Telemetry::to_memory("mem.ctx", fixed_clock(START));
    let telemetry = telemetry.counted(Arc::clone(&metrics));
    for event in one_of_each() {
        telemetry.emit(&turn_ids(7), event);
    }
    telemetry.timed(&[StageTime {
        stage: TurnStage::Gather,
        took: Duration::from_millis(3),
    }]);
    let now = Gauges {
        is_ready: true,
        is_alive: true,
        of_loop: Some(LoopGauges::default()),
        window: Some((3, 900)),
        store: Some(CircuitChanged {
            read: CircuitState::Closed,
            write: CircuitState::Open,
            unsaved: 2,
        }),
        dropped_lines: 1,
    };
    Scrape::parse(&metrics.render(now))
}

/// The metrics of a scrape.
fn names(scrape: &Scrape) -> Names {
    let mut names = Names::new();
    for (series, all) in &scrape.series {
        let (family, kind) = scrape.family(series).unwrap();
        let name = if kind == "histogram" { family } else { series };
        let labels = all.keys().flat_map(|labels| labels.keys());
        let labels = labels.filter(|label| *label != "le").cloned();
        names.entry(name.to_owned()).or_default().extend(labels);
    }
    names
}

#[test]
fn every_metric_is_documented_with_its_labels() {
    let document = include_str!("../../../docs/operating.md");
    let table = document
        .lines()
        .skip_while(|line| !line.starts_with("| metric | labels |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let documented: Names = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let labels = cells[2].split(", ").filter(|label| !label.is_empty());
            let labels = labels.map(|label| label.trim_matches('`').to_owned());
            (cells[1].trim_matches('`').to_owned(), labels.collect())
        })
        .collect();
    assert_eq!(documented, names(&everything()));
}
