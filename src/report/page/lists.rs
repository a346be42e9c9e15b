//! The sections and their tables; `plots` makes their figures.

use super::super::summary::{
    Capped, LimitCounts, OtherUsage, Report, SlowTurn, Stage, Usage, UsageList,
};
use super::super::words::{cost, grouped, many, percent, stage, time};
use super::{Medium, heads, plots, section};
use crate::plot::{Part, Section, Table};

/// The most days that a terminal gets.
const DAYS: usize = 14;

pub(super) fn stages(report: &Report) -> Option<Section> {
    let row = |one: &Stage| {
        vec![
            stage(one.name).to_owned(),
            grouped(one.count),
            time(one.ms.p50),
            time(one.ms.p95),
            time(one.ms.p99),
            time(one.ms.max),
        ]
    };
    let timed = report.stages.iter().filter(|stage| stage.count > 0);
    let rows: Vec<_> = timed.map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let table = Table {
        caption: "How long each stage took".to_owned(),
        names: 1,
        head: heads(&["stage", "times", "p50", "p95", "p99", "most"]),
        rows,
    };
    let figures = [
        Part::Chart(plots::times(report)),
        Part::Bars(plots::stages(report)),
    ];
    section(
        "Time",
        figures.into_iter().chain([Part::Table(table)]).collect(),
    )
}

pub(super) fn slowest(report: &Report, medium: Medium) -> Option<Section> {
    if report.slowest.is_empty() {
        return None;
    }
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
    let ended = |turn: &SlowTurn| turn.ended.get(..19).unwrap_or_default().replace('T', " ");
    let mostly = |turn: &SlowTurn| {
        let parts = turn.parts();
        let first = parts.first().filter(|(_, took)| *took > 0.0);
        first.map_or_else(
            || "-".to_owned(),
            |(part, took)| format!("{part} {}", time(Some(*took))),
        )
    };
    let terminal = |turn: &SlowTurn| {
        vec![
            turn.turn.clone(),
            ended(turn),
            name(&turn.scene),
            mostly(turn),
            time(Some(turn.ms)),
        ]
    };
    let page = |turn: &SlowTurn| {
        let mut row = terminal(turn);
        let took = row.pop();
        row.extend([
            turn.outcome.clone(),
            name(&turn.cause),
            name(&turn.guild),
            name(&turn.channel),
            name(&turn.agent),
            name(&turn.model),
        ]);
        row.extend(took);
        row.extend([
            time(turn.queued_ms),
            time(turn.collect_ms),
            time(Some(turn.model_ms)),
            time(Some(turn.tools_ms)),
            time(Some(turn.other_ms)),
            grouped(turn.fetches),
            grouped(turn.requests),
            grouped(turn.failed_requests),
        ]);
        row
    };
    let turns = report.slowest.iter();
    let table = match medium {
        Medium::Terminal => Table {
            caption: String::new(),
            names: 4,
            head: heads(&["turn", "ended", "scene", "mostly", "took"]),
            rows: turns.map(terminal).collect(),
        },
        Medium::Html => Table {
            caption: "The slowest turns, and where their time went".to_owned(),
            names: 10,
            head: heads(&[
                "turn", "ended", "scene", "mostly", "outcome", "cause", "guild", "channel",
                "agent", "model", "took", "queued", "collect", "model", "tools", "other",
                "fetches", "requests", "failed",
            ]),
            rows: turns.map(page).collect(),
        },
    };
    section("Slowest turns", vec![Part::Table(table)])
}

pub(super) fn fallbacks(report: &Report) -> Option<Section> {
    if report.fallbacks.is_empty() {
        return None;
    }
    let rows = report.fallbacks.iter().map(|row| {
        vec![
            row.event.to_owned(),
            row.reason.clone(),
            grouped(row.events),
            grouped(row.turns),
            percent(row.rate),
        ]
    });
    let table = Table {
        caption: "What turns had to do without, of all that began".to_owned(),
        names: 2,
        head: heads(&["event", "reason", "events", "turns", "rate"]),
        rows: rows.collect(),
    };
    let figure = Part::Bars(plots::fallbacks(report));
    section("Fallbacks", vec![figure, Part::Table(table)])
}

