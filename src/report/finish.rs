//! What was counted becomes the report.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::Hash;

use super::summary::{
    Cap, Capped, CappedChannel, CountRow, DayRow, Fallback, Filter, LimitedPerson, Limits,
    MsgsFirst, Report, Stage, TimedRow, Truncation, Turns, UsageList, UsageLists, UsageRow,
    VERSION, id,
};
use super::tally::{self, FALLBACKS, Tally, Timed, Truncated, Words};
use super::times::Times;
use super::top::{Count, Row, Top};
use super::usage::Usage;
use super::{Guild, Options};
use crate::telemetry::TurnStage;
use clew_context::model::{OmitReason, UnixMillis};

/// The name of what the names that are not listed have together.
const OTHERS: &str = "others";
/// More than there are words of one kind.
const ALL: usize = usize::MAX;

/// The stages that events tell.
const STAGES: [TurnStage; 8] = [
    TurnStage::Queue,
    TurnStage::Collect,
    TurnStage::ToModel,
    TurnStage::FirstWords,
    TurnStage::Request,
    TurnStage::Tool,
    TurnStage::Record,
    TurnStage::Turn,
];

/// Makes the report of what was counted.
pub(super) fn report(mut tally: Tally, options: &Options) -> Report {
    let top = options.rows;
    let (began, ended) = (tally.began, tally.all.turns);
    tally.all.add(&Usage::none(&options.prices));
    let (people, other_people) = tally.people.first(top);
    let person = |(user, counts)| LimitedPerson {
        user: id(user),
        counts,
    };
    Report {
        version: VERSION,
        input: tally.input,
        filter: filter(options),
        turns: Turns {
            began,
            ended,
            restarted: tally.restarted,
            outcomes: timed(tally.outcomes, ended),
            scenes: timed(tally.scenes, ended),
            causes: counts(tally.causes),
            refused: counts(tally.refusals),
            runs: counts(tally.runs),
        },
        fallbacks: fallbacks(tally.fallbacks, began),
        truncation: truncation(
            (tally.blocks, tally.msgs_first),
            tally.caps,
            tally.channels,
            top,
        ),
        stages: stages(tally.stages),
        usage: UsageLists {
            priced: options.prices.is_known(),
            total: tally.all,
            days: tally.days.into_iter().map(day_row).collect(),
            earlier: Some(tally.earlier).filter(|days| days.turns + days.requests > 0),
            guilds: list(tally.guilds, top, id),
            models: list(tally.models, top, Some),
            agents: list(tally.agents, top, Some),
            llm_servers: list(tally.servers, top, |server| id(Some(server))),
            failures: counts(tally.failures),
        },
        limits: Limits {
            people: people.into_iter().map(person).collect(),
            others: other_people,
        },
        slowest: tally.slowest,
    }
}

fn filter(options: &Options) -> Filter {
    Filter {
        since: options.since,
        until: options.until,
        guild: options.guild.map(|guild| match guild {
            Guild::Server(id) => id.to_string(),
            Guild::DirectMessages => "direct".to_owned(),
        }),
        top: options.rows,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share has a few digits")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 1e6).round() / 1e6)
}

fn timed(list: Words<Timed>, ended: u64) -> Vec<TimedRow> {
    let row = |(name, timed): (String, Timed)| TimedRow {
        name,
        turns: timed.count,
        share: share(timed.count, ended),
        ms: timed.times.percentiles(),
    };
    rows(list).map(row).collect()
}

fn counts(list: Words<Count>) -> Vec<CountRow> {
    let row = |(name, Count(count))| CountRow { name, count };
    rows(list).map(row).collect()
}

/// All rows of a list of words; if there were too many, the rest as `others`.
fn rows<R: Row>(list: Words<R>) -> impl Iterator<Item = (String, R)> {
    let (first, others) = list.first(ALL);
    let others = others.map(|others| (OTHERS.to_owned(), others.row));
    first.into_iter().chain(others)
}

fn fallbacks(lists: [Words<tally::Fallbacks>; FALLBACKS.len()], began: u64) -> Vec<Fallback> {
    let mut all: Vec<Fallback> = Vec::new();
    for (event, list) in FALLBACKS.into_iter().zip(lists) {
        all.extend(rows(list).map(|(reason, counted)| Fallback {
            event,
            reason,
            events: counted.events,
            turns: counted.turns,
            rate: share(counted.turns, began),
        }));
    }
    all.sort_by_key(|row| Reverse(row.events));
    all
}

fn truncation<const CHANNELS: usize>(
    (blocks, msgs_first): (u64, MsgsFirst),
    caps: Words<Truncated>,
    channels: Top<(Option<u64>, Option<u64>), Capped, CHANNELS>,
    top: usize,
) -> Truncation {
    let mean = |count, counted: &Truncated| share(count, counted.blocks).unwrap_or(0.0);
    let cap = |(name, counted): (String, Truncated)| Cap {
        setting: OmitReason::from_word(&name).and_then(OmitReason::setting),
        name,
        blocks: counted.blocks,
        rate: share(counted.blocks, blocks),
        kept: mean(counted.kept, &counted),
        dropped: mean(counted.dropped, &counted),
        shortened: mean(counted.shortened, &counted),
    };
    let (channels, other_channels) = channels.first(top);
    let channel = |((guild, channel), caps)| CappedChannel {
        guild: id(guild),
        channel: id(channel),
        caps,
    };
    Truncation {
        blocks,
        msgs_first,
        caps: rows(caps).map(cap).collect(),
        channels: channels.into_iter().map(channel).collect(),
        other_channels,
    }
}

fn stages(mut stages: BTreeMap<TurnStage, Times<3>>) -> Vec<Stage> {
    let stage = |name: TurnStage| {
        let times = stages.remove(&name).unwrap_or_default();
        Stage {
            name,
            count: times.count(),
            ms: times.percentiles(),
        }
    };
    STAGES.map(stage).into()
}

fn day_row((number, day): (i64, tally::Day)) -> DayRow {
    DayRow {
        day: UnixMillis::of_day(number).date(),
        number,
        usage: day.usage,
        p50: day.turns.quantile(0.50),
        p95: day.turns.quantile(0.95),
    }
}

fn list<K: Hash + Ord, const KEPT: usize>(
    list: Top<K, Usage, KEPT>,
    top: usize,
    name: impl Fn(K) -> Option<String>,
) -> UsageList {
    let (rows, others) = list.first(top);
    let row = |(key, usage)| UsageRow {
        name: name(key),
        usage,
    };
    UsageList {
        rows: rows.into_iter().map(row).collect(),
        others,
    }
}
