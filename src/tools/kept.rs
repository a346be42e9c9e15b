//! What tools gave is kept at once; of what is too long for a prompt the model gets the two
//! ends and where the rest is.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::asker::Asker;
use super::result::{ToolError, ToolResult};
use crate::memory::{ContextPointer, KeptOutput, MadeOutput};
use clew_context::engine::{sanitise, shorten};
use clew_context::model::{ContentSource, UnixMillis};

/// How much of a long result the model gets, in Unicode scalars.
const ENDS_CHARS: usize = 4_000;

/// Keeps a result, and makes it fit.
pub(super) async fn kept(
    asker: &Asker<'_>,
    tool: &str,
    args: Map<String, Value>,
    began: UnixMillis,
    result: ToolResult,
) -> ToolResult {
    let known = result.sources.iter();
    let known: BTreeSet<ContentSource> = known.copied().collect();
    let mut seen = asker.seen.difference(&known).peekable();
    // What was seen before this tool began was read since the question was asked.
    let began = match seen.peek() {
        Some(_) => asker.said.asked,
        None => began,
    };
    let made = MadeOutput {
        tool,
        args,
        text: &result.text,
        // The arguments, which name the result, may be made from what was seen.
        sources: result.sources.iter().chain(seen).copied().collect(),
        query: &asker.said.words,
        task: asker.task,
        asked: asker.said.asked,
        began,
    };
    let is_inline = asker.memory.is_inline(result.text.len());
    let kept = if asker.owns_nothing {
        KeptOutput::Off
    } else {
        asker.memory.keep_output(asker.place, made).await
    };
    let (note, output) = match kept {
        KeptOutput::SourceRemoved => return ToolResult::of_error(&ToolError::SourceRemoved),
        KeptOutput::Kept(id) => {
            let note =
                format!("(This result is long. `read_output` with `id` {id} reads all of it.)");
            (note, Some(id))
        }
        KeptOutput::Off | KeptOutput::Failed => {
            let note = "(This result is long, and could not be kept: the rest is lost.)";
            (note.to_owned(), None)
        }
    };
    let text = if is_inline {
        result.text
    } else {
        let ends = shorten::head_and_tail(&result.text, ENDS_CHARS);
        format!("{note}\n{}", ends.unwrap_or(result.text))
    };
    ToolResult {
        text,
        output,
        ..result
    }
}

/// An output in one line: its id, when it was made, what about, and its size.
pub fn line(pointer: &ContextPointer) -> String {
    let about = sanitise::line(&pointer.tool_description);
    let (id, time) = (&pointer.id, pointer.time.minute());
    format!("{id} | {time} UTC | {about} | {} bytes", pointer.bytes)
}
