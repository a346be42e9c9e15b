//! What is wrong with the settings, reported all at once, and how much of a value is shown.

use std::fmt;

use serde::Serialize;

use super::variable::Shown;
use super::{Config, Endpoint, Variable};
use crate::model::cut;
use crate::model::without_keys;
use clew_store::model::StoreAddress;

/// The most characters of a wrong value that an error repeats.
const SHOWN_CHARS: usize = 80;

/// Everything that is wrong, one line each.
#[derive(Debug, Clone, thiserror::Error)]
pub struct ConfigErrors {
    /// At least one.
    pub problems: Vec<Problem>,
    /// The settings with nothing, or some value of its type, in place of each that cannot
    /// be used: to look at the others, never to run with.
    pub rest: Box<Config>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{subject} {shown}; accepted: {accepted}")]
pub struct Problem {
    /// The variable, or the place in `.env`.
    pub subject: String,
    /// The value, as far as it may be shown.
    pub shown: String,
    /// What is accepted instead.
    pub accepted: String,
}

impl Problem {
    pub(super) fn new(
        subject: impl Into<String>,
        shown: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            shown: shown.into(),
            accepted: accepted.into(),
        }
    }

    /// A value that a variable does not accept, of a secret only that it is set.
    pub(super) fn value(variable: &Variable, value: &str, accepted: impl Into<String>) -> Self {
        let shown = show(variable, value).map(|shown| format!("is {shown:?}"));
        Self::new(
            variable.name,
            shown.as_deref().unwrap_or("is [set]"),
            accepted,
        )
    }

    /// A required variable that is not set.
    pub(super) fn missing(variable: &Variable, accepted: impl Into<String>) -> Self {
        Self::new(variable.name, "is not set", accepted)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings cannot be used:")?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        for warning in self.rest.warnings() {
            write!(f, "\n  note: {warning}")?;
        }
        Ok(())
    }
}

/// What may be shown of a value, cut if long; none for a secret. Keys are typed into any
/// variable, so none is shown that looks like one.
pub(super) fn show(variable: &Variable, value: &str) -> Option<String> {
    let shown = match variable.shown {
        Shown::Plainly => Some(value.to_owned()),
        Shown::Never => None,
        Shown::WithoutLogin => is_server(value).then(|| value.to_owned()),
        Shown::EachWithoutLogin => are_servers(value).then(|| value.to_owned()),
        Shown::WithoutPassword => match value.parse::<StoreAddress>() {
            Ok(address) => Some(address.to_string()),
            // Anything that looks like part of a login is not shown.
            Err(_) if value.contains(['@', '=']) || value.contains("//") => None,
            Err(_) => (!value.starts_with("postgres")).then(|| value.to_owned()),
        },
    };
    shown.map(|text| cut(&without_keys(&text), SHOWN_CHARS, "..."))
}

/// Whether it is an address without a login.
fn is_server(value: &str) -> bool {
    Endpoint::parse(value, &["http", "https", "ws", "wss"]).is_some()
}

/// Whether all are, each perhaps with a model's name behind it.
fn are_servers(value: &str) -> bool {
    value.split([',', '\n']).all(|entry| {
        let mut words = entry.split_whitespace();
        words.next().is_none_or(is_server) && words.count() <= 1
    })
}
