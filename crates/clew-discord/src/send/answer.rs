//! Encodes our answers as Discord's JSON.

use serde_json::{Value, json};

use super::FileUpload;
use crate::model::{Answer, AnswerButton, AnswerEmbed, ButtonStyle};
use clew_context::model::MessageFlags;

/// Component types (Discord's reference, "Component Reference").
const ACTION_ROW: u8 = 1;
const BUTTON: u8 = 2;

/// A whole message. As an edit it replaces text, embeds, buttons and files, so
/// that no old button remains.
pub(super) fn message(answer: &Answer) -> Value {
    json!({
        "content": answer.text(),
        "embeds": answer.embed.iter().map(embed).collect::<Vec<Value>>(),
        "components": rows(&answer.buttons),
        "attachments": attachments(&answer.files),
        "allowed_mentions": {"parse": []},
    })
}

/// The same, as a new answer to an interaction.
pub(super) fn new_message(answer: &Answer) -> Value {
    let mut message = message(answer);
    message["flags"] = json!(flags(answer.ephemeral));
    message
}

pub(super) const fn flags(ephemeral: bool) -> u32 {
    if ephemeral {
        MessageFlags::EPHEMERAL.0
    } else {
        0
    }
}

/// Buttons as an edit that changes nothing else.
pub(super) fn only_buttons(buttons: &[AnswerButton]) -> Value {
    json!({"components": rows(buttons)})
}

/// The rows of buttons, within Discord's limits.
pub(super) fn rows(buttons: &[AnswerButton]) -> Value {
    AnswerButton::rows(buttons).map(row).collect()
}

/// Lists the files of this request.
pub(super) fn attachments(files: &[FileUpload]) -> Value {
    let files = files.iter().enumerate();
    files
        .map(|(id, (name, _))| json!({"id": id.to_string(), "filename": name}))
        .collect()
}

fn embed(embed: &AnswerEmbed) -> Value {
    let embed = embed.fitted();
    let mut object = json!({});
    let texts = [("title", &embed.title), ("description", &embed.description)];
    for (key, text) in texts {
        if !text.is_empty() {
            object[key] = json!(text);
        }
    }
    if !embed.footer.is_empty() {
        object["footer"] = json!({"text": embed.footer});
    }
    if !embed.fields.is_empty() {
        let fields = embed.fields.iter();
        object["fields"] = fields
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
    }
    object
}

fn row(buttons: &[AnswerButton]) -> Value {
    let buttons: Vec<Value> = buttons
        .iter()
        .map(|one| {
            json!({
                "type": BUTTON,
                "style": style(one.style),
                "label": one.text(),
                "custom_id": one.custom_id,
            })
        })
        .collect();
    json!({"type": ACTION_ROW, "components": buttons})
}

/// Discord's reference, "Button Styles".
const fn style(style: ButtonStyle) -> u8 {
    match style {
        ButtonStyle::Primary => 1,
        ButtonStyle::Secondary => 2,
        ButtonStyle::Danger => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_all_that_it_replaces() {
        let bare = message(&Answer::for_all("@everyone"));
        let expected = json!({
            "content": "@everyone", "embeds": [], "components": [], "attachments": [],
            "allowed_mentions": {"parse": []},
        });
        assert_eq!(bare, expected);
        assert_eq!(new_message(&Answer::for_caller("x"))["flags"], 64);
        assert_eq!(new_message(&Answer::for_all("x"))["flags"], 0);
    }

    #[test]
    fn parts_are_written_as_discord_names_them() {
        let answer = Answer::for_caller("")
            .with_embed(AnswerEmbed {
                title: "Title".to_owned(),
                fields: vec![("name".to_owned(), String::new())],
                footer: "small".to_owned(),
                ..AnswerEmbed::default()
            })
            .with_button("Erase", ButtonStyle::Danger, "erase")
            .with_button("Keep", ButtonStyle::Secondary, "cancel")
            .with_file("a.json", vec![1])
            .with_file("b.json", vec![2]);
        let sent = message(&answer);
        let embed = json!([{
            "title": "Title", "footer": {"text": "small"},
            "fields": [{"name": "name", "value": "\u{200b}"}],
        }]);
        assert_eq!(sent["embeds"], embed);
        let rows = json!([{"type": 1, "components": [
            {"type": 2, "style": 4, "label": "Erase", "custom_id": "erase"},
            {"type": 2, "style": 2, "label": "Keep", "custom_id": "cancel"},
        ]}]);
        assert_eq!(sent["components"], rows);
        let files = json!([{"id": "0", "filename": "a.json"}, {"id": "1", "filename": "b.json"}]);
        assert_eq!(sent["attachments"], files);
    }
}
