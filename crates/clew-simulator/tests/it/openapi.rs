//! The official `OpenAPI` document of Discord's API. Tests of other crates
//! include this file too.

use jsonschema::Validator;
use serde_json::{Value, json};

/// The document, which is also the root for resolving references.
pub(crate) struct Document(Value);

impl Document {
    pub(crate) fn load() -> Self {
        let text = include_str!("../../../../fixtures/discord/openapi.json");
        let mut root: Value = serde_json::from_str(text).unwrap();
        // The document lacks forwards, which the documentation lists in "Message
        // Reference Types".
        let types = &mut root["components"]["schemas"]["MessageReferenceType"]["oneOf"];
        let types = types.as_array_mut().unwrap();
        types.push(json!({"title": "FORWARD", "const": 1}));
        // It lacks media channels, which "Channel Types" lists.
        let types = &mut root["components"]["schemas"]["ChannelTypes"]["oneOf"];
        let types = types.as_array_mut().unwrap();
        types.push(json!({"title": "GUILD_MEDIA", "const": 16}));
        // It expects permissions as a number; "Application Command Object" and every
        // client use a string.
        let request = &mut root["components"]["schemas"]["ApplicationCommandUpdateRequest"];
        let permissions = &mut request["properties"]["default_member_permissions"];
        *permissions = json!({"type": ["string", "null"]});
        Self(root)
    }

    /// The validator for one schema, or for a list of it (`"[Name]"`).
    pub(crate) fn validator(&self, name: &str) -> Validator {
        let inner = name.trim_matches(['[', ']']);
        assert!(
            self.0["components"]["schemas"][inner].is_object(),
            "{inner}"
        );
        let reference = json!({"$ref": format!("#/components/schemas/{inner}")});
        let mut root = if inner == name {
            reference
        } else {
            json!({"type": "array", "items": reference})
        };
        root["components"] = self.0["components"].clone();
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .build(&root)
            .unwrap()
    }

    #[track_caller]
    pub(crate) fn check(&self, name: &str, object: &Value) {
        let validator = self.validator(name);
        let errors: Vec<String> = validator
            .iter_errors(object)
            .map(|error| format!("{} at {}", error, error.instance_path))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}
