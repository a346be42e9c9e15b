//! Documents, dashboard and alerts name the metrics that there are, with the labels that they have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clew::telemetry::event::{CircuitChanged, CircuitState};
use clew::telemetry::{Event, Gauges, LoopGauges, Metrics, MetricsFormat, Stopwatch, Telemetry};
use clew_context::model::fixed_clock;

use serde_json::Value;
use tokio::time::Instant;

use super::promql;
use super::scrape::Scrape;
use crate::support::START;
use crate::support::schema::schema;
use crate::telemetry::samples::{one_of_each, turn_ids};

/// The labels of each metric, by the name under which queries find it; of a histogram by its name alone.
type Names = BTreeMap<String, BTreeSet<String>>;

/// The labels that Prometheus adds to what it scrapes.
const TARGET_LABELS: [&str; 2] = ["instance", "job"];

/// A scrape after one of each event, with everything that can be looked up.
fn everything() -> Scrape {
    let metrics = Arc::new(Metrics::new(START));
    let (telemetry, _) = Telemetry::to_memory("mem.ctx", fixed_clock(START));
    let telemetry = telemetry.counted(Arc::clone(&metrics));
    for event in one_of_each() {
        telemetry.emit(&turn_ids(7), event);
    }
    let done = one_of_each().into_iter().find_map(|event| match event {
        Event::TurnDone(done) => Some(done),
        _ => None,
    });
    let now = Instant::now();
    let stages = Stopwatch::new(now).read(now);
    telemetry.turn_over(&turn_ids(8), None, done.unwrap(), &stages);
    let now = Gauges {
        node: Some("machine:7.0a1b2".to_owned()),
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
    Scrape::parse(&metrics.render(now, MetricsFormat::OpenMetrics))
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

/// What the text says of one of each event, without the buckets and what is still zero. A
/// family's series stand in any order.
#[test]
fn each_event_is_counted_by_what_it_says() {
    let text = everything().text;
    let mut counted: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("_bucket{"))
        .filter(|line| {
            !line.ends_with(" 0") && !line.contains("process_") && !line.contains("build_info")
        })
        .collect();
    counted.sort_unstable();
    insta::assert_snapshot!(counted.join("\n"));
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

/// A dashboard's or a rule's expression, and where it stands.
type Expression = (String, String);

fn of_dashboard(dashboard: &Value) -> Vec<Expression> {
    let panels = dashboard["panels"].as_array().unwrap();
    let mut found = Vec::new();
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = panel["title"].as_str().unwrap().to_owned();
            found.push((title, target["expr"].as_str().unwrap().to_owned()));
        }
    }
    found
}

/// The rules, of which each line of the file is one that is known here.
fn of_alerts() -> Vec<Expression> {
    let mut found: Vec<Expression> = Vec::new();
    let mut is_folded = false;
    for line in include_str!("../../../telemetry/alerts.yml").lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("- alert: ") {
            found.push((name.to_owned(), String::new()));
        } else if let Some(expression) = line.strip_prefix("expr: ") {
            is_folded = expression == ">-";
            if !is_folded {
                found.last_mut().unwrap().1.push_str(expression);
            }
        } else if is_folded && !line.starts_with("for: ") && !line.starts_with("labels:") {
            found.last_mut().unwrap().1 += &format!("{line} ");
        } else {
            is_folded = false;
            let known = [
                "#",
                "groups:",
                "- name:",
                "rules:",
                "for: ",
                "labels:",
                "severity: ",
            ];
            let more = [
                "annotations:",
                "summary: \"",
                "description: \"",
                "runbook: docs/",
            ];
            let mut known = known.iter().chain(&more);
            assert!(
                line.is_empty() || known.any(|start| line.starts_with(start)),
                "{line}"
            );
        }
    }
    found
}

