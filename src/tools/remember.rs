//! `remember`: notes a fact about the asker.

use super::asker::Asker;
use super::result::{ToolError, ToolOutput};
use super::{Arguments, Tool, run};
use crate::memory::{Keywords, NoteOutcome};
use crate::model::{BuiltIn, ToolDefinition, ToolParameter};

pub(super) const REMEMBER: Tool = Tool {
    definition: ToolDefinition::built_in(
        BuiltIn::Remember,
        "Notes a lasting fact about the asker. Call it only if the asker's own message \
                asks you to remember something.",
        &[ToolParameter::required(
            FACT,
            "One short sentence about the asker that begins with a verb, in the asker's \
                    own words.",
        )],
    ),
    run: run!(remember),
    is_kept: false,
};

const FACT: &str = "fact";

async fn remember(asker: &Asker<'_>, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
    let fact = arguments.required(FACT)?;
    // A fact keeps no sources and is shown in every channel: nothing from elsewhere may be
    // in it.
    let is_own = asker.seen.is_empty() || Keywords::of(&asker.said.words).cover(&fact);
    let noted = if is_own {
        asker.memory.note(asker.said, &fact).await?
    } else {
        NoteOutcome::Refused
    };
    Ok(ToolOutput::line(match noted {
        NoteOutcome::Noted => "It is noted.",
        NoteOutcome::Known => "It is known already.",
        NoteOutcome::Refused => {
            "It was not noted: a fact must be about the asker, in words of their message, and \
             neither an order nor a secret."
        }
        NoteOutcome::Full => "It was not noted: there is no room. `/memory forget` makes some.",
        NoteOutcome::Off => "It was not noted: nothing is noted about the asker here.",
    }))
}
