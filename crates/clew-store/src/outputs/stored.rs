//! What an output's file holds, and the pointer to it.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::NewOutput;
use super::name::{self, describe};
use crate::model::Scope;
use crate::{Error, Purge};
use clew_context::model::{ContentSource, GuildId, UnixMillis, UserId};

/// Names an output to a model; tells nothing of its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutputId(String);

impl OutputId {
    /// An id as a model gave it; may name nothing.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    fn of(filename: &str) -> Self {
        Self(name::hash(filename.as_bytes()))
    }
}

impl fmt::Display for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a query: equal for equal queries, in every process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueryId(String);

impl QueryId {
    pub(super) fn of(query: &str) -> Self {
        Self(name::hash(query.as_bytes()))
    }
}

/// An output in memory: all about it except the result.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextPointer {
    /// The path of its file.
    pub filepath: PathBuf,
    /// The name of its file.
    pub filename: String,
    /// The tool that made it.
    pub tool_name: String,
    /// What the call was about; see [`describe()`].
    pub tool_description: String,
    /// The tool's arguments.
    pub args: Map<String, Value>,
    /// The number of the agent run that called the tool.
    pub task_id: Option<u64>,
    /// The query it was called for.
    pub query_id: Option<QueryId>,
    /// Its name for models.
    pub id: OutputId,
    /// The conversation.
    pub scope: Scope,
    /// Its server; `None` in direct messages.
    pub guild: Option<GuildId>,
    /// Who asked.
    pub owner: UserId,
    /// What the result was made from.
    pub sources: Arc<[ContentSource]>,
    /// The size of the result as JSON.
    pub bytes: u64,
    /// When the question was asked that the tool ran for.
    pub asked: UnixMillis,
    /// When the tool began.
    pub began: UnixMillis,
    /// When it was saved.
    pub time: UnixMillis,
    /// Orders outputs of one millisecond.
    pub(super) serial: u64,
    /// The size of its file.
    pub(super) file_bytes: u64,
}

/// An output as its file holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredContext {
    /// All about it.
    pub pointer: ContextPointer,
    /// What the tool returned.
    pub result: Value,
}

/// The file's fields, the result last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutputForm<R> {
    tool_name: String,
    tool_description: String,
    args: Map<String, Value>,
    timestamp: String,
    /// Older files lack this and the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query_id: Option<QueryId>,
    scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guild: Option<GuildId>,
    owner: UserId,
    sources: Vec<ContentSource>,
    bytes: u64,
    serial: u64,
    result: R,
}

impl ContextPointer {
    /// The pointer for a new output, and the text of its file.
    pub(super) fn of(
        output: NewOutput,
        folder: &Path,
        time: UnixMillis,
        serial: u64,
    ) -> (Self, Vec<u8>) {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let filename = name::filename(&output.tool_name, &output.args, time, serial, &random);
        let form = OutputForm {
            tool_description: describe(&output.tool_name, &output.args),
            tool_name: output.tool_name,
            args: output.args,
            timestamp: time.rfc3339(),
            asked: Some(output.asked.rfc3339()),
            began: Some(output.began.rfc3339()),
            task_id: output.task_id,
            query_id: output.query_id,
            scope: output.scope.to_string(),
            guild: output.guild,
            owner: output.owner,
            sources: output.sources,
            bytes: output.result.to_string().len() as u64,
            serial,
            result: output.result,
        };
        let text = serde_json::to_vec(&form).unwrap_or_default();
        let file = (folder.join(filename), text.len() as u64);
        let (pointer, _) = form.into_pointer(output.scope, time, file);
        (pointer, text)
    }

    /// The pointer to a file that a former process wrote.
    pub(super) fn from_json(text: &[u8], path: &Path) -> Result<Self, Error> {
        let form: OutputForm<IgnoredAny> = read(text, path)?;
        pointer(form, text, path).map(|(pointer, _)| pointer)
    }

    /// Sorts by age, oldest first.
    pub(super) const fn age_key(&self) -> (UnixMillis, u64) {
        (self.time, self.serial)
    }

    /// Whether a purge reaches it: by whose it is, or by what it was made from.
    pub(super) fn is_reached_by(&self, purge: &Purge) -> bool {
        self.is_named_by(purge) || self.lost_source(purge)
    }

    /// Whether a purge names its owner, place or time.
    pub(super) fn is_named_by(&self, purge: &Purge) -> bool {
        match purge {
            Purge::Channel(channel) => self.scope.channel() == Some(*channel),
            _ => purge.takes_held(self.guild, self.owner, self.time),
        }
    }

    /// Whether a purge removes what it was made from.
    pub(super) fn lost_source(&self, purge: &Purge) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| purge.takes_source(source, self.began))
    }
}

impl StoredContext {
    /// The result as text.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.result {
            Value::String(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string()),
        }
    }

    /// A line of an export: a JSON object.
    pub fn to_line(&self) -> String {
        let line = serde_json::json!({
            "kind": "tool_output",
            "tool": self.pointer.tool_name,
            "args": self.pointer.args,
            "timestamp": self.pointer.time.rfc3339(),
            "result": self.text(),
        });
        line.to_string()
    }

    pub(super) fn from_json(text: &[u8], path: &Path) -> Result<Self, Error> {
        let form: OutputForm<Value> = read(text, path)?;
        let (pointer, result) = pointer(form, text, path)?;
        Ok(Self { pointer, result })
    }
}

fn read<'a, R: Deserialize<'a>>(text: &'a [u8], path: &Path) -> Result<OutputForm<R>, Error> {
    serde_json::from_slice(text).map_err(|error| corrupt(path, error))
}

fn pointer<R>(form: OutputForm<R>, text: &[u8], path: &Path) -> Result<(ContextPointer, R), Error> {
    let scope = form.scope.parse().map_err(|error| corrupt(path, error))?;
    let time = UnixMillis::parse(&form.timestamp);
    let time = time.ok_or_else(|| corrupt(path, "its timestamp is none"))?;
    let file = (path.to_owned(), text.len() as u64);
    Ok(form.into_pointer(scope, time, file))
}

impl<R> OutputForm<R> {
    /// The pointer to its file of that size, and the result.
    fn into_pointer(
        self,
        scope: Scope,
        time: UnixMillis,
        (filepath, file_bytes): (PathBuf, u64),
    ) -> (ContextPointer, R) {
        let filename = filepath.file_name().unwrap_or_default();
        let filename = filename.to_string_lossy().into_owned();
        let at = |text: Option<String>| text.and_then(|text| UnixMillis::parse(&text));
        let pointer = ContextPointer {
            filepath,
            id: OutputId::of(&filename),
            filename,
            tool_name: self.tool_name,
            tool_description: self.tool_description,
            args: self.args,
            task_id: self.task_id,
            query_id: self.query_id,
            scope,
            guild: self.guild,
            owner: self.owner,
            sources: self.sources.into(),
            bytes: self.bytes,
            asked: at(self.asked).unwrap_or(time),
            began: at(self.began).unwrap_or(time),
            time,
            serial: self.serial,
            file_bytes,
        };
        (pointer, self.result)
    }
}

fn corrupt(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::corrupt("read an output", path.display(), source)
}
