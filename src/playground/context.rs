//! A turn's context as the page shows it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::model::OmittedMessage;
use crate::turn::TurnContext;
use clew_context::discord::ReadCall;
use clew_context::model::{BlockItem, OmitReason, Scene};

/// The status of a call that did not fail.
const OK: u16 = 200;

/// What was collected, what was left out, and the calls for it.
pub(super) fn shown(context: &TurnContext, calls: &[ReadCall]) -> Value {
    let block = &context.block;
    let in_chain = context.scene != Scene::Thread;
    let omitted = context.omitted.iter();
    let omitted = omitted.map(|message| left_out(message, in_chain));
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
        "shortened": item.cut.is_some(),
        "why": item.place,
    })
}

fn left_out(message: &OmittedMessage, in_chain: bool) -> Value {
    let setting = message.reason.setting(in_chain);
    json!({
        "id": message.id.to_string(),
        "channel": message.channel.to_string(),
        "cap": setting.unwrap_or_else(|| message.reason.as_str()),
        "why": why(message.reason),
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

/// Why a message is not in the block, in a sentence.
const fn why(reason: OmitReason) -> &'static str {
    match reason {
        OmitReason::Msgs => "There is room for so many messages, and others come first.",
        OmitReason::Chars => "There is room for so many characters, and other messages come first.",
        OmitReason::Age => "It is older than the conversation reaches back.",
        OmitReason::App => "An app or a webhook wrote it, and nobody points at it.",
        OmitReason::System => "Discord wrote it: somebody joined, pinned or opened a thread.",
        OmitReason::Empty => "It has nothing that can be shown as text.",
        OmitReason::Note => "It is a note of the bot's own, not an answer.",
        OmitReason::Newer => "It came after the question.",
        OmitReason::Deleted => "It was deleted.",
        OmitReason::Malformed => "It could not be read.",
        OmitReason::OptedOut => "Its author opted out.",
        OmitReason::OtherConversation => {
            "It seems to belong to another conversation, or others belong more surely to this one."
        }
    }
}

/// With one decimal.
pub(super) fn millis(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}
