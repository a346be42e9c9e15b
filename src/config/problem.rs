//! What is wrong with the settings, reported all at once.

use std::fmt;

use super::Variable;
use super::variable::Shown;
use clew_store::model::StoreAddress;

/// The most characters of a wrong value that an error repeats.
const SHOWN_CHARS: usize = 80;

/// Everything that is wrong, one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    /// At least one.
    pub problems: Vec<Problem>,
    /// What else is odd: a misspelt name is often the cause.
    pub warnings: Vec<String>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The variable, or the place in `.env`.
    pub subject: String,
    /// The value, as far as it may be shown.
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

    /// A required variable that is not set.
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

/// `is "value"`, quoted and cut, or only that a secret is set.
fn shown_value(variable: &Variable, value: &str) -> String {
    match show(variable, value) {
        Some(shown) => format!("is {shown:?}"),
        None => "is [set]".to_owned(),
    }
}

/// What may be shown of a value, cut if long; none for a secret.
pub(super) fn show(variable: &Variable, value: &str) -> Option<String> {
    match variable.shown {
        Shown::Plainly => Some(cut(value)),
        Shown::Never => None,
        Shown::WithoutLogin => (!value.contains(['@', '?', '#'])).then(|| cut(value)),
        Shown::WithoutPassword => match value.parse::<StoreAddress>() {
            Ok(address) => Some(cut(&address.to_string())),
            // Anything that looks like part of a login is not shown.
            Err(_) if value.contains(['@', '=']) || value.contains("//") => None,
            Err(_) => (!value.starts_with("postgres")).then(|| cut(value)),
        },
    }
}

/// Cuts a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
