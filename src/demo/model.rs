//! The demo's model: it follows a script, which shows what a model can do here.

use std::io;

use serde_json::{Value, json};

use crate::sandbox;
use clew_simulator::{ModelReply, ScriptedModel};

pub(super) async fn start() -> io::Result<ScriptedModel> {
    ScriptedModel::start(reply).await
}

/// The settings with which the bot asks it.
pub(super) fn settings(model: &ScriptedModel) -> Vec<(String, String)> {
    sandbox::settings([
        ("LLM_BASE_URL", model.url()),
        ("LLM_MODEL", "script".to_owned()),
    ])
}

fn reply(request: &Value) -> ModelReply {
    let messages = request["messages"].as_array();
    let texts = messages.into_iter().flatten().filter_map(text);
    let texts: Vec<(&str, &str)> = texts.collect();
    let asked = texts.iter().rfind(|(role, _)| *role == "user");
    let asked = asked.map_or("", |(_, text)| *text);
    let result = texts.iter().find(|(role, _)| *role == "tool");
    match result {
        None if asked.starts_with(r#"{"conversations""#) => ModelReply::Text(summary(asked)),
        Some((_, result)) => ModelReply::Text(quoted_result(result)),
        None if asked.contains("log") => call("list_thread", &json!({"thread": "#gate"})),
        None if asked.contains("hollow") => {
            call("search_messages", &json!({"words": "hollow sand"}))
        }
        None => ModelReply::Text(quoted_recall(asked)),
    }
}

fn call(tool: &str, arguments: &Value) -> ModelReply {
    ModelReply::ToolCalls(vec![(tool.to_owned(), arguments.to_string())])
}

/// Of what a tool gave the line that is asked for.
fn quoted_result(result: &str) -> String {
    let is_asked = |line: &&str| ["folder", "hollow"].iter().any(|word| line.contains(word));
    let line = result.lines().find(is_asked);
    // Each line begins with the message's id, mark and day.
    let mut parts = line.unwrap_or_default().splitn(4, ' ').skip(1);
    match (parts.next(), parts.nth(1)) {
        (Some(mark), Some(said)) => format!("Somebody said: {said} {mark}"),
        _ => "Somebody said: nothing of it".to_owned(),
    }
}

/// What was decided and left open, with the numbers of the messages that show it.
fn summary(asked: &str) -> String {
    let known = [
        ("needs a new one", "decided", "Pump 4 gets a new seal"),
        ("the store has none", "open", "Where the seal comes from"),
        (
            "if they bring boots",
            "decided",
            "Ines shows the visitors round",
        ),
    ];
    let data: Value = serde_json::from_str(asked).unwrap_or_default();
    let conversations = data["conversations"].as_array().into_iter().flatten();
    let lines = conversations.filter_map(|one| one["messages"].as_array());
    let lines = lines.flatten().filter_map(Value::as_str);
    let points = lines.filter_map(|line| {
        let (_, kind, text) = known.iter().find(|(said, ..)| line.contains(said))?;
        let number: usize = line.split(' ').next()?.parse().ok()?;
        Some(json!({"kind": kind, "text": text, "from": [number]}))
    });
    json!({"points": points.collect::<Vec<_>>()}).to_string()
}

/// The first line of what is recalled, if anything is.
fn quoted_recall(asked: &str) -> String {
    let mut lines = asked
        .lines()
        .skip_while(|line| !line.starts_with("<recalled"));
    let said = lines.find(|line| line.contains(": "));
    said.map_or_else(
        || "Noted.".to_owned(),
        |said| format!("You told me: {said}"),
    )
}

fn text(message: &Value) -> Option<(&str, &str)> {
    Some((message["role"].as_str()?, message["content"].as_str()?))
}
