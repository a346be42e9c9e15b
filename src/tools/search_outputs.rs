//! `search_outputs`: finds what tools gave earlier in the conversation.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::asker::Asker;
use super::kept::line;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::engine::sources::elsewhere;
use crate::memory::Memory;
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};
use clew_context::model::ContentSource;

pub(super) const SEARCH_OUTPUTS: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::SearchOutputs,
        "Finds results that your tools gave earlier in this conversation, by words of \
                their calls. Gives one line each, beginning with the id for read_output.",
        &[ToolParameter::optional(
            WORDS,
            "Words of the calls; the newest results if left out.",
        )],
    ),
    run: run!(search_outputs),
    is_kept: false,
};

const WORDS: &str = "words";
/// Results shown.
const MAX_SHOWN: usize = 20;
/// What is said if there are none.
const NOTHING: &str = "No earlier result was found.";
/// What is said if none matches, before the newest.
const NO_MATCH: &str = "Nothing matches. The newest results:";

async fn search_outputs(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let pointers = asker.outputs().await;
    if pointers.is_empty() {
        return Ok(ToolOutput::line(NOTHING));
    }
    let words = arguments.text(WORDS);
    let matching = words.map(|words| Memory::offers(&words, &pointers, MAX_SHOWN));
    let mut text = String::new();
    if matching.as_ref().is_some_and(Vec::is_empty) {
        let _ = writeln!(text, "{NO_MATCH}");
    }
    let newest = || pointers.iter().rev().take(MAX_SHOWN).collect();
    let found: Vec<_> = matching
        .filter(|found| !found.is_empty())
        .unwrap_or_else(newest);
    // Of the results only the calls are shown: the model's words, which may repeat what it
    // had seen.
    let mut sources = BTreeSet::new();
    for pointer in found {
        let _ = writeln!(text, "{}", line(pointer));
        let elsewhere = elsewhere(pointer.sources.iter().copied(), asker.place.channel);
        sources.extend(elsewhere.map(ContentSource::without_message));
    }
    Ok(ToolOutput {
        sources: sources.into_iter().collect(),
        ..ToolOutput::line(&text)
    })
}
