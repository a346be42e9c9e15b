//! What is wrong with the settings, all of it at once.

use std::fmt;

use super::Variable;

/// Characters of a wrong value that an error repeats.
const SHOWN_CHARS: usize = 80;

/// Everything that is wrong, a line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    /// At least one.
    pub problems: Vec<Problem>,
    /// What is odd beside them: a misspelt name is often the cause.
    pub warnings: Vec<String>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The variable, or the place in `.env`.
    pub subject: String,
    /// The value as far as it may be shown.
    pub shown: String,
    /// What is accepted instead.
    pub accepted: String,
}

impl Problem {
    /// A value that a variable does not accept.
    pub(super) fn value(variable: &Variable, value: &str, accepted: impl Into<String>) -> Self {
        Self {
            subject: variable.name.to_owned(),
            shown: shown_value(variable, value),
            accepted: accepted.into(),
        }
    }

    /// A variable that must be set and is not.
    pub(super) fn missing(variable: &Variable, accepted: impl Into<String>) -> Self {
        Self {
            subject: variable.name.to_owned(),
            shown: "is not set".to_owned(),
            accepted: accepted.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            shown,
            accepted,
        } = self;
        write!(f, "{subject} {shown}; accepted: {accepted}")
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings cannot be used:")?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        for warning in &self.warnings {
            write!(f, "\n  note: {warning}")?;
        }
        Ok(())
    }
}

/// `is "value"`, quoted and cut, or that a secret is set.
fn shown_value(variable: &Variable, value: &str) -> String {
    if variable.secret {
        return "is [set]".to_owned();
    }
    format!("is {:?}", cut(value))
}

/// The beginning of a long text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
