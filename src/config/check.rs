//! Turns text into checked values, and collects problems until the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

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
    /// What is set, by the variables' names as `envy` gives them: in lower case.
    texts: BTreeMap<String, String>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

impl Checker {
    pub(super) fn new(mut values: Values) -> Self {
        let mut problems = std::mem::take(&mut values.problems);
        let texts = envy::from_iter(values.pairs()).unwrap_or_else(|error| {
            let shown = error.to_string();
            problems.push(Problem::new("the environment", shown, "text"));
            BTreeMap::new()
        });
        Self {
            texts,
            problems,
            warnings: std::mem::take(&mut values.warnings),
            values,
        }
    }

    /// The values, the warnings about them, and all problems found.
    pub(super) fn finish(self) -> (Values, Vec<String>, Vec<Problem>) {
        (self.values, self.warnings, self.problems)
    }

    /// See [`Values::source`].
    pub(super) fn source<'a>(&self, variable: &'a Variable) -> &'a Variable {
        self.values.source(variable)
    }

    /// The text of a variable that has a value of its own.
    pub(super) fn text(&self, variable: &Variable) -> Option<&str> {
        let text = self.texts.get(&variable.name.to_ascii_lowercase());
        text.map(String::as_str)
    }

    /// The value under any name of the environment or `.env`, for a file that names it.
    pub(super) fn any(&mut self, name: &str) -> Option<String> {
        self.values.of_any(name, &mut self.warnings)
    }

    /// Whether a variable has a value of its own.
    pub(super) fn is_set(&self, variable: &Variable) -> bool {
        self.text(variable).is_some()
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
        accepted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(variable).unwrap_or(variable.default);
        if text.is_empty() {
            return None;
        }
        let parsed = parse(text);
        if parsed.is_none() {
            let problem = Problem::value(variable, text, accepted);
            self.problem(problem);
        }
        parsed
    }

    /// A number within bounds.
    pub(super) fn number<T>(&mut self, variable: &Variable, range: RangeInclusive<T>) -> T
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let lowest = *range.start();
        let number = self.optional_number(variable, range);
        number.unwrap_or_else(|| variable.default.parse().unwrap_or(lowest))
    }

    /// A number within bounds, for a variable that may be unset.
    pub(super) fn optional_number<T>(
        &mut self,
        variable: &Variable,
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
        self.optional(variable, &accepted, |text| {
            text.parse().ok().filter(|number| range.contains(number))
        })
    }

    /// A number of seconds, possibly with a fraction.
    pub(super) fn seconds(&mut self, variable: &Variable, range: RangeInclusive<f64>) -> Duration {
        Duration::from_secs_f64(self.number(variable, range))
    }

    pub(super) fn switch(&mut self, variable: &Variable) -> bool {
        self.one_of(variable, &SWITCHES)
    }

    /// One of several words, in any case.
    pub(super) fn one_of<T: Copy>(&mut self, variable: &Variable, words: &[(&str, T)]) -> T {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let find = |text: &str| {
            let mut words = words.iter();
            words.find(|(word, _)| text.eq_ignore_ascii_case(word))
        };
        let chosen = self.optional(variable, &names.join(", "), find);
        let chosen = chosen.or_else(|| find(variable.default));
        chosen.unwrap_or(&words[0]).1
    }

    /// Ids separated by commas or spaces.
    pub(super) fn ids<T: FromStr + Ord>(&mut self, variable: &Variable) -> BTreeSet<T> {
        let accepted = format!("{}, each 1 to 20 digits", variable.unit);
        self.optional(variable, &accepted, |text| {
            text.split([',', ' '])
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| item.parse().ok())
                .collect()
        })
        .unwrap_or_default()
    }

    /// A path; a relative one starts at the working directory.
    pub(super) fn path(&mut self, variable: &Variable) -> PathBuf {
        let path = self.optional_path(variable);
        path.unwrap_or_else(|| variable.default.into())
    }

    /// A path, for a variable that may be unset.
    pub(super) fn optional_path(&mut self, variable: &Variable) -> Option<PathBuf> {
        self.optional(variable, "a path", |text| {
            (!text.contains('\0')).then(|| PathBuf::from(text))
        })
    }
}
