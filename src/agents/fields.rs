//! Parses `agent.json` into usable fields, or into a list of everything that is
//! wrong with it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::model::cut;
use crate::model::{Agent, AgentChannels, BuiltIn, ToolName};
use clew_context::engine::docs::Docs;
use clew_context::model::ChannelId;
use clew_store::model::{AgentName, ScopeKind};

use super::problem::{AgentProblem, SHOWN_CHARS};

/// All fields, for [`suggestion`].
const FIELDS: [&str; 8] = [
    "system_prompt",
    "system_prompt_file",
    "model",
    "rolling_window_s",
    "scope",
    "channels",
    "tools",
    "docs_chars",
];
/// The longest rolling window, in seconds: a year, to catch milliseconds.
const LONGEST_WINDOW_S: u64 = 366 * 24 * 60 * 60;
/// The longest name of a model, in bytes.
const LONGEST_MODEL: usize = 256;
/// The most that an agent's docs may take together, in bytes: they are held in memory.
pub(super) const LARGEST_DOCS: u64 = 256 * 1024;
/// How much of its docs a prompt gets if it does not say, in Unicode scalars: some 2,000
/// tokens.
const DOCS_CHARS: usize = 8_000;
/// The most channels that an agent may name: as many as a server can have.
const MOST_CHANNELS: usize = 500;
/// Stands for every channel in `channels`.
const EVERYWHERE: &str = "*";
/// What `channels` may contain.
const CHANNELS: &str = "accepted: a list of channel ids in quotes, or \"*\" for every channel, \
                        which is what an agent without the field has";

/// Where the system prompt is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptField {
    /// In `agent.json`.
    Text(String),
    /// In this file, relative to the agent's folder and inside it.
    File(PathBuf),
}

/// Parses the text of the file at `path`.
///
/// # Errors
/// Everything that is wrong with it, at least one.
pub(super) fn parse(
    path: &Path,
    text: &str,
    name: &AgentName,
) -> Result<(PromptField, Agent), Vec<AgentProblem>> {
    let refused = |what: String| vec![AgentProblem::of(path, what)];
    let value: Value =
        serde_json::from_str(text).map_err(|error| refused(format!("is not JSON: {error}")))?;
    let Value::Object(object) = value else {
        let what = format!("is {}; accepted: a JSON object", kind(&value));
        return Err(refused(what));
    };
    let mut reader = Reader {
        path,
        object: &object,
        problems: Vec::new(),
    };
    reader.unknown();
    let prompt = reader.prompt();
    let agent = Agent {
        name: name.clone(),
        system: String::new(),
        docs: Docs::new(Vec::new(), reader.docs_chars().unwrap_or(DOCS_CHARS)),
        model: reader.model(),
        rolling_window: reader.rolling_window(),
        scope: reader.scope(),
        channels: reader.channels().unwrap_or(AgentChannels::Everywhere),
        tools: reader.tools(),
    };
    match prompt {
        Some(prompt) if reader.problems.is_empty() => Ok((prompt, agent)),
        _ => Err(reader.problems),
    }
}

/// Reads one field after another and collects problems.
struct Reader<'a> {
    path: &'a Path,
    object: &'a Map<String, Value>,
    problems: Vec<AgentProblem>,
}

