//! Tools as a request describes them.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::model::{ToolDefinition, ToolParameter, ToolParameters};

/// A tool that the model may call.
#[derive(Serialize)]
pub(super) struct RequestTool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Parameters<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Parameters<'a> {
    Texts(ToolSchema),
    Schema(&'a Map<String, Value>),
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

impl<'a> RequestTool<'a> {
    pub(super) fn new(tool: &'a ToolDefinition) -> Self {
        let parameters = match &tool.parameters {
            ToolParameters::Texts(texts) => {
                let required = texts.iter().filter(|one| one.is_required);
                Parameters::Texts(ToolSchema {
                    r#type: "object",
                    properties: texts,
                    required: required.map(|one| one.name).collect(),
                })
            }
            ToolParameters::Schema(schema) => Parameters::Schema(schema),
        };
        Self {
            r#type: "function",
            function: ToolFunction {
                name: tool.name.as_str(),
                description: &tool.about,
                parameters,
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
