//! Command definitions that Discord refuses (its reference, "Application Command Object").

use std::collections::BTreeSet;

use serde_json::Value;

use super::answer::Refusal;
use super::parts::{items, text, too_many};

/// Types of commands and options; 0 stands for the command itself.
const CHAT_INPUT: u64 = 1;
const COMMAND: u64 = 0;
const SUB_COMMAND: u64 = 1;
const SUB_COMMAND_GROUP: u64 = 2;

pub(super) fn check(command: &Value) -> Result<(), Refusal> {
    let chat = command["type"].as_u64().unwrap_or(CHAT_INPUT) == CHAT_INPUT;
    text(&command["name"], "name", 1, 32)?;
    if !chat {
        return Ok(());
    }
    check_name(&command["name"])?;
    text(&command["description"], "description", 1, 100)?;
    check_options(items(&command["options"]), COMMAND)
}

/// Checks the options of a command, group or subcommand.
fn check_options(options: &[Value], parent: u64) -> Result<(), Refusal> {
    if options.len() > 25 {
        return Err(too_many("options", 25));
    }
    let kind = |option: &Value| option["type"].as_u64().unwrap_or(0);
    let nests = |option: &Value| matches!(kind(option), SUB_COMMAND | SUB_COMMAND_GROUP);
    if options.iter().any(nests) && !options.iter().all(nests) {
        let message = "Sub-command and sub-command group option types are mutually exclusive to \
                       all other types";
        return Err(refused("APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", message));
    }
    let required = |option: &Value| option["required"] == true;
    if !options.is_sorted_by_key(|option| !required(option)) {
        let message = "Required options must be placed before non-required options";
        let code = "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID";
        return Err(refused(code, message));
    }
    let mut names = BTreeSet::new();
    for option in options {
        check_name(&option["name"])?;
        text(&option["description"], "options", 1, 100)?;
        if !names.insert(option["name"].as_str()) {
            let message = "Option name must be unique";
            let code = "APPLICATION_COMMAND_OPTIONS_NAME_INVALID";
            return Err(refused(code, message));
        }
        let misplaced = match kind(option) {
            SUB_COMMAND => parent == SUB_COMMAND,
            SUB_COMMAND_GROUP => parent != COMMAND,
            3..=11 => parent == SUB_COMMAND_GROUP,
            _ => true,
        };
        if misplaced {
            let message = "Value is not a type that may stand here.";
            return Err(refused("BASE_TYPE_CHOICES", message));
        }
        check_values(option)?;
        if nests(option) {
            check_options(items(&option["options"]), kind(option))?;
        }
    }
    Ok(())
}

/// Checks choices, autocompletion and lengths.
fn check_values(option: &Value) -> Result<(), Refusal> {
    let choices = items(&option["choices"]);
    super::parts::check_choices(&option["choices"])?;
    if option["autocomplete"] == true && !choices.is_empty() {
        let message = "Autocomplete and choices cannot be both used";
        return Err(refused(
            "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE_INVALID",
            message,
        ));
    }
    let length = |key: &str| option[key].as_u64().unwrap_or(1);
    if !(1..=6_000).contains(&length("max_length")) || length("min_length") > 6_000 {
        return Err(refused(
            "NUMBER_TYPE_MAX",
            "int value should be between 1 and 6000.",
        ));
    }
    Ok(())
}

/// The name must match `^[-_'\p{L}\p{N}]{1,32}$`, in lower case.
fn check_name(name: &Value) -> Result<(), Refusal> {
    let name = name.as_str().unwrap_or_default();
    let fits = |c: char| (c.is_alphanumeric() && !c.is_uppercase()) || "-_'".contains(c);
    if (1..=32).contains(&name.chars().count()) && name.chars().all(fits) {
        return Ok(());
    }
    let message = "Command name is invalid";
    let code = "APPLICATION_COMMAND_INVALID_NAME";
    Err(Refusal::invalid("name", code, message))
}

fn refused(code: &str, message: &str) -> Refusal {
    Refusal::invalid("options", code, message)
}
