//! `read_output`: what a tool gave earlier in the conversation, page by page.

use super::asker::Asker;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::memory::OutputId;
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};

pub(super) const READ_OUTPUT: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::ReadOutput,
        "Reads a result that a tool gave earlier in this conversation, by the id that \
                search_outputs or a shortened result names.",
        &[
            ToolParameter::required(ID, "The result's id."),
            ToolParameter::optional(PAGE, "Which page, from 1, which is the default."),
        ],
    ),
    run: run!(read_output),
    is_kept: false,
};

const ID: &str = "id";
/// The argument that [`page()`] reads.
pub(super) const PAGE: &str = "page";
/// The length of a page, in Unicode scalars.
const PAGE_CHARS: usize = 8_000;

async fn read_output(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let id = OutputId::new(arguments.required(ID)?);
    let page = page(arguments)?;
    let pointers = asker.outputs().await;
    let pointer = pointers.iter().find(|pointer| pointer.id == id);
    let pointer = pointer.ok_or(ToolError::NoOutput)?;
    let text = asker.memory.output(pointer).await?;
    let text = text.ok_or(ToolError::NoOutput)?;
    let mut output = ToolOutput::line(&page_of(&text, page));
    output.sources = pointer.sources.to_vec();
    Ok(output)
}

/// The page that is asked for, from 1.
pub(super) fn page(arguments: &Arguments) -> Result<usize, ToolError> {
    match arguments.text(PAGE).map(|text| text.parse()) {
        None => Ok(1),
        Some(Ok(page @ 1_usize..)) => Ok(page),
        Some(_) => Err(ToolError::Argument(PAGE)),
    }
}

/// A page of a text, below its number.
pub(super) fn page_of(text: &str, page: usize) -> String {
    let pages = text.chars().count().div_ceil(PAGE_CHARS).max(1);
    let skipped = (page - 1).saturating_mul(PAGE_CHARS);
    let shown: String = text.chars().skip(skipped).take(PAGE_CHARS).collect();
    format!("(page {page} of {pages})\n{shown}")
}
