//! The JSON of chat completion endpoints, as OpenAI describes it and as other
//! servers vary it. The only file that knows its shapes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

mod content;
mod tools;

use self::content::Content;
use self::tools::RequestTool;
use super::dialect::Dialect;
use super::{FinishReason, ModelSettings, Usage};
use crate::model::ToolDefinition;
use clew_context::model::{ChatMessage, Role, ToolCall};

#[derive(Serialize)]
pub(super) struct RequestBody<'a> {
    model: &'a str,
    messages: Vec<RequestMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<RequestTool<'a>>,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: &'static str,
    /// `null` if the model called tools without a word.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<RequestCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct RequestCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: RequestFunction<'a>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Serialize)]
struct RequestFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> RequestBody<'a> {
    pub(super) fn new(
        settings: &'a ModelSettings,
        prompt: &'a [ChatMessage],
        tools: &'a [ToolDefinition],
        dialect: Dialect,
    ) -> Self {
        let tools: Vec<RequestTool> = tools.iter().map(RequestTool::new).collect();
        let limit = Some(settings.max_output_tokens);
        let (max_tokens, max_completion_tokens) = if dialect.says_completion_tokens() {
            (None, limit)
        } else {
            (limit, None)
        };
        Self {
            model: &settings.model,
            messages: if tools.is_empty() {
                without_tools(prompt)
            } else {
                prompt.iter().map(RequestMessage::new).collect()
            },
            stream: true,
            stream_options: dialect
                .asks_for_usage()
                .then(|| json!({"include_usage": true})),
            max_tokens,
            max_completion_tokens,
            temperature: settings.temperature.filter(|_| dialect.sets_temperature()),
            tools,
        }
    }
}

/// A prompt for which no tools are offered: servers refuse calls and results then, so
/// the results become text of a user's.
fn without_tools(prompt: &[ChatMessage]) -> Vec<RequestMessage<'_>> {
    let mut messages: Vec<RequestMessage<'_>> = Vec::with_capacity(prompt.len());
    for message in prompt {
        let role = match message {
            ChatMessage::ToolResult { .. } => Role::User.as_str(),
            ChatMessage::ToolCalls { content, .. } if content.is_empty() => continue,
            ChatMessage::Text { .. }
            | ChatMessage::WithImages { .. }
            | ChatMessage::ToolCalls { .. } => message.role(),
        };
        let is_from_tools = matches!(
            message,
            ChatMessage::ToolCalls { .. } | ChatMessage::ToolResult { .. }
        );
        match messages.last_mut() {
            // Many models refuse two messages of one role in a row.
            Some(RequestMessage {
                role: last,
                content: Some(content),
                ..
            }) if *last == role && is_from_tools => content.push(message.content()),
            _ => messages.push(RequestMessage {
                role,
                content: Some(Content::new(message)),
                tool_calls: Vec::new(),
                tool_call_id: None,
            }),
        }
    }
    messages
}

impl<'a> RequestMessage<'a> {
    fn new(message: &'a ChatMessage) -> Self {
        let calls = message.tool_calls();
        let without_words = message.content().is_empty() && !calls.is_empty();
        Self {
            role: message.role(),
            content: (!without_words).then(|| Content::new(message)),
            tool_calls: calls.iter().map(RequestCall::new).collect(),
            tool_call_id: match message {
                ChatMessage::ToolResult { call_id, .. } => Some(call_id),
                ChatMessage::Text { .. }
                | ChatMessage::WithImages { .. }
                | ChatMessage::ToolCalls { .. } => None,
            },
        }
    }
}

