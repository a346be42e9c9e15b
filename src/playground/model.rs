//! The playground's model: it has no mind, but shows at once what it was given. A question that
//! begins with `search` or `catch up` makes it call that tool, `call NAME` with JSON any other,
//! and it cites or repeats what that gave.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use crate::model::{BuiltIn, cut};
use crate::sandbox;
use clew_simulator::{ModelReply, ScriptedModel};

/// Between two words, so that one sees an answer grow.
const PAUSE: Duration = Duration::from_millis(15);
/// How much of a message it quotes, in Unicode scalars.
const QUOTED: usize = 160;
/// The most messages that it cites, and the most points that it makes.
const CITED: usize = 3;
const POINTS: usize = 10;

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

fn reply(request: &Value) -> ModelReply {
    let messages = request["messages"].as_array();
    let last = messages.and_then(|messages| messages.last());
    let [role, text] = ["role", "content"].map(|key| last.and_then(|one| one[key].as_str()));
    match (role, text.unwrap_or_default()) {
        (Some("tool"), result) => ModelReply::Text(found(result)),
        (_, text) => {
            let asked = text.lines().next_back().unwrap_or_default();
            let call = request.get("tools").and_then(|_| called(asked));
            let points = || points(text).map(ModelReply::Text);
            call.or_else(points).unwrap_or_else(|| told(request))
        }
    }
}

/// The call of the tool that a question asks for.
fn called(asked: &str) -> Option<ModelReply> {
    let (tool, arguments) = if let Some(words) = asked.strip_prefix("search ") {
        let words = json!({ "words": words });
        (BuiltIn::SearchMessages.as_str(), words.to_string())
    } else if let Some(call) = asked.strip_prefix("call ") {
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        (name, arguments.to_owned())
    } else if asked.starts_with("catch up") {
        (BuiltIn::CatchUp.as_str(), "{}".to_owned())
    } else {
        return None;
    };
    let call = (tool.to_owned(), arguments);
    Some(ModelReply::ToolCalls(vec![call]))
}

/// The first messages that a tool gave, with their marks.
fn found(result: &str) -> String {
    let marked = result.match_indices("[msg:").filter_map(|(at, _)| {
        let (mark, said) = result[at..].split_once(' ')?;
        let said = said.split(['\n', '"']).next()?;
        Some(format!("> {} {mark}\n", short(said)))
    });
    let lines: String = marked.take(CITED).collect();
    if lines.is_empty() {
        let said: Vec<&str> = result.lines().filter(|line| !is_frame(line)).collect();
        return format!(
            "The tool gave me nothing that I could cite:\n> {}",
            short(&said.join(" "))
        );
    }
    format!("The tool gave me:\n{lines}")
}

/// Points about the conversations of a summary: what was said last in each. Points that are to be
/// joined stay what they are.
fn points(data: &str) -> Option<String> {
    let data: Value = serde_json::from_str(data).ok()?;
    if data["points"].is_array() {
        return Some(data.to_string());
    }
    let last = |one: &Value| {
        let line = one["messages"].as_array()?.last()?.as_str()?;
        let mut parts = line.splitn(3, ' ');
        let number: usize = parts.next()?.parse().ok()?;
        let said = parts.nth(1)?;
        let kind = if said.ends_with('?') {
            "open"
        } else {
            "decided"
        };
        Some(json!({"kind": kind, "text": short(said), "from": [number]}))
    };
    let conversations = data["conversations"].as_array()?.iter();
    let points: Vec<Value> = conversations.filter_map(last).take(POINTS).collect();
    Some(json!({ "points": points }).to_string())
}

/// Tells what stands in the prompt: how many messages, the first, the last, the question.
fn told(request: &Value) -> ModelReply {
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
