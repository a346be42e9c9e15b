//! What is wrong with an agent's files, in the operator's words.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::cut;

/// The most characters of a wrong value that a problem repeats.
pub(super) const SHOWN_CHARS: usize = 80;

/// Something that cannot be used: where it is, and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct AgentProblem {
    pub path: PathBuf,
    /// The field of `agent.json`, if it concerns one.
    pub field: Option<String>,
    /// What is wrong and what is accepted.
    pub what: String,
}

impl AgentProblem {
    /// A problem with a whole file or folder.
    pub(super) fn of(path: &Path, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            field: None,
            what: what.into(),
        }
    }

    /// A problem with one field.
    pub(super) fn field(path: &Path, field: &str, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            field: Some(cut(field, SHOWN_CHARS, "...")),
            what: what.into(),
        }
    }
}

impl fmt::Display for AgentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, field, what } = self;
        match field {
            Some(field) => write!(f, "{}: field {field:?} {what}", path.display()),
            None => write!(f, "{}: {what}", path.display()),
        }
    }
}
