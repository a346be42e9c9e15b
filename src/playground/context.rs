//! A turn's context as the page shows it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::model::OmittedMessage;
use crate::turn::TurnContext;
use clew_context::discord::ReadCall;
use clew_context::model::{BlockItem, OmitReason};

/// The status of a call that did not fail.
const OK: u16 = 200;

/// What was collected, what was left out, and the calls for it.
pub(super) fn shown(context: &TurnContext, calls: &[ReadCall]) -> Value {
    let block = &context.block;
    let omitted = context.omitted.iter().map(left_out);
    let missing = context.missing.iter();
    let missing =
        missing.map(|(stage, reason)| json!({"stage": stage.as_str(), "reason": reason.as_str()}));
    json!({
        "scene": context.scene.as_str(),
        "target": context.target.map(|target| target.to_string()),
        "title": block.title,
        "included": block.items().map(included).collect::<Vec<_>>(),
        "omitted": omitted.collect::<Vec<_>>(),
        "chars": block.chars,
        "tokens": context.tokens,
        "fetches": calls.iter().map(fetch).collect::<Vec<_>>(),
        "fallbacks": missing.collect::<Vec<_>>(),
        "block": context.framed,
    })
}

fn included(item: &BlockItem) -> Value {
    json!({
        "id": item.message.id.to_string(),
        "channel": item.message.channel.to_string(),
        "name": item.name,
        "text": item.text,
        "shortened": item.cut.map(OmitReason::text),
        "why": item.place,
    })
}

fn left_out(message: &OmittedMessage) -> Value {
    let reason = message.reason;
    json!({
        "id": message.id.to_string(),
        "channel": message.channel.to_string(),
        "cap": reason.setting().unwrap_or(reason.as_str()),
        "why": reason.text(),
    })
}

fn fetch(call: &ReadCall) -> Value {
    let status = call.error.map_or(Some(OK), |error| error.status);
    json!({
        "method": "GET",
        "path": call.path,
        "status": status,
        "reason": call.error.map(|error| error.reason.as_str()),
        "ms": millis(call.took),
    })
}

/// With one decimal.
pub(super) fn millis(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}
