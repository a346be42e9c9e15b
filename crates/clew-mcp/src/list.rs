//! Which of the tools that a server lists are offered, and as what.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::config::plain;
use crate::model::Tool;

/// Tools of one server at most; those after are left out, and that is logged.
const MAX_TOOLS: usize = 128;

/// Characters of a description that a model is told.
const MAX_DESCRIPTION: usize = 1_024;

/// Bytes of a schema as JSON; a tool with a larger one is not offered.
const MAX_SCHEMA: usize = 16 * 1024;

/// Characters of a tool's name; models take no more.
const MAX_NAME: usize = 64;

/// The allowed ones of those that a server lists, and why others are left out.
pub(crate) fn allowed(
    server: &Arc<str>,
    listed: Vec<rmcp::model::Tool>,
    allow: &[String],
) -> (Vec<Tool>, Vec<String>) {
    let mut tools = BTreeMap::new();
    let mut problems = Vec::new();
    for tool in listed {
        if !allow.iter().any(|name| *name == tool.name) {
            continue;
        }
        match of(server, tool) {
            Ok(tool) if tools.len() < MAX_TOOLS => {
                tools.entry(tool.name.clone()).or_insert(tool);
            }
            Ok(tool) => problems.push(format!("{}: more than {MAX_TOOLS} tools", tool.remote)),
            Err(problem) => problems.push(problem),
        }
    }
    (tools.into_values().collect(), problems)
}

fn of(server: &Arc<str>, tool: rmcp::model::Tool) -> Result<Tool, String> {
    let name = format!("{server}__{}", plain(&tool.name));
    if name.len() > MAX_NAME {
        return Err(format!(
            "{}: a name of more than {MAX_NAME} letters",
            tool.name
        ));
    }
    let schema = (*tool.input_schema).clone();
    let bytes = serde_json::to_string(&schema).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_SCHEMA {
        return Err(format!(
            "{name}: a schema of {bytes} bytes, {MAX_SCHEMA} are taken"
        ));
    }
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(format!("{name}: its schema is not an object's"));
    }
    let mut description = tool.description.unwrap_or_default().into_owned();
    description.retain(|one| one == '\n' || !one.is_control());
    if let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION) {
        description.truncate(end);
    }
    let hints = tool.annotations.as_ref();
    Ok(Tool {
        name: name.into(),
        server: server.clone(),
        remote: tool.name.into_owned().into(),
        description,
        schema,
        says_read_only: hints.and_then(|hints| hints.read_only_hint) == Some(true),
    })
}
