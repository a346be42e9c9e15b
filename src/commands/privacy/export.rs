//! `/privacy export`: everything that is kept about the caller, as JSON files.

use serde_json::{Map, Value, json};

use crate::commands::CommandServices;
use crate::commands::call::Call;
use crate::commands::done::{Done, Effect, Stop};
use crate::memory::Exported;
use crate::runs::Connection;
use clew_context::model::{UnixMillis, UserId};
use clew_discord::model::Answer;

/// The most bytes of entries in a file: Discord's limit without paid boosts is
/// 10 MiB, less some room for the JSON around the entries.
const PART_BYTES: usize = 10 * 1024 * 1024 - 4_096;

/// Sends the files as direct messages; the answer only says so.
pub(super) async fn export(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let mut exported = services.memory.export(call.caller()).await?;
    let connections = services
        .connections
        .of(call.caller(), services.memory.now());
    let connections = connections.iter().map(connection);
    exported.entries.extend(connections);
    let entries = match exported.entries.len() {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    };
    let files = files(&exported, call.caller(), PART_BYTES);
    let content = |number: usize| match number {
        0 => format!("Everything I keep of you: {entries}."),
        _ => String::new(),
    };
    let messages = files
        .into_iter()
        .enumerate()
        .map(|(number, (name, bytes))| Answer::for_caller(content(number)).with_file(name, bytes));
    let effect = Effect::DirectMessages {
        messages: messages.collect(),
        closed: Answer::for_caller("You take no direct messages from me, so here it is:"),
    };
    let text = format!("I sent you everything I keep of you, {entries}, in a direct message.");
    Ok(Done::say(text).with(effect))
}

/// A program that reads as them, without its token.
fn connection(one: &Connection) -> String {
    let (made, ends) = (UnixMillis(one.made).rfc3339(), one.ends().rfc3339());
    let (guilds, client) = (&one.guilds, &one.client);
    json!({"kind": "connection", "guilds": guilds, "client": client, "made": made, "ends": ends})
        .to_string()
}

/// One file, or several if one would be too large. Each is a complete JSON
/// document `{exported_at, user_id, entries}`.
fn files(exported: &Exported, user: UserId, most: usize) -> Vec<(String, Vec<u8>)> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    let mut bytes = 0;
    for entry in exported.entries.iter().flat_map(|entry| split(entry, most)) {
        if bytes + entry.len() > most && bytes > 0 {
            parts.push(Vec::new());
            bytes = 0;
        }
        // For the comma and the line break.
        bytes += entry.len() + 2;
        if let Some(part) = parts.last_mut() {
            part.push(entry);
        }
    }
    let of = parts.len();
    let named = |number: usize| match of {
        1 => format!("clew-export-{user}.json"),
        _ => format!("clew-export-{user}-{number}-of-{of}.json"),
    };
    let at = json!(exported.at.rfc3339());
    let document = |part: &[String]| {
        let entries = part.join(",\n");
        format!("{{\"exported_at\":{at},\"user_id\":\"{user}\",\"entries\":[\n{entries}\n]}}\n")
    };
    (1..)
        .zip(&parts)
        .map(|(number, part)| (named(number), document(part).into_bytes()))
        .collect()
}

/// Splits an entry that is too large for one file, such as a long saved
/// conversation, into several, each with a part of its longest list.
fn split(entry: &str, most: usize) -> Vec<String> {
    if entry.len() <= most {
        return vec![entry.to_owned()];
    }
    halves(entry).map_or_else(
        || vec![entry.to_owned()],
        |halves| {
            let parts = halves.iter().map(|half| split(half, most));
            parts.collect::<Vec<_>>().concat()
        },
    )
}

/// Two entries, each with half of the longest list; none if no list can be split.
fn halves(entry: &str) -> Option<[String; 2]> {
    let mut fields: Map<String, Value> = serde_json::from_str(entry).ok()?;
    let lists = fields.iter();
    let lists = lists.filter_map(|(name, value)| Some((name, value.as_array()?.len())));
    let (name, length) = lists.max_by_key(|(_, length)| *length)?;
    let name = name.clone();
    let mut front = match fields.remove(&name)? {
        Value::Array(list) if length > 1 => list,
        _ => return None,
    };
    let back = front.split_off(length / 2);
    Some([front, back].map(|half| {
        let mut part = fields.clone();
        part.insert(name.clone(), half.into());
        Value::from(part).to_string()
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use clew_context::model::GuildId;

    fn read(files: &[(String, Vec<u8>)]) -> Vec<Value> {
        let documents = files.iter().map(|(_, bytes)| {
            let document: Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!(document["user_id"], "7");
            assert_eq!(document["exported_at"], "1970-01-01T00:00:00.000Z");
            document["entries"].as_array().unwrap().clone()
        });
        documents.collect::<Vec<_>>().concat()
    }

    #[track_caller]
    fn check(entries: &[Value], most: usize, names: &[&str]) -> Vec<Value> {
        let exported = Exported {
            at: UnixMillis(0),
            entries: entries.iter().map(Value::to_string).collect(),
        };
        let files = files(&exported, UserId::new(7), most);
        let found: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
        assert_eq!(found, names);
        assert!(files.iter().all(|(_, bytes)| bytes.len() < most + 100));
        read(&files)
    }

    #[test]
    fn a_program_is_listed_without_its_token() {
        let one = Connection {
            user: UserId::new(7),
            guilds: BTreeSet::from([GuildId::new(9)]),
            client: "editor".to_owned(),
            made: 0,
        };
        let entry: Value = serde_json::from_str(&connection(&one)).unwrap();
        let expected = json!({
            "kind": "connection", "guilds": ["9"], "client": "editor",
            "made": "1970-01-01T00:00:00.000Z", "ends": "1970-01-31T00:00:00.000Z",
        });
        assert_eq!(entry, expected);
    }

    #[test]
    fn one_file_if_it_fits_and_whole_documents_if_not() {
        let entry =
            |number: usize| json!({"kind": "message", "content": "x".repeat(50), "n": number});
        let entries: Vec<Value> = (0..10).map(entry).collect();
        assert_eq!(
            check(&[], 1_000, &["clew-export-7.json"]),
            Vec::<Value>::new()
        );
        assert_eq!(check(&entries, 1_000, &["clew-export-7.json"]), entries);
        let names = ["clew-export-7-1-of-2.json", "clew-export-7-2-of-2.json"];
        assert_eq!(check(&entries, 500, &names), entries);
    }

    #[test]
    fn a_long_conversation_is_cut_between_its_messages() {
        let messages: Vec<Value> = (0..20)
            .map(|number| json!({"content": "x".repeat(20), "n": number}))
            .collect();
        let entry = json!({"kind": "snapshot", "id": "1", "messages": messages});
        let names = [1, 2, 3, 4].map(|part| format!("clew-export-7-{part}-of-4.json"));
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let parts = check(&[entry], 260, &names);
        let back: Vec<Value> = parts
            .iter()
            .flat_map(|part| part["messages"].as_array().unwrap().clone())
            .collect();
        assert_eq!(back, messages);
        assert!(parts.iter().all(|part| part["id"] == "1"));
    }
}
