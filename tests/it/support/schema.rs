//! Validates telemetry lines against `telemetry/schema.json`, including the order
//! of their keys. Every test in which the bot writes telemetry ends with
//! [`validate_lines`] or [`validate_dir`].

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Validates every line of a text and returns them parsed.
///
/// # Panics
/// Panics at the first line that violates the schema, and shows both.
#[track_caller]
pub(crate) fn validate_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| match check_line(line) {
            Ok(value) => value,
            Err(violation) => panic!("the telemetry line violates the schema: {violation}\n{line}"),
        })
        .collect()
}

/// Like [`validate_lines`], for all files of a telemetry folder, sorted by name.
#[track_caller]
pub(crate) fn validate_dir(dir: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "jsonl"))
        .collect();
    files.sort();
    let text: String = files
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    // The last line may still be being written.
    validate_lines(&text[..text.rfind('\n').map_or(0, |end| end + 1)])
}

/// The parsed line, or what is wrong with it.
pub(crate) fn check_line(line: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if let Some(error) = validator().iter_errors(&value).next() {
        return Err(format!("{}: {error}", error.instance_path));
    }
    let outer: Outer<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let detail = &schema()["$defs"][&outer.event];
    check_order(line, schema())?;
    check_order(outer.detail.get(), detail)?;
    Ok(value)
}

/// The schema itself.
pub(crate) fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        serde_json::from_str(include_str!("../../../telemetry/schema.json")).unwrap()
    })
}

fn validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| jsonschema::draft202012::new(schema()).unwrap())
}

/// Checks that the keys have the order of the `required` list, each exactly once; optional
/// ones come after these.
fn check_order(object: &str, schema: &Value) -> Result<(), String> {
    let Keys(keys) = serde_json::from_str(object).map_err(|error| error.to_string())?;
    let expected: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let optional = keys.get(expected.len()..).unwrap_or_default();
    let is_once = |key: &String| keys.iter().filter(|one| *one == key).count() == 1;
    if keys.iter().take(expected.len()).eq(&expected) && optional.iter().all(is_once) {
        return Ok(());
    }
    Err(format!("keys in the order {keys:?}, not {expected:?}"))
}

#[derive(Deserialize)]
struct Outer<'a> {
    event: String,
    #[serde(borrow)]
    detail: &'a RawValue,
}

/// An object's keys in the order written.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, IgnoredAny)) = map.next_entry()? {
            keys.push(key);
        }
        Ok(Keys(keys))
    }
}
