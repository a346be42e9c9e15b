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
    let said = line.and_then(|line| line.splitn(4, ' ').nth(3));
    format!("Somebody said: {}", said.unwrap_or("nothing of it"))
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
