//! The README keeps up with the settings and with the telemetry.

use std::collections::BTreeSet;

use clew::config::VARIABLES;
use clew::telemetry::Event;

#[test]
fn the_readme_lists_every_setting_with_its_default() {
    let readme = include_str!("../../README.md");
    for variable in VARIABLES {
        let row = format!("| `{}` | ", variable.name);
        let line = readme.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("README.md lacks a row for {}", variable.name));
        let default = match variable.default {
            "" => format!("{row} | "),
            default => format!("{row}`{default}` | "),
        };
        assert!(
            line.starts_with(&default),
            "README.md has another default: {line}"
        );
    }
}

/// An empty first cell repeats the one above.
#[test]
fn the_readme_lists_every_event_under_its_subsystem() {
    let readme = include_str!("../../README.md");
    let table = readme.lines();
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
