//! What people write, and how they use a command.

use clew_simulator::Id;
use serde_json::{Value, json};

use crate::history::{Mark, MarkOf};
use crate::plan::Command;

/// What somebody says first.
pub(super) fn words(mark: Mark, bot: Id) -> String {
    match mark.of {
        MarkOf::Question => format!("<@{bot}> {mark} what about it"),
        _ => format!("{mark} is what I say"),
    }
}

/// What its words are, if it is given any.
pub(super) fn mark_of(command: Command) -> Option<MarkOf> {
    match command {
        Command::Remember => Some(MarkOf::Fact),
        Command::Run => Some(MarkOf::Task),
        _ => None,
    }
}

/// Its name, its options, and which button of its answer is pressed.
pub(super) fn wording(
    command: Command,
    mark: Option<Mark>,
) -> (&'static str, Value, Option<&'static str>) {
    let words = mark.map(|mark| mark.to_string()).unwrap_or_default();
    let none = json!({});
    match command {
        Command::OptOut => ("privacy opt-out", none, Some("Opt out and erase")),
        Command::OptIn => ("privacy opt-in", none, None),
        Command::Erase => ("privacy erase", none, Some("Erase everything")),
        Command::Clear => ("context clear", none, None),
        Command::Save => ("context save", none, None),
        Command::Show => ("context show", none, None),
        Command::Why => ("context why", none, None),
        Command::DeleteConversation => ("clear-context", none, Some("Delete")),
        Command::Remember => {
            let fact = json!({"text": format!("likes {words} more than others")});
            ("memory remember", fact, None)
        }
        Command::SetLone(lone) => ("settings set", json!({"lone-context": lone}), None),
        Command::SetLearning(learning) => ("settings set", json!({"learning": learning}), None),
        Command::SetButtons => ("settings set", json!({"buttons": "on"}), None),
        Command::Run => {
            let task = json!({"task": format!("{words} is to be done")});
            ("agent run", task, None)
        }
        Command::StopRun => ("agent stop", none, None),
    }
}
