//! Tools as a request describes them.

use serde::{Serialize, Serializer};

use crate::model::{ToolDefinition, ToolParameter};

/// A tool that the model may call.
#[derive(Serialize)]
pub(super) struct RequestTool {
    r#type: &'static str,
    function: ToolFunction,
}

#[derive(Serialize)]
struct ToolFunction {
    name: &'static str,
    description: &'static str,
    parameters: ToolSchema,
}

/// JSON Schema of what a tool can be called with.
#[derive(Serialize)]
struct ToolSchema {
    r#type: &'static str,
    #[serde(serialize_with = "properties")]
    properties: &'static [ToolParameter],
    required: Vec<&'static str>,
}

#[derive(Serialize)]
struct PropertySchema {
    r#type: &'static str,
    description: &'static str,
}

impl RequestTool {
    pub(super) fn new(tool: &ToolDefinition) -> Self {
        let required = tool.parameters.iter().filter(|one| one.is_required);
        Self {
            r#type: "function",
            function: ToolFunction {
                name: tool.name.as_str(),
                description: tool.about,
                parameters: ToolSchema {
                    r#type: "object",
                    properties: tool.parameters,
                    required: required.map(|one| one.name).collect(),
                },
            },
        }
    }
}

fn properties<S: Serializer>(
    parameters: &&'static [ToolParameter],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(parameters.iter().map(|one| {
        let schema = PropertySchema {
            r#type: "string",
            description: one.about,
        };
        (one.name, schema)
    }))
}