impl<'a> RequestCall<'a> {
    fn new(call: &'a ToolCall) -> Self {
        Self {
            id: &call.id,
            r#type: "function",
            function: RequestFunction {
                name: &call.name,
                arguments: &call.arguments,
            },
            extra: call.extra.as_deref().map(object).unwrap_or_default(),
        }
    }
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The most bytes of what a server says of a call beyond what we read: Gemini's signatures
/// of its thoughts have some thousand.
const MAX_EXTRA: usize = 64 * 1024;

/// The most bytes of the name of the model that answered.
const MAX_MODEL_NAME: usize = 128;

/// Ends a stream, in place of a chunk.
pub(super) const DONE: &str = "[DONE]";

/// One event of a stream, or a whole answer that came as plain JSON.
#[derive(Debug, Default)]
pub(super) struct AnswerPiece {
    /// New text; empty in the first and the last events of a stream.
    pub(super) text: String,
    /// Whether the text is a refusal.
    pub(super) refused: bool,
    /// Pieces of tool calls, each with the call's number within the answer. Where the server
    /// gives none, it is the position within the event. Most servers send each call in many
    /// pieces: id and name are empty except in the first, the id with some servers there, too.
    pub(super) calls: Vec<(usize, ToolCall)>,
    /// In the last event with a choice.
    pub(super) finish_reason: Option<FinishReason>,
    /// In the very last event, which has no choices.
    pub(super) usage: Option<Usage>,
    /// The model that answers, in every event.
    pub(super) model: Option<String>,
}

impl AnswerPiece {
    /// The bytes of its text and calls.
    pub(super) fn bytes(&self) -> usize {
        let calls = self.calls.iter();
        let calls = calls.map(|(_, call)| call.name.len() + call.arguments.len());
        self.text.len() + calls.sum::<usize>()
    }
}

/// Why an event or body gives no [`AnswerPiece`].
#[derive(Debug)]
pub(super) enum PieceError {
    /// It reports an error.
    ServerError(ServerError),
    /// It is not JSON of a known shape.
    Malformed,
}

#[derive(Deserialize)]
struct WireChunk {
    choices: Option<Vec<WireChoice>>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    model: Value,
    object: Option<String>,
}

#[derive(Deserialize)]
struct WireChoice {
    delta: Option<WireDelta>,
    message: Option<WireDelta>,
    finish_reason: Option<String>,
}

/// Without the deprecated `function_call`: servers send it only to those who ask
/// with the equally deprecated `functions`.
#[derive(Deserialize, Default)]
struct WireDelta {
    content: Option<WireContent>,
    refusal: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
}

#[derive(Deserialize)]
struct WireCall {
    index: Option<usize>,
    id: Option<String>,
    function: Option<WireFunction>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize, Default)]
struct WireFunction {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

/// Mistral sends parts if there is reasoning among them.
#[derive(Deserialize)]
#[serde(untagged)]
enum WireContent {
    Text(String),
    Parts(Vec<WirePart>),
}

#[derive(Deserialize)]
struct WirePart {
    #[serde(default)]
    text: String,
}

/// Reads one event's data, or a whole body.
pub(super) fn piece(json: &str) -> Result<AnswerPiece, PieceError> {
    let chunk: WireChunk = serde_json::from_str(json).map_err(|_| PieceError::Malformed)?;
    if !chunk.error.is_null() || chunk.object.as_deref() == Some("error") {
        return Err(PieceError::ServerError(server_error(json)));
    }
    if chunk.choices.is_none() && chunk.usage.is_null() {
        return Err(PieceError::Malformed);
    }
    let (usage, model) = (usage(&chunk.usage), model(&chunk.model));
    let Some(choice) = chunk.choices.into_iter().flatten().next() else {
        return Ok(AnswerPiece {
            usage,
            model,
            ..AnswerPiece::default()
        });
    };
    let delta = choice.delta.or(choice.message).unwrap_or_default();
    let refusal = delta.refusal.unwrap_or_default();
    Ok(AnswerPiece {
        refused: !refusal.is_empty(),
        text: text(delta.content) + &refusal,
        calls: calls(delta.tool_calls.unwrap_or_default()),
        finish_reason: choice.finish_reason.as_deref().and_then(finish_reason),
        usage,
        model,
    })
}

/// Missing counts must not lose an answer: anything but numbers is ignored.
fn usage(usage: &Value) -> Option<Usage> {
    let said = |value: &Value| value.as_u64();
    let cached = [
        &usage["prompt_tokens_details"]["cached_tokens"],
        // DeepSeek, Moonshot.
        &usage["prompt_cache_hit_tokens"],
        &usage["cached_tokens"],
    ];
    Some(Usage {
        prompt_tokens: said(&usage["prompt_tokens"])?,
        cached_tokens: cached.into_iter().find_map(said),
        completion_tokens: said(&usage["completion_tokens"])?,
        reasoning_tokens: said(&usage["completion_tokens_details"]["reasoning_tokens"]),
    })
}

/// A model's name, if it is one: it goes into telemetry, where no text that an answer could
/// hold may appear.
fn model(name: &Value) -> Option<String> {
    let name = name.as_str()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
    let is_name = (1..=MAX_MODEL_NAME).contains(&name.len()) && name.bytes().all(is_plain);
    is_name.then(|| name.to_owned())
}

fn text(content: Option<WireContent>) -> String {
    match content {
        None => String::new(),
        Some(WireContent::Text(text)) => text,
        Some(WireContent::Parts(parts)) => parts.into_iter().map(|part| part.text).collect(),
    }
}

fn calls(deltas: Vec<WireCall>) -> Vec<(usize, ToolCall)> {
    let pieces = deltas.into_iter().enumerate().map(|(position, delta)| {
        let function = delta.function.unwrap_or_default();
        let written = function.arguments.as_deref();
        let piece = ToolCall {
            id: delta.id.unwrap_or_default(),
            name: function.name.unwrap_or_default(),
            arguments: written.map(arguments).unwrap_or_default(),
            extra: extra(delta.extra),
        };
        (delta.index.unwrap_or(position), piece)
    });
    pieces.collect()
}

/// What is not ours to write, unless it is too long.
fn extra(mut fields: Map<String, Value>) -> Option<Box<str>> {
    fields.remove("type");
    fields.retain(|_, value| !value.is_null());
    let text = (!fields.is_empty()).then(|| Value::Object(fields).to_string());
    text.filter(|text| text.len() <= MAX_EXTRA).map(Into::into)
}

/// A piece of JSON in a string, or (from servers that never split it) the JSON itself.
fn arguments(json: &RawValue) -> String {
    serde_json::from_str(json.get()).unwrap_or_else(|_| json.get().to_owned())
}

/// Some servers send an empty string for "not yet", and some their own words or those of the
/// service behind them (Anthropic, Gemini, Cohere) in place of OpenAI's.
fn finish_reason(name: &str) -> Option<FinishReason> {
    Some(match name.to_ascii_lowercase().as_str() {
        "" => return None,
        "stop" | "end_turn" | "eos" | "complete" => FinishReason::Stop,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "model_context_window_exceeded" => FinishReason::Length,
        "content_filter" | "content_filtered" | "safety" | "recitation" | "blocklist"
        | "prohibited_content" | "spii" | "refusal" | "error_toxic" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    })
}

/// An error that a server reports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerError {
    /// The HTTP status that the body names; useful within a stream.
    pub(super) status: Option<u16>,
    /// The error's code, type and status words, each followed by a space.
    pub(super) code: String,
    /// The error's message; may be long, and may echo anything.
    pub(super) message: String,
    /// The size of the model's context in tokens (llama.cpp).
    pub(super) limit: Option<u32>,
}

