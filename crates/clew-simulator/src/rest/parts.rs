//! Embeds, buttons, files and choices that Discord refuses (its reference, "Embed
//! Limits", "Component Reference", "Autocomplete").

use std::collections::BTreeSet;

use serde_json::Value;

use super::answer::Refusal;

/// Component types.
const ACTION_ROW: u64 = 1;
const BUTTON: u64 = 2;
/// The first type of components v2, which are not checked.
const FIRST_V2: u64 = 9;
/// The button style for links, which have no custom id.
const LINK: u64 = 5;

/// Checks the embeds, components and attachments of a message's body.
pub(super) fn check(body: &Value) -> Result<(), Refusal> {
    check_embeds(items(&body["embeds"]))?;
    check_components(items(&body["components"]))?;
    if items(&body["attachments"]).len() > 10 {
        return Err(too_many("attachments", 10));
    }
    Ok(())
}

/// Checks the choices of an autocompletion.
pub(super) fn check_choices(choices: &Value) -> Result<(), Refusal> {
    let choices = items(choices);
    if choices.len() > 25 {
        return Err(too_many("choices", 25));
    }
    choices.iter().try_for_each(|choice| {
        text(&choice["name"], "choices", 1, 100)?;
        match &choice["value"] {
            Value::Number(_) => Ok(()),
            value => text(value, "choices", 1, 100).map(drop),
        }
    })
}

fn check_embeds(embeds: &[Value]) -> Result<(), Refusal> {
    if embeds.len() > 10 {
        return Err(too_many("embeds", 10));
    }
    let mut total = 0;
    for embed in embeds {
        total += text(&embed["title"], "embeds", 0, 256)?;
        total += text(&embed["description"], "embeds", 0, 4_096)?;
        total += text(&embed["footer"]["text"], "embeds", 0, 2_048)?;
        total += text(&embed["author"]["name"], "embeds", 0, 256)?;
        let fields = items(&embed["fields"]);
        if fields.len() > 25 {
            return Err(too_many("embeds", 25));
        }
        for field in fields {
            total += text(&field["name"], "embeds", 1, 256)?;
            total += text(&field["value"], "embeds", 1, 1_024)?;
        }
    }
    if total > 6_000 {
        let message = "Embed size exceeds maximum size of 6000";
        let code = "MAX_EMBED_SIZE_EXCEEDED";
        return Err(Refusal::invalid("embeds", code, message));
    }
    Ok(())
}

fn check_components(rows: &[Value]) -> Result<(), Refusal> {
    let kind = |component: &Value| component["type"].as_u64().unwrap_or(0);
    if rows.iter().any(|row| kind(row) >= FIRST_V2) {
        return Ok(());
    }
    if rows.len() > 5 {
        return Err(too_many("components", 5));
    }
    let mut ids = BTreeSet::new();
    for row in rows {
        if kind(row) != ACTION_ROW {
            let message = "Value of field \"type\" must be one of (1,).";
            return Err(refused("UNION_TYPE_CHOICES", message));
        }
        let inner = items(&row["components"]);
        if !(1..=5).contains(&inner.len()) {
            return Err(too_many("components", 5));
        }
        for component in inner {
            if kind(component) == BUTTON {
                check_button(component)?;
            }
            if let Some(id) = component["custom_id"].as_str()
                && !ids.insert(id)
            {
                let message = "Component custom id cannot be duplicated";
                let code = "COMPONENT_CUSTOM_ID_DUPLICATED";
                return Err(refused(code, message));
            }
        }
    }
    Ok(())
}

fn check_button(button: &Value) -> Result<(), Refusal> {
    let style = button["style"].as_u64().unwrap_or(0);
    if !(1..=6).contains(&style) {
        let message = "Value must be one of {1, 2, 3, 4, 5, 6}.";
        return Err(refused("BASE_TYPE_CHOICES", message));
    }
    text(&button["label"], "components", 0, 80)?;
    if style < LINK {
        text(&button["custom_id"], "components", 1, 100)?;
    }
    if button["label"].as_str().unwrap_or_default().is_empty() && button["emoji"].is_null() {
        let message = "A button must have a label or an emoji";
        let code = "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED";
        return Err(refused(code, message));
    }
    Ok(())
}

/// A refusal of components.
fn refused(code: &str, message: &str) -> Refusal {
    Refusal::invalid("components", code, message)
}

/// Checks a text's length, ignoring white space at its ends, and returns it.
pub(super) fn text(
    value: &Value,
    field: &str,
    least: usize,
    most: usize,
) -> Result<usize, Refusal> {
    let length = value.as_str().unwrap_or_default().trim().chars().count();
    if length < least {
        let message = "This field is required";
        return Err(Refusal::invalid(field, "BASE_TYPE_REQUIRED", message));
    }
    if length > most {
        let message = format!("Must be {most} or fewer in length.");
        return Err(Refusal::invalid(field, "BASE_TYPE_MAX_LENGTH", &message));
    }
    Ok(length)
}

pub(super) fn too_many(field: &str, most: usize) -> Refusal {
    let message = format!("Must be {most} or fewer in length.");
    Refusal::invalid(field, "BASE_TYPE_BAD_LENGTH", &message)
}

pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
