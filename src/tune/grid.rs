//! The settings to try: every combination of the values that were named.

use std::collections::BTreeSet;

use anyhow::{Context, bail};

use crate::config::{Config, Variable};
use crate::replay::Caps;

/// The most combinations of one run.
pub(super) const MOST_POINTS: usize = 10_000;
/// Why a value is refused; the cause names what is accepted.
const VALUE: &str = "a value of --sweep is not accepted (where values have commas in them, part them by \
    semicolons)";
/// What is tried if nobody says what: values around the defaults, and those in effect.
/// The age of reply chains is named because it would follow `MEM_MAX_AGE_MIN` otherwise;
/// `LONE_CONTEXT` because without it nothing makes a difference to plain mentions.
const DEFAULT: [(&str, &[&str]); 6] = [
    ("MEM_MAX_MSGS", &["10", "20", "40", "80", "200"]),
    ("MEM_MAX_CHARS", &["2000", "4000", "8000", "16000"]),
    ("MEM_MAX_AGE_MIN", &["60", "240", "1440"]),
    ("MEM_CHAIN_MAX_AGE_MIN", &["1440", "10080"]),
    ("LONE_CONTEXT", &["off", "recent", "conversation"]),
    ("THREAD_SELECT", &["newest", "conversation"]),
];

/// A setting and the values to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    pub variable: &'static Variable,
    /// At least one, each once.
    pub values: Vec<String>,
    /// The value in effect, as far as it is known.
    pub now: String,
}

/// All combinations.
#[derive(Debug, Clone)]
pub struct Grid {
    /// What varies.
    pub axes: Vec<Axis>,
    /// The combinations, the last axis varying first. What is set now comes last, if it
    /// is none of them.
    pub points: Vec<Point>,
    /// Which of them is set now.
    pub now: usize,
}

/// One combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The number of the value on each axis; none for what is set now.
    pub values: Option<Vec<usize>>,
    /// The settings that it makes.
    pub caps: Caps,
}

impl Grid {
    /// The combinations of `sweeps`, each `NAME=VALUE,VALUE`; without any, of the main
    /// caps.
    ///
    /// # Errors
    /// A sweep that cannot be understood, values that the setting does not accept, and
    /// more than 10,000 combinations.
    pub fn new(sweeps: &[String], config: &Config) -> anyhow::Result<Self> {
        let axes = if sweeps.is_empty() {
            default_axes(config)?
        } else {
            let axes = sweeps.iter().map(|sweep| Axis::parse(sweep, config));
            axes.collect::<anyhow::Result<Vec<_>>>()?
        };
        let mut names = BTreeSet::new();
        if let Some(twice) = axes.iter().find(|axis| !names.insert(axis.variable.name)) {
            let name = twice.variable.name;
            bail!("--sweep {name} is there twice: name all of its values in one");
        }
        let sizes = axes.iter().map(|axis| axis.values.len());
        let count = sizes.fold(1_usize, usize::saturating_mul);
        if count > MOST_POINTS {
            bail!(
                "the values make {count} combinations, and {MOST_POINTS} is the most: sweep fewer at \
                 once"
            );
        }
        let points = (0..count).map(|number| Point::numbered(number, &axes, config));
        let mut points = points.collect::<anyhow::Result<Vec<_>>>()?;
        let set = Caps::of(config);
        let now = points.iter().position(|point| point.caps == set);
        let now = now.unwrap_or_else(|| {
            points.push(Point {
                values: None,
                caps: set,
            });
            points.len() - 1
        });
        Ok(Self { axes, points, now })
    }

    /// The value of a combination on each axis; for what is set now, the value in effect.
    pub fn values<'a>(&'a self, point: usize) -> Vec<&'a str> {
        let values = self.points[point].values.as_deref();
        let axes = self.axes.iter().enumerate();
        let value = |(at, axis): (usize, &'a Axis)| match values {
            Some(values) => axis.values[values[at]].as_str(),
            None => axis.now.as_str(),
        };
        axes.map(value).collect()
    }

    /// How many settings a combination changes.
    pub fn changes(&self, point: usize) -> usize {
        let values = self.values(point);
        let axes = self.axes.iter().zip(values);
        axes.filter(|(axis, value)| axis.now != *value).count()
    }

    /// The combinations that differ from one on this axis alone, by the axis's values;
    /// that one is among them. None for what is set now, if it is no combination.
    pub fn along(&self, axis: usize, point: usize) -> Vec<usize> {
        let Some(values) = &self.points[point].values else {
            return Vec::new();
        };
        let stride: usize = self.axes[axis + 1..]
            .iter()
            .map(|one| one.values.len())
            .product();
        let first = point - values[axis] * stride;
        let numbers = 0..self.axes[axis].values.len();
        numbers.map(|value| first + value * stride).collect()
    }
}

impl Point {
    fn numbered(number: usize, axes: &[Axis], config: &Config) -> anyhow::Result<Self> {
        let mut rest = number;
        let mut values = vec![0; axes.len()];
        for (value, axis) in values.iter_mut().zip(axes).rev() {
            *value = rest % axis.values.len();
            rest /= axis.values.len();
        }
        let pairs = axes.iter().zip(&values);
        let pairs = pairs.map(|(axis, value)| (axis.variable, axis.values[*value].as_str()));
        let config = config.changed(pairs).context(VALUE)?;
        Ok(Self {
            values: Some(values),
            caps: Caps::of(&config),
        })
    }
}

impl Axis {
    /// `NAME=VALUE,VALUE`; with a semicolon in it, that parts the values.
    fn parse(sweep: &str, config: &Config) -> anyhow::Result<Self> {
        let form = || {
            format!("--sweep {sweep}: accepted: NAME=VALUE,VALUE, such as MEM_MAX_MSGS=10,20,40")
        };
        let (name, values) = sweep.split_once('=').with_context(form)?;
        let variable = cap(name.trim())?;
        let separator = if values.contains(';') { ';' } else { ',' };
        let mut seen: Vec<String> = Vec::new();
        for value in values.split(separator).map(str::trim) {
            if !value.is_empty() && !seen.iter().any(|one| one == value) {
                seen.push(value.to_owned());
            }
        }
        if seen.is_empty() {
            bail!(form());
        }
        Self::checked(variable, seen, config)
    }

    /// Every value alone must be acceptable.
    fn checked(
        variable: &'static Variable,
        values: Vec<String>,
        config: &Config,
    ) -> anyhow::Result<Self> {
        for value in &values {
            let pair = [(variable, value.as_str())];
            config.changed(pair).context(VALUE)?;
        }
        let now = config.effective().find(|one| one.name == variable.name);
        Ok(Self {
            variable,
            values,
            now: now.map(|now| now.shown).unwrap_or_default(),
        })
    }
}

fn cap(name: &str) -> anyhow::Result<&'static Variable> {
    let found = Variable::caps().find(|one| one.name == name);
    found.with_context(|| {
        let names: Vec<&str> = Variable::caps().map(|one| one.name).collect();
        let caps = names.join(", ");
        format!("--sweep {name}: it is no cap; those are {caps}")
    })
}

fn default_axes(config: &Config) -> anyhow::Result<Vec<Axis>> {
    let mut axes = Vec::with_capacity(DEFAULT.len());
    for (name, values) in DEFAULT {
        let variable = cap(name)?;
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let mut axis = Axis::checked(variable, values, config)?;
        if !axis.values.contains(&axis.now) {
            axis.values.push(axis.now.clone());
        }
        axis.values
            .sort_by_key(|value| value.parse::<u64>().unwrap_or(u64::MAX));
        axes.push(axis);
    }
    Ok(axes)
}