/// The models' names: `{"data": [{"id": ..}]}` (OpenAI, most), or the list alone (Together).
pub(super) fn models(body: &str) -> Option<Vec<String>> {
    let body: Value = serde_json::from_str(body).ok()?;
    let list = body.get("data").unwrap_or(&body).as_array()?;
    let names = list.iter().filter_map(|model| model["id"].as_str());
    Some(names.map(str::to_owned).collect())
}

/// Reads the error from a body or event. Never fails: a body that is not JSON
/// is its own message, unless it is an HTML page.
pub(super) fn server_error(body: &str) -> ServerError {
    match serde_json::from_str(body) {
        Ok(Value::Array(mut list)) if !list.is_empty() => error_of(&list.swap_remove(0)),
        Ok(value) => error_of(&value),
        Err(_) if body.trim_start().starts_with('<') => ServerError::default(),
        Err(_) => ServerError {
            message: body.to_owned(),
            ..ServerError::default()
        },
    }
}

/// `{"error": {..}}` (OpenAI, most), `{"error": ".."}` (Ollama), `{"detail":
/// ..}` (`FastAPI` servers), or the error's fields at the top (vLLM).
fn error_of(body: &Value) -> ServerError {
    let error = body.get("error").unwrap_or(body);
    let message = [error, &error["message"], &body["message"], &body["detail"]];
    ServerError {
        status: status(&error["code"]).or_else(|| status(&error["status"])),
        code: ["code", "type", "status"]
            .iter()
            .filter_map(|name| error[name].as_str())
            .fold(String::new(), |codes, code| codes + code + " "),
        message: message.into_iter().find_map(words).unwrap_or_default(),
        limit: error["n_ctx"]
            .as_u64()
            .and_then(|tokens| u32::try_from(tokens).ok()),
    }
}

/// `LiteLLM` sends its codes as strings.
fn status(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    u16::try_from(number)
        .ok()
        .filter(|status| (400..600).contains(status))
}

/// A message, or `FastAPI`'s list of problems: of each the field and what is wrong,
/// without the input that it repeats.
fn words(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let problems = value.as_array()?.iter().map(|problem| {
        let place = problem["loc"].as_array().into_iter().flatten();
        let place: Vec<&str> = place.filter_map(Value::as_str).collect();
        let what = problem["msg"].as_str().unwrap_or_default();
        format!("{}: {what}", place.join("."))
    });
    Some(problems.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests;
