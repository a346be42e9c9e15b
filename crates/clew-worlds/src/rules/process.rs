//! Processes run until they are ended, end when they are asked to, and recover.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Verdict, verdict};
use crate::evidence::{CUTS, Evidence};
use crate::history::{GAVE_BACK, StoreCall, What};
use crate::plan::LONGEST_CUT;
use clew_context::engine::place::MOST_PINS;

/// Of the error with which a process ends whose store another holds.
const HELD: &str = "is in use by another process";

/// Who is asked to stop does so in time, without an error but that another has the store.
pub(crate) fn stops(evidence: &Evidence) -> Verdict {
    let mut asked = Vec::new();
    let mut found = None;
    for happened in &evidence.history {
        match &happened.what {
            What::AskedToStop { process } => asked.push(*process),
            What::Ended {
                process,
                error: Some(error),
            } if asked.contains(process) && !error.contains(HELD) => {
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
            // Of a cluster, another one goes on.
            What::Ended {
                error: Some(error), ..
            } if error.contains(GAVE_BACK) => {}
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

/// Of several processes, only the one that is the bot sends anything.
pub(crate) fn one_is_the_bot(evidence: &Evidence) -> Verdict {
    let mut late = evidence.history.iter().filter_map(|one| match &one.what {
        What::Late { process, what } => Some(format!(
            "{} ms: {what} of process {process}, which was not the bot",
            one.at
        )),
        _ => None,
    });
    verdict(evidence.tenures.len(), late.next())
}

/// How soon another process is the bot where one lives, in milliseconds: a lease lasts for ten
/// seconds, and is asked for all the time.
const GOES_ON: i64 = 15_000;

/// With so many machines another one goes on: one of two may be cut off, too.
const ENOUGH: usize = 3;

/// Nobody waits long for a process that is the bot, as long as one lives that reaches the database.
pub(crate) fn goes_on_soon(evidence: &Evidence) -> Verdict {
    let (mut is_none, mut machines, mut gone_until) = (true, 0, 0);
    let (mut since, mut judged, mut found) = (None, 0, None);
    for happened in &evidence.history {
        match &happened.what {
            What::Killed { .. } | What::Ended { .. } => is_none = true,
            What::Machines { up } => machines = *up,
            What::Fault {
                name: "database_gone",
            } => gone_until = happened.at + LONGEST_CUT,
            What::Started { process } => {
                is_none = false;
                judged += usize::from(since.is_some() && *process > 1);
            }
            _ => {}
        }
        if let Some(since) = since.filter(|since| happened.at - since > GOES_ON) {
            found.get_or_insert(format!(
                "{} ms: nobody is the bot since {since} ms",
                happened.at
            ));
        }
        let may_begin = is_none && machines >= ENOUGH && happened.at >= gone_until;
        since = may_begin.then(|| since.unwrap_or(happened.at));
    }
    if evidence.tenures.is_empty() {
        return Verdict::Unreached;
    }
    verdict(judged, found)
}

/// For how long a process that does not reach Discord is the bot at most, in milliseconds: a minute, five
/// seconds until it looks, and what it takes to end.
const GIVES_WAY: i64 = 90_000;

/// A process that reached Discord, and does not any more, lets another one be the bot.
pub(crate) fn gives_way(evidence: &Evidence) -> Verdict {
    let (mut is_reached, mut machines) = (false, 0);
    let (mut since, mut judged, mut found) = (None, 0, None);
    for happened in &evidence.history {
        if let Some(since) = since.filter(|since| happened.at - since > GIVES_WAY) {
            found.get_or_insert(format!(
                "{} ms: the bot has not reached Discord since {since} ms",
                happened.at
            ));
        }
        match &happened.what {
            What::Greeted { .. } | What::Resumed { .. } => (is_reached, since) = (true, None),
            What::CutOff { .. } if is_reached && machines >= ENOUGH => {
                since.get_or_insert(happened.at);
            }
            What::Ended { .. } => {
                judged += usize::from(since.is_some());
                (is_reached, since) = (false, None);
            }
            What::Started { .. } | What::Killed { .. } => (is_reached, since) = (false, None),
            What::Machines { up } => {
                machines = *up;
                since = since.filter(|_| machines >= ENOUGH);
            }
            What::Fault { name } if CUTS.contains(name) => since = None,
            _ => {}
        }
    }
    if judged == 0 && found.is_none() {
        return Verdict::Unreached;
    }
    verdict(judged, found)
}

/// How soon a process that is drained lets another be the bot: its turns may run for 20 s, and give back
/// what they posted for some more.
const HANDS_OVER: i64 = 45_000;

/// A process that an operator drains lets another one be the bot.
pub(crate) fn hands_over(evidence: &Evidence) -> Verdict {
    let (mut since, mut machines, mut drained) = (None, 0, 0);
    let mut unable = Vec::new();
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        // Whether another one can be the bot is known if there are more than cannot.
        let cannot = unable.iter().filter(|until| **until >= happened.at).count() + drained;
        since = since.filter(|_| machines > cannot);
        if let Some(since) = since.filter(|since| happened.at - since > HANDS_OVER) {
            found.get_or_insert(format!(
                "{} ms: the process that is drained since {since} ms is still the bot",
                happened.at
            ));
        }
        match &happened.what {
            What::Machines { up } => machines = *up,
            What::Unable { until } => unable.push(*until),
            What::Fault { name: "drained" } => {
                drained += 1;
                since = since.or_else(|| (machines > cannot + 1).then_some(happened.at));
            }
            What::Started { .. } | What::Killed { .. } | What::Ended { .. } => {
                judged += usize::from(since.is_some());
                since = None;
            }
            What::Fault { name } if CUTS.contains(name) => since = None,
            // Its start, or what it stores at its end, waits for the store.
            What::StoreHangs { .. } => since = since.map(|_| happened.at),
            _ => {}
        }
    }
    if judged == 0 && found.is_none() {
        return Verdict::Unreached;
    }
    verdict(judged, found)
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

/// A process holds no more messages than its windows have room for, and no turn twice.
pub(crate) fn memory_is_bounded(evidence: &Evidence) -> Verdict {
    let set = evidence.setting("WINDOW_PER_CHANNEL");
    let room: Option<usize> = set.and_then(|most| most.parse().ok());
    // Pins are held apart, but not where nothing is to be held.
    let pins = match evidence.setting("PLACE_CONTEXT") {
        Some("topic,pins") => MOST_PINS,
        _ => 0,
    };
    let room = room.map(|room| if room > 0 { room + pins } else { 0 });
    let (mut channels, mut questions) = (BTreeSet::new(), BTreeSet::new());
    let (mut judged, mut found) = (0, None);
    for happened in &evidence.history {
        match &happened.what {
            What::Seen { channel, .. } | What::Posted { channel, .. } => {
                channels.insert(*channel);
            }
            What::Said(said) => {
                channels.insert(said.channel);
            }
            What::Prompted(prompted) => questions.extend(prompted.question),
            What::Holds {
                process,
                messages,
                unsaved,
            } => {
                judged += usize::from(room.is_some() || *unsaved > 0);
                let is_full = room.is_some_and(|room| *messages > room * channels.len());
                if is_full || *unsaved > questions.len() {
                    found.get_or_insert(format!(
                        "{} ms: process {process} holds {messages} messages of {} channels, and \
                         {unsaved} turns of {} questions",
                        happened.at,
                        channels.len(),
                        questions.len()
                    ));
                }
            }
            _ => {}
        }
    }
    verdict(judged, found)
}

/// How soon a process says that its store fails, in milliseconds: it is asked each second.
const SAYS_FAILS: i64 = 2_000;
/// How soon it says that its store is back: at its next check, which is to be answered, and
/// after what waited for it was done.
const SAYS_BACK: i64 = 120_000;

/// What a process says of its store is what the store did last, soon after it did.
pub(crate) fn health_follows_store(evidence: &Evidence) -> Verdict {
    let over = evidence.history.last().map_or(0, |last| last.at);
    let (mut judged, mut found) = (0, None);
    for side in [StoreCall::Reads, StoreCall::Writes] {
        // What the store does, what the process says of it once it runs, and since when both
        // are so.
        let (mut is_done, mut is_said, mut since) = (true, None, 0);
        // Whether it is known what the store does.
        let mut is_known = true;
        let end = What::Quiet;
        let history = evidence.history.iter().map(|one| (one.at, &one.what));
        for (at, what) in history.chain([(over, &end)]) {
            if is_known && is_said == Some(!is_done) && found.is_none() {
                let patience = if is_done { SAYS_BACK } else { SAYS_FAILS };
                found = (at - since > patience).then(|| {
                    format!(
                        "{at} ms: since {since} ms the store does what it is asked: {is_done}; the \
                         process says otherwise ({side:?})"
                    )
                });
            }
            let before = (is_done, is_said, is_known);
            match what {
                What::Started { .. } | What::Killed { .. } | What::Ended { .. } => {
                    (is_done, is_said, is_known) = (true, None, true);
                }
                What::StoreDid {
                    call,
                    is_done: does,
                    ..
                } if *call == side => {
                    judged += 1;
                    (is_done, is_known) = (*does, true);
                }
                What::StoreHangs { call, .. } if *call == side => is_known = false,
                What::StoreSeems {
                    is_read,
                    is_written,
                    ..
                } => {
                    // It has opened the store.
                    is_done |= is_said.is_none();
                    is_said = Some(match side {
                        StoreCall::Reads => *is_read,
                        StoreCall::Writes => *is_written,
                    });
                }
                _ => {}
            }
            if before != (is_done, is_said, is_known) {
                since = at;
            }
        }
    }
    verdict(judged, found)
}

/// Once all is quiet, the store is said to do what it is asked, and nothing waits for it.
pub(crate) fn store_is_well(evidence: &Evidence) -> Verdict {
    let mut changes = BTreeMap::new();
    let mut last = 0;
    for (process, line) in evidence.by_process() {
        last = process;
        if line["event"] == "circuit" {
            changes.insert(process, &line["detail"]);
        }
    }
    let last = changes.get(&last);
    let is_well = |detail: &Value| {
        detail["read"] == "closed" && detail["write"] == "closed" && detail["unsaved"] == 0
    };
    let found = last.filter(|detail| !is_well(detail));
    let found = found.map(|detail| format!("the store is not well at the end: {detail}"));
    verdict(changes.len(), found)
}