pub(super) fn truncation(report: &Report) -> Option<Section> {
    let truncation = &report.truncation;
    if truncation.caps.is_empty() {
        return None;
    }
    let caps = truncation.caps.iter().map(|cap| {
        vec![
            cap.setting.map_or_else(|| cap.name.clone(), str::to_owned),
            grouped(cap.blocks),
            percent(cap.rate),
            format!("{:.1}", cap.kept),
            format!("{:.1}", cap.dropped),
            format!("{:.1}", cap.shortened),
        ]
    });
    let by_cap = Table {
        caption: format!(
            "Caps that made {} smaller, and messages a block",
            many(truncation.blocks, "block")
        ),
        names: 1,
        head: heads(&["cap", "blocks", "rate", "kept", "dropped", "shortened"]),
        rows: caps.collect(),
    };
    let counts = |caps: &Capped| {
        let blocks = [caps.msgs, caps.chars, caps.msg_chars, caps.age];
        blocks.into_iter().chain([caps.dropped]).map(grouped)
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in &truncation.channels {
        let guild = row.guild.clone().unwrap_or_else(|| "direct".to_owned());
        let channel = row.channel.clone().unwrap_or_else(|| "-".to_owned());
        rows.push(
            [guild, channel]
                .into_iter()
                .chain(counts(&row.caps))
                .collect(),
        );
    }
    if let Some(others) = &truncation.other_channels {
        let names = [many(others.names, "other"), String::new()];
        rows.push(names.into_iter().chain(counts(&others.caps)).collect());
    }
    let by_channel = Table {
        caption: "Channels where caps made blocks smaller: blocks by cap, messages left out"
            .to_owned(),
        names: 2,
        head: heads(&[
            "server",
            "channel",
            "msgs",
            "chars",
            "msg_chars",
            "age",
            "dropped",
        ]),
        rows,
    };
    section(
        "Truncation",
        vec![
            Part::Bars(plots::caps(report)),
            Part::Table(by_cap),
            Part::Table(by_channel),
        ],
    )
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
    let listed = match medium {
        Medium::Terminal => usage.days.len().saturating_sub(DAYS),
        Medium::Html => 0,
    };
    let days = usage.days.iter().skip(listed);
    let mut rows: Vec<_> = days.map(|day| row(day.day.clone(), &day.usage)).collect();
    if let Some(earlier) = &usage.earlier {
        rows.insert(0, row("earlier".to_owned(), earlier));
    }
    parts.push(Part::Table(table("By day", "day", rows)));
    if listed > 0 {
        let more = many(listed as u64, "earlier day");
        let text = format!("{more} with --format json and --html.");
        parts.push(Part::Text(text));
    }
    for (caption, head, list) in [
        ("By server", "server", &usage.guilds),
        ("By model", "model", &usage.models),
        ("By agent", "agent", &usage.agents),
    ] {
        parts.extend(listed_usage(caption, head, list));
    }
    if usage.llm_servers.rows.len() > 1 {
        parts.extend(listed_usage(
            "By model server",
            "model server",
            &usage.llm_servers,
        ));
    }
    if !usage.failures.is_empty() {
        let failures = usage.failures.iter();
        parts.push(Part::Table(Table {
            caption: "Requests without an answer, by reason".to_owned(),
            names: 1,
            head: heads(&["reason", "requests"]),
            rows: failures
                .map(|row| vec![row.name.clone(), grouped(row.count)])
                .collect(),
        }));
    }
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
        text += &format!(", cost {}", cost(total.cost));
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

fn listed_usage(caption: &str, head: &str, list: &UsageList) -> Option<Part> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for one in &list.rows {
        let name = one.name.clone();
        let name = name.unwrap_or_else(|| "direct messages".to_owned());
        rows.push(row(name, &one.usage));
    }
    if let Some(OtherUsage { names, usage }) = &list.others {
        rows.push(row(many(*names, "other"), usage));
    }
    (!rows.is_empty()).then(|| Part::Table(table(caption, head, rows)))
}

fn table(caption: &str, head: &str, rows: Vec<Vec<String>>) -> Table {
    Table {
        caption: caption.to_owned(),
        names: 1,
        head: heads(&[head, "turns", "requests", "tokens in", "tokens out", "cost"]),
        rows,
    }
}

fn row(name: String, usage: &Usage) -> Vec<String> {
    vec![
        name,
        grouped(usage.turns),
        grouped(usage.requests),
        grouped(usage.prompt_tokens),
        grouped(usage.completion_tokens),
        cost(usage.cost),
    ]
}

pub(super) fn limits(report: &Report) -> Option<Section> {
    let limits = &report.limits;
    if limits.people.is_empty() {
        return None;
    }
    let counts = |counts: &LimitCounts| {
        [
            counts.refused,
            counts.user_rate,
            counts.user_tokens,
            counts.guild_tokens,
            counts.queue_full,
            counts.busy,
        ]
        .map(grouped)
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for person in &limits.people {
        let user = person.user.clone().unwrap_or_else(|| "-".to_owned());
        rows.push([user].into_iter().chain(counts(&person.counts)).collect());
    }
    if let Some(others) = &limits.others {
        let name = [many(others.names, "other")];
        rows.push(name.into_iter().chain(counts(&others.counts)).collect());
    }
    let table = Table {
        caption: "How often people got no turn, by limit".to_owned(),
        names: 1,
        head: heads(&[
            "user", "in all", "rate", "tokens", "server's", "queue", "busy",
        ]),
        rows,
    };
    section("Who hits limits", vec![Part::Table(table)])
}
