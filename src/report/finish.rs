//! What was counted becomes the report.

use std::path::PathBuf;

use super::summary::{
    BrokenFile, Cap, Capped, CappedChannel, CountRow, DayRow, Fallback, Filter, Input, LimitCounts,
    LimitedPerson, Limits, OtherChannels, OtherLimited, OtherUsage, Percentiles, Report, SlowTurn,
    Stage, TimedRow, Truncation, Turns, UnreadableLine, Usage, UsageList, UsageLists, UsageRow,
};
use super::tally::{self, Tally, Timed};
use super::times::{Times, millis};
use super::top::{Count, Top};
use super::turns::EndedTurn;
use super::usage;
use super::{Guild, Options};
use clew_context::model::UnixMillis;

/// The name of what the names that are not listed have together.
const OTHERS: &str = "others";
/// More than there are words of one kind.
const ALL: usize = usize::MAX;

/// Makes the report of what was counted in these files.
pub(super) fn report(tally: Tally<'_>, files: &[PathBuf], broken_files: Vec<BrokenFile>) -> Report {
    let options = tally.options;
    let top = options.rows;
    let priced = options.prices.is_known();
    let ended = tally.all.turns;
    let [collect, tail, send] = tally.fallbacks;
    let mut fallbacks = Vec::new();
    for (event, list) in [
        ("collect_fallback", collect),
        ("tail_fallback", tail),
        ("send_fallback", send),
    ] {
        fallbacks.extend(of_event(event, list, tally.began));
    }
    fallbacks.sort_by_key(|row: &Fallback| std::cmp::Reverse(row.events));
    Report {
        version: Report::version(),
        input: Input {
            files: files.len(),
            bytes: tally.bytes,
            lines: tally.lines,
            first: tally.times.map(|(first, _)| first.rfc3339()),
            last: tally.times.map(|(_, last)| last.rfc3339()),
            cut_off: tally.cut_off,
            unreadable: tally.unreadable,
            unreadable_at: named(tally.named, files),
            broken_files,
            starts: tally.starts,
            lost_lines: tally.lost,
        },
        filter: filter(options),
        turns: Turns {
            began: tally.began,
            ended,
            restarted: tally.restarted,
            outcomes: timed(tally.outcomes, ended),
            scenes: timed(tally.scenes, ended),
            causes: counts(tally.causes),
            refused: counts(tally.refusals),
            runs: counts(tally.runs),
        },
        fallbacks,
        truncation: truncation(tally.blocks, tally.caps, tally.channels, top),
        stages: stages(&tally.stages),
        usage: UsageLists {
            priced,
            total: usage(&tally.all, priced),
            days: tally
                .days
                .iter()
                .map(|(day, counted)| day_row(*day, counted, priced))
                .collect(),
            earlier: (tally.earlier.turns + tally.earlier.requests > 0)
                .then(|| usage(&tally.earlier, priced)),
            guilds: list(tally.guilds, top, priced, id),
            models: list(tally.models, top, priced, Some),
            agents: list(tally.agents, top, priced, Some),
            llm_servers: list(tally.servers, top, priced, |server| id(Some(server))),
            failures: counts(tally.failures),
        },
        limits: limits(tally.people, top),
        slowest: tally.slowest.into_turns().into_iter().map(slow).collect(),
    }
}

fn named(places: Vec<(usize, u64, String)>, files: &[PathBuf]) -> Vec<UnreadableLine> {
    let line = |(file, line, why): (usize, u64, String)| UnreadableLine {
        file: files
            .get(file)
            .map_or_else(String::new, |path| path.display().to_string()),
        line,
        why,
    };
    places.into_iter().map(line).collect()
}

fn filter(options: &Options) -> Filter {
    Filter {
        since: options.since.map(UnixMillis::rfc3339),
        until: options.until.map(UnixMillis::rfc3339),
        guild: options.guild.map(|guild| match guild {
            Guild::Server(id) => id.to_string(),
            Guild::DirectMessages => "direct".to_owned(),
        }),
        top: options.rows,
    }
}

fn id(id: Option<u64>) -> Option<String> {
    id.map(|id| id.to_string())
}

#[expect(clippy::cast_precision_loss, reason = "a share has a few digits")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 1e6).round() / 1e6)
}

fn timed(list: Top<String, Timed>, ended: u64) -> Vec<TimedRow> {
    rows(list, |name, timed: Timed| TimedRow {
        name,
        turns: timed.count,
        share: share(timed.count, ended),
        ms: percentiles(&timed.times),
    })
}

fn counts(list: Top<String, Count>) -> Vec<CountRow> {
    rows(list, |name, count: Count| CountRow {
        name,
        count: count.0,
    })
}

/// All rows of a list of words; if there were too many, the rest as `others`.
fn rows<R: super::top::Row, T>(list: Top<String, R>, row: impl Fn(String, R) -> T) -> Vec<T> {
    let (first, others) = list.first(ALL);
    let others = others.map(|others| (OTHERS.to_owned(), others.row));
    let all = first.into_iter().chain(others);
    all.map(|(name, counted)| row(name, counted)).collect()
}

fn percentiles<const DIGITS: u8>(times: &Times<DIGITS>) -> Percentiles {
    Percentiles {
        p50: times.quantile(0.50),
        p95: times.quantile(0.95),
        p99: times.quantile(0.99),
        max: times.longest(),
    }
}

fn of_event(event: &'static str, list: Top<String, tally::Fallbacks>, began: u64) -> Vec<Fallback> {
    rows(list, |reason, counted: tally::Fallbacks| Fallback {
        event,
        reason,
        events: counted.events,
        turns: counted.turns,
        rate: share(counted.turns, began),
    })
}

