//! Turns text into checked values, and collects problems until the end.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::Variable;
use super::problem::Problem;
use super::values::Values;

/// What a switch accepts, in any case.
pub(super) const SWITCHES: [(&str, bool); 8] = [
    ("true", true),
    ("false", false),
    ("1", true),
    ("0", false),
    ("yes", true),
    ("no", false),
    ("on", true),
    ("off", false),
];

/// What is said of a wrong value in quotes that the environment has. Files of containers
/// and units are not read by a shell, which would have taken the quotes away.
const UNQUOTED: &str = "; without the quotes, which the environment takes for part of the value";

/// Reads one concern after another. After a problem, reading continues with some
/// value that nobody runs with, since [`Checker::finish`] returns the problem.
pub(super) struct Checker {
    values: Values,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

impl Checker {
    pub(super) fn new(mut values: Values) -> Self {
        Self {
            problems: std::mem::take(&mut values.problems),
            warnings: std::mem::take(&mut values.warnings),
            values,
        }
    }

    /// The values, the warnings about them, and all problems found.
    pub(super) fn finish(self) -> (Values, Vec<String>, Vec<Problem>) {
        (self.values, self.warnings, self.problems)
    }

    /// A concern's raw struct, with an optional string per variable.
    pub(super) fn raw<T: DeserializeOwned + Default>(&mut self) -> T {
        envy::from_iter(self.values.pairs()).unwrap_or_else(|error| {
            self.problems.push(Problem {
                subject: "the environment".to_owned(),
                shown: error.to_string(),
                accepted: "text".to_owned(),
            });
            T::default()
        })
    }

    /// See [`Values::source`].
    pub(super) fn source<'a>(&self, variable: &'a Variable) -> &'a Variable {
        self.values.source(variable)
    }

    /// Whether a variable has a value of its own.
    pub(super) fn is_set(&self, variable: &Variable) -> bool {
        self.values.text(variable).is_some()
    }

    pub(super) fn problem(&mut self, mut problem: Problem) {
        if self.values.is_quoted(&problem.subject) {
            problem.accepted.push_str(UNQUOTED);
        }
        self.problems.push(problem);
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Warns that a variable is set for nothing.
    pub(super) fn warn_of_no_effect(&mut self, variable: &Variable, why: &str) {
        self.warn(format!("{} has no effect {why}", variable.name));
    }

    /// The value, or else the default; none without either, or after a problem.
    pub(super) fn optional<T>(
        &mut self,
        variable: &Variable,
        raw: Option<String>,
        accepted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = raw.unwrap_or_else(|| variable.default.to_owned());
        if text.is_empty() {
            return None;
        }
        let parsed = parse(&text);
        if parsed.is_none() {
            self.problem(Problem::value(variable, &text, accepted));
        }
        parsed
    }

    /// A number within bounds.
    pub(super) fn number<T>(
        &mut self,
        variable: &Variable,
        raw: Option<String>,
        range: RangeInclusive<T>,
    ) -> T
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let lowest = *range.start();
        let number = self.optional_number(variable, raw, range);
        number.unwrap_or_else(|| variable.default.parse().unwrap_or(lowest))
    }

    /// A number within bounds, for a variable that may be unset.
    pub(super) fn optional_number<T>(
        &mut self,
        variable: &Variable,
        raw: Option<String>,
        range: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let accepted = format!(
            "a number from {} to {} ({})",
            range.start(),
            range.end(),
            variable.unit
        );
        self.optional(variable, raw, &accepted, |text| {
            text.parse().ok().filter(|number| range.contains(number))
        })
    }

    /// A number of seconds, possibly with a fraction.
    pub(super) fn seconds(
        &mut self,
        variable: &Variable,
        raw: Option<String>,
        range: RangeInclusive<f64>,
    ) -> Duration {
        Duration::from_secs_f64(self.number(variable, raw, range))
    }

    pub(super) fn switch(&mut self, variable: &Variable, raw: Option<String>) -> bool {
        self.one_of(variable, raw, &SWITCHES)
    }

    /// One of several words, in any case.
    pub(super) fn one_of<T: Copy>(
        &mut self,
        variable: &Variable,
        raw: Option<String>,
        words: &[(&str, T)],
    ) -> T {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let find = |text: &str| {
            let mut words = words.iter();
            words.find(|(word, _)| text.eq_ignore_ascii_case(word))
        };
        let chosen = self.optional(variable, raw, &names.join(", "), find);
        let chosen = chosen.or_else(|| find(variable.default));
        chosen.unwrap_or(&words[0]).1
    }

    /// Ids separated by commas or spaces.
    pub(super) fn ids<T: FromStr + Ord>(
        &mut self,
        variable: &Variable,
        raw: Option<String>,
    ) -> BTreeSet<T> {
        let accepted = format!("{}, each 1 to 20 digits", variable.unit);
        self.optional(variable, raw, &accepted, |text| {
            text.split([',', ' '])
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| item.parse().ok())
                .collect()
        })
        .unwrap_or_default()
    }

    /// A path; a relative one starts at the working directory.
    pub(super) fn path(&mut self, variable: &Variable, raw: Option<String>) -> PathBuf {
        let path = self.optional_path(variable, raw);
        path.unwrap_or_else(|| variable.default.into())
    }

    /// A path, for a variable that may be unset.
    pub(super) fn optional_path(
        &mut self,
        variable: &Variable,
        raw: Option<String>,
    ) -> Option<PathBuf> {
        self.optional(variable, raw, "a path", |text| {
            (!text.contains('\0')).then(|| PathBuf::from(text))
        })
    }
}
