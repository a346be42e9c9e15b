//! Axes: where a value stands, and which values get a tick.

use clew_context::model::UnixMillis;

/// About how many ticks an axis gets.
const TICKS: f64 = 5.0;
/// Below this many powers of ten, 2 and 5 times a power get a tick, too.
const FEW_DECADES: f64 = 2.5;
/// The most ticks with a date: each is five characters wide.
const DATES: f64 = 8.0;
/// Days between dates: days, weeks, months, years.
const DAY_STEPS: [f64; 7] = [1.0, 2.0, 7.0, 14.0, 28.0, 91.0, 364.0];

/// What an axis shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// What its values are, with their unit.
    pub label: String,
    /// How values are placed.
    pub scale: Scale,
}

impl Axis {
    /// An axis with this label.
    pub fn new(label: &str, scale: Scale) -> Self {
        Self {
            label: label.to_owned(),
            scale,
        }
    }
}

/// How values are placed on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from 0 or the least negative value on.
    Linear,
    /// By their logarithm, between powers of ten; what is not above 0 stands at the start.
    Log,
    /// As [`Scale::Linear`] without 0; values are days since 1970-01-01, UTC.
    Days,
}

/// The values that an axis spans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Span {
    /// The span of some values, widened to whole ticks. Values that are no finite
    /// number do not count.
    pub(super) fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let counted = finite.filter(|value| scale != Scale::Log || *value > 0.0);
        let least_and_most = counted.fold(None, |found: Option<(f64, f64)>, value| {
            let (low, high) = found.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        let (low, high) = least_and_most.unwrap_or((1.0, 1.0));
        let (low, high) = match scale {
            Scale::Linear => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                let step = step(high - low);
                ((low / step).floor() * step, (high / step).ceil() * step)
            }
            Scale::Log => (
                10_f64.powf(low.log10().floor()),
                10_f64.powf(high.log10().ceil()),
            ),
            Scale::Days => (low, high),
        };
        let high = match scale {
            _ if high > low => high,
            Scale::Log => low * 10.0,
            Scale::Linear | Scale::Days => low + 1.0,
        };
        Self { scale, low, high }
    }

    /// Where a value stands, from 0 to 1.
    pub(super) fn place(self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear | Scale::Days => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).log10() / self.decades(),
        };
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// The values that get a tick, with their labels.
    pub(super) fn ticks(self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high - self.low);
                self.every(self.low, step, number)
            }
            Scale::Days => {
                let days = self.high - self.low;
                let fits = |step: &&f64| days / **step < DATES;
                let longest = (days / DATES).ceil();
                let step = DAY_STEPS.iter().find(fits).copied().unwrap_or(longest);
                self.every(self.low, step, date)
            }
            Scale::Log => {
                let each = (self.decades() / TICKS).ceil().max(1.0);
                let factors: &[f64] = if self.decades() < FEW_DECADES {
                    &[1.0, 2.0, 5.0]
                } else {
                    &[1.0]
                };
                let mut ticks = Vec::new();
                let mut exponent = 0.0;
                while exponent <= self.decades() + 0.5 {
                    let power = self.low * 10_f64.powf(exponent);
                    let values = factors.iter().map(|factor| factor * power);
                    let shown = values.filter(|value| *value <= self.high * 1.001);
                    ticks.extend(shown.map(|value| (value, number(value))));
                    exponent += each;
                }
                ticks
            }
        }
    }

    fn every(self, from: f64, step: f64, label: fn(f64) -> String) -> Vec<(f64, String)> {
        let mut ticks = Vec::new();
        let mut count = 0.0;
        while from + count * step <= self.high + step / 1_000.0 {
            let value = from + count * step;
            ticks.push((value, label(value)));
            count += 1.0;
        }
        ticks
    }

    fn decades(self) -> f64 {
        (self.high / self.low).log10()
    }
}

/// The step of ticks over an extent: 1, 2 or 5 times a power of ten.
fn step(extent: f64) -> f64 {
    if extent <= 0.0 {
        return 1.0;
    }
    let least = extent / TICKS;
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    let fits = |factor: &f64| factor * power >= least * 0.999;
    factors.into_iter().find(fits).unwrap_or(10.0) * power
}

/// A short number: `0.25`, `40`, `1.5k`, `12M`.
pub(super) fn number(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units
        .iter()
        .find(|(unit, _)| value.abs() >= *unit * 0.999_5);
    let (unit, name) = unit.copied().unwrap_or((1.0, ""));
    let scaled = value / unit;
    let decimals = match scaled.abs() {
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.999_5 => 2,
        size if size >= 0.01 => 3,
        _ => 6,
    };
    let text = format!("{scaled:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{name}")
}

/// Month and day.
fn date(day: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "`as` saturates, and no date is beyond an i64"
    )]
    let time = UnixMillis::of_day(day as i64);
    time.date().get(5..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scale: Scale, values: &[f64], expected: &[&str]) {
        let ticks = Span::of(scale, values.iter().copied()).ticks();
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn ticks_are_round_and_few() {
        check(
            Scale::Linear,
            &[3.0, 87.0],
            &["0", "20", "40", "60", "80", "100"],
        );
        check(
            Scale::Linear,
            &[0.021],
            &["0", "0.005", "0.01", "0.015", "0.02", "0.025"],
        );
        check(Scale::Linear, &[1_234_567.0], &["0", "500k", "1M", "1.5M"]);
        check(Scale::Linear, &[-4.0, 4.0], &["-4", "-2", "0", "2", "4"]);
        check(Scale::Linear, &[], &["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        check(
            Scale::Linear,
            &[0.0, f64::NAN],
            &["0", "0.2", "0.4", "0.6", "0.8", "1"],
        );
        check(
            Scale::Log,
            &[0.0, 3.0, 4_000.0],
            &["1", "10", "100", "1k", "10k"],
        );
        check(Scale::Log, &[10.0], &["10", "20", "50", "100"]);
        check(Scale::Log, &[1e-3, 1e9], &["0.001", "1", "1k", "1M", "1G"]);
        check(
            Scale::Days,
            &[20_454.0, 20_456.0],
            &["01-01", "01-02", "01-03"],
        );
        check(Scale::Days, &[20_454.0], &["01-01", "01-02"]);
        let ages = Span::of(Scale::Days, [-1e6, 1e6].into_iter());
        assert!(ages.ticks().len() < 10);
    }

    #[test]
    fn every_value_stands_between_both_ends() {
        for scale in [Scale::Linear, Scale::Log, Scale::Days] {
            let span = Span::of(scale, [5.0, 50.0].into_iter());
            for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 5.0, 50.0, 1e300] {
                assert!(
                    (0.0..=1.0).contains(&span.place(value)),
                    "{scale:?} {value}"
                );
            }
            assert!(span.place(5.0) < span.place(50.0), "{scale:?}");
        }
        let log = Span::of(Scale::Log, [1.0, 100.0].into_iter());
        assert!((log.place(10.0) - 0.5).abs() < 1e-9);
    }
}