/// All words of closed sets in the telemetry.
fn words() -> BTreeSet<String> {
    let definitions = schema()["$defs"].as_object().unwrap().values();
    let words = definitions.filter_map(|definition| definition["enum"].as_array());
    let words = words.flatten().filter_map(Value::as_str);
    words.map(str::to_owned).collect()
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_and_labels_that_there_are() {
    let scrape = everything();
    let names = names(&scrape);
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../telemetry/grafana.json")).unwrap();
    let words = words();
    let mut asked = BTreeSet::new();
    for (place, expression) in of_dashboard(&dashboard).into_iter().chain(of_alerts()) {
        let selectors = promql::selectors(&expression);
        let selectors = selectors.unwrap_or_else(|problem| panic!("{place}: {problem}"));
        assert!(!selectors.is_empty(), "{place}: {expression}");
        let mut labels: BTreeSet<String> = TARGET_LABELS.map(str::to_owned).into();
        for selector in &selectors {
            let name = &selector.metric;
            if name == "up" {
                continue;
            }
            let all = scrape.series.get(name);
            let all = all.unwrap_or_else(|| panic!("{place}: there is no {name}"));
            for (label, values) in &selector.matchers {
                let known: BTreeSet<&String> =
                    all.keys().filter_map(|labels| labels.get(label)).collect();
                let is_target = TARGET_LABELS.contains(&label.as_str());
                assert!(
                    is_target || !known.is_empty(),
                    "{place}: {name} has no {label}"
                );
                for value in values.split('|').filter(|_| !is_target) {
                    let exists = known.contains(&value.to_owned()) || words.contains(value);
                    assert!(exists, "{place}: {name} has no {label} of {value}");
                }
            }
            labels.extend(all.keys().flat_map(|labels| labels.keys().cloned()));
            let (family, kind) = scrape.family(name).unwrap();
            let name = if kind == "histogram" { family } else { name };
            asked.insert(name.to_owned());
        }
        for label in promql::grouped_by(&expression) {
            assert!(labels.contains(&label), "{place}: nothing has a {label}");
        }
    }
    let unasked: Vec<_> = names.keys().filter(|name| !asked.contains(*name)).collect();
    assert!(unasked.is_empty(), "nobody looks at {unasked:?}");
}

#[test]
fn the_dashboard_can_be_laid_out() {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../telemetry/grafana.json")).unwrap();
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{title} lies on another panel");
            }
        }
        // What a legend names is what the query groups by.
        for target in panel["targets"].as_array().into_iter().flatten() {
            let legend = target["legendFormat"].as_str().unwrap();
            let grouped = promql::grouped_by(target["expr"].as_str().unwrap());
            for label in legend.split("{{").skip(1) {
                let label = label.split("}}").next().unwrap();
                assert!(grouped.contains(&label.to_owned()), "{title}: {label}");
            }
        }
    }
}

#[test]
fn each_alert_is_explained() {
    let document = include_str!("../../../docs/operating.md");
    let table = document.lines().skip_while(|line| *line != "### Alerts");
    let rows = table.filter_map(|line| line.strip_prefix("| `Clew"));
    let explained: Vec<String> = rows
        .map(|row| format!("Clew{}", row.split('`').next().unwrap()))
        .collect();
    let alerts = of_alerts().into_iter().map(|(name, _)| name);
    assert_eq!(explained, alerts.collect::<Vec<_>>());
}

/// One failed question of a quiet bot is all of its questions.
#[test]
fn a_share_alone_alerts_nobody() {
    let shares = of_alerts()
        .into_iter()
        .filter(|(_, expression)| expression.contains('/') || expression.contains("quantile"));
    let mut found = 0;
    for (alert, expression) in shares {
        let number = expression.split(" and ").nth(1).unwrap_or_default();
        let is_a_number = number.contains("increase(") && !number.contains('/');
        assert!(is_a_number, "{alert}: {expression}");
        let least = number.rsplit_once("> ").unwrap().1.trim();
        assert!(least.parse::<u32>().unwrap() >= 3, "{alert}: {least}");
        found += 1;
    }
    assert_eq!(found, 4);
}
