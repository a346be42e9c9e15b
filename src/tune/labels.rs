//! Labels: which messages belong to which trigger, as JSON or JSON Lines.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::replay::Labels;
use clew_context::model::MessageId;

/// The largest file, in bytes, since it is read at once.
const MOST_BYTES: u64 = 256 << 20;

/// A file of labels that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// It cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is too large.
    #[error("{} is larger than 256 MiB: label fewer questions", .0.display())]
    TooLarge(PathBuf),
    /// It is not what labels look like.
    #[error(
        "{} is no file of labels: it takes objects such as {{\"trigger\":\"123\",\"belongs\":[\"121\",\"122\"]}}, one a line or in a list",
        .path.display()
    )]
    Form {
        /// The file.
        path: PathBuf,
        /// Where.
        #[source]
        source: serde_json::Error,
    },
    /// It labels a trigger twice.
    #[error("{} names the trigger {id} twice: join its ids", .path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The trigger.
        id: MessageId,
    },
    /// It holds none.
    #[error("{} holds no labels", .0.display())]
    Empty(PathBuf),
}

/// What belongs to one trigger.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    trigger: MessageId,
    belongs: Vec<MessageId>,
}

/// Reads a file.
///
/// # Errors
/// See [`LabelError`].
pub(super) fn read(path: &Path) -> Result<Labels, LabelError> {
    let failed = |source| LabelError::Read {
        path: path.to_owned(),
        source,
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MOST_BYTES {
        return Err(LabelError::TooLarge(path.to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let parsed = parse(text.trim_start_matches('\u{feff}'));
    let parsed = parsed.map_err(|source| LabelError::Form {
        path: path.to_owned(),
        source,
    })?;
    let mut labels = BTreeMap::new();
    for label in parsed {
        put(&mut labels, label).map_err(|id| LabelError::Twice {
            path: path.to_owned(),
            id,
        })?;
    }
    if labels.is_empty() {
        return Err(LabelError::Empty(path.to_owned()));
    }
    Ok(labels)
}

/// One list, or objects one after the other.
fn parse(text: &str) -> Result<Vec<Label>, serde_json::Error> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect()
}

/// The trigger itself is never in its block. The error is a trigger named before.
fn put(labels: &mut Labels, label: Label) -> Result<(), MessageId> {
    let Label { trigger, belongs } = label;
    let mut belongs = belongs;
    belongs.retain(|id| *id != trigger);
    belongs.sort_unstable();
    belongs.dedup();
    match labels.entry(trigger) {
        Entry::Vacant(entry) => {
            entry.insert(belongs);
            Ok(())
        }
        Entry::Occupied(_) => Err(trigger),
    }
}