impl Reader<'_> {
    fn problem(&mut self, field: &str, what: impl Into<String>) {
        self.problems
            .push(AgentProblem::field(self.path, field, what));
    }

    fn unknown(&mut self) {
        let object = self.object;
        for name in object.keys() {
            if !FIELDS.contains(&name.as_str()) {
                self.problem(name, format!("is unknown; {}", suggestion(name)));
            }
        }
    }

    fn prompt(&mut self) -> Option<PromptField> {
        let text = self.object.get("system_prompt");
        let file = self.object.get("system_prompt_file");
        match (text, file) {
            (Some(text), None) => self.prompt_text(text),
            (None, Some(_)) => self.prompt_file(),
            (None, None) => {
                let what = "is missing; accepted: a text, or \"system_prompt_file\" instead";
                self.problem("system_prompt", what);
                None
            }
            (Some(_), Some(_)) => {
                let what = "is there beside \"system_prompt\"; accepted: one of them";
                self.problem("system_prompt_file", what);
                None
            }
        }
    }

    fn prompt_text(&mut self, value: &Value) -> Option<PromptField> {
        let text = value.as_str().map(str::trim);
        let text = text.filter(|text| !text.is_empty());
        if text.is_none() {
            let what = format!("is {}; accepted: a text that is not empty", kind(value));
            self.problem("system_prompt", what);
        }
        text.map(|text| PromptField::Text(text.to_owned()))
    }

    /// What is read of a field; none if it is not there, or wrong.
    fn read<T>(
        &mut self,
        field: &str,
        accepted: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.object.get(field)?;
        let read = read(value);
        if read.is_none() {
            self.problem(field, format!("is {}; accepted: {accepted}", shown(value)));
        }
        read
    }

    fn prompt_file(&mut self) -> Option<PromptField> {
        let accepted = "the name of a file inside of the agent's folder";
        self.read("system_prompt_file", accepted, |value| {
            let path = Path::new(value.as_str()?);
            let mut parts = path.components();
            let is_inside = path.file_name().is_some()
                && parts.all(|part| matches!(part, Component::Normal(_)));
            is_inside.then(|| PromptField::File(path.to_owned()))
        })
    }

    fn model(&mut self) -> Option<String> {
        let accepted = format!("the name of a model, at most {LONGEST_MODEL} bytes");
        self.read("model", &accepted, |value| {
            let name = value.as_str()?.trim();
            let fits = (1..=LONGEST_MODEL).contains(&name.len());
            fits.then(|| name.to_owned())
        })
    }

    fn rolling_window(&mut self) -> Option<Duration> {
        let accepted = format!("whole seconds from 1 to {LONGEST_WINDOW_S}");
        self.read("rolling_window_s", &accepted, |value| {
            let seconds = value.as_u64()?;
            let fits = (1..=LONGEST_WINDOW_S).contains(&seconds);
            fits.then(|| Duration::from_secs(seconds))
        })
    }

    fn scope(&mut self) -> Option<ScopeKind> {
        let accepted = "\"member\", \"thread\", \"user\"";
        self.read("scope", accepted, |value| match value.as_str()? {
            "member" => Some(ScopeKind::Member),
            "thread" => Some(ScopeKind::Thread),
            "user" => Some(ScopeKind::User),
            _ => None,
        })
    }

    fn docs_chars(&mut self) -> Option<usize> {
        let accepted = format!("a whole number from 0 to {LARGEST_DOCS}");
        self.read("docs_chars", &accepted, |value| {
            let chars = value.as_u64().filter(|chars| *chars <= LARGEST_DOCS)?;
            usize::try_from(chars).ok()
        })
    }

    fn channels(&mut self) -> Option<AgentChannels> {
        let list = match self.object.get("channels") {
            None => return Some(AgentChannels::Everywhere),
            Some(Value::String(text)) if text == EVERYWHERE => {
                return Some(AgentChannels::Everywhere);
            }
            Some(Value::Array(list)) => list,
            Some(other) => {
                self.problem("channels", format!("is {}; {CHANNELS}", shown(other)));
                return None;
            }
        };
        if list.iter().any(|entry| entry == EVERYWHERE) {
            return Some(AgentChannels::Everywhere);
        }
        if list.len() > MOST_CHANNELS {
            let what = format!("has {} entries; at most {MOST_CHANNELS}", list.len());
            self.problem("channels", what);
            return None;
        }
        let mut channels = BTreeSet::new();
        for entry in list {
            match channel(entry) {
                Some(id) => drop(channels.insert(id)),
                None => self.problem("channels", format!("has {}; {CHANNELS}", shown(entry))),
            }
        }
        Some(AgentChannels::Only(channels))
    }

    fn tools(&mut self) -> Option<BTreeSet<ToolName>> {
        let value = self.object.get("tools")?;
        let accepted = BuiltIn::words().collect::<Vec<_>>().join(", ");
        let Value::Array(list) = value else {
            let what = format!("is {}; accepted: a list of {accepted}", shown(value));
            self.problem("tools", what);
            return None;
        };
        let mut tools = BTreeSet::new();
        for entry in list {
            if let Some(tool) = entry.as_str().and_then(ToolName::from_word) {
                tools.insert(tool);
            } else {
                let what = format!("has {}; accepted: {accepted}", shown(entry));
                self.problem("tools", what);
            }
        }
        Some(tools)
    }
}

/// A channel's id, in quotes or as a number, since the file keeps all its digits.
fn channel(value: &Value) -> Option<ChannelId> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// What to write instead of an unknown field.
fn suggestion(name: &str) -> String {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let nearest = FIELDS
        .iter()
        .map(|field| (strsim::damerau_levenshtein(&lower, field), *field))
        .min();
    match nearest {
        // Up to a third may be wrong, as with the names of variables.
        Some((distance, field)) if distance <= field.len() / 3 => {
            format!("did you mean \"{field}\"?")
        }
        _ => format!("accepted: {}", FIELDS.join(", ")),
    }
}

/// A value as a problem shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", cut(text, SHOWN_CHARS, "...")),
        Value::Number(number) => cut(&number.to_string(), SHOWN_CHARS, "..."),
        other => kind(other).to_owned(),
    }
}