fn truncation(
    blocks: u64,
    caps: Top<tally::CapName, tally::Truncated>,
    channels: Top<(Option<u64>, Option<u64>), tally::CappedChannel>,
    top: usize,
) -> Truncation {
    let (channels, others) = channels.first(top);
    let (caps, other_caps) = caps.first(ALL);
    let cap = |name: String, setting, counted: &tally::Truncated| Cap {
        name,
        setting,
        blocks: counted.blocks,
        rate: share(counted.blocks, blocks),
        kept: share(counted.kept, counted.blocks).unwrap_or(0.0),
        dropped: share(counted.dropped, counted.blocks).unwrap_or(0.0),
        shortened: share(counted.shortened, counted.blocks).unwrap_or(0.0),
    };
    let mut all: Vec<Cap> = caps
        .into_iter()
        .map(|(name, counted)| cap(name.cap, name.setting, &counted))
        .collect();
    all.extend(other_caps.map(|others| cap(OTHERS.to_owned(), None, &others.row)));
    Truncation {
        blocks,
        caps: all,
        channels: channels
            .into_iter()
            .map(|((guild, channel), counted)| CappedChannel {
                guild: id(guild),
                channel: id(channel),
                caps: capped(&counted),
            })
            .collect(),
        other_channels: others.map(|others| OtherChannels {
            names: others.names,
            caps: capped(&others.row),
        }),
    }
}

fn capped(counted: &tally::CappedChannel) -> Capped {
    Capped {
        msgs: counted.msgs,
        chars: counted.chars,
        msg_chars: counted.msg_chars,
        age: counted.age,
        dropped: counted.dropped,
    }
}

fn stages(stages: &tally::Stages) -> Vec<Stage> {
    [
        ("queued", &stages.queued),
        ("collect", &stages.collect),
        ("to_model", &stages.to_model),
        ("first_words", &stages.first_words),
        ("request", &stages.request),
        ("tool", &stages.tool),
        ("store", &stages.store),
        ("turn", &stages.turn),
    ]
    .into_iter()
    .map(|(name, times)| Stage {
        name,
        count: times.count(),
        ms: percentiles(times),
    })
    .collect()
}

fn usage(counted: &usage::Usage, priced: bool) -> Usage {
    Usage {
        turns: counted.turns,
        answered: counted.answered,
        requests: counted.requests,
        failed_requests: counted.failed,
        uncounted_requests: counted.uncounted,
        prompt_tokens: counted.prompt_tokens,
        completion_tokens: counted.completion_tokens,
        unpriced_tokens: counted.unpriced,
        cost: priced.then(|| (counted.cost.amount() * 1e6).round() / 1e6),
    }
}

fn day_row(number: i64, day: &tally::Day, priced: bool) -> DayRow {
    DayRow {
        day: UnixMillis::of_day(number).date(),
        number,
        usage: usage(&day.usage, priced),
        p50: day.turns.quantile(0.50),
        p95: day.turns.quantile(0.95),
    }
}

fn list<K: std::hash::Hash + Ord>(
    list: Top<K, usage::Usage>,
    top: usize,
    priced: bool,
    name: impl Fn(K) -> Option<String>,
) -> UsageList {
    let (rows, others) = list.first(top);
    let row = |(key, counted): (K, usage::Usage)| UsageRow {
        name: name(key),
        usage: usage(&counted, priced),
    };
    UsageList {
        rows: rows.into_iter().map(row).collect(),
        others: others.map(|others| OtherUsage {
            names: others.names,
            usage: usage(&others.row, priced),
        }),
    }
}

fn limits(people: Top<Option<u64>, tally::Limited>, top: usize) -> Limits {
    let (people, others) = people.first(top);
    let person = |(user, limited): (Option<u64>, tally::Limited)| LimitedPerson {
        user: id(user),
        counts: limit_counts(&limited),
    };
    Limits {
        people: people.into_iter().map(person).collect(),
        others: others.map(|others| OtherLimited {
            names: others.names,
            counts: limit_counts(&others.row),
        }),
    }
}

fn limit_counts(limited: &tally::Limited) -> LimitCounts {
    let [user_rate, user_tokens, guild_tokens, queue_full, busy] = limited.0;
    LimitCounts {
        refused: limited.0.iter().sum(),
        user_rate,
        user_tokens,
        guild_tokens,
        queue_full,
        busy,
    }
}

fn slow(ended: EndedTurn) -> SlowTurn {
    let turn = ended.turn;
    let waited = turn.queued.unwrap_or(0);
    let collected = turn.collect.unwrap_or(0);
    let known = [waited, collected, turn.model, turn.tools];
    let known = known.into_iter().fold(0, u64::saturating_add);
    SlowTurn {
        turn: format!("t{:x}", ended.id),
        ended: ended.time.rfc3339(),
        guild: id(ended.guild),
        channel: id(ended.channel),
        scene: turn.scene,
        cause: turn.cause,
        outcome: ended.outcome,
        agent: ended.agent,
        model: ended.model,
        ms: millis(ended.took),
        queued_ms: turn.queued.map(millis),
        collect_ms: turn.collect.map(millis),
        model_ms: millis(turn.model),
        tools_ms: millis(turn.tools),
        other_ms: millis(ended.took.saturating_sub(known)),
        fetches: turn.fetches,
        requests: turn.requests,
        failed_requests: turn.failed_requests,
    }
}
