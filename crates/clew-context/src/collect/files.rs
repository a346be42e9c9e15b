//! Short text files are shown inline where the asker probably means them: in the
//! trigger, the pointed-at message, the target, the starter, the message whose text is
//! adopted, and linked messages.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::engine::chain::ChainLink;
use crate::engine::select::Gathered;
use crate::engine::turn::Collected;
use crate::model::{Attachment, Extras, Message, Stage, UnixMillis};

use super::fetch::Fetcher;
use super::source::Source;

/// Extensions of text files, for files whose media type is missing or generic.
const TEXT_ENDINGS: [&str; 40] = [
    "c", "cfg", "conf", "cpp", "cs", "css", "csv", "diff", "env", "go", "h", "hpp", "html", "ini",
    "java", "js", "json", "jsonl", "kt", "log", "lua", "md", "patch", "php", "py", "rb", "rs",
    "sh", "sql", "svg", "swift", "toml", "ts", "tsv", "tsx", "txt", "vue", "xml", "yaml", "yml",
];
/// Media types that are text, in addition to `text/*`.
const TEXT_TYPES: [&str; 7] = [
    "application/json",
    "application/xml",
    "application/javascript",
    "application/toml",
    "application/x-yaml",
    "application/yaml",
    "application/sql",
];

/// Whether a file is text that can be shown.
fn is_text(file: &Attachment) -> bool {
    let is_type = |kind: &str| kind.starts_with("text/") || TEXT_TYPES.contains(&kind);
    file.claims_to_be(is_type, &TEXT_ENDINGS)
}

/// Which files are fetched.
#[derive(Clone, Copy)]
struct FileLimits {
    max_bytes: u64,
    /// When the question was asked.
    now: UnixMillis,
}

impl FileLimits {
    fn of(collected: &Collected) -> Self {
        Self {
            max_bytes: collected.turn.limits.max_file_bytes,
            now: collected.trigger().timestamp,
        }
    }
}

/// Puts the texts of short files into the scene's messages.
pub(super) async fn inline_all<S: Source>(fetcher: &Fetcher<'_, S>, collected: &mut Collected) {
    let limits = FileLimits::of(collected);
    inline_in(fetcher, worthwhile(collected), limits).await;
}

/// The same for linked messages.
pub(super) async fn inline_linked<S: Source>(fetcher: &Fetcher<'_, S>, collected: &mut Collected) {
    let limits = FileLimits::of(collected);
    let targets = collected.links.targets.iter_mut();
    let linked = targets.filter_map(|link| link.main.message_mut()).collect();
    inline_in(fetcher, linked, limits).await;
}

/// A message that occurs in several places is fetched once.
async fn inline_in<S: Source>(
    fetcher: &Fetcher<'_, S>,
    messages: Vec<&mut Arc<Message>>,
    limits: FileLimits,
) {
    let mut wanted: Vec<Arc<Message>> = Vec::new();
    for message in &messages {
        if wanted.iter().all(|other| other.id != message.id) {
            wanted.push(Arc::clone(message));
        }
    }
    let inlined = wanted
        .iter()
        .map(|message| inline(fetcher, message, limits));
    let inlined: Vec<Arc<Message>> = join_all(inlined).await.into_iter().flatten().collect();
    for message in messages {
        if let Some(new) = inlined.iter().find(|new| new.id == message.id) {
            *message = Arc::clone(new);
        }
    }
}

/// The message with its files' texts; `None` if there is nothing to fetch.
async fn inline<S: Source>(
    fetcher: &Fetcher<'_, S>,
    message: &Arc<Message>,
    FileLimits { max_bytes, now }: FileLimits,
) -> Option<Arc<Message>> {
    let files = message.extras.as_deref()?.files();
    let wanted: Vec<Attachment> = files
        .filter(|file| file.text.is_none() && file.size <= max_bytes && is_text(file))
        .cloned()
        .collect();
    if wanted.is_empty() {
        return None;
    }
    let at = (message.channel, message.id);
    let fresh = fetcher.at_fresh_addresses(Stage::File, at, wanted.clone(), now);
    let fresh = fresh.await;
    let texts = join_all(fresh.iter().map(|file| fetcher.file(file, max_bytes))).await;
    let mut message = Message::clone(message);
    let extras = message.extras.as_deref_mut()?;
    for (file, text) in wanted.iter().zip(texts) {
        let Some(text) = text else { continue };
        if let Some(slot) = files_mut(extras).find(|slot| *slot == file) {
            slot.text = Some(text.into());
        }
    }
    Some(Arc::new(message))
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

/// The messages whose files are worth fetching, the trigger first.
fn worthwhile(collected: &mut Collected) -> Vec<&mut Arc<Message>> {
    let mut messages = vec![&mut collected.turn.request.trigger];
    match &mut collected.gathered {
        Gathered::Thread(thread) => {
            for found in [&mut thread.pointed_at, &mut thread.starter] {
                messages.extend(found.message_mut());
            }
            messages.extend(thread.target.as_mut());
        }
        Gathered::Chain { links, .. } => {
            if let Some(ChainLink::Message(message)) = links.first_mut() {
                messages.push(message);
            }
        }
        Gathered::Tail(_) | Gathered::Recent(_) | Gathered::Conversation(_) | Gathered::Nothing => {
        }
    }
    messages.extend(collected.target.adopted.as_mut());
    messages
}
