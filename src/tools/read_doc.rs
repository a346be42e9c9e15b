//! `read_doc`: the agent's own documents, page by page.

use super::asker::Asker;
use super::read_output::{PAGE, page, page_of};
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};

pub(super) const READ_DOC: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::ReadDoc,
        "Reads one of your own documents, which your operator wrote. Your instructions \
                list them and show only the passages that match the question.",
        &[
            ToolParameter::required(
                DOC,
                "Its name as listed; with ` > ` and a heading, what stands below that; or \
                        words to find in all of them, as the documents would say it.",
            ),
            ToolParameter::optional(PAGE, "Which page, from 1, which is the default."),
        ],
    ),
    run: run!(read_doc),
    is_kept: false,
};

const DOC: &str = "doc";

async fn read_doc(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let (title, page) = (arguments.required(DOC)?, page(arguments)?);
    let section = asker.docs.read(&title).ok_or(ToolError::NoDoc)?;
    let (title, text) = (section.name, page_of(&section.text, page));
    let text = format!("From your operator's documents, {title}:\n{text}");
    Ok(ToolOutput::line(&text))
}
