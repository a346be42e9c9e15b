//! What an output's file is called and how a call of a tool is described.

use std::fmt::Write as _;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use clew_context::model::UnixMillis;

/// Longest tool name in a file name, in characters.
const MAX_NAME: usize = 64;
/// Digits of a hash in a file name or an id.
const HASH_DIGITS: usize = 12;
/// Random characters at the end of a file name.
const RANDOM_CHARS: usize = 4;
/// Most arguments, and most characters of each, in a description.
const MAX_DESCRIBED: usize = 6;
const MAX_DESCRIBED_CHARS: usize = 80;

/// `{toolName}_{argsHash}_{timestamp}_{counter}_{random}.json`
pub(super) fn filename(
    tool: &str,
    args: &Map<String, Value>,
    time: UnixMillis,
    counter: u64,
    random: &str,
) -> String {
    let random: String = random.chars().take(RANDOM_CHARS).collect();
    let (tool, hash) = (safe(tool), hash(canonical(args).as_bytes()));
    format!("{tool}_{hash}_{}_{counter}_{random}.json", time.0)
}

/// Whether a file's name is one that [`filename`] makes.
pub(super) fn is_output(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(stem) = name.and_then(|name| name.strip_suffix(".json")) else {
        return false;
    };
    let mut parts = stem.rsplitn(5, '_');
    let mut part = || parts.next().unwrap_or_default();
    let (random, counter, time, hash, tool) = (part(), part(), part(), part(), part());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let is_hex = |text: &str| text.bytes().all(|one| one.is_ascii_hexdigit());
    random.len() == RANDOM_CHARS
        && random.bytes().all(|one| one.is_ascii_alphanumeric())
        && is_number(counter)
        && is_number(time)
        && hash.len() == HASH_DIGITS
        && is_hex(hash)
        && !tool.is_empty()
}

/// A tool's name as it may stand in a file's name.
fn safe(tool: &str) -> String {
    let is_safe = |one: char| one.is_ascii_alphanumeric() || matches!(one, '_' | '-');
    let safe = |one: char| if is_safe(one) { one } else { '_' };
    let name: String = tool.chars().take(MAX_NAME).map(safe).collect();
    if name.is_empty() {
        "tool".to_owned()
    } else {
        name
    }
}

/// The first digits of a text's SHA-256.
pub(super) fn hash(text: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(text)[..HASH_DIGITS / 2])
}

/// JSON without spaces and with sorted keys, as a [`Map`] has them: equal for equal arguments.
fn canonical(args: &Map<String, Value>) -> String {
    serde_json::to_string(args).unwrap_or_default()
}

/// What a call was about, in one line: the tool and its main arguments, those
/// with a text or a number. Outputs are found again by these words.
pub fn describe(tool: &str, args: &Map<String, Value>) -> String {
    let mut line = tool.replace(['_', '-'], " ");
    let mut values = Vec::new();
    for (key, value) in args {
        main_values(key, value, &mut values);
    }
    for (key, value) in values.into_iter().take(MAX_DESCRIBED) {
        let words: Vec<&str> = value.split_whitespace().collect();
        let shown: String = words.join(" ").chars().take(MAX_DESCRIBED_CHARS).collect();
        if !shown.is_empty() {
            let _ = write!(line, " {key}: {shown};");
        }
    }
    line.trim_end_matches(';').to_owned()
}

fn main_values<'a>(key: &'a str, value: &'a Value, values: &mut Vec<(&'a str, String)>) {
    match value {
        Value::String(text) => values.push((key, text.clone())),
        Value::Number(number) => values.push((key, number.to_string())),
        Value::Array(list) => {
            for value in list {
                main_values(key, value, values);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                main_values(key, value, values);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}
