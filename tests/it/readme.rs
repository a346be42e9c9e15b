//! The tables of settings and of telemetry events agree with the code.

use std::collections::BTreeSet;

use clew::config::VARIABLES;
use clew::telemetry::Event;

#[test]
fn every_setting_is_listed_with_its_default() {
    let document = include_str!("../../docs/settings.md");
    for variable in VARIABLES {
        let row = format!("| `{}` | ", variable.name);
        let line = document.lines().find(|line| line.starts_with(&row));
        let line =
            line.unwrap_or_else(|| panic!("docs/settings.md lacks a row for {}", variable.name));
        let default = match variable.default {
            "" => format!("{row} | "),
            default => format!("{row}`{default}` | "),
        };
        assert!(
            line.starts_with(&default),
            "docs/settings.md has another default: {line}"
        );
    }
}

/// An empty first cell means the subsystem of the row above.
#[test]
fn every_event_is_listed_under_its_subsystem() {
    let document = include_str!("../../telemetry/README.md");
    let table = document.lines();
    let table = table.skip_while(|line| !line.starts_with("| subsys | event |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let mut subsys = "";
    let mut listed = BTreeSet::new();
    for row in rows {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let first = cells.next().unwrap().trim_matches('`');
        subsys = if first.is_empty() { subsys } else { first };
        for event in cells.next().unwrap().split(", ") {
            listed.insert((subsys, event.trim_matches('`')));
        }
    }
    let all = Event::ALL.iter();
    let all: BTreeSet<_> = all.map(|(subsys, name)| (subsys.as_str(), *name)).collect();
    assert_eq!(listed, all);
}
