//! Labels: which messages belong to which trigger, as JSON or JSON Lines.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::replay::Labels;
use clew_context::model::MessageId;

/// The largest file, in bytes, since it is read at once.
const MOST_BYTES: u64 = 256 << 20;

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
/// A sentence that names the file.
pub(super) fn read(path: &Path) -> anyhow::Result<Labels> {
    let shown = path.display();
    let cannot = || format!("cannot read {shown}");
    let size = std::fs::metadata(path).with_context(cannot)?.len();
    ensure!(
        size <= MOST_BYTES,
        "{shown} is larger than 256 MiB: label fewer questions"
    );
    let text = std::fs::read_to_string(path).with_context(cannot)?;
    let parsed = parse(text.trim_start_matches('\u{feff}')).with_context(|| {
        format!(
            "{shown} is no file of labels: it takes objects such as \
             {{\"trigger\":\"123\",\"belongs\":[\"121\",\"122\"]}}, one a line or in a list"
        )
    })?;
    let mut labels = BTreeMap::new();
    for one in parsed {
        let (trigger, mut belongs) = (one.trigger, one.belongs);
        // It is never in its own block.
        belongs.retain(|id| *id != trigger);
        belongs.sort_unstable();
        belongs.dedup();
        if labels.insert(trigger, belongs).is_some() {
            bail!("{shown} names the trigger {trigger} twice: join its ids");
        }
    }
    ensure!(!labels.is_empty(), "{shown} holds no labels");
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
