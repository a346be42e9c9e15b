//! `forget`: forgets facts about the asker.

use super::asker::Asker;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};

pub(super) const FORGET: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::Forget,
        "Forgets a fact about the asker. Call it only if the asker's own message asks \
                you to forget it.",
        &[ToolParameter::required(
            FACT,
            "The fact as you know it, or part of it.",
        )],
    ),
    run: run!(forget),
    is_kept: false,
};

const FACT: &str = "fact";

async fn forget(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let fact = arguments.required(FACT)?;
    let gone = asker.memory.unnote(asker.said, &fact).await?;
    Ok(ToolOutput::line(match gone {
        0 => {
            "Nothing was forgotten: no such fact has a word of the asker's message. \
             `/memory forget` shows them all."
        }
        1 => "It is forgotten.",
        _ => "They are forgotten.",
    }))
}
