//! Processes run until they are ended, end when they are asked to, and recover.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Verdict, verdict};
use crate::evidence::Evidence;
use crate::history::What;

/// Of the error with which a process ends whose store another holds.
const HELD: &str = "is in use by another process";

/// Who is asked to stop does so in time, without an error.
pub(crate) fn stops(evidence: &Evidence) -> Verdict {
    let mut asked = Vec::new();
    let mut found = None;
    for happened in &evidence.history {
        match &happened.what {
            What::AskedToStop { process } => asked.push(*process),
            What::Ended {
                process,
                error: Some(error),
            } if asked.contains(process) => {
                found.get_or_insert(format!(
                    "{} ms: process {process} was asked to stop: {error}",
                    happened.at
                ));
            }
            _ => {}
        }
    }
    verdict(asked.len(), found)
}

/// No process ends by itself, but where another holds its store.
pub(crate) fn runs(evidence: &Evidence) -> Verdict {
    let (mut asked, mut started, mut found) = (Vec::new(), 0, None);
    let mut is_held = false;
    for happened in &evidence.history {
        match &happened.what {
            What::Started { .. } => started += 1,
            What::AskedToStop { process } => asked.push(*process),
            What::Fault { name: "store_held" } => is_held = true,
            What::Ended {
                error: Some(error), ..
            } if is_held && error.contains(HELD) => {}
            What::Ended { process, error } if !asked.contains(process) => {
                found.get_or_insert(format!(
                    "{} ms: process {process} ended by itself: {error:?}",
                    happened.at
                ));
            }
            _ => {}
        }
    }
    verdict(started, found)
}

/// Nothing is left to be done once all was quiet for long: no turn, and no row.
pub(crate) fn quiet_drains(evidence: &Evidence) -> Verdict {
    let is = |line: &Value, event: &str| line["event"] == event;
    let lines = &evidence.telemetry;
    let Some(end) = lines.iter().rposition(|line| is(line, "stopping")) else {
        return Verdict::Unreached;
    };
    let is_late = |line: &&Value| {
        let left = ["recorded", "turns_dropped", "purged"];
        let ran = ["drained", "abandoned"];
        left.iter().any(|event| is(line, event))
            || is(line, "stopping") && ran.iter().any(|turns| line["detail"][turns] != 0)
    };
    let late = lines[end..].iter().find(is_late);
    let found = late.map(|line| format!("this was left to the end: {line}"));
    verdict(1, found)
}

/// Once all is quiet, the store is said to do what it is asked, and nothing waits for it.
pub(crate) fn store_is_well(evidence: &Evidence) -> Verdict {
    let mut changes = BTreeMap::new();
    let mut process = 0;
    for line in &evidence.telemetry {
        match line["event"].as_str().unwrap_or_default() {
            "started" => process += 1,
            "circuit" => drop(changes.insert(process, &line["detail"])),
            _ => {}
        }
    }
    let last = changes.get(&process);
    let is_well = |detail: &Value| {
        detail["read"] == "closed" && detail["write"] == "closed" && detail["unsaved"] == 0
    };
    let found = last.filter(|detail| !is_well(detail));
    let found = found.map(|detail| format!("the store is not well at the end: {detail}"));
    verdict(changes.len(), found)
}
