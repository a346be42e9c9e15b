//! The figures of sections, each of which has a table that holds their values.

use super::super::summary::{DayRow, Report};
use super::super::words::{percent, time};
use crate::plot::{Axis, Bars, Chart, Scale, Series};

pub(super) fn turns(report: &Report) -> Chart {
    Chart {
        title: "Turns by day".to_owned(),
        description: "Turns that ended on each day, and those of them that were not answered. \
            The table of days below holds the figures."
            .to_owned(),
        x: Axis::new("day (UTC)", Scale::Days),
        y: Axis::new("turns", Scale::Linear),
        series: vec![
            series(report, "ended", |day| Some(float(day.usage.turns))),
            series(report, "not answered", |day| {
                Some(float(day.usage.turns.saturating_sub(day.usage.answered)))
            }),
        ],
    }
}

pub(super) fn times(report: &Report) -> Chart {
    Chart {
        title: "Time of a turn by day".to_owned(),
        description: "Half of each day's turns took less than the lower line, 95 in 100 less \
            than the upper one. The axis is logarithmic."
            .to_owned(),
        x: Axis::new("day (UTC)", Scale::Days),
        y: Axis::new("milliseconds", Scale::Log),
        series: vec![
            series(report, "p50", |day| day.p50),
            series(report, "p95", |day| day.p95),
        ],
    }
}

pub(super) fn tokens(report: &Report) -> Chart {
    Chart {
        title: "Tokens by day".to_owned(),
        description: "Tokens of prompts and of answers on each day.".to_owned(),
        x: Axis::new("day (UTC)", Scale::Days),
        y: Axis::new("tokens", Scale::Linear),
        series: vec![
            series(report, "in", |day| Some(float(day.usage.prompt_tokens))),
            series(report, "out", |day| {
                Some(float(day.usage.completion_tokens))
            }),
        ],
    }
}

pub(super) fn stages(report: &Report) -> Bars {
    let timed = report.stages.iter().filter_map(|one| {
        let p95 = one.ms.p95?;
        Some((one.name.text().to_owned(), p95, time(Some(p95))))
    });
    Bars {
        title: "95 in 100 took less than".to_owned(),
        description: "The 95th percentile of each stage's time.".to_owned(),
        rows: timed.collect(),
    }
}

pub(super) fn fallbacks(report: &Report) -> Bars {
    let rows = report.fallbacks.iter().map(|row| {
        let event = row.event.trim_end_matches("_fallback");
        let name = format!("{} ({event})", row.reason);
        (name, row.rate.unwrap_or(0.0), percent(row.rate))
    });
    Bars {
        title: "Turns that had to do without something".to_owned(),
        description: "The share of turns with each fallback.".to_owned(),
        rows: rows.collect(),
    }
}

pub(super) fn caps(report: &Report) -> Bars {
    let rows = report.truncation.caps.iter().map(|cap| {
        let name = cap.setting.unwrap_or(&cap.name).to_owned();
        (name, cap.rate.unwrap_or(0.0), percent(cap.rate))
    });
    Bars {
        title: "Blocks that a cap cut".to_owned(),
        description:
            "The share of blocks that each cap left messages out of, or shortened messages in."
                .to_owned(),
        rows: rows.collect(),
    }
}

fn series(report: &Report, name: &str, value: impl Fn(&DayRow) -> Option<f64>) -> Series {
    let days = report.usage.days.iter();
    Series {
        name: name.to_owned(),
        points: days
            .filter_map(|day| Some((float(day.number.unsigned_abs()), value(day)?)))
            .collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a plot has a thousand pixels")]
fn float(number: u64) -> f64 {
    number as f64
}
