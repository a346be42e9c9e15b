//! Messages, pages and servers as large as Discord allows.

use serde_json::{Value, json};

use super::texts::Writer;

/// Discord's limits, in Unicode scalars or in pieces.
const CONTENT: usize = 4_000;
const EMBEDS: usize = 10;
/// Of all texts in all embeds of a message together.
const EMBED_CHARS: usize = 6_000;
const FIELDS: usize = 25;
const COMPONENT_CHARS: usize = 4_000;
const ATTACHMENTS: usize = 10;
const ALT_TEXT: usize = 1_024;
const NAME: usize = 32;
/// The most mentioned users that Discord sends.
const MENTIONS: u64 = 100;

/// A message; every second one is a reply that carries another message.
pub(super) fn message(writer: &mut Writer, number: u64) -> Value {
    let mut message = bare(writer, number);
    if number % 2 == 1 {
        message["type"] = json!(19);
        message["message_reference"] = json!({"message_id": id(number - 1), "channel_id": "2"});
        message["referenced_message"] = bare(writer, number - 1);
    }
    message
}

/// The id of a message; consecutive ones are a second apart.
pub(super) fn id(number: u64) -> String {
    (((1_460_000_000 + number) * 1_000) << 22).to_string()
}

/// One of Discord's kinds in turn: text with embeds, a forward, a poll, components (which replace the text).
fn bare(writer: &mut Writer, number: u64) -> Value {
    let mut message = json!({
        "id": id(number),
        "channel_id": "2",
        "author": {"id": (number + 10).to_string(), "username": writer.text(NAME)},
        "type": 0,
        "timestamp": "2026-01-02T10:00:00Z",
        "content": "",
        "mentions": mentions(writer, number),
        "attachments": files(writer),
        "sticker_items": [{"name": writer.text(30)}],
    });
    match number / 2 % 4 {
        0 => {
            message["content"] = json!(writer.text(CONTENT));
            message["embeds"] = embeds(writer);
        }
        1 => {
            let forwarded = json!({"content": writer.text(CONTENT), "embeds": embeds(writer),
                "attachments": files(writer)});
            message["message_snapshots"] = json!([{"message": forwarded}]);
        }
        2 => {
            let answer = |writer: &mut Writer, answer: u64| json!({"answer_id": answer, "poll_media": {"text": writer.text(55)}});
            let answers: Vec<Value> = (0..10).map(|number| answer(writer, number)).collect();
            message["content"] = json!(writer.text(CONTENT));
            message["poll"] = json!({"question": {"text": writer.text(300)}, "answers": answers});
        }
        _ => {
            let text = |writer: &mut Writer| json!({"type": 10, "content": writer.text(COMPONENT_CHARS / 20)});
            message["components"] = (0..20).map(|_| text(writer)).collect();
        }
    }
    message
}

fn mentions(writer: &mut Writer, number: u64) -> Value {
    let mention = |writer: &mut Writer, user: u64| {
        json!({"id": (number * 100 + user + 10).to_string(), "username": writer.text(NAME),
            "member": {"nick": writer.text(NAME)}})
    };
    (0..MENTIONS).map(|user| mention(writer, user)).collect()
}

fn files(writer: &mut Writer) -> Value {
    let file = |writer: &mut Writer| {
        json!({"filename": writer.text(100), "url": "https://example.org", "size": 1,
            "description": writer.text(ALT_TEXT)})
    };
    (0..ATTACHMENTS).map(|_| file(writer)).collect()
}

fn embeds(writer: &mut Writer) -> Value {
    (0..EMBEDS).map(|_| embed(writer)).collect()
}

fn embed(writer: &mut Writer) -> Value {
    let chars = EMBED_CHARS / EMBEDS;
    let fields: Vec<Value> = (0..FIELDS)
        .map(|_| json!({"name": writer.text(4), "value": writer.text(4)}))
        .collect();
    json!({
        "title": writer.text(50),
        "description": writer.text(chars - 50 - FIELDS * 8),
        "fields": fields,
    })
}

/// The data of a `GUILD_CREATE` as Discord sends it.
pub(super) fn guild(writer: &mut Writer, channels: u64, overwrites: u64, threads: u64) -> Value {
    let overwrites: Vec<Value> = (0..overwrites)
        .map(|role| json!({"id": (1_000 + role).to_string(), "type": 0, "allow": "1024", "deny": "2048"}))
        .collect();
    let tags: Vec<Value> = (0..20)
        .map(|tag| json!({"id": (5_000 + tag).to_string(), "name": writer.text(20)}))
        .collect();
    let channel = |writer: &mut Writer, channel: u64| {
        json!({
            "id": (10_000 + channel).to_string(), "type": 15, "name": writer.text(100), "topic": writer.text(1_024),
            "permission_overwrites": overwrites, "available_tags": tags,
        })
    };
    let thread = |writer: &mut Writer, thread: u64| {
        json!({
            "id": (20_000 + thread).to_string(), "type": 11, "parent_id": "10000", "name": writer.text(100),
            "owner_id": "7", "message_count": 5, "applied_tags": ["5000", "5001"],
            "thread_metadata": {"archived": false, "locked": false},
        })
    };
    let role = |writer: &mut Writer, role: u64| {
        json!({
            "id": (1_000 + role).to_string(), "name": writer.text(100), "permissions": "2248473465835073",
        })
    };
    let member = |writer: &mut Writer, user: u64| {
        json!({
            "user": {"id": (100 + user).to_string(), "username": writer.text(32)}, "nick": writer.text(32),
            "roles": (0..250).map(|role| (1_000 + role).to_string()).collect::<Vec<_>>(),
        })
    };
    json!({
        "id": "1000", "name": writer.text(100), "owner_id": "7",
        "roles": (0..250).map(|n| role(writer, n)).collect::<Vec<_>>(),
        "channels": (0..channels).map(|n| channel(writer, n)).collect::<Vec<_>>(),
        "threads": (0..threads).map(|n| thread(writer, n)).collect::<Vec<_>>(),
        "members": (0..250).map(|n| member(writer, n)).collect::<Vec<_>>(),
        "emojis": (0..250).map(|n| json!({"id": n.to_string(), "name": writer.text(32)})).collect::<Vec<_>>(),
    })
}
