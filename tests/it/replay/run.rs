//! Runs the replay command within this process, from the flags as typed, and writes small exports for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;
use clew::cli::replay::ReplayArgs;
use clew::config::Config;
use clew::replay::{self, ReplayError, ReplaySettings, Summary};
use clew_context::model::MessageId;
use serde_json::{Value, json};

use super::at;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: ReplayArgs,
}

/// The report without its times, and the figures.
pub(crate) type Replayed = Result<(String, Summary), ReplayError>;

pub(crate) fn replay(files: &[PathBuf], flags: &str) -> Replayed {
    replay_with(files, flags, &[])
}

/// Like [`replay`], with environment variables.
pub(crate) fn replay_with(
    files: &[PathBuf],
    flags: &str,
    environment: &[(&str, &str)],
) -> Replayed {
    let settings = settings_with(files, flags, environment);
    let mut out = Vec::new();
    let summary = block_on(replay::run(&settings, &mut out, &|_, _, _| ()))?;
    Ok((timeless(&String::from_utf8(out).unwrap()), summary))
}

/// The settings that flags lead to.
pub(crate) fn settings(files: &[PathBuf], flags: &str) -> ReplaySettings {
    settings_with(files, flags, &[])
}

fn settings_with(files: &[PathBuf], flags: &str, environment: &[(&str, &str)]) -> ReplaySettings {
    let args = args(flags, files);
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .chain(args.caps.pairs());
    args.settings(&Config::load(environment, None).unwrap())
}

pub(crate) fn args(flags: &str, files: &[PathBuf]) -> ReplayArgs {
    let mut words: Vec<OsString> = vec!["replay".into()];
    words.extend(flags.split_whitespace().map(Into::into));
    words.extend(files.iter().map(|file| file.clone().into_os_string()));
    Typed::try_parse_from(words).unwrap().args
}

/// The JSON lines of a replay that must succeed.
#[track_caller]
pub(crate) fn lines(files: &[PathBuf], flags: &str) -> Vec<Value> {
    let (text, _) = replay(files, &format!("--format jsonl {flags}")).unwrap();
    let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
    parsed.collect()
}

/// The ids of a list in a line.
pub(crate) fn ids(line: &Value, key: &str) -> Vec<MessageId> {
    serde_json::from_value(line[key].clone()).unwrap()
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(future)
}

/// Blanks the times, such as `"ms":0.3` and `in 0.3 ms`, which differ from run to run.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("\"ms\":").map(|at| at + 5) {
        let end = rest[start..].find([',', '}']).unwrap() + start;
        out.push_str(&rest[..start]);
        out.push('0');
        rest = &rest[end..];
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split(' ').collect();
    let shown = words.iter().enumerate().map(|(index, word)| {
        let is_time = words.get(index + 1).is_some_and(|next| *next == "ms,");
        if is_time { "0" } else { word }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// One message of an export.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) second: i64,
    /// 900 and above are bots.
    pub(crate) author: u64,
    pub(crate) text: String,
    /// When the message it replies to was posted.
    pub(crate) reply: Option<i64>,
}

pub(crate) fn row(second: i64, author: u64, text: impl Into<String>) -> Row {
    Row {
        second,
        author,
        text: text.into(),
        reply: None,
    }
}

/// Writes a channel in the format of DiscordChatExporter.
pub(crate) fn export(folder: &Path, channel: Place, rows: &[Row]) -> PathBuf {
    let messages: Vec<Value> = rows.iter().map(|row| message(row, channel.id)).collect();
    let text = json!({
        "guild": {"id": "800", "name": "Harbour"},
        "channel": {
            "id": channel.id.to_string(), "type": channel.kind, "name": "winches",
            "categoryId": channel.parent.to_string(), "category": "general", "topic": null,
        },
        "messages": messages,
        "messageCount": rows.len(),
    });
    let path = folder.join(format!("{}.json", channel.id));
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

/// A channel of an export.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) id: u64,
    pub(crate) kind: &'static str,
    pub(crate) parent: u64,
}

pub(crate) const CHANNEL: Place = Place {
    id: 700,
    kind: "GuildTextChat",
    parent: 690,
};

/// The thread on the message of second 1.
pub(crate) fn thread() -> Place {
    Place {
        id: at(1).get(),
        kind: "GuildPublicThread",
        parent: 700,
    }
}

fn message(row: &Row, channel: u64) -> Value {
    let id = at(row.second);
    let bot = row.author >= 900;
    let mentions = if row.text.contains("<@900>") {
        json!([{"id": "900", "name": "clew", "nickname": "Clew", "isBot": true}])
    } else {
        json!([])
    };
    let mut message = json!({
        "id": id, "type": "Default", "timestamp": id.created().rfc3339(), "timestampEdited": null,
        "isPinned": false, "content": row.text,
        "author": {
            "id": row.author.to_string(), "name": format!("user{}", row.author),
            "discriminator": if bot { "1234" } else { "0000" },
            "nickname": format!("User {}", row.author), "isBot": bot,
        },
        "attachments": [], "embeds": [], "stickers": [], "reactions": [], "mentions": mentions,
    });
    if let Some(second) = row.reply {
        message["type"] = json!("Reply");
        message["reference"] = json!({
            "messageId": at(second), "channelId": channel.to_string(), "guildId": "800",
        });
    }
    message
}
