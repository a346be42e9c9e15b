//! What is wrong with the settings, all of it at once.

use std::fmt;

use super::Variable;
use super::variable::Shown;
use clew_store::model::StoreAddress;

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
    match show(variable, value) {
        Some(shown) => format!("is {shown:?}"),
        None => "is [set]".to_owned(),
    }
}

/// What may be shown of a value, cut if it is long; nothing of a secret.
pub(super) fn show(variable: &Variable, value: &str) -> Option<String> {
    match variable.shown {
        Shown::Plainly => Some(cut(value)),
        Shown::Never => None,
        Shown::WithoutLogin => (!value.contains(['@', '?', '#'])).then(|| cut(value)),
        Shown::WithoutPassword => match value.parse::<StoreAddress>() {
            Ok(address) => Some(cut(&address.to_string())),
            // Whatever looks like part of a login stays unsaid.
            Err(_) if value.contains(['@', '=']) || value.contains("//") => None,
            Err(_) => (!value.starts_with("postgres")).then(|| cut(value)),
        },
    }
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
