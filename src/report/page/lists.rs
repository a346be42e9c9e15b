//! The sections and their tables; `plots` makes their figures.

use std::collections::BTreeSet;

use super::super::summary::{Capped, LimitCounts, Report, SlowTurn, Stage, UsageList};
use super::super::usage::Usage;
use super::super::words::{cost, grouped, many, percent, time};
use super::{Medium, counts, filled, plots, section};
use crate::plot::{Part, Section, Table};

/// The most days that a terminal gets.
const DAYS: usize = 14;

pub(super) fn stages(report: &Report) -> Option<Section> {
    let row = |one: &Stage| {
        [
            one.name.text().to_owned(),
            grouped(one.count),
            time(one.ms.p50),
            time(one.ms.p95),
            time(one.ms.p99),
            time(one.ms.max),
        ]
    };
    let timed = report.stages.iter().filter(|stage| stage.count > 0);
    let head = ["stage", "times", "p50", "p95", "p99", "most"];
    let table = Table::new("How long each stage took", 1, &head, timed.map(row));
    let parts = [
        Part::Chart(plots::times(report)),
        Part::Bars(plots::stages(report)),
        filled(table)?,
    ];
    section("Time", parts.into())
}

pub(super) fn slowest(report: &Report, medium: Medium) -> Option<Section> {
    let turns = report.slowest.iter();
    let table = match medium {
        Medium::Terminal => {
            let head = ["turn", "ended", "scene", "mostly", "took"];
            Table::new("", 4, &head, turns.map(short_turn))
        }
        Medium::Html => Table::new(
            "The slowest turns, and where their time went",
            10,
            &[
                "turn", "ended", "scene", "mostly", "outcome", "cause", "guild", "channel",
                "agent", "model", "took", "queue", "collect", "request", "tool", "other",
                "fetches", "requests", "failed",
            ],
            turns.map(whole_turn),
        ),
    };
    section("Slowest turns", vec![filled(table)?])
}

fn short_turn(turn: &SlowTurn) -> [String; 5] {
    let parts = turn.parts();
    let first = parts.first().filter(|(_, took)| *took > 0.0);
    let mostly = first.map(|(part, took)| format!("{part} {}", time(Some(*took))));
    [
        turn.turn.clone(),
        turn.ended.get(..19).unwrap_or_default().replace('T', " "),
        or_dash(turn.scene.as_ref()),
        or_dash(mostly.as_ref()),
        time(Some(turn.ms)),
    ]
}

fn whole_turn(turn: &SlowTurn) -> [String; 19] {
    let [id, ended, scene, mostly, took] = short_turn(turn);
    [
        id,
        ended,
        scene,
        mostly,
        turn.outcome.clone(),
        or_dash(turn.cause.as_ref()),
        or_dash(turn.guild.as_ref()),
        or_dash(turn.channel.as_ref()),
        or_dash(turn.agent.as_ref()),
        or_dash(turn.model.as_ref()),
        took,
        time(turn.queued_ms),
        time(turn.collect_ms),
        time(Some(turn.model_ms)),
        time(Some(turn.tools_ms)),
        time(Some(turn.other_ms)),
        grouped(turn.fetches),
        grouped(turn.requests),
        grouped(turn.failed_requests),
    ]
}

fn or_dash(name: Option<&String>) -> String {
    name.cloned().unwrap_or_else(|| "-".to_owned())
}

pub(super) fn fallbacks(report: &Report) -> Option<Section> {
    let rows = report.fallbacks.iter().map(|row| {
        [
            row.event.to_owned(),
            row.reason.clone(),
            grouped(row.events),
            grouped(row.turns),
            percent(row.rate),
        ]
    });
    let caption = "What turns had to do without, of all that began";
    let head = ["event", "reason", "events", "turns", "rate"];
    let table = filled(Table::new(caption, 2, &head, rows))?;
    let figure = Part::Bars(plots::fallbacks(report));
    section("Fallbacks", vec![figure, table])
}

pub(super) fn truncation(report: &Report) -> Option<Section> {
    let truncation = &report.truncation;
    let caps = truncation.caps.iter().map(|cap| {
        [
            cap.setting.map_or_else(|| cap.name.clone(), str::to_owned),
            grouped(cap.blocks),
            percent(cap.rate),
            format!("{:.1}", cap.kept),
            format!("{:.1}", cap.dropped),
            format!("{:.1}", cap.shortened),
        ]
    });
    let blocks = many(truncation.blocks, "block");
    let caption = format!("Caps that made {blocks} smaller, and messages a block");
    let head = ["cap", "blocks", "rate", "kept", "dropped", "shortened"];
    let by_cap = filled(Table::new(caption, 1, &head, caps))?;
    let channels = truncation.channels.iter().map(|one| {
        let guild = one.guild.clone().unwrap_or_else(|| "direct".to_owned());
        (guild, or_dash(one.channel.as_ref()), &one.caps)
    });
    let others = truncation.other_channels.iter();
    let others = others.map(|one| (many(one.names, "other"), String::new(), &one.row));
    let rows: Vec<(String, String, &Capped)> = channels.chain(others).collect();
    let counts = rows.iter().map(|(.., caps)| caps.columns());
    let counted = counts.flatten().filter(|(_, count)| *count > 0);
    let used: BTreeSet<&str> = counted.map(|(name, _)| name).collect();
    let of = |caps: &Capped| {
        caps.columns()
            .into_iter()
            .filter(|one| used.contains(one.0))
    };
    let mut head = vec!["server", "channel"];
    head.extend(of(&Capped::default()).map(|(name, _)| name));
    let by_channel = Table::new(
        "Channels where caps made blocks smaller: blocks by cap, messages left out",
        2,
        &head,
        rows.iter().map(|(guild, channel, caps)| {
            let counts = of(caps).map(|(_, count)| grouped(count));
            let names = [guild.clone(), channel.clone()].into_iter();
            names.chain(counts).collect::<Vec<_>>()
        }),
    );
    let figure = Part::Bars(plots::caps(report));
    let mut parts = vec![figure, by_cap];
    parts.extend(msgs_first(report).map(Part::Text));
    parts.push(Part::Table(by_channel));
    section("Truncation", parts)
}

