//! Telemetry tells of every turn, and of no words.

use std::collections::{BTreeMap, BTreeSet};

use super::{Verdict, verdict};
use crate::evidence::Evidence;
use crate::history::What;

/// `MEM_FETCH_TIMEOUT_S` by default, and what is done after it, in milliseconds.
const COLLECT_MS: f64 = 5_000.0 + 250.0;

/// No word of anybody is in the files of telemetry.
pub(crate) fn no_words(evidence: &Evidence) -> Verdict {
    let found = evidence.in_telemetry.first();
    let found = found.map(|mark| format!("telemetry holds {mark}"));
    verdict(evidence.telemetry.len(), found)
}

/// Each turn that was begun is done, unless its process was killed or gave it up at its end.
pub(crate) fn turns_are_told(evidence: &Evidence) -> Verdict {
    let mut open: BTreeMap<&str, u32> = BTreeMap::new();
    // In a cluster a process goes on after it was the bot, and a turn may end later.
    let mut begun = BTreeSet::new();
    let is_together = !evidence.tenures.is_empty();
    let (mut judged, mut found) = (0, None);
    // How many turns each process gave up at its end, which it tells together.
    let mut given_up: BTreeMap<u32, u64> = BTreeMap::new();
    let killed: Vec<u32> = evidence
        .history
        .iter()
        .filter_map(|happened| match happened.what {
            What::Killed { process, .. }
            | What::Ended {
                process,
                error: Some(_),
            } => Some(process),
            _ => None,
        })
        .collect();
    for (process, line) in evidence.by_process() {
        let turn = line["turn_id"].as_str();
        match (line["event"].as_str().unwrap_or_default(), turn) {
            ("stopping", _) => {
                let abandoned = line["detail"]["abandoned"].as_u64();
                given_up.insert(process, abandoned.unwrap_or_default());
            }
            ("trigger", Some(turn)) => {
                judged += 1;
                begun.insert(turn);
                open.insert(turn, process);
            }
            // A turn that ended while it collected has no scene, and told of no trigger.
            ("turn_done", Some(turn))
                if open.remove(turn).is_none()
                    && !line["detail"]["case"].is_null()
                    && !(is_together && begun.contains(turn)) =>
            {
                found.get_or_insert(format!(
                    "the turn {turn} is done and was not begun: {}",
                    of_turn(evidence, turn)
                ));
            }
            _ => {}
        }
    }
    open.retain(|_, process| !killed.contains(process));
    open.retain(|_, process| match given_up.get_mut(process) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    });
    let left = open.keys().next();
    let left = left.map(|turn| {
        let told = of_turn(evidence, turn);
        format!("the turn {turn} was begun and is not done: {told}")
    });
    verdict(judged, found.or(left))
}

/// How much of a time is its day.
const DAY: usize = "2026-09-21".len();
/// How many requests may be under way when a limit is reached.
const UNDER_WAY: u64 = 8;

/// No server uses more tokens than its limit of a day, but for what is under way when it is
/// reached, and what a killed process had not noted.
pub(crate) fn servers_have_limits(evidence: &Evidence) -> Verdict {
    tokens_have_limit(evidence, "guild_id", |(_, of_guild)| of_guild)
}

/// Nor does a person.
pub(crate) fn people_have_tokens(evidence: &Evidence) -> Verdict {
    tokens_have_limit(evidence, "user_id", |(of_person, _)| of_person)
}

fn tokens_have_limit(evidence: &Evidence, of: &str, limit: impl Fn((u64, u64)) -> u64) -> Verdict {
    let limits = evidence.setting("TOKENS_PER_DAY");
    let limits = limits.and_then(|limits| {
        let (of_person, of_guild) = limits.split_once(',')?;
        Some((of_person.parse().ok()?, of_guild.parse().ok()?))
    });
    let limit = limits.map_or(0, limit);
    if limit == 0 {
        return Verdict::Unreached;
    }
    let times = 1 + u64::try_from(evidence.ended_early().len()).unwrap_or_default();
    let mut used: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for line in evidence.told("request_ok") {
        let chars = line["detail"]["prompt_chars"].as_u64().unwrap_or_default();
        let day = line["ts"].as_str().and_then(|time| time.get(..DAY));
        if let Some(key) = line[of].as_str().zip(day) {
            // As the bot estimates it; the texts of worlds are ASCII.
            let tokens = chars / 3;
            let (sum, largest) = used.entry(key).or_default();
            (*sum, *largest) = (*sum + tokens, tokens.max(*largest));
        }
    }
    let is_over = |(sum, largest): &(u64, u64)| *sum > limit * times + UNDER_WAY * largest;
    let found = used.iter().find(|(_, used)| is_over(used));
    let found = found.map(|((one, day), (sum, _))| format!("{one} used {sum} tokens on {day}"));
    verdict(used.len(), found)
}

/// Collecting keeps to its deadline.
pub(crate) fn collects_in_time(evidence: &Evidence) -> Verdict {
    let (mut judged, mut found) = (0, None);
    for line in evidence.told("collect_ok") {
        let Some(ms) = line["detail"]["ms"].as_f64() else {
            continue;
        };
        judged += 1;
        if ms > COLLECT_MS {
            found.get_or_insert(format!("collecting took {ms} ms: {line}"));
        }
    }
    verdict(judged, found)
}

/// No block has more messages or characters, and no collecting more requests, than the caps in
/// effect.
pub(crate) fn caps_hold(evidence: &Evidence) -> Verdict {
    let (mut judged, mut found) = (0, None);
    for line in evidence.told("collect_ok") {
        let detail = &line["detail"];
        for (what, cap) in [
            ("msgs", "mem_max_msgs"),
            ("chars", "mem_max_chars"),
            ("fetches", "mem_max_fetches"),
        ] {
            let Some(count) = detail[what].as_u64() else {
                continue;
            };
            let Some(most) = detail["caps"][cap].as_u64() else {
                continue;
            };
            judged += 1;
            if count > most {
                found.get_or_insert(format!("{count} {what}, and at most {most}: {line}"));
            }
        }
    }
    verdict(judged, found)
}

/// What is told of a turn.
fn of_turn(evidence: &Evidence, turn: &str) -> String {
    let lines = evidence.telemetry.iter();
    let lines = lines.filter(|line| line["turn_id"] == turn);
    let events = lines.map(|line| format!("{} {}", line["ts"], line["event"]));
    events.collect::<Vec<_>>().join(", ")
}
