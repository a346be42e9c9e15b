//! The model server: it answers each question with the question's own mark, in a few words.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use clew_context::outside::SendError;
use futures_util::{Stream, StreamExt as _, stream};
use reqwest::{Body, Request, Response};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::net::Net;
use crate::history::{Mark, MarkOf, Prompted, What, marks};
use crate::world::ModelTrouble;

/// Begins the last word of an answer.
pub(crate) const LAST_WORD: &str = "last";
/// The most milliseconds between two words.
const PAUSE: u64 = 40;

pub(super) async fn answer(net: &Net, request: Request) -> Result<Response, SendError> {
    if request.url().path().ends_with("/models") {
        let list = json!({"object": "list", "data": [{"id": "model", "object": "model"}]});
        return Ok(respond(200, list.to_string()));
    }
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let question = note(net, &body);
    net.travel().await;
    net.process.cross().await;
    let trouble = {
        let mut troubles = net.world.troubles();
        (!troubles.model.is_empty()).then(|| troubles.model.remove(0))
    };
    if trouble.is_some_and(|trouble| !matches!(trouble, ModelTrouble::Slow(_))) {
        net.world.note(What::ModelFailed { question });
    }
    if let Some(events) = other_than_words(net, &body, question).filter(|_| trouble.is_none()) {
        return Ok(stream_of(net, events, PAUSE, true));
    }
    let words: Vec<String> = question.map_or_else(
        || vec!["nothing".to_owned()],
        |question| {
            let mark = Mark {
                of: MarkOf::Answer,
                ..question
            };
            let rest = net.world.between(2, 6);
            let rest = (0..rest).map(|word| {
                let letters = if word + 1 == rest { LAST_WORD } else { "word" };
                format!(" {letters}{word}")
            });
            [mark.to_string()].into_iter().chain(rest).collect()
        },
    );
    let words: Vec<Value> = words.iter().map(|word| json!({"content": word})).collect();
    match trouble {
        Some(ModelTrouble::Status(status)) => {
            let error = json!({"error": {"message": "not now", "type": "server_error"}});
            Ok(respond(status, error.to_string()))
        }
        Some(ModelTrouble::Hangs(ms)) => {
            sleep(Duration::from_millis(ms)).await;
            Err(SendError::BrokenOff)
        }
        Some(ModelTrouble::Empty) => Ok(stream_of(net, Vec::new(), PAUSE, true)),
        Some(ModelTrouble::BreaksOff) => Ok(stream_of(net, words, PAUSE, false)),
        Some(ModelTrouble::Slow(ms)) => Ok(stream_of(net, words, ms, true)),
        None => Ok(stream_of(net, words, PAUSE, true)),
    }
}

/// How often in a hundred times the model calls a tool, if it may.
const CALLS: u64 = 20;
/// Ends the head of an asker's message, in a turn's prompt.
const ASKS: &str = "asks you";
/// What is asked for by the button under an answer that broke off: it is no question of its own.
const GO_ON: &str = "Continue this answer exactly where it ends";
/// How the prompt begins that asks for facts.
const NOTES: &str = "You keep short notes";

/// A tool's call, or facts, if these are what is wanted.
fn other_than_words(net: &Net, body: &Value, question: Option<Mark>) -> Option<Vec<Value>> {
    let messages = body["messages"].as_array()?;
    if text(&messages.first()?["content"]).starts_with(NOTES) {
        let data: Value = serde_json::from_str(&text(&messages.last()?["content"])).ok()?;
        let mark = *marks(data["message"].as_str()?).first()?;
        let fact = json!({"facts": [{"text": format!("thinks of {mark} often")}]});
        return Some(vec![json!({"content": fact.to_string()})]);
    }
    let mark = question?;
    let tools = body["tools"].as_array()?;
    if messages.last()?["role"] == "tool" || net.world.between(1, 100) > CALLS {
        return None;
    }
    let which = net.world.between(1, tools.len() as u64) - 1;
    let tool = &tools.get(usize::try_from(which).ok()?)?["function"]["name"];
    let arguments = match tool.as_str()? {
        "search_messages" => json!({"words": "say meant about"}),
        "search_outputs" => json!({"words": "say"}),
        "remember" => json!({"fact": "says what it is about"}),
        _ => json!({}),
    };
    let call = json!({
        "index": 0, "id": format!("call-{}", mark.number), "type": "function",
        "function": {"name": tool, "arguments": arguments.to_string()},
    });
    Some(vec![json!({"tool_calls": [call]})])
}

/// Notes what the prompt shows. Returns the question that it asks: the asker's words are the
/// last of the prompt, but for what tools gave.
fn note(net: &Net, body: &Value) -> Option<Mark> {
    let messages = body["messages"].as_array().map(Vec::as_slice);
    let messages = messages.unwrap_or_default();
    let texts = messages.iter().map(|message| text(&message["content"]));
    let texts: Vec<String> = texts.collect();
    let of_asker = messages.iter().rposition(|one| one["role"] == "user");
    let last = of_asker.map(|at| &texts[at]);
    let asks = last.filter(|text| text.contains(ASKS) && !text.contains(GO_ON));
    let mut asked = asks.map(|text| marks(text)).unwrap_or_default();
    asked.retain(|mark| mark.of.is_asked());
    let question = asked.pop();
    let mut shows: Vec<Mark> = texts.iter().flat_map(|text| marks(text)).collect();
    shows.retain(|mark| Some(*mark) != question);
    shows.sort_unstable();
    shows.dedup();
    net.world.note(What::Prompted(Prompted {
        process: net.process.number(),
        question,
        shows,
        chars: texts.iter().map(|text| text.chars().count()).sum(),
    }));
    question
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

fn respond(status: u16, body: String) -> Response {
    let mut response = http::Response::new(Body::from(body));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response.into()
}

/// The parts as server-sent events, one each, and the end unless it breaks off.
fn stream_of(net: &Net, parts: Vec<Value>, pause: u64, ends: bool) -> Response {
    let calls = parts.iter().any(|part| part.get("tool_calls").is_some());
    let mut events: Vec<Result<Value, ()>> = parts
        .into_iter()
        .map(|part| Ok(json!({"choices": [{"index": 0, "delta": part}]})))
        .collect();
    if ends {
        let reason = if calls { "tool_calls" } else { "stop" };
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        events.push(Ok(end));
    } else {
        events.truncate(events.len() / 2);
        events.push(Err(()));
    }
    http::Response::new(Body::wrap_stream(paced(net.clone(), events, pause))).into()
}

fn paced(
    net: Net,
    events: Vec<Result<Value, ()>>,
    pause: u64,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let done = stream::iter([Ok(Bytes::from_static(b"data: [DONE]\n\n"))]);
    let ends = events.iter().all(Result::is_ok);
    let events = stream::iter(events).then(move |event| {
        let net = net.clone();
        async move {
            let wait = net.world.between(1, pause.max(1));
            sleep(Duration::from_millis(wait)).await;
            net.process.cross().await;
            let broken = |()| io::Error::from(io::ErrorKind::ConnectionReset);
            event
                .map_err(broken)
                .map(|event| format!("data: {event}\n\n").into())
        }
    });
    events.chain(done.take(usize::from(ends)))
}