/// What a value is. Used instead of the value, since prompts are never shown.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(text) if text.trim().is_empty() => "an empty text",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<(PromptField, Agent), Vec<AgentProblem>> {
        parse(Path::new("a/agent.json"), json, &AgentName::default_agent())
    }

    #[track_caller]
    fn accepts(json: &str) -> (PromptField, Agent) {
        parsed(json).expect("it is accepted")
    }

    #[track_caller]
    fn refuses(json: &str, expected: &[&str]) {
        let problems = parsed(json).expect_err("it is refused");
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), expected.len(), "{said:?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.contains(expected), "{said:?} lacks {expected:?}");
            assert!(said.starts_with("a/agent.json: "), "{said:?}");
        }
    }

    #[test]
    fn the_smallest_and_the_whole() {
        let (prompt, plain) = accepts(r#"{"system_prompt": " Be kind. "}"#);
        assert_eq!(prompt, PromptField::Text("Be kind.".to_owned()));
        assert_eq!(
            plain,
            Agent {
                name: AgentName::default_agent(),
                system: String::new(),
                docs: Docs::new(Vec::new(), 8_000),
                model: None,
                rolling_window: None,
                scope: None,
                channels: AgentChannels::Everywhere,
                tools: None,
            }
        );
        let (prompt, agent) = accepts(
            r#"{"system_prompt_file": "texts/prompt.md", "model": "big", "rolling_window_s": 60,
                "scope": "thread", "channels": ["7", 1234567890123456789],
                "tools": ["forget", "remember"], "docs_chars": 20000}"#,
        );
        let ids = [7, 1_234_567_890_123_456_789].map(ChannelId::new);
        assert_eq!(prompt, PromptField::File("texts/prompt.md".into()));
        assert_eq!(
            agent,
            Agent {
                model: Some("big".to_owned()),
                rolling_window: Some(Duration::from_mins(1)),
                scope: Some(ScopeKind::Thread),
                channels: AgentChannels::Only(ids.into()),
                tools: Some(
                    [BuiltIn::Remember, BuiltIn::Forget]
                        .map(ToolName::BuiltIn)
                        .into()
                ),
                docs: Docs::new(Vec::new(), 20_000),
                ..plain
            }
        );
    }

    #[test]
    fn everywhere_is_a_star_and_nowhere_is_an_empty_list() {
        let channels = |json: &str| {
            accepts(&format!(r#"{{"system_prompt":"x","channels":{json}}}"#))
                .1
                .channels
        };
        assert_eq!(channels(r#""*""#), AgentChannels::Everywhere);
        assert_eq!(channels(r#"["1","*"]"#), AgentChannels::Everywhere);
        assert_eq!(channels("[]"), AgentChannels::Only(BTreeSet::new()));
    }

    #[test]
    fn every_problem_names_its_field_and_what_is_accepted() {
        refuses("[1]", &["is a list; accepted: a JSON object"]);
        refuses("{", &["line 1 column 1"]);
        refuses("{}", &["field \"system_prompt\" is missing; accepted:"]);
        refuses(
            r#"{"system_prompt": " ", "Rolling-Window": 1, "voices": []}"#,
            &[
                "field \"Rolling-Window\" is unknown; did you mean \"rolling_window_s\"?",
                "field \"voices\" is unknown; accepted: system_prompt, system_prompt_file, model",
                "field \"system_prompt\" is an empty text; accepted: a text",
            ],
        );
        refuses(
            r#"{"system_prompt": "a", "system_prompt_file": "b"}"#,
            &["field \"system_prompt_file\" is there beside"],
        );
        refuses(
            r#"{"system_prompt": "x", "model": "", "rolling_window_s": 0, "scope": "guild",
                "channels": ["general", "0", "5", true]}"#,
            &[
                "field \"model\" is \"\"; accepted: the name of a model",
                "field \"rolling_window_s\" is 0; accepted: whole seconds from 1",
                "field \"scope\" is \"guild\"; accepted: \"member\", \"thread\", \"user\"",
                "field \"channels\" has \"general\"; accepted: a list of channel ids",
                "field \"channels\" has \"0\"; accepted",
                "field \"channels\" has true or false; accepted",
            ],
        );
        refuses(
            r#"{"system_prompt": "x", "channels": "general"}"#,
            &["field \"channels\" is \"general\"; accepted"],
        );
        refuses(
            r#"{"system_prompt": "x", "docs_chars": -1}"#,
            &["field \"docs_chars\" is -1; accepted: a whole number from 0 to 262144"],
        );
        refuses(
            r#"{"system_prompt": "x", "docs_chars": 262145}"#,
            &["field \"docs_chars\" is 262145; accepted"],
        );
        refuses(
            r#"{"system_prompt": "x", "tools": "all"}"#,
            &["field \"tools\" is \"all\"; accepted: a list of get_message, list_thread"],
        );
        refuses(
            r#"{"system_prompt": "x", "tools": ["shell", 3, "forget"]}"#,
            &[
                "field \"tools\" has \"shell\"; accepted: get_message, list_thread",
                "field \"tools\" has 3; accepted",
            ],
        );
    }

    #[test]
    fn a_prompt_file_is_inside_the_folder() {
        for path in ["", "/etc/passwd", "../prompt.md", "a/../../b", "."] {
            refuses(
                &format!(r#"{{"system_prompt_file": "{path}"}}"#),
                &["field \"system_prompt_file\" is \""],
            );
        }
        refuses(
            r#"{"system_prompt_file": 3}"#,
            &["is 3; accepted: the name"],
        );
    }

    #[test]
    fn a_prompt_is_never_repeated() {
        for json in [
            r#"{"system_prompt": ["hidden words"]}"#,
            r#""hidden words""#,
            r#"{"system_prompt": "hidden words" "model": "x"}"#,
        ] {
            let problems = parsed(json).expect_err("it is refused");
            assert!(!format!("{problems:?}").contains("hidden"), "{problems:?}");
        }
    }
}