/// What a higher count would show and cost.
#[expect(clippy::cast_precision_loss, reason = "means are rounded")]
fn msgs_first(report: &Report) -> Option<String> {
    let first = &report.truncation.msgs_first;
    let of_each = |count: u64| count as f64 / first.blocks as f64;
    (first.blocks > 0).then(|| {
        format!(
            "In {} of {} MEM_MAX_MSGS left out messages for which the characters had room: a higher count would show about \
             {:.1} more in each, for about {:.0} tokens more.",
            grouped(first.blocks),
            many(report.truncation.blocks, "block"),
            of_each(first.messages),
            of_each(first.tokens),
        )
    })
}

pub(super) fn usage(report: &Report, medium: Medium) -> Option<Section> {
    let usage = &report.usage;
    if usage.total.requests + usage.total.failed_requests + usage.total.turns == 0 {
        return None;
    }
    let figure = Part::Chart(plots::tokens(report));
    let mut parts = vec![figure, Part::Text(in_all(&usage.total))];
    if !usage.priced {
        let how = "Costs: set LLM_PRICES to the prices of a million tokens.";
        parts.push(Part::Text(how.to_owned()));
    }
    let passed_over = match medium {
        Medium::Terminal => usage.days.len().saturating_sub(DAYS),
        Medium::Html => 0,
    };
    let earlier = usage.earlier.iter();
    let earlier = earlier.map(|earlier| row("earlier".to_owned(), earlier));
    let days = usage.days.iter().skip(passed_over);
    let days = days.map(|day| row(day.day.clone(), &day.usage));
    parts.push(Part::Table(table("By day", "day", earlier.chain(days))));
    if passed_over > 0 {
        let more = many(passed_over as u64, "earlier day");
        let text = format!("{more} with --format json and --html.");
        parts.push(Part::Text(text));
    }
    for (caption, head, list) in [
        ("By server", "server", &usage.guilds),
        ("By model", "model", &usage.models),
        ("By agent", "agent", &usage.agents),
    ] {
        parts.extend(listed(caption, head, list));
    }
    if usage.llm_servers.rows.len() > 1 {
        let list = &usage.llm_servers;
        parts.extend(listed("By model server", "model server", list));
    }
    let (caption, head) = (
        "Requests without an answer, by reason",
        ["reason", "requests"],
    );
    parts.extend(filled(counts(caption, &head, &usage.failures)));
    section("Tokens and cost", parts)
}

fn in_all(total: &Usage) -> String {
    let mut text = format!(
        "{} to models, {} tokens in, {} out",
        many(total.requests, "request"),
        grouped(total.prompt_tokens),
        grouped(total.completion_tokens)
    );
    if total.cost.is_some() {
        text += &format!(", cost {}", cost(total.amount()));
    }
    text.push('.');
    if total.uncounted_requests > 0 {
        let requests = many(total.uncounted_requests, "request");
        text += &format!(" Of {requests} the server did not count the tokens.");
    }
    if total.cost.is_some() && total.unpriced_tokens > 0 {
        let tokens = many(total.unpriced_tokens, "token");
        text += &format!(" {tokens} of models without a price are not in the cost.");
    }
    text
}

fn listed(caption: &str, head: &str, list: &UsageList) -> Option<Part> {
    let rows = list.rows.iter().map(|one| {
        let name = one.name.as_deref().unwrap_or("direct messages");
        row(name.to_owned(), &one.usage)
    });
    let others = list.others.iter();
    let others = others.map(|others| row(many(others.names, "other"), &others.row));
    filled(table(caption, head, rows.chain(others)))
}

fn table(caption: &str, head: &str, rows: impl Iterator<Item = [String; 6]>) -> Table {
    let head = [head, "turns", "requests", "tokens in", "tokens out", "cost"];
    Table::new(caption, 1, &head, rows)
}

fn row(name: String, usage: &Usage) -> [String; 6] {
    [
        name,
        grouped(usage.turns),
        grouped(usage.requests),
        grouped(usage.prompt_tokens),
        grouped(usage.completion_tokens),
        cost(usage.amount()),
    ]
}

pub(super) fn limits(report: &Report) -> Option<Section> {
    let row = |name, counts: &LimitCounts| {
        [
            name,
            grouped(counts.refused),
            grouped(counts.user_rate),
            grouped(counts.user_tokens),
            grouped(counts.guild_tokens),
            grouped(counts.total_tokens),
            grouped(counts.queue_full),
            grouped(counts.busy),
            grouped(counts.blocked),
        ]
    };
    let limits = &report.limits;
    let people = limits.people.iter();
    let people = people.map(|person| row(or_dash(person.user.as_ref()), &person.counts));
    let others = limits.others.iter();
    let others = others.map(|others| row(many(others.names, "other"), &others.row));
    let caption = "How often people got no turn, by limit";
    let head = [
        "user", "in all", "rate", "tokens", "server's", "all's", "queue", "busy", "blocked",
    ];
    let table = Table::new(caption, 1, &head, people.chain(others));
    section("Who hits limits", vec![filled(table)?])
}
