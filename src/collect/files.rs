//! Short text files are shown inline, where the asker is likely to mean them:
//! in the trigger, the message pointed at, the target and the starter.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::engine::chain::Link;
use crate::engine::select::{Found, Gathered};
use crate::model::{Attachment, Extras, Message};

use super::fetch::Fetcher;
use super::source::Source;

/// Endings of files that are text, whatever their media type says.
const TEXT_ENDINGS: [&str; 40] = [
    "c", "cfg", "conf", "cpp", "cs", "css", "csv", "diff", "env", "go", "h", "hpp", "html", "ini",
    "java", "js", "json", "jsonl", "kt", "log", "lua", "md", "patch", "php", "py", "rb", "rs",
    "sh", "sql", "svg", "swift", "toml", "ts", "tsv", "tsx", "txt", "vue", "xml", "yaml", "yml",
];
/// Media types that are text beside `text/*`.
const TEXT_TYPES: [&str; 7] = [
    "application/json",
    "application/xml",
    "application/javascript",
    "application/toml",
    "application/x-yaml",
    "application/yaml",
    "application/sql",
];

/// Whether a file is text to be shown.
fn is_text(file: &Attachment) -> bool {
    let kind = file.content_type.as_deref().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.starts_with("text/") || TEXT_TYPES.contains(&kind) {
        return true;
    }
    let ending = file
        .filename
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    let unknown = kind.is_empty() || kind == "application/octet-stream";
    unknown && ending.is_some_and(|ending| TEXT_ENDINGS.contains(&ending.as_str()))
}

/// Fetches the texts of one message's files; the message as it was, where
/// there is nothing to fetch.
pub(super) async fn inline<S: Source>(
    fetcher: &Fetcher<'_, S>,
    message: &mut Arc<Message>,
    max_bytes: u64,
) {
    let Some(extras) = message.extras.as_deref() else {
        return;
    };
    let wanted: Vec<Attachment> = files(extras)
        .filter(|file| file.text.is_none() && file.size <= max_bytes && is_text(file))
        .cloned()
        .collect();
    if wanted.is_empty() {
        return;
    }
    let texts = join_all(wanted.iter().map(|file| fetcher.file(file, max_bytes))).await;
    let message = Arc::make_mut(message);
    let Some(extras) = message.extras.as_deref_mut() else {
        return;
    };
    for (file, text) in wanted.iter().zip(texts) {
        let Some(text) = text else { continue };
        if let Some(slot) = files_mut(extras).find(|slot| *slot == file) {
            slot.text = Some(text.into());
        }
    }
}

fn files(extras: &Extras) -> impl Iterator<Item = &Attachment> {
    let forwarded = extras
        .snapshots
        .iter()
        .filter_map(|snapshot| snapshot.extras.as_deref());
    extras
        .attachments
        .iter()
        .chain(forwarded.flat_map(|extras| &extras.attachments))
}

fn files_mut(extras: &mut Extras) -> impl Iterator<Item = &mut Attachment> {
    let forwarded = extras
        .snapshots
        .iter_mut()
        .filter_map(|snapshot| snapshot.extras.as_deref_mut());
    extras
        .attachments
        .iter_mut()
        .chain(forwarded.flat_map(|extras| &mut extras.attachments))
}

/// The messages of a scene whose files are worth a fetch.
pub(super) fn worthwhile(gathered: &mut Gathered) -> Vec<&mut Arc<Message>> {
    match gathered {
        Gathered::Thread(thread) => {
            let named = [&mut thread.starter, &mut thread.pointed_at];
            let named = named.into_iter().filter_map(|found| match found {
                Found::Known(message) => Some(message),
                Found::None | Found::Deleted(_) | Found::Unavailable(_) => None,
            });
            named.chain(thread.target.as_mut()).collect()
        }
        Gathered::Chain { links, .. } => {
            let pointed_at = links.first_mut().into_iter();
            pointed_at
                .filter_map(|link| match link {
                    Link::Message(message) => Some(message),
                    Link::Deleted(_) | Link::Unavailable(_) => None,
                })
                .collect()
        }
        Gathered::Tail(_) | Gathered::Nothing => Vec::new(),
    }
}
