//! The playground's model: it has no mind, but shows at once what it was given.

use std::io;
use std::time::Duration;

use serde_json::Value;

use crate::model::cut;
use crate::sandbox;
use clew_simulator::{ModelReply, ScriptedModel};

/// Between two words, so that one sees an answer grow.
const PAUSE: Duration = Duration::from_millis(15);
/// How much of a message it quotes, in Unicode scalars.
const QUOTED: usize = 160;

pub(super) async fn start() -> io::Result<ScriptedModel> {
    ScriptedModel::start_at_pace(PAUSE, reply).await
}

/// The settings with which the bot asks it.
pub(super) fn settings(model: &ScriptedModel) -> Vec<(String, String)> {
    sandbox::settings([
        ("LLM_BASE_URL", model.url()),
        ("LLM_MODEL", "scripted".to_owned()),
        ("LLM_VISION", "off".to_owned()),
    ])
}

/// Tells what stands in the prompt: how many messages, the first, the last, the question.
fn reply(request: &Value) -> ModelReply {
    let messages = request["messages"].as_array();
    let texts = |role: Option<&'static str>| {
        let messages = messages.into_iter().flatten();
        let messages = messages.filter(move |one| role.is_none_or(|role| one["role"] == role));
        messages.filter_map(|one| one["content"].as_str())
    };
    let chars: usize = texts(None).map(|text| text.chars().count()).sum();
    let question = texts(Some("user")).next_back().unwrap_or_default().lines();
    let question = question.rev().find(|line| !is_frame(line));
    let said = said(texts(Some("user")));
    let mut lines = vec![format!(
        "I am the playground's own model: I only repeat what I was given. It was {chars} \
         characters, with {} messages of the conversation.",
        said.len()
    )];
    match said.as_slice() {
        [] => {}
        [only] => lines.push(format!("It is:\n> {}", short(only))),
        [first, .., last] => {
            lines.push(format!("The first:\n> {}", short(first)));
            lines.push(format!("The last:\n> {}", short(last)));
        }
    }
    if let Some(question) = question {
        lines.push(format!("And then the question:\n> {}", short(question)));
    }
    lines.push(
        "With LLM_BASE_URL and LLM_MODEL a real model answers. What it reads is the same, and \
         stands beside this."
            .to_owned(),
    );
    ModelReply::Text(lines.join("\n"))
}

/// The messages inside the context's frame: lines such as `03:04 name: words`.
fn said<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let inside = texts.filter_map(|text| {
        let (_, rest) = text.split_once("<discord-context ")?;
        Some(
            rest.split_once("</discord-context ")
                .map_or(rest, |(inside, _)| inside),
        )
    });
    let lines = inside.flat_map(str::lines);
    lines.filter(|line| is_header(line)).collect()
}

/// Whether a line begins with a time of day.
fn is_header(line: &str) -> bool {
    let bytes = line.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    digit(0) && digit(1) && bytes.get(2) == Some(&b':') && digit(3) && digit(4)
}

fn is_frame(line: &str) -> bool {
    line.is_empty() || line.starts_with('<') || line.starts_with('[')
}

fn short(text: &str) -> String {
    cut(text.trim(), QUOTED, "…")
}
